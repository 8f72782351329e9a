// Which buckets have to move, from where to where, so that every shard holds its etalon; and which
// of these moves can start now. Pure and deterministic: the order of the input does not matter,
// ties go by shard name.
//
// Fewest moves: only shards above their etalon give and only shards below it take, so the number of
// moves is the sum of the surpluses, and no plan needs fewer.
//
// Shortest finish: a shard with n moves left and k slots needs ceil(n / k) rounds at least. Each
// step pairs the giver with the most moves left with the taker with the most moves left; when moves
// take equally long, starting what StartableMoves says in each round finishes in the largest of
// these numbers, which no schedule beats (see docs/placement.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etalon::placement {

// Counts as in etalon.h. A move in flight counts as finished: its bucket is in `buckets` of the
// target, not of the source, and it uses a slot of both. The source and the target of a split in
// progress are given as locked.
struct MoveShard {
  std::string name;  // unique
  std::uint64_t buckets = 0;
  std::uint64_t etalon = 0;
  std::uint64_t pinned = 0;   // of `buckets`: these never move
  bool locked = false;        // neither gives nor takes
  std::uint32_t sending = 0;  // slots in use; a set that moves as one unit uses one
  std::uint32_t receiving = 0;
};

struct MoveLimits {
  std::uint32_t max_sending = 4;     // slots per shard; 0: nothing starts
  std::uint32_t max_receiving = 16;  // the same
  // No move while no unlocked shard is further than this from its etalon. It decides whether to
  // start: a caller that has started passes 0 until nothing is left, or it would stop at the edge
  // of the threshold.
  double disbalance_threshold_percent = 1;
};

struct Route {
  std::string source;
  std::string target;
  std::uint64_t count = 0;  // never 0
  bool operator==(const Route&) const = default;
};

// All moves, by (source, target), each pair once. O(moves * log shards).
std::vector<Route> PlanRoutes(const std::vector<MoveShard>& shards, const MoveLimits& limits);

// Those of PlanRoutes (same input) that fit into the free slots of their source and their target: a
// target that honours the same limits refuses none of them. O(slots * log shards), whatever the
// number of moves.
std::vector<Route> StartableMoves(const std::vector<MoveShard>& shards, const MoveLimits& limits);

}  // namespace etalon::placement
