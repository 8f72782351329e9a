#pragma once

#include "common/time.h"

namespace etalon {

// Monotonic time of one node. In simulation each node has its own skew and drift.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime Now() const = 0;
};

}  // namespace etalon
