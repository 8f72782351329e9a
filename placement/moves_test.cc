#include "placement/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/random.h"
#include "placement/etalon.h"

namespace etalon::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MoveShard S(std::string name, std::uint64_t buckets, std::uint64_t etalon) {
  MoveShard shard;
  shard.name = std::move(name);
  shard.buckets = buckets;
  shard.etalon = etalon;
  return shard;
}

std::uint64_t Total(const std::vector<Route>& routes) {
  std::uint64_t total = 0;
  for (const Route& route : routes) total += route.count;
  return total;
}

MoveShard* Find(std::vector<MoveShard>* shards, const std::string& name) {
  for (MoveShard& shard : *shards) {
    if (shard.name == name) return &shard;
  }
  ADD_FAILURE() << "a plan names the unknown shard " << name;
  return nullptr;
}

// The largest number of rounds that one shard needs by itself.
std::uint64_t RoundsAtLeast(const std::vector<MoveShard>& shards, const MoveLimits& limits) {
  std::uint64_t rounds = 0;
  for (const MoveShard& s : shards) {
    if (s.locked) continue;
    const std::uint64_t out = s.buckets - std::min(s.buckets, s.etalon);
    const std::uint64_t in = s.etalon - std::min(s.buckets, s.etalon);
    rounds = std::max(rounds, (out + limits.max_sending - 1) / limits.max_sending);
    rounds = std::max(rounds, (in + limits.max_receiving - 1) / limits.max_receiving);
  }
  return rounds;
}

constexpr MoveLimits kAlways{4, 16, 0};

TEST(Moves, NothingAtTheEtalon) {
  EXPECT_THAT(PlanRoutes({S("a", 50, 50), S("b", 50, 50)}, kAlways), IsEmpty());
  EXPECT_THAT(StartableMoves({S("a", 50, 50), S("b", 50, 50)}, kAlways), IsEmpty());
  EXPECT_THAT(PlanRoutes({}, kAlways), IsEmpty());
}

TEST(Moves, ScaleOut) {
  EXPECT_THAT(PlanRoutes({S("a", 1500, 1000), S("b", 1500, 1000), S("c", 0, 1000)}, kAlways),
              ElementsAre(Route{"a", "c", 500}, Route{"b", "c", 500}));
  EXPECT_THAT(PlanRoutes({S("a", 3000, 1000), S("b", 0, 1000), S("c", 0, 1000)}, kAlways),
              ElementsAre(Route{"a", "b", 1000}, Route{"a", "c", 1000}));
}

TEST(Moves, TheThresholdDecidesWhetherToStart) {
  const std::vector<MoveShard> skewed = {S("a", 101, 100), S("b", 99, 100)};
  EXPECT_THAT(PlanRoutes(skewed, {4, 16, 1}), IsEmpty());
  EXPECT_THAT(StartableMoves(skewed, {4, 16, 1}), IsEmpty());
  EXPECT_THAT(PlanRoutes(skewed, {4, 16, 0.99}), ElementsAre(Route{"a", "b", 1}));
  // Scenario 11: 300 % suppresses a skew of 100 %; but a drained shard is infinitely far away.
  EXPECT_THAT(PlanRoutes({S("a", 200, 100), S("b", 0, 100)}, {4, 16, 300}), IsEmpty());
  EXPECT_THAT(PlanRoutes({S("a", 1, 0), S("b", 99, 100)}, {4, 16, 300}),
              ElementsAre(Route{"a", "b", 1}));
}

TEST(Moves, ALockedShardIsNotTouchedAndDoesNotCount) {
  MoveShard above = S("a", 100, 10), below = S("b", 0, 90);
  above.locked = true;
  EXPECT_THAT(PlanRoutes({above, below}, kAlways), IsEmpty());
  above.locked = false;
  below.locked = true;
  EXPECT_THAT(PlanRoutes({above, below}, kAlways), IsEmpty());
  EXPECT_THAT(PlanRoutes({above, below, S("c", 0, 90)}, kAlways), ElementsAre(Route{"a", "c", 90}));
  // However far it is from its etalon, it does not start the others.
  EXPECT_THAT(PlanRoutes({S("a", 101, 100), below, S("c", 99, 100)}, {4, 16, 1}), IsEmpty());
}

