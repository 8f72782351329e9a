#include "rpc/client/router_client.h"

#include "etalon/v1/services.grpc.pb.h"
#include "proto/wire.h"
#include "rpc/channel.h"
#include "rpc/client/unary_client.h"

namespace etalon::rpc {
namespace {

using Stub = v1::Router::Stub;

// The failure that a response itself names.
template <class Response>
Result<Response> Unwrapped(Result<Response> response) {
  if (response.ok() && response->status().code() != 0) return FromProto(response->status());
  return response;
}

}  // namespace

struct RouterClient::Impl {
  Stub stub;
};

RouterClient::RouterClient(const std::string& address)
    : impl_(new Impl{.stub = Stub(MakeChannel(address))}) {}
RouterClient::~RouterClient() = default;

Result<std::string> RouterClient::Call(const v1::ClientCall& call, Duration timeout) {
  ETALON_ASSIGN_OR_RETURN(v1::ClientReply reply,
                          Unwrapped(CallUnary(impl_->stub, &Stub::Call, call, timeout)));
  return std::move(*reply.mutable_result());
}
Result<v1::MapCallResponse> RouterClient::MapCall(const v1::MapCallRequest& request,
                                                  Duration timeout) {
  return CallUnary(impl_->stub, &Stub::MapCall, request, timeout);
}
Result<v1::RouteResponse> RouterClient::Route(const v1::Target& target, Duration timeout) {
  v1::RouteRequest request;
  *request.mutable_target() = target;
  return CallUnary(impl_->stub, &Stub::Route, request, timeout);
}
Result<v1::RouteAllResponse> RouterClient::RouteAll(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::RouteAll, v1::RouteAllRequest(), timeout);
}
Result<v1::BucketIdResponse> RouterClient::BucketId(const v1::Target& target, Duration timeout) {
  v1::BucketIdRequest request;
  *request.mutable_target() = target;
  return CallUnary(impl_->stub, &Stub::BucketId, request, timeout);
}
Result<v1::RouterBucketsResponse> RouterClient::BucketsInfo(const v1::RouterBucketsRequest& request,
                                                            Duration timeout) {
  return CallUnary(impl_->stub, &Stub::BucketsInfo, request, timeout);
}
Result<v1::RouterInfoResponse> RouterClient::Info(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Info, v1::RouterInfoRequest(), timeout);
}
Status RouterClient::Sync(Duration timeout) {
  return Unwrapped(CallUnary(impl_->stub, &Stub::Sync, v1::SyncRequest(), timeout)).status();
}
Result<v1::DescribeCollectionResponse> RouterClient::DescribeCollection(Duration timeout) {
  return Unwrapped(
      CallUnary(impl_->stub, &Stub::DescribeCollection, v1::DescribeCollectionRequest(), timeout));
}
Status RouterClient::ApplyTopology(const v1::Topology& topology, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::ApplyTopology, topology, timeout).status();
}

}  // namespace etalon::rpc
