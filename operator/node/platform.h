// Where processes run and records are kept.
#pragma once

#include "common/status.h"
#include "common/time.h"
#include "operator/plan/actions.h"
#include "operator/plan/observed.h"

namespace etalon::controller {

class Platform {
 public:
  virtual ~Platform() = default;

  // Everything but what the processes answer: their `info`, and what is remembered from earlier
  // rounds. Cheap.
  virtual Observed Observe(SteadyTime now) = 0;

  // One of Adopt, StartStorage, StopStorage, ReplaceDisk, StartRouter, RestartRouter, StopRouter,
  // CreateTopology, CreateSettings, CreateForm, and DeleteShard, whose proof the caller has read.
  // Returns when it has begun; what it leads to is seen by Observe. What Create* was given is
  // durable when it returns.
  virtual Status Carry(SteadyTime now, const Action& action) = 0;
};

}  // namespace etalon::controller
