// Random clusters: weights and locks change, shards fall silent, leaders change, messages are lost.
// Then peace: every shard must reach exactly its etalon.
#include <gtest/gtest.h>

#include <string>

#include "engine/balance/testing/balanced.h"

namespace etalon::balance::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

void RunSeed(std::uint64_t seed) {
  Random random(seed);
  ClusterOptions options;
  options.seed = seed;
  options.shards = 3 + static_cast<int>(random.Below(3));
  options.bucket_count = 12 + static_cast<std::uint32_t>(random.Below(30));
  options.ranges = {{0, options.bucket_count / 2 - 1},
                    {options.bucket_count / 2, options.bucket_count - 1}};
  options.settings.set_max_sending(1 + static_cast<std::uint32_t>(random.Below(8)));
  options.settings.set_max_receiving(1 + static_cast<std::uint32_t>(random.Below(4)));
  Balanced b(options);
  Cluster& cluster = b.cluster();
  cluster.lost = static_cast<int>(random.Below(100));
  cluster.doubled = static_cast<int>(random.Below(100));
  cluster.latency_max = random.Between(Duration(milliseconds(1)), Duration(milliseconds(30)));
  const auto any = [&] {
    return static_cast<int>(random.Below(static_cast<std::uint64_t>(options.shards)));
  };
  for (int round = 0; round < 30; ++round) {
    cluster.RunFor(random.Between(Duration(0), Duration(milliseconds(300))));
    cluster.RandomWrite(5);
    switch (random.Below(10)) {
      case 0:
        cluster.ChangeSettings([&](v1::Settings& s) {
          s.mutable_shards(any())->set_weight(static_cast<std::uint32_t>(random.Below(4)) * 100);
        });
        break;
      case 1:
        cluster.ChangeSettings(
            [&](v1::Settings& s) { s.mutable_shards(any())->set_locked(random.Chance(1, 2)); });
        break;
      case 2:
        b.shard(any()).silent = true;
        break;
      case 3:
        for (int i = 0; i < options.shards; ++i) b.shard(i).silent = false;
        break;
      case 4: {
        auto& shard = b.shard(any());
        shard.ChangeLeader(random.Below(shard.unapplied() + 1));
        break;
      }
      case 5: {
        v1::Control control;
        control.mutable_pin()->add_buckets(
            static_cast<std::uint32_t>(random.Below(options.bucket_count)));
        control.mutable_pin()->set_unpin(random.Chance(1, 3));
        b.shard(any()).Shard::Propose(control);
        break;
      }
      default:
        break;
    }
  }
  cluster.lost = cluster.doubled = 0;
  for (int i = 0; i < options.shards; ++i) b.shard(i).silent = false;
  cluster.ChangeSettings([&](v1::Settings& s) {
    s.mutable_shards(0)->set_weight(100);
    s.mutable_shards(0)->set_locked(false);
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return b.AtEtalon(); }, minutes(5)))
      << "seed " << seed << ": " << b.Counts();
  ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed;
  ASSERT_EQ(cluster.CheckAtRest(), "") << "seed " << seed;
  int moves = 0;
  for (int i = 0; i < options.shards; ++i) moves += b.shard(i).applied_controls["SENT"];
  cluster.RunFor(minutes(1));
  for (int i = 0; i < options.shards; ++i) moves -= b.shard(i).applied_controls["SENT"];
  ASSERT_EQ(moves, 0) << "seed " << seed << ": it is not at rest";
}

TEST(RebalancerChaos, ConvergesToTheEtalonExactlyAndThenRests) {
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    RunSeed(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace etalon::balance::testing
