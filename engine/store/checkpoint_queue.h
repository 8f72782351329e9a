#pragma once

#include <utility>
#include <vector>

#include "common/status.h"
#include "common/unique_function.h"

namespace etalon::store {

// Calls of Checkpoint, one run at a time: those made while a run goes on wait for the next one,
// because the running one may have begun before what they want durable was written.
class CheckpointQueue {
 public:
  using Done = UniqueFunction<void(Status)>;

  // `start` begins a run; the run ends with Finish, never from within `start`.
  explicit CheckpointQueue(UniqueFunction<void()> start) : start_(std::move(start)) {}

  void Add(Done done) {
    next_.push_back(std::move(done));
    if (current_.empty()) Begin();
  }

  // Answers the calls of the run that ended. An answer may destroy the store, and this with it.
  void Finish(const Status& status) {
    auto answered = std::exchange(current_, {});
    if (!next_.empty()) Begin();
    for (Done& done : answered) done(status);
  }

 private:
  void Begin() {
    current_ = std::exchange(next_, {});
    start_();
  }

  UniqueFunction<void()> start_;
  std::vector<Done> current_;  // empty when no run goes on
  std::vector<Done> next_;
};

}  // namespace etalon::store
