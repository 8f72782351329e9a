#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "common/unique_function.h"

namespace etalon::store {

// A thread that runs tasks in the order of posting. Its owner bounds how many it posts.
class Worker {
 public:
  Worker() : thread_([this] { Run(); }) {}
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Any thread. Dropped after Stop.
  void Post(UniqueFunction<void()> task) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }

  // Waits for the running task; those not begun are dropped. Owner's thread only; again is nothing.
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
    tasks_.clear();
  }

 private:
  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return;
      UniqueFunction<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<UniqueFunction<void()>> tasks_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace etalon::store
