// The invariants of docs/architecture.md over a simulated collection.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

// At every instant: no bucket is writable on two leaders that both hold a lease, none of their rows
// is doubled. Returns what is violated; empty: nothing.
std::string CheckOwnership(Cluster& cluster);

// True when nothing is in flight: every shard has a leader, every bucket has exactly one row
// (ACTIVE or PINNED), there are no transfers. *why says what is missing.
bool IsSettled(Cluster& cluster, std::string* why);

// Every replica of every shard stands at one applied index with one checksum. *why says who does
// not.
bool ReplicasEqual(Cluster& cluster, std::string* why);

}  // namespace etalon::sim
