#include "env/posix/loop_executor.h"

#include <chrono>

namespace etalon {

// Tasks may own what posts or cancels when it goes: they are destroyed while the members are whole.
LoopExecutor::~LoopExecutor() {
  const auto timers = std::exchange(timers_, {});
  const auto ready = std::exchange(ready_, {});
  std::deque<Task> posted;
  {
    const std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
}

void LoopExecutor::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
  }
  wake_.notify_one();
}

Executor::TimerId LoopExecutor::PostAt(SteadyTime when, Task task) {
  const TimerId id = next_timer_++;
  timers_.emplace(Key{when, id}, std::move(task));
  when_.emplace(id, when);
  return id;
}

void LoopExecutor::Cancel(TimerId timer) {
  const auto it = when_.find(timer);
  if (it == when_.end()) return;
  const auto task =
      timers_.extract(Key{it->second, timer});  // destroyed last: it may cancel others
  when_.erase(it);
}

void LoopExecutor::Run() {
  while (WaitForWork()) {
    RunDueTimers();
    RunReady();
  }
}

void LoopExecutor::RunDueTimers() {
  const SteadyTime now = clock_.Now();
  while (!stop_ && !timers_.empty() && timers_.begin()->first.first <= now) {
    auto timer = timers_.extract(timers_.begin());
    when_.erase(timer.key().second);
    timer.mapped()();
  }
}

void LoopExecutor::RunReady() {
  while (!stop_ && !ready_.empty()) {
    Task task = std::move(ready_.front());
    ready_.pop_front();
    task();
  }
}

bool LoopExecutor::WaitForWork() {
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return stop_ || !posted_.empty(); };
  if (ready_.empty() && !has_work()) {
    if (timers_.empty()) {
      wake_.wait(lock, has_work);
    } else if (const SteadyTime when = timers_.begin()->first.first; when > clock_.Now()) {
      // steady_clock is CLOCK_MONOTONIC too. A wait that ends early only looks again.
      wake_.wait_until(lock, std::chrono::steady_clock::time_point(when.time_since_epoch()),
                       has_work);
    }
  }
  if (stop_) {
    stop_ = false;
    return false;
  }
  while (!posted_.empty()) {
    ready_.push_back(std::move(posted_.front()));
    posted_.pop_front();
  }
  return true;
}

void LoopExecutor::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
}

}  // namespace etalon
