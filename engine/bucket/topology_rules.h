// What a topology must be, and what the next one may change. The same rules judge a dry run and
// decide at apply.
#pragma once

#include "common/status.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::bucket {

// INVALID_ARGUMENT/INVALID_CFG with what is wrong.
Status CheckTopology(const v1::Topology& topology);

// Whether `next` may follow `old`; the same content again may. FAILED_PRECONDITION: STALE_TOPOLOGY
// for an older version, TOPOLOGY_CONFLICT for the same version with another content; hint.number is
// the version of `old`.
Status CheckTopologyChange(const v1::Topology& old, const v1::Topology& next);

}  // namespace etalon::bucket
