#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "env/clock.h"
#include "env/executor.h"

namespace etalon {

// The loop of one thread: whoever calls Run. Tasks that are posted run in the order of posting,
// timers that are due before them.
//
// Threads: Post and Stop from any; PostAt and Cancel from tasks, or while Run does not run. What
// did not run when the executor is destroyed is destroyed with it.
class LoopExecutor final : public Executor {
 public:
  // `clock` must be that of CLOCK_MONOTONIC.
  explicit LoopExecutor(const Clock& clock) : clock_(clock) {}
  ~LoopExecutor() override;

  void Post(Task task) override;
  TimerId PostAt(SteadyTime when, Task task) override;
  void Cancel(TimerId timer) override;

  // Runs tasks until Stop; may be called again. What is posted but did not run stays.
  void Run();
  // The loop ends after the task that runs. Before Run: the next Run ends at once.
  void Stop();

 private:
  using Key = std::pair<SteadyTime, TimerId>;

  void RunDueTimers();
  void RunReady();
  // Moves what was posted to ready_; waits for it, for the next timer or for Stop. False after
  // Stop.
  bool WaitForWork();

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> posted_;         // guarded by mutex_
  std::atomic<bool> stop_ = false;  // set under mutex_

  std::deque<Task> ready_;
  std::map<Key, Task> timers_;
  std::unordered_map<TimerId, SteadyTime> when_;  // for Cancel; never walked through
  TimerId next_timer_ = 1;
};

}  // namespace etalon