TEST(Moves, PinnedBucketsLimitWhatASourceGives) {
  MoveShard pinned = S("a", 100, 10);
  pinned.pinned = 95;  // more than its etalon: not what etalon.h computes, and still not moved
  EXPECT_THAT(PlanRoutes({pinned, S("b", 0, 90)}, kAlways), ElementsAre(Route{"a", "b", 5}));
}

TEST(Moves, StartsOnlyWhatBothSidesHaveSlotsFor) {
  // Many senders, one receiver with few slots: nothing is ordered that it would refuse.
  const std::vector<MoveShard> shards = {S("a", 20, 10), S("b", 20, 10), S("c", 20, 10),
                                         S("d", 0, 30)};
  EXPECT_EQ(Total(StartableMoves(shards, {16, 2, 0})), 2u);
  EXPECT_EQ(Total(StartableMoves(shards, {1, 16, 0})), 3u);
  EXPECT_EQ(Total(StartableMoves(shards, {4, 16, 0})), 12u);
  EXPECT_THAT(StartableMoves(shards, {0, 16, 0}), IsEmpty());
  EXPECT_THAT(StartableMoves(shards, {4, 0, 0}), IsEmpty());
  EXPECT_EQ(Total(PlanRoutes(shards, {0, 0, 0})), 30u);
}

TEST(Moves, SlotsInUseAreNotFree) {
  std::vector<MoveShard> shards = {S("a", 20, 10), S("b", 20, 10), S("c", 0, 20)};
  shards[0].sending = 4;
  shards[2].receiving = 14;
  EXPECT_THAT(StartableMoves(shards, {4, 16, 0}), ElementsAre(Route{"b", "c", 2}));
  shards[2].receiving = 99;  // the limit was lowered meanwhile
  EXPECT_THAT(StartableMoves(shards, {4, 16, 0}), IsEmpty());
}

TEST(Moves, TheBusiestGoFirst) {
  // a needs ten rounds by itself, the others one: its slot may not be left idle for theirs.
  const std::vector<MoveShard> shards = {S("b", 1, 0), S("a", 10, 0), S("c", 1, 0), S("z", 0, 12)};
  EXPECT_THAT(StartableMoves(shards, {1, 1, 0}), ElementsAre(Route{"a", "z", 1}));
}

TEST(Moves, TiesGoByName) {
  EXPECT_THAT(StartableMoves({S("b", 2, 1), S("a", 2, 1), S("z", 0, 2)}, {4, 1, 0}),
              ElementsAre(Route{"a", "z", 1}));
  EXPECT_THAT(StartableMoves({S("a", 2, 0), S("z", 0, 1), S("y", 0, 1)}, {1, 4, 0}),
              ElementsAre(Route{"a", "y", 1}));
}

TEST(Moves, OneSourceServesItsTargetsAlike) {
  const auto start =
      StartableMoves({S("a", 60, 0), S("b", 0, 20), S("c", 0, 20), S("d", 0, 20)}, {6, 16, 0});
  EXPECT_THAT(start, ElementsAre(Route{"a", "b", 2}, Route{"a", "c", 2}, Route{"a", "d", 2}));
}

// Shards as the rebalancer sees them, with etalons computed.
std::vector<MoveShard> Draw(Random* random, std::uint64_t max_shards, std::uint64_t max_buckets) {
  std::vector<ShardLoad> loads;
  const std::uint64_t n = random->Between(2, max_shards);
  for (std::uint64_t i = 0; i < n; ++i) {
    ShardLoad load;
    load.name = "shard-" + std::to_string(i);
    load.weight = random->Below(4);
    load.locked = random->Chance(1, 6);
    load.buckets = random->Below(max_buckets + 1);
    load.pinned = random->Chance(1, 2) ? 0 : random->Between(0, load.buckets);
    loads.push_back(load);
  }
  const EtalonResult etalon = ComputeEtalon(loads);
  std::vector<MoveShard> shards;
  for (const ShardEtalon& e : etalon.shards) {
    const auto load = std::find_if(loads.begin(), loads.end(),
                                   [&](const ShardLoad& l) { return l.name == e.name; });
    MoveShard shard = S(e.name, e.buckets, e.etalon);
    shard.pinned = load->pinned;
    shard.locked = load->locked;
    shards.push_back(shard);
  }
  return shards;
}

