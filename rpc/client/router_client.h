#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "common/time.h"
#include "etalon/v1/router.pb.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::rpc {

// One router, as programs ask it: blocking, each call with a time-out (DEADLINE_EXCEEDED after it).
// Nothing is retried here: the router does that. Threads: any. For many calls at once: RouterPipe.
class RouterClient {
 public:
  explicit RouterClient(const std::string& address);
  ~RouterClient();

  // The function's result, serialized.
  Result<std::string> Call(const v1::ClientCall& call, Duration timeout);
  // The response's own status stays in it: there may be results beside it.
  Result<v1::MapCallResponse> MapCall(const v1::MapCallRequest& request, Duration timeout);
  Result<v1::RouteResponse> Route(const v1::Target& target, Duration timeout);
  Result<v1::RouteAllResponse> RouteAll(Duration timeout);
  Result<v1::BucketIdResponse> BucketId(const v1::Target& target, Duration timeout);
  Result<v1::RouterBucketsResponse> BucketsInfo(const v1::RouterBucketsRequest& request,
                                                Duration timeout);
  Result<v1::RouterInfoResponse> Info(Duration timeout);
  Status Sync(Duration timeout);
  Result<v1::DescribeCollectionResponse> DescribeCollection(Duration timeout);
  Status ApplyTopology(const v1::Topology& topology, Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etalon::rpc
