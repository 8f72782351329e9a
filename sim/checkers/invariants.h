// The invariants of docs/architecture.md over a simulated collection.
#pragma once

#include <string>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

// At every instant: no shard has two leaders with a lease. What is violated; empty: nothing.
std::string CheckLeases(Cluster& cluster);

// While majorities keep their disks: no bucket is writable on two leaders with a lease.
std::string CheckOwners(Cluster& cluster);

// While majorities keep their disks, no leader may find that a bucket is lost or doubled, or that a
// peer contradicts a transfer. The alert that says otherwise; empty: none.
std::string CheckAlarms(Cluster& cluster);

// True when nothing is in flight: every shard has a leader, every bucket has exactly one row
// (ACTIVE or PINNED), there are no transfers. *why says what is missing.
bool IsSettled(Cluster& cluster, std::string* why);

// Every replica of every shard stands at one applied index with one checksum. *why says who does
// not.
bool ReplicasEqual(Cluster& cluster, std::string* why);

}  // namespace etalon::sim