MoveLimits DrawLimits(Random* random) {
  return {static_cast<std::uint32_t>(random->Between(1, 5)),
          static_cast<std::uint32_t>(random->Between(1, 5)), 0};
}

TEST(MovesProperty, PlansReachTheEtalonAndTouchNothingElse) {
  Random random(1001);
  for (int round = 0; round < 3000; ++round) {
    std::vector<MoveShard> shards = Draw(&random, 10, 60);
    const std::vector<Route> routes = PlanRoutes(shards, DrawLimits(&random));
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Route& route : routes) {
      MoveShard* source = Find(&shards, route.source);
      MoveShard* target = Find(&shards, route.target);
      ASSERT_TRUE(source && target);
      EXPECT_NE(source, target);
      EXPECT_FALSE(source->locked || target->locked);
      EXPECT_GT(route.count, 0u);
      EXPECT_TRUE(pairs.emplace(route.source, route.target).second) << "a pair is listed twice";
      ASSERT_GE(source->buckets, source->pinned + route.count) << "a pinned bucket would move";
      source->buckets -= route.count;
      target->buckets += route.count;
    }
    for (const MoveShard& shard : shards) EXPECT_EQ(shard.buckets, shard.etalon) << shard.name;
  }
}

TEST(MovesProperty, TheOrderOfTheInputChangesNothing) {
  Random random(1002);
  for (int round = 0; round < 2000; ++round) {
    std::vector<MoveShard> shards = Draw(&random, 10, 60);
    const MoveLimits limits = DrawLimits(&random);
    for (MoveShard& shard : shards) {
      shard.sending = static_cast<std::uint32_t>(random.Below(3));
      shard.receiving = static_cast<std::uint32_t>(random.Below(3));
    }
    const auto routes = PlanRoutes(shards, limits);
    const auto start = StartableMoves(shards, limits);
    for (std::size_t i = shards.size(); i > 1; --i)
      std::swap(shards[i - 1], shards[random.Below(i)]);
    EXPECT_EQ(PlanRoutes(shards, limits), routes);
    EXPECT_EQ(StartableMoves(shards, limits), start);
  }
}

TEST(MovesProperty, WhatStartsIsPartOfThePlanAndWithinTheSlots) {
  Random random(1003);
  for (int round = 0; round < 3000; ++round) {
    std::vector<MoveShard> shards = Draw(&random, 8, 30);
    const MoveLimits limits = DrawLimits(&random);
    for (MoveShard& shard : shards) {
      shard.sending = static_cast<std::uint32_t>(random.Below(4));
      shard.receiving = static_cast<std::uint32_t>(random.Below(4));
    }
    std::map<std::pair<std::string, std::string>, std::uint64_t> planned;
    for (const Route& route : PlanRoutes(shards, limits))
      planned[{route.source, route.target}] = route.count;
    for (const Route& route : StartableMoves(shards, limits)) {
      EXPECT_GE((planned[{route.source, route.target}]), route.count);
      MoveShard* source = Find(&shards, route.source);
      MoveShard* target = Find(&shards, route.target);
      source->sending += static_cast<std::uint32_t>(route.count);
      target->receiving += static_cast<std::uint32_t>(route.count);
      EXPECT_LE(source->sending, limits.max_sending);
      EXPECT_LE(target->receiving, limits.max_receiving);
    }
  }
}

