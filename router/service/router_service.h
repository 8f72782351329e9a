#pragma once

#include <memory>

#include "common/ids.h"
#include "etalon/v1/services.grpc.pb.h"
#include "rpc/endpoint.h"

namespace etalon::router {

// The unary methods typed, Pipe in raw bytes (rpc/frame_stream.h says why).
using RouterMethods = v1::Router::WithRawCallbackMethod_Pipe<
    v1::Router::WithCallbackMethod_Call<v1::Router::WithCallbackMethod_MapCall<
        v1::Router::WithCallbackMethod_Route<v1::Router::WithCallbackMethod_RouteAll<
            v1::Router::WithCallbackMethod_BucketId<v1::Router::WithCallbackMethod_BucketsInfo<
                v1::Router::WithCallbackMethod_Info<v1::Router::WithCallbackMethod_Sync<
                    v1::Router::WithCallbackMethod_DescribeCollection<
                        v1::Router::WithCallbackMethod_ApplyTopology<v1::Router::Service>>>>>>>>>>>;

// Every unary method of Router is a client_request to the node and its client_reply back; Pipe
// carries many calls at once (client_stream.h). A caller's deadline shortens the time-out that the
// request names; at the deadline (10 s without one) the caller is answered whatever the node does.
// Failures of methods whose response has a status stand there.
class RouterService final : public RouterMethods {
 public:
  RouterService(std::shared_ptr<rpc::Endpoint> endpoint, CollectionId collection)
      : endpoint_(std::move(endpoint)), collection_(collection) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipe(
      grpc::CallbackServerContext* context) override;

#define ETALON_ROUTER_METHOD(Method, Request, Response)                  \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context, \
                                   const v1::Request* request, v1::Response* response) override;
  ETALON_ROUTER_METHOD(Call, ClientCall, ClientReply)
  ETALON_ROUTER_METHOD(MapCall, MapCallRequest, MapCallResponse)
  ETALON_ROUTER_METHOD(Route, RouteRequest, RouteResponse)
  ETALON_ROUTER_METHOD(RouteAll, RouteAllRequest, RouteAllResponse)
  ETALON_ROUTER_METHOD(BucketId, BucketIdRequest, BucketIdResponse)
  ETALON_ROUTER_METHOD(BucketsInfo, RouterBucketsRequest, RouterBucketsResponse)
  ETALON_ROUTER_METHOD(Info, RouterInfoRequest, RouterInfoResponse)
  ETALON_ROUTER_METHOD(Sync, SyncRequest, SyncResponse)
  ETALON_ROUTER_METHOD(DescribeCollection, DescribeCollectionRequest, DescribeCollectionResponse)
  ETALON_ROUTER_METHOD(ApplyTopology, Topology, Empty)
#undef ETALON_ROUTER_METHOD

 private:
  // Answers with `part` of the node's ClientResponse.
  template <class Response>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, v1::ClientRequest request,
                                  Response* response, v1::ClientResponse::ResponseCase part,
                                  Response* (v1::ClientResponse::*get)());

  const std::shared_ptr<rpc::Endpoint> endpoint_;
  const CollectionId collection_;
};

}  // namespace etalon::router
