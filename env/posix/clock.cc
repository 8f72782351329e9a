#include "env/posix/clock.h"

#include <ctime>

namespace etalon {

SteadyTime PosixClock::Now() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace etalon
