// The operator's calls over gRPC: blocking clients on a few threads of their own.
#pragma once

#include <memory>

#include "env/executor.h"
#include "operator/node/admin_port.h"

namespace etalon::controller {

// At most `threads` calls at a time, the others wait in line; more than kQueuedCalls waiting are
// refused with RESOURCE_EXHAUSTED. A call's time in the line counts against its time-out. Threads:
// any; `done` runs on the executor.
class GrpcAdminPort final : public AdminPort {
 public:
  static constexpr std::size_t kQueuedCalls = 10000;

  GrpcAdminPort(Executor& executor, std::size_t threads);
  // Waits for the calls under way; what waits in line is dropped.
  ~GrpcAdminPort() override;

  void AskStorage(const std::string& address, v1::AdminRequest request, Duration timeout,
                  UniqueFunction<void(Result<v1::AdminResponse>)> done) override;
  void AskRouter(const std::string& address, Duration timeout,
                 UniqueFunction<void(Result<v1::RouterInfoResponse>)> done) override;
  void PushTopology(const std::string& address, v1::Topology topology, Duration timeout,
                    UniqueFunction<void(Status)> done) override;

 private:
  struct Pool;
  const std::unique_ptr<Pool> pool_;
  Executor& executor_;
};

}  // namespace etalon::controller
