// Orders to move single buckets, as an operator gives them by hand.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

struct Move {
  int source;
  int target;
  std::uint32_t bucket;  // at the level of the source
  std::uint8_t level;
  Epoch epoch;  // at the source
};

// A bucket that could be moved now; nullopt: the source has no leader, or nothing to move.
std::optional<Move> PickMove(Cluster& cluster, int source, int target);
std::optional<Move> PickMove(Cluster& cluster);  // between any two shards
void Order(Cluster& cluster, const Move& move);

// Cuts every link between two shards, or heals them.
void CutShards(Cluster& cluster, int a, int b);
void HealShards(Cluster& cluster, int a, int b);

}  // namespace etalon::sim
