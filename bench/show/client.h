// Calls to the collection as an application makes them: over streams to all routers, each with a
// deadline; what a broken stream leaves open is sent again, since every write carries a request ID.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "etalon/v1/router.pb.h"
#include "rpc/client/router_pipe.h"

namespace etalon::show {

class Client {
 public:
  using Done = std::function<void(const Status&, const std::string& result)>;

  Client(const std::vector<std::string>& routers, Duration deadline);
  ~Client();

  // `done` runs once, on another thread, at the deadline at the latest.
  void Get(const std::string& source, const std::string& space, const std::string& key,
           v1::Mode mode, Done done);
  void Txn(const std::string& source, const v1::TxnArgs& txn, Done done);

  // Same, waiting.
  Result<v1::GetResult> GetNow(const std::string& source, const std::string& space,
                               const std::string& key);

  // How many calls were sent again, and for what: "12 (UNAVAILABLE/NON_MASTER 12)".
  std::string Resent() const;

 private:
  struct Call;
  struct Delayed {
    std::chrono::steady_clock::time_point at;
    std::shared_ptr<Call> call;
  };

  void Start(v1::ClientCall call, Done done);
  void Send(const std::shared_ptr<Call>& call);
  void Finish(const std::shared_ptr<Call>& call, const Status& status, const std::string& result);
  void ResendLoop();

  const Duration deadline_;
  std::vector<std::unique_ptr<rpc::RouterPipe>> pipes_;
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<std::uint64_t> sequence_{0};
  const std::uint64_t id_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::uint64_t> resent_;  // by code and reason
  std::vector<Delayed> delayed_;
  Random random_;
  bool stopping_ = false;
  std::unique_ptr<std::thread> resender_;
};

// Bounds how many calls are in flight.
class Window {
 public:
  explicit Window(std::size_t size) : free_(size), size_(size) {}
  void Enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
  }
  void Leave() {
    // Notified under the lock: the window may end as soon as Drain returns.
    std::lock_guard lock(mutex_);
    ++free_;
    changed_.notify_all();
  }
  // Waits until nothing is in flight.
  void Drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ == size_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t free_;
  const std::size_t size_;
};

}  // namespace etalon::show
