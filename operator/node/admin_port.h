// How the operator talks to storages and routers.
#pragma once

#include <string>

#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/router.pb.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::controller {

// `done` runs exactly once, later, on the operator's executor, at the latest a little after
// `timeout`. A failure carries the status of the one that was asked; DEADLINE_EXCEEDED or
// UNAVAILABLE when there was no answer.
class AdminPort {
 public:
  virtual ~AdminPort() = default;
  virtual void AskStorage(const std::string& address, v1::AdminRequest request, Duration timeout,
                          UniqueFunction<void(Result<v1::AdminResponse>)> done) = 0;
  virtual void AskRouter(const std::string& address, Duration timeout,
                         UniqueFunction<void(Result<v1::RouterInfoResponse>)> done) = 0;
  virtual void PushTopology(const std::string& address, v1::Topology topology, Duration timeout,
                            UniqueFunction<void(Status)> done) = 0;
};

}  // namespace etalon::controller
