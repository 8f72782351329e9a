#include "operator/admin/grpc_admin_port.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "proto/wire.h"
#include "rpc/client/router_client.h"
#include "rpc/client/storage_client.h"

namespace etalon::controller {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Whatever was asked, as one response.
v1::AdminResponse Ask(rpc::StorageClient& client, const v1::AdminRequest& request,
                      Duration timeout) {
  v1::AdminResponse out;
  const auto put = [&](const auto& result, auto* field) {
    if (result.ok()) {
      *field = result.value();
    } else {
      *out.mutable_status() = ToProto(result.status());
    }
  };
  const auto done = [&](const Status& status) {
    if (status.ok()) {
      out.mutable_done();
    } else {
      *out.mutable_status() = ToProto(status);
    }
  };
  switch (request.request_case()) {
    case v1::AdminRequest::kInfo:
      put(client.Info(timeout), out.mutable_info());
      break;
    case v1::AdminRequest::kForm:
      done(client.Form(request.form(), timeout));
      break;
    case v1::AdminRequest::kChangeMembers:
      done(client.ChangeMembers(request.change_members(), timeout));
      break;
    case v1::AdminRequest::kTransferLeader:
      done(client.TransferLeader(request.transfer_leader(), timeout));
      break;
    case v1::AdminRequest::kApplyTopology:
      done(client.ApplyTopology(request.apply_topology(), timeout));
      break;
    case v1::AdminRequest::kApplySettings:
      done(client.ApplySettings(request.apply_settings(), timeout));
      break;
    case v1::AdminRequest::kSplit:
      put(client.Split(request.split(), timeout), out.mutable_split());
      break;
    case v1::AdminRequest::kAbortSplit:
      put(client.AbortSplit(request.abort_split(), timeout), out.mutable_split());
      break;
    case v1::AdminRequest::kRetire:
      done(client.Retire(timeout));
      break;
    case v1::AdminRequest::kRebalancerState:
      put(client.RebalancerState(timeout), out.mutable_rebalancer_state());
      break;
    case v1::AdminRequest::kBucketsInfo:
    case v1::AdminRequest::kRecover:
    case v1::AdminRequest::kReleaseQuarantine:
    case v1::AdminRequest::kSplitStatus:
    case v1::AdminRequest::kPin:
    case v1::AdminRequest::kSend:
    case v1::AdminRequest::kCheckpoint:
    case v1::AdminRequest::kChecksum:
    case v1::AdminRequest::REQUEST_NOT_SET:
      done(Status(Code::kUnimplemented, Reason::kNone, "the operator never asks that"));
      break;
  }
  return out;
}

Status NoAddress() { return Unavailable(Reason::kMissingMaster, "nobody is known to lead now"); }
Status TooMany() { return ResourceExhausted("too many calls of the operator wait in line"); }
Status InLine() { return DeadlineExceeded("the call waited in line for all of its time"); }

}  // namespace

struct GrpcAdminPort::Pool {
  using Work = UniqueFunction<void()>;

  bool Push(Work work) {
    const std::lock_guard lock(mutex);
    if (queue.size() >= kQueuedCalls) return false;
    queue.push_back(std::move(work));
    wake.notify_one();
    return true;
  }

  void Run() {
    for (;;) {
      Work work;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [this] { return stop || !queue.empty(); });
        if (stop) return;
        work = std::move(queue.front());
        queue.pop_front();
      }
      work();
    }
  }

  // Connections stay open between calls; addresses are few, and grow by one for each that is given
  // up.
  template <class Client>
  std::shared_ptr<Client> Get(std::map<std::string, std::shared_ptr<Client>>& clients,
                              const std::string& address) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<Client>& client = clients[address];
    if (!client) client = std::make_shared<Client>(address);
    return client;
  }

  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Work> queue;
  bool stop = false;
  std::map<std::string, std::shared_ptr<rpc::StorageClient>> storages;
  std::map<std::string, std::shared_ptr<rpc::RouterClient>> routers;
  std::vector<std::thread> threads;
};

GrpcAdminPort::GrpcAdminPort(Executor& executor, std::size_t threads)
    : pool_(std::make_unique<Pool>()), executor_(executor) {
  for (std::size_t i = 0; i < threads; ++i)
    pool_->threads.emplace_back([pool = pool_.get()] { pool->Run(); });
}

GrpcAdminPort::~GrpcAdminPort() {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->stop = true;
    pool_->wake.notify_all();
  }
  for (std::thread& thread : pool_->threads) thread.join();
}

namespace {

// Runs `call(time left)` on the pool and hands what it returns to `done` on the executor.
template <class Pool, class Out, class Call>
void Submit(Pool& pool, Executor& executor, Duration timeout, UniqueFunction<void(Out)> done,
            Call call) {
  auto shared = std::make_shared<UniqueFunction<void(Out)>>(std::move(done));
  const auto until = SteadyClock::now() + timeout;
  const auto answer = [&executor, shared](Out out) {
    executor.Post([shared, out = std::move(out)]() mutable { (*shared)(std::move(out)); });
  };
  const bool queued = pool.Push([answer, until, call = std::move(call)]() mutable {
    const Duration left = until - SteadyClock::now();
    answer(left <= Duration::zero() ? Out(InLine()) : call(left));
  });
  if (!queued) answer(Out(TooMany()));
}

}  // namespace

void GrpcAdminPort::AskStorage(const std::string& address, v1::AdminRequest request,
                               Duration timeout,
                               UniqueFunction<void(Result<v1::AdminResponse>)> done) {
  Submit<Pool, Result<v1::AdminResponse>>(
      *pool_, executor_, timeout, std::move(done),
      [pool = pool_.get(), address,
       request = std::move(request)](Duration left) -> Result<v1::AdminResponse> {
        if (address.empty()) return NoAddress();
        return Ask(*pool->Get(pool->storages, address), request, left);
      });
}

void GrpcAdminPort::AskRouter(const std::string& address, Duration timeout,
                              UniqueFunction<void(Result<v1::RouterInfoResponse>)> done) {
  Submit<Pool, Result<v1::RouterInfoResponse>>(
      *pool_, executor_, timeout, std::move(done), [pool = pool_.get(), address](Duration left) {
        return pool->Get(pool->routers, address)->Info(left);
      });
}

void GrpcAdminPort::PushTopology(const std::string& address, v1::Topology topology,
                                 Duration timeout, UniqueFunction<void(Status)> done) {
  Submit<Pool, Status>(
      *pool_, executor_, timeout, std::move(done),
      [pool = pool_.get(), address, topology = std::move(topology)](Duration left) {
        return pool->Get(pool->routers, address)->ApplyTopology(topology, left);
      });
}

}  // namespace etalon::controller
