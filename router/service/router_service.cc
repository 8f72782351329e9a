#include "router/service/router_service.h"

#include <algorithm>
#include <utility>

#include "proto/wire.h"
#include "router/service/client_stream.h"
#include "rpc/unary.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;

// Requests that name their own time-out never outlive the gRPC call they came by.
template <class Request>
milliseconds Limit(const grpc::CallbackServerContext& context, Request* request) {
  const milliseconds left = rpc::TimeLeft(context, request->timeout_millis());
  request->set_timeout_millis(static_cast<std::uint32_t>(std::max<std::int64_t>(left.count(), 0)));
  return left;
}

milliseconds LimitOf(const grpc::CallbackServerContext& context, v1::ClientRequest* request) {
  if (request->has_call()) return Limit(context, request->mutable_call());
  if (request->has_map_call()) return Limit(context, request->mutable_map_call());
  if (request->has_sync()) return Limit(context, request->mutable_sync());
  return rpc::TimeLeft(context);
}

// What the RPC itself ends with: a failure goes into the response where that has a place for it.
template <class Response>
Status StatusOfRpc(const Status& status, Response* response) {
  if constexpr (requires { response->mutable_status(); }) {
    if (!status.ok()) *response->mutable_status() = ToProto(status);
    return OkStatus();
  } else {
    return status;
  }
}

}  // namespace

template <class Response>
grpc::ServerUnaryReactor* RouterService::Serve(grpc::CallbackServerContext* context,
                                               v1::ClientRequest request, Response* response,
                                               v1::ClientResponse::ResponseCase part,
                                               Response* (v1::ClientResponse::*get)()) {
  const milliseconds timeout = LimitOf(*context, &request);
  request.set_id(1);
  v1::NodeMessage message;
  message.set_collection(collection_.value());
  message.set_client_request(request.SerializeAsString());
  const auto read = [response, part, get](const Result<v1::NodeMessage>& reply) {
    ETALON_RETURN_IF_ERROR(reply.status());
    v1::ClientResponse answer;
    if (!answer.ParseFromString(reply->client_reply()))
      return Internal("the router's answer cannot be understood");
    ETALON_RETURN_IF_ERROR(FromProto(answer.status()));
    if (answer.response_case() != part)
      return Internal("the router answered another question than was asked");
    *response = std::move(*(answer.*get)());
    return OkStatus();
  };
  return rpc::UnaryCall::Start(endpoint_, context, message, timeout,
                               [read, response](const Result<v1::NodeMessage>& reply) {
                                 return StatusOfRpc(read(reply), response);
                               });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* RouterService::Pipe(
    grpc::CallbackServerContext* context) {
  return std::make_shared<ClientStream>(endpoint_, context, collection_)->Begin();
}

#define ETALON_ROUTER_METHOD(Method, Request, Response, field, part, Part)                        \
  grpc::ServerUnaryReactor* RouterService::Method(                                                \
      grpc::CallbackServerContext* context, const v1::Request* request, v1::Response* response) { \
    v1::ClientRequest call;                                                                       \
    *call.mutable_##field() = *request;                                                           \
    return Serve(context, std::move(call), response, v1::ClientResponse::Part,                    \
                 &v1::ClientResponse::mutable_##part);                                            \
  }
ETALON_ROUTER_METHOD(Call, ClientCall, ClientReply, call, call, kCall)
ETALON_ROUTER_METHOD(MapCall, MapCallRequest, MapCallResponse, map_call, map_call, kMapCall)
ETALON_ROUTER_METHOD(Route, RouteRequest, RouteResponse, route, route, kRoute)
ETALON_ROUTER_METHOD(RouteAll, RouteAllRequest, RouteAllResponse, route_all, route_all, kRouteAll)
ETALON_ROUTER_METHOD(BucketId, BucketIdRequest, BucketIdResponse, bucket_id, bucket_id, kBucketId)
ETALON_ROUTER_METHOD(BucketsInfo, RouterBucketsRequest, RouterBucketsResponse, buckets, buckets,
                     kBuckets)
ETALON_ROUTER_METHOD(Info, RouterInfoRequest, RouterInfoResponse, info, info, kInfo)
ETALON_ROUTER_METHOD(Sync, SyncRequest, SyncResponse, sync, sync, kSync)
ETALON_ROUTER_METHOD(DescribeCollection, DescribeCollectionRequest, DescribeCollectionResponse,
                     describe, describe, kDescribe)
ETALON_ROUTER_METHOD(ApplyTopology, Topology, Empty, apply_topology, done, kDone)
#undef ETALON_ROUTER_METHOD

}  // namespace etalon::router
