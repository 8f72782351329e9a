#include "placement/moves.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "placement/etalon.h"

namespace etalon::placement {

namespace {

// One shard as giver or taker.
struct Side {
  std::uint64_t left = 0;   // moves to do
  std::uint64_t slots = 0;  // of these, how many may be chosen now
  std::uint32_t shard = 0;  // position in the shards sorted by name
};

// The most moves left first; the smaller name among equals.
struct LessUrgent {
  bool operator()(const Side& a, const Side& b) const {
    return a.left != b.left ? a.left < b.left : a.shard > b.shard;
  }
};

using Queue = std::priority_queue<Side, std::vector<Side>, LessUrgent>;
using Pairs =
    std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // positions of source and target

class Planner {
 public:
  Planner(const std::vector<MoveShard>& shards, const MoveLimits& limits)
      : shards_(shards), limits_(limits) {
    std::sort(shards_.begin(), shards_.end(),
              [](const MoveShard& a, const MoveShard& b) { return a.name < b.name; });
    double disbalance = 0;
    for (const MoveShard& shard : shards_) {
      if (!shard.locked)
        disbalance = std::max(disbalance, DisbalancePercent(shard.buckets, shard.etalon));
    }
    if (disbalance <= limits_.disbalance_threshold_percent) return;
    for (std::uint32_t i = 0; i < shards_.size(); ++i) {
      const MoveShard& shard = shards_[i];
      if (shard.locked) continue;
      const std::uint64_t floor = std::max(shard.etalon, shard.pinned);
      if (shard.buckets > floor) {
        sources_.push_back({shard.buckets - floor, Free(limits_.max_sending, shard.sending), i});
      } else if (shard.buckets < shard.etalon) {
        targets_.push_back(
            {shard.etalon - shard.buckets, Free(limits_.max_receiving, shard.receiving), i});
      }
    }
  }

  void PairWithinSlots() { Pair(); }
  void PairTheRest() {
    for (Side& side : sources_) side.slots = side.left;
    for (Side& side : targets_) side.slots = side.left;
    Pair();
  }

  std::vector<Route> Routes() {
    std::sort(pairs_.begin(), pairs_.end());
    std::vector<Route> routes;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (i == 0 || pairs_[i] != pairs_[i - 1]) {
        routes.push_back({shards_[pairs_[i].first].name, shards_[pairs_[i].second].name, 0});
      }
      ++routes.back().count;
    }
    return routes;
  }

 private:
  static std::uint64_t Free(std::uint32_t slots, std::uint32_t used) {
    return slots - std::min(slots, used);
  }

  // Moves the eligible sides into a queue; the others stay.
  static Queue TakeEligible(std::vector<Side>* sides) {
    std::vector<Side> eligible, rest;
    for (const Side& side : *sides)
      (side.left > 0 && side.slots > 0 ? eligible : rest).push_back(side);
    *sides = std::move(rest);
    return Queue(LessUrgent(), std::move(eligible));
  }

  // Takes one move off the most urgent side; the side goes back into the queue while it can do
  // more.
  static std::uint32_t TakeOne(Queue* queue, std::vector<Side>* done) {
    Side side = queue->top();
    queue->pop();
    --side.left;
    --side.slots;
    if (side.left > 0 && side.slots > 0) {
      queue->push(side);
    } else {
      done->push_back(side);
    }
    return side.shard;
  }

  static void PutBack(Queue* queue, std::vector<Side>* sides) {
    for (; !queue->empty(); queue->pop()) sides->push_back(queue->top());
  }

  // Until one of the two has nobody left who may move.
  void Pair() {
    Queue sources = TakeEligible(&sources_);
    Queue targets = TakeEligible(&targets_);
    while (!sources.empty() && !targets.empty()) {
      const std::uint32_t source = TakeOne(&sources, &sources_);
      pairs_.emplace_back(source, TakeOne(&targets, &targets_));
    }
    PutBack(&sources, &sources_);
    PutBack(&targets, &targets_);
  }

  std::vector<MoveShard> shards_;  // by name
  const MoveLimits& limits_;
  std::vector<Side> sources_;
  std::vector<Side> targets_;
  Pairs pairs_;
};

}  // namespace

std::vector<Route> PlanRoutes(const std::vector<MoveShard>& shards, const MoveLimits& limits) {
  Planner planner(shards, limits);
  planner.PairWithinSlots();  // first, so that what may start now is part of the plan
  planner.PairTheRest();
  return planner.Routes();
}

std::vector<Route> StartableMoves(const std::vector<MoveShard>& shards, const MoveLimits& limits) {
  Planner planner(shards, limits);
  planner.PairWithinSlots();
  return planner.Routes();
}

}  // namespace etalon::placement
