#pragma once

#include "env/clock.h"

namespace etalon {

// CLOCK_MONOTONIC. Any thread.
class PosixClock final : public Clock {
 public:
  SteadyTime Now() const override;
};

}  // namespace etalon
