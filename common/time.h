// Time as values. Nobody below the composition roots reads a clock: they are told the time
// (env/clock.h).
#pragma once

#include <chrono>

namespace etalon {

using Duration = std::chrono::nanoseconds;

// Monotonic time of one process; its zero means nothing. There is no now() on purpose.
struct SteadyTimeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SteadyTimeline>;
  static constexpr bool is_steady = true;
};
using SteadyTime = SteadyTimeline::time_point;

// A moment by which something must be done; passed down instead of a time-out.
class Deadline {
 public:
  constexpr Deadline() = default;  // never
  constexpr explicit Deadline(SteadyTime when) : when_(when) {}
  static constexpr Deadline After(SteadyTime now, Duration d) { return Deadline(now + d); }
  static constexpr Deadline Never() { return {}; }

  constexpr bool Passed(SteadyTime now) const { return now >= when_; }
  constexpr SteadyTime when() const { return when_; }
  // Zero when passed.
  constexpr Duration Left(SteadyTime now) const {
    return Passed(now) ? Duration::zero() : when_ - now;
  }
  constexpr auto operator<=>(const Deadline&) const = default;

 private:
  SteadyTime when_ = SteadyTime::max();
};

}  // namespace etalon
