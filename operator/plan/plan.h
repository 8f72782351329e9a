// The planner: what to do next so that what is becomes what was asked for. A pure function;
// everything it needs to know is in its arguments, so the operator may be killed after any action
// and goes on from what it then sees.
//
// Order of things (docs/protocols/operator.md has the table of actions and what each waits for):
//   routers learn a topology before storages do; a shard's log names a replica before it serves and
//   no longer before it stops; a shard retires before the topology drops it, and is deleted only
//   after a fresh read of its state.
#pragma once

#include <vector>

#include "common/time.h"
#include "operator/manifest/collection_spec.h"
#include "operator/plan/actions.h"
#include "operator/plan/conditions.h"
#include "operator/plan/observed.h"

namespace etalon::controller {

struct PlanOutput {
  std::vector<Action> actions;  // independent of each other: one that fails does not keep the
                                // others from being tried
  Report report;
  // When to plan again although nothing was seen to change (a restart that waits for its time);
  // max: never.
  SteadyTime wake_at = SteadyTime::max();
};

PlanOutput Plan(const CollectionSpec& spec, const Observed& observed, SteadyTime now);

}  // namespace etalon::controller
