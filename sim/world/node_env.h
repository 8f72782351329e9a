// Clock, executor and logger of one simulated node.
#pragma once

#include <cstdint>
#include <string>

#include "common/logger.h"
#include "env/clock.h"
#include "env/executor.h"
#include "sim/world/events.h"

namespace etalon::sim {

// Runs away from the world's time: skewed from the start and drifting.
class SimClock final : public Clock {
 public:
  // drift_ppm: microseconds gained (or lost) per second; within +-100000.
  SimClock(const Events& events, Duration skew, std::int64_t drift_ppm);
  SteadyTime Now() const override { return ToLocal(events_.now()); }

  SteadyTime ToLocal(SteadyTime world) const;
  // The first moment of the world at which Now() >= local.
  SteadyTime ToWorld(SteadyTime local) const;

 private:
  const Events& events_;
  const Duration skew_;
  const std::int64_t drift_ppm_;
};

class SimExecutor final : public Executor {
 public:
  SimExecutor(Events& events, const SimClock& clock, Events::Owner owner)
      : events_(events), clock_(clock), owner_(owner) {}

  void Post(Task task) override;
  TimerId PostAt(SteadyTime when, Task task) override;
  void Cancel(TimerId timer) override { events_.Cancel(timer); }

  // While off, what is posted is dropped.
  void Switch(bool on) { on_ = on; }

 private:
  Events& events_;
  const SimClock& clock_;
  const Events::Owner owner_;
  bool on_ = true;
};

// Log lines go into the trace; to standard error too when `echo` is set.
class SimLogger final : public Logger {
 public:
  SimLogger(Events& events, std::string node, const bool& echo)
      : events_(events), node_(std::move(node)), echo_(echo) {}
  void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) override;

 private:
  Events& events_;
  const std::string node_;
  const bool& echo_;
};

}  // namespace etalon::sim
