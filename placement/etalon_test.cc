#include "placement/etalon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/random.h"

namespace etalon::placement {
namespace {

using ::testing::ElementsAre;

struct Load {
  std::uint64_t weight;
  std::uint64_t buckets;
  std::uint64_t pinned = 0;
  bool locked = false;
};

// Shards a, b, c, ... with these loads.
std::vector<ShardLoad> Shards(const std::vector<Load>& loads) {
  std::vector<ShardLoad> shards;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    shards.push_back({std::string(1, static_cast<char>('a' + i)), ShardUid(i + 1), loads[i].weight,
                      loads[i].locked, loads[i].pinned, loads[i].buckets});
  }
  return shards;
}

std::vector<std::uint64_t> Etalons(const std::vector<Load>& loads) {
  const EtalonResult result = ComputeEtalon(Shards(loads));
  EXPECT_EQ(result.state, EtalonState::kOk);
  std::vector<std::uint64_t> etalons;
  for (const ShardEtalon& shard : result.shards) etalons.push_back(shard.etalon);
  return etalons;
}

TEST(Etalon, FollowsTheWeights) {
  EXPECT_THAT(Etalons({{100, 1000}, {50, 1000}, {150, 1000}}), ElementsAre(1000u, 500u, 1500u));
  EXPECT_THAT(Etalons({{100, 3000}, {200, 0}}), ElementsAre(1000u, 2000u));
  EXPECT_THAT(Etalons({{30, 50}, {70, 50}}), ElementsAre(30u, 70u));
}

// The table of VShard's planner test; where its remainder goes by the order of a hash table, ours
// goes by the largest remainder and then by name.
TEST(Etalon, VshardTable) {
  EXPECT_THAT(Etalons({{1, 100}, {1, 0}, {1, 0}}), ElementsAre(34u, 33u, 33u));  // two new shards
  EXPECT_THAT(Etalons({{1, 0}, {0, 70}, {1, 30}}), ElementsAre(50u, 0u, 50u));   // one is drained
  EXPECT_THAT(Etalons({{1000, 100}, {2000, 100}, {500, 100}}), ElementsAre(86u, 171u, 43u));
  EXPECT_THAT(Etalons({{50, 50}, {20, 20}, {30, 30}}),
              ElementsAre(50u, 20u, 30u));  // already there
  EXPECT_THAT(Etalons({{1, 7}, {1, 0}, {0, 0}}), ElementsAre(4u, 3u, 0u));
}

TEST(Etalon, VshardPins) {
  EXPECT_THAT(Etalons({{1, 26, 26}, {1, 24, 24}, {1, 50, 30}, {1, 0, 0}}),
              ElementsAre(26u, 24u, 30u, 20u));
  EXPECT_THAT(Etalons({{1, 30, 30}, {1, 30, 10}, {1, 40, 15}, {1, 0, 0}}),
              ElementsAre(30u, 24u, 23u, 23u));
  EXPECT_THAT(Etalons({{0, 25, 25}, {1, 25, 25}, {1, 25, 25}, {0, 25, 0}}),
              ElementsAre(25u, 38u, 37u, 0u));
  EXPECT_THAT(Etalons({{1, 30, 30}, {1, 25, 25}, {1, 45, 24}, {1, 0, 0}}),
              ElementsAre(30u, 25u, 24u, 21u));
}

TEST(Etalon, Scenario17SixtyPinsOnATargetOfForty) {
  EXPECT_THAT(Etalons({{20, 67, 60}, {40, 67}, {40, 66}}), ElementsAre(60u, 70u, 70u));
}

TEST(Etalon, AShardWithAllBucketsPinnedStillReceives) {
  EXPECT_THAT(Etalons({{1, 10, 10}, {1, 90, 0}}), ElementsAre(50u, 50u));
  // More pinned than there is counts as what there is.
  EXPECT_THAT(Etalons({{1, 10, 99}, {1, 90, 0}}), ElementsAre(50u, 50u));
}

TEST(Etalon, PinsAboveTheShareStayAndTheRestIsShared) {
  const EtalonResult result = ComputeEtalon(Shards({{1, 80, 70}, {1, 20, 0}}));
  EXPECT_EQ(result.shards[0].etalon, 70u);
  EXPECT_EQ(result.shards[1].etalon, 30u);
}

TEST(Etalon, ALockedShardDoesNotExist) {
  const EtalonResult result = ComputeEtalon(Shards({{100, 10}, {100, 90}, {1000, 500, 0, true}}));
  EXPECT_EQ(result.state, EtalonState::kOk);
  EXPECT_EQ(result.shards[0].etalon, 50u);
  EXPECT_EQ(result.shards[1].etalon, 50u);
  EXPECT_EQ(result.shards[2].etalon, 500u);
  EXPECT_EQ(result.shards[2].disbalance_percent, 0);
  EXPECT_EQ(result.max_disbalance_percent, 80);
  // Scenario 13: with weight 0 it keeps everything, and the collection counts as balanced.
  EXPECT_EQ(ComputeEtalon(Shards({{1, 50}, {1, 50}, {0, 70, 0, true}})).max_disbalance_percent, 0);
}

TEST(Etalon, AllWeightsZeroKeepsEverythingAndSaysSo) {
  for (const auto& loads :
       {std::vector<Load>{{0, 10}, {0, 20}}, std::vector<Load>{{0, 10}, {100, 20, 0, true}}}) {
    const EtalonResult result = ComputeEtalon(Shards(loads));
    EXPECT_EQ(result.state, EtalonState::kAllWeightsZero);
    EXPECT_EQ(result.shards[0].etalon, 10u);
    EXPECT_EQ(result.shards[1].etalon, 20u);
    EXPECT_EQ(result.max_disbalance_percent, 0);
  }
}

TEST(Etalon, AllLockedKeepsEverythingAndSaysSo) {
  const EtalonResult result = ComputeEtalon(Shards({{100, 10, 0, true}, {100, 20, 0, true}}));
  EXPECT_EQ(result.state, EtalonState::kAllLocked);
  EXPECT_EQ(result.shards[0].etalon, 10u);
  EXPECT_EQ(result.max_disbalance_percent, 0);
  EXPECT_EQ(ComputeEtalon({}).state, EtalonState::kAllLocked);
}

TEST(Etalon, Disbalance) {
  EXPECT_EQ(DisbalancePercent(0, 0), 0);
  EXPECT_EQ(DisbalancePercent(150, 100), 50);
  EXPECT_EQ(DisbalancePercent(50, 100), 50);
  EXPECT_EQ(DisbalancePercent(0, 100), 100);
  EXPECT_TRUE(std::isinf(DisbalancePercent(1, 0)));
  const EtalonResult drained = ComputeEtalon(Shards({{0, 1}, {1, 99}}));
  EXPECT_TRUE(std::isinf(drained.shards[0].disbalance_percent));
  EXPECT_TRUE(std::isinf(drained.max_disbalance_percent));
}

TEST(Etalon, CarriesUidsAndSortsByName) {
  const EtalonResult result =
      ComputeEtalon({{"b", ShardUid(7), 1, false, 0, 3}, {"a", ShardUid(9), 1, false, 0, 4}});
  EXPECT_EQ(result.shards[0].name, "a");
  EXPECT_EQ(result.shards[0].uid, ShardUid(9));
  EXPECT_EQ(result.shards[0].etalon, 4u);  // 3.5 each: the tie goes to the smaller name
  EXPECT_EQ(result.shards[1].uid, ShardUid(7));
}

TEST(Etalon, IsExactForLargeNumbers) {
  // 2^32 buckets over weights whose products need more than 64 bits.
  const std::uint64_t huge = std::uint64_t{1} << 63;
  EXPECT_THAT(Etalons({{huge, std::uint64_t{1} << 32}, {huge, 0}, {huge, 1}}),
              ElementsAre(1431655766u, 1431655766u, 1431655765u));
}

struct RandomLoads {
  std::vector<ShardLoad> shards;
  std::uint64_t total = 0;  // of the unlocked
  bool any_weight = false;
};

RandomLoads Draw(Random* random) {
  RandomLoads out;
  const std::uint64_t n = random->Between(1, 12);
  for (std::uint64_t i = 0; i < n; ++i) {
    ShardLoad shard;
    shard.name = "shard-" + std::to_string(i);
    shard.uid = ShardUid(i + 1);
    shard.weight =
        random->Chance(1, 5) ? 0 : random->Between(1, random->Chance(1, 2) ? 3 : 1000000);
    shard.locked = random->Chance(1, 6);
    shard.buckets = random->Below(random->Chance(1, 2) ? 10 : 3000);
    shard.pinned = random->Chance(1, 2) ? 0 : random->Between(0, shard.buckets);
    if (!shard.locked) {
      out.total += shard.buckets;
      out.any_weight |= shard.weight > 0;
    }
    out.shards.push_back(shard);
  }
  return out;
}

TEST(EtalonProperty, SharesSumExactlyAndStayNearTheirQuota) {
  Random random(4242);
  for (int round = 0; round < 20000; ++round) {
    const RandomLoads draw = Draw(&random);
    const EtalonResult result = ComputeEtalon(draw.shards);
    std::uint64_t sum = 0;
    for (const ShardLoad& shard : draw.shards) {
      const auto it = std::find_if(result.shards.begin(), result.shards.end(),
                                   [&](const ShardEtalon& e) { return e.name == shard.name; });
      ASSERT_NE(it, result.shards.end());
      if (shard.locked) {
        EXPECT_EQ(it->etalon, shard.buckets);
        continue;
      }
      sum += it->etalon;
      if (result.state == EtalonState::kOk) {
        EXPECT_GE(it->etalon, shard.pinned);
        if (shard.weight == 0) {
          EXPECT_EQ(it->etalon, shard.pinned);
        }
      }
    }
    EXPECT_EQ(sum, draw.total);
    if (result.state != EtalonState::kOk) {
      EXPECT_FALSE(draw.any_weight);
      continue;
    }
    // Of what is not kept for pins, everybody left has its quota within one bucket.
    std::uint64_t shared = draw.total, weights = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> members;  // weight, etalon
    for (const ShardLoad& shard : draw.shards) {
      if (shard.locked) continue;
      const auto it = std::find_if(result.shards.begin(), result.shards.end(),
                                   [&](const ShardEtalon& e) { return e.name == shard.name; });
      if (it->etalon == shard.pinned && shard.pinned > 0) {
        shared -= shard.pinned;  // left, or sits exactly at its share: either way the others are as
                                 // if it had left
        continue;
      }
      weights += shard.weight;
      members.emplace_back(shard.weight, it->etalon);
    }
    for (const auto& [weight, etalon] : members) {
      if (weights == 0) break;
      const double quota =
          static_cast<double>(shared) * static_cast<double>(weight) / static_cast<double>(weights);
      EXPECT_LT(std::abs(static_cast<double>(etalon) - quota), 2.0);
    }
  }
}

TEST(EtalonProperty, TheOrderOfTheInputChangesNothing) {
  Random random(77);
  for (int round = 0; round < 2000; ++round) {
    RandomLoads draw = Draw(&random);
    const EtalonResult before = ComputeEtalon(draw.shards);
    for (std::size_t i = draw.shards.size(); i > 1; --i)
      std::swap(draw.shards[i - 1], draw.shards[random.Below(i)]);
    const EtalonResult after = ComputeEtalon(draw.shards);
    ASSERT_EQ(before.shards.size(), after.shards.size());
    for (std::size_t i = 0; i < before.shards.size(); ++i) {
      EXPECT_EQ(before.shards[i].name, after.shards[i].name);
      EXPECT_EQ(before.shards[i].etalon, after.shards[i].etalon);
    }
  }
}

TEST(EtalonProperty, WhatWasReachedIsStable) {
  Random random(88);
  for (int round = 0; round < 2000; ++round) {
    RandomLoads draw = Draw(&random);
    const EtalonResult first = ComputeEtalon(draw.shards);
    for (ShardLoad& shard : draw.shards) {
      for (const ShardEtalon& etalon : first.shards) {
        if (etalon.name == shard.name) shard.buckets = etalon.etalon;
      }
    }
    EXPECT_EQ(ComputeEtalon(draw.shards).max_disbalance_percent, 0);
  }
}

TEST(Bootstrap, RangesTileTheBucketsInTheGivenOrder) {
  const auto ranges = PlanBootstrap(Shards({{100, 0}, {50, 0}, {150, 0}}), 3000);
  ASSERT_TRUE(ranges.ok());
  ASSERT_EQ(ranges->size(), 3u);
  EXPECT_EQ((*ranges)[0].first, 0u);
  EXPECT_EQ((*ranges)[0].count, 1000u);
  EXPECT_EQ((*ranges)[1].first, 1000u);
  EXPECT_EQ((*ranges)[1].count, 500u);
  EXPECT_EQ((*ranges)[2].first, 1500u);
  EXPECT_EQ((*ranges)[2].count, 1500u);
  EXPECT_EQ((*ranges)[2].uid, ShardUid(3));
}

TEST(Bootstrap, AsManyShardsAsBucketsIsTheClassicLayout) {
  std::vector<ShardLoad> shards;  // by name shard-10 stands before shard-2
  for (int i = 0; i < 12; ++i)
    shards.push_back({"shard-" + std::to_string(i), ShardUid(), 100, false, 0, 0});
  const auto ranges = PlanBootstrap(shards, 12);
  ASSERT_TRUE(ranges.ok());
  ASSERT_EQ(ranges->size(), 12u);
  for (std::uint32_t i = 0; i < 12; ++i) {
    EXPECT_EQ((*ranges)[i].shard, "shard-" + std::to_string(i));
    EXPECT_EQ((*ranges)[i].first, i);
    EXPECT_EQ((*ranges)[i].count, 1u);
  }
}

TEST(Bootstrap, LockedAndWeightlessShardsGetNothing) {
  const auto ranges = PlanBootstrap(Shards({{100, 0, 0, true}, {0, 0}, {1, 5, 5}, {1, 0}}), 7);
  ASSERT_TRUE(ranges.ok());
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].shard, "c");
  EXPECT_EQ((*ranges)[0].count, 4u);
  EXPECT_EQ((*ranges)[1].shard, "d");
  EXPECT_EQ((*ranges)[1].first, 4u);
  EXPECT_EQ((*ranges)[1].count, 3u);
}

TEST(Bootstrap, RefusesWhenNobodyMayTakeABucket) {
  EXPECT_EQ(PlanBootstrap(Shards({{0, 0}, {0, 0}}), 7).status().reason(), Reason::kInvalidCfg);
  EXPECT_EQ(PlanBootstrap(Shards({{1, 0, 0, true}}), 7).status().reason(), Reason::kInvalidCfg);
  EXPECT_EQ(PlanBootstrap({}, 7).status().reason(), Reason::kInvalidCfg);
  EXPECT_EQ(PlanBootstrap(Shards({{1, 0}}), 0).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace etalon::placement
