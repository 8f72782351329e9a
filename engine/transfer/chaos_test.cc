// Whole transfers under everything that may go wrong except the loss of disks.
#include <gtest/gtest.h>

#include <string>

#include "engine/transfer/testing/cluster.h"

namespace etalon::transfer::testing {
namespace {

ClusterOptions Small(std::uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.shards = 3;
  options.bucket_count = 6;
  options.ranges = {{0, 3}, {4, 5}};
  return options;
}

// One seed: writes, random moves and sets, lossy messages and leader changes for a while; then
// peace, then the checks.
struct Totals {
  std::map<std::string, int> applied;
};

void RunSeed(std::uint64_t seed, Totals& totals) {
  Cluster cluster(Small(seed));
  Random random(seed * 31 + 7);
  cluster.lost = static_cast<int>(random.Below(200));
  cluster.doubled = static_cast<int>(random.Below(200));
  cluster.late = static_cast<int>(random.Below(100));
  cluster.confirmed_always = random.Chance(1, 2);
  const std::uint64_t changes = random.Below(15);
  for (int round = 0; round < 60; ++round) {
    cluster.RunFor(random.Between(Duration(0), Duration(std::chrono::milliseconds(8))));
    for (std::uint64_t i = random.Below(4); i > 0; --i) cluster.RandomWrite(8);
    if (random.Chance(1, 4)) {
      Shard& from = cluster.shard(static_cast<int>(random.Below(3)));
      std::vector<std::uint32_t> set;
      for (const auto& [bucket, row] : from.state().rows()) {
        if (row.status == bucket::RowStatus::kActive && !row.transfer && random.Chance(1, 2)) {
          set.push_back(bucket);
        }
      }
      if (!set.empty()) from.Move(Cluster::Uid(static_cast<int>(random.Below(3))), set);
    }
    if (random.Chance(changes, 60)) {
      Shard& shard = cluster.shard(static_cast<int>(random.Below(3)));
      shard.ChangeLeader(random.Below(shard.unapplied() + 1));
    }
  }
  cluster.lost = cluster.doubled = cluster.late = 0;
  cluster.confirmed_always = true;
  ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed << ": not at rest";
  ASSERT_EQ(cluster.CheckAtRest(), "") << "seed " << seed;
  cluster.RunFor(std::chrono::seconds(20));  // what was late comes now
  ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed << ": not at rest again";
  ASSERT_EQ(cluster.CheckAtRest(), "") << "seed " << seed;
  ASSERT_GT(cluster.acknowledged, 0u);
  for (int i = 0; i < cluster.size(); ++i) {
    for (const auto& [name, n] : cluster.shard(i).applied_controls) totals.applied[name] += n;
  }
}

TEST(TransferChaos, NoBucketIsDoubledAndNoAcknowledgedWriteIsLost) {
  Totals totals;
  constexpr int kSeeds = 1500;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RunSeed(seed, totals);
    if (HasFatalFailure()) return;
  }
  // The dice must have reached everything.
  for (const char* name : {"OPEN", "RECEIVING", "CHUNK", "PREPARED", "SENDING", "SENT", "ACTIVATE",
                           "SOURCE_GARBAGE", "REMOVE", "ABORT"}) {
    EXPECT_GT(totals.applied[name], kSeeds / 4) << name;
  }
  EXPECT_GT(totals.applied["TARGET_GARBAGE"], kSeeds / 20);
}

}  // namespace
}  // namespace etalon::transfer::testing
