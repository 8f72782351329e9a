// What happens next in a simulated world: one heap of events, ordered by (time, sequence of
// scheduling).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "common/time.h"
#include "env/executor.h"

namespace etalon::sim {

// What an event is; goes into the trace.
enum class EventKind : std::uint64_t { kTask = 1, kTimer, kMessage, kDisk, kWorld };

class Events {
 public:
  using Id = std::uint64_t;     // never 0
  using Owner = std::uint32_t;  // number of a node; 0 = the world itself

  SteadyTime now() const { return now_; }
  // A moment in the past is now.
  Id Schedule(SteadyTime when, Owner owner, EventKind kind, Task task);
  void Cancel(Id id);
  // Destroys all events of the owner without running them.
  void Drop(Owner owner);
  // Nothing of the owner runs before `until`; what would have, runs then, in the same order.
  void Pause(Owner owner, SteadyTime until);

  // Runs the next event if it is not after `limit`; else time stands at `limit` and the answer is
  // false.
  bool RunOne(SteadyTime limit);

  // Mixes a value into the trace: a number that is equal for equal histories.
  void Mix(std::uint64_t value);
  std::uint64_t trace() const { return trace_; }

 private:
  struct Event {
    Owner owner;
    EventKind kind;
    Task task;
  };
  struct Key {
    SteadyTime when;
    SteadyTime due;  // before `when` if a pause came between
    Id id;
    auto operator<=>(const Key&) const = default;
  };

  SteadyTime now_{};
  Id next_id_ = 1;
  std::map<Key, Event> heap_;
  std::unordered_map<Id, Key> keys_;  // for Cancel; never walked through
  std::map<Owner, SteadyTime> paused_;
  std::uint64_t trace_ = 0x9E3779B97F4A7C15u;
};

}  // namespace etalon::sim