// Moves finish in random order, slots free up one by one, and the plan is made again after each: it
// ends at the etalon with no more moves than planned at first.
TEST(MovesProperty, StepByStepEveryoneReachesTheEtalon) {
  Random random(1004);
  for (int round = 0; round < 500; ++round) {
    std::vector<MoveShard> shards = Draw(&random, 8, 40);
    const MoveLimits limits = DrawLimits(&random);
    const std::uint64_t planned = Total(PlanRoutes(shards, limits));
    std::vector<std::pair<std::string, std::string>> in_flight;
    std::uint64_t started = 0;
    while (true) {
      for (const Route& route : StartableMoves(shards, limits)) {
        for (std::uint64_t i = 0; i < route.count; ++i)
          in_flight.emplace_back(route.source, route.target);
        MoveShard* source = Find(&shards, route.source);
        MoveShard* target = Find(&shards, route.target);
        source->buckets -= route.count;
        target->buckets += route.count;
        source->sending += static_cast<std::uint32_t>(route.count);
        target->receiving += static_cast<std::uint32_t>(route.count);
        ASSERT_LE(source->sending, limits.max_sending);
        ASSERT_LE(target->receiving, limits.max_receiving);
        started += route.count;
      }
      if (in_flight.empty()) break;
      const std::size_t done = random.Below(in_flight.size());
      --Find(&shards, in_flight[done].first)->sending;
      --Find(&shards, in_flight[done].second)->receiving;
      in_flight.erase(in_flight.begin() + static_cast<std::ptrdiff_t>(done));
    }
    EXPECT_EQ(started, planned);
    for (const MoveShard& shard : shards) EXPECT_EQ(shard.buckets, shard.etalon) << shard.name;
  }
}

// When all moves take equally long, the schedule finishes in as few rounds as the busiest shard
// needs by itself.
TEST(MovesProperty, RoundByRoundNoScheduleIsShorter) {
  Random random(1005);
  for (int round = 0; round < 3000; ++round) {
    std::vector<MoveShard> shards = Draw(&random, 10, 60);
    const MoveLimits limits = DrawLimits(&random);
    const std::uint64_t at_least = RoundsAtLeast(shards, limits);
    std::uint64_t rounds = 0;
    for (auto start = StartableMoves(shards, limits); !start.empty();
         start = StartableMoves(shards, limits)) {
      for (const Route& route : start) {
        Find(&shards, route.source)->buckets -= route.count;
        Find(&shards, route.target)->buckets += route.count;
      }
      ++rounds;
    }
    EXPECT_EQ(rounds, at_least);
  }
}

// The fewest moves of one bucket each that lead to the etalon, by breadth-first search over all
// placements.
std::uint64_t BruteForce(const std::vector<MoveShard>& shards) {
  std::vector<std::uint64_t> start, goal;
  for (const MoveShard& shard : shards) {
    start.push_back(shard.buckets);
    goal.push_back(shard.etalon);
  }
  std::set<std::vector<std::uint64_t>> seen = {start};
  std::vector<std::vector<std::uint64_t>> frontier = {start};
  for (std::uint64_t steps = 0; !frontier.empty(); ++steps) {
    std::vector<std::vector<std::uint64_t>> next;
    for (const auto& counts : frontier) {
      if (counts == goal) return steps;
      for (std::size_t from = 0; from < shards.size(); ++from) {
        if (shards[from].locked || counts[from] <= shards[from].pinned) continue;
        for (std::size_t to = 0; to < shards.size(); ++to) {
          if (to == from || shards[to].locked) continue;
          auto moved = counts;
          --moved[from];
          ++moved[to];
          if (seen.insert(moved).second) next.push_back(std::move(moved));
        }
      }
    }
    frontier = std::move(next);
  }
  ADD_FAILURE() << "the etalon cannot be reached";
  return 0;
}

TEST(MovesProperty, NoPlanNeedsFewerMoves) {
  Random random(1006);
  for (int round = 0; round < 300; ++round) {
    const std::vector<MoveShard> shards = Draw(&random, 4, 6);
    EXPECT_EQ(Total(PlanRoutes(shards, kAlways)), BruteForce(shards));
  }
}

}  // namespace
}  // namespace etalon::placement
