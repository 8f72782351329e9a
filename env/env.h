// The whole outside world of one node. No globals beside it.
#pragma once

#include "common/logger.h"
#include "common/random.h"
#include "env/clock.h"
#include "env/disk.h"
#include "env/executor.h"
#include "env/transport.h"

namespace etalon {

struct Env {
  Clock& clock;
  Executor& core;
  Transport& net;
  Disk& disk;
  Random random;
  Logger& log;
};

}  // namespace etalon
