// The change feed through a whole router.
#include <gtest/gtest.h>

#include "placement/routing_table.h"
#include "router/testing/cluster.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Cluster;
using testing::ClusterOptions;

constexpr ShardUid kS0{10}, kS1{11};

// The table says what the shards have.
bool Agrees(Cluster& c, std::uint32_t shards = 2) {
  const BucketTable& table = *c.router->table();
  std::uint64_t owned = 0;
  for (std::uint32_t s = 0; s < shards; ++s) {
    const auto& shard = c.shard(s);
    for (const auto& [bucket, epoch] : shard.owned) {
      bool same = true;
      table.ForEachPart({static_cast<std::uint8_t>(shard.level), bucket}, [&](std::uint32_t n) {
        same = same && table.At(n) == Owner{shard.uid, Epoch(epoch)};
        ++owned;
      });
      if (!same) return false;
    }
  }
  return owned == table.modulus() && table.unknown() == 0;
}

TEST(RouterFeeds, AFreshRouterAsksAllShardsAtOnce) {
  Cluster c({.shards = 20, .replicas = 1, .bucket_count = 200});
  const SteadyTime start = c.world.now();
  c.Start();
  EXPECT_TRUE(Agrees(c, 20));
  EXPECT_LT(c.world.now() - start, milliseconds(20));
}

TEST(RouterFeeds, TheLeaderIsFoundThroughTheOthers) {
  Cluster c;
  const SteadyTime start = c.world.now();
  c.Start();
  EXPECT_TRUE(Agrees(c));
  EXPECT_LT(c.world.now() - start, milliseconds(100)) << "refusals name the leader";
}

TEST(RouterFeeds, AMoveIsKnownWithoutACall) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(2, kS1, 2);
  c.shard(1).Own(2, 2);
  c.world.RunFor(milliseconds(10));
  EXPECT_TRUE(Agrees(c));
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
  EXPECT_EQ(c.CallsSeen(), 1u);
}

TEST(RouterFeeds, ALostDeltaIsNoticedAndMadeGood) {
  Cluster c;
  c.Start();
  const std::size_t before = c.leader(0).subscriptions();
  c.world.net().CutOneWay("s0-2", "router");
  c.shard(0).Own(2, 5);
  c.world.RunFor(milliseconds(20));
  c.world.net().Heal("s0-2", "router");
  ASSERT_FALSE(Agrees(c));
  EXPECT_TRUE(c.world.RunUntil([&] { return Agrees(c); }, seconds(1)))
      << "the next heartbeat shows the gap";
  EXPECT_EQ(c.leader(0).subscriptions(), before + 1);
}

TEST(RouterFeeds, AMuteFeederIsNoticed) {
  Cluster c;
  c.Start();
  c.leader(0).mute = true;
  c.world.RunFor(seconds(1));
  c.shard(0).Lead("s0-1");
  c.shard(0).Own(2, 5, true);
  EXPECT_TRUE(c.world.RunUntil([&] { return Agrees(c); }, seconds(3)));
}

TEST(RouterFeeds, AChangeOfLeadersMovesTheSubscription) {
  Cluster c;
  c.Start();
  auto& old = c.leader(0);
  c.shard(0).Lead("s0-0");
  c.shard(0).Own(2, 5, true);
  EXPECT_TRUE(c.world.RunUntil([&] { return Agrees(c); }, seconds(2)));
  // What the old leader still says does not count.
  v1::FeedMessage lie;
  lie.set_shard(kS0.value());
  lie.set_term(1);
  lie.set_index(5000);
  v1::FeedBucket& bucket = *lie.add_buckets();
  bucket.set_bucket(2);
  bucket.set_epoch(9);
  bucket.set_gone(true);
  bucket.set_destination(kS1.value());
  old.SendRaw(lie);
  c.world.RunFor(milliseconds(50));
  EXPECT_TRUE(Agrees(c));
}

TEST(RouterFeeds, TheModulusGrowsInTheMiddleOfTheFlight) {
  Cluster c;
  c.Start();
  c.leader(0).refuse = [](const v1::Call&) {
    return Unavailable(Reason::kTransferIsInProgress, "moves");
  };
  // A key whose routing value is far over the modulus.
  auto call = c.Make("put", 0);
  call.mutable_target()->set_string_key("Hello");  // crc32 f7d18982: bucket 2 of 8 and of 16
  const auto id = c.SendCall(call);
  c.world.RunFor(milliseconds(500));
  ASSERT_FALSE(c.Answered(id));
  c.shard(0).Rebase(1);
  c.world.RunFor(milliseconds(20));
  EXPECT_EQ(c.router->table()->modulus(), 16u);
  EXPECT_TRUE(Agrees(c)) << "s1 is still at level 0";
  // The other half moves: no news for this call's bucket. Then its own half does.
  c.shard(1).Rebase(1);
  c.shard(0).Leave(10, kS1, 2);
  c.shard(1).Own(10, 2);
  c.world.RunFor(milliseconds(20));
  ASSERT_FALSE(c.Answered(id));
  c.shard(0).Leave(2, kS1, 2);
  c.shard(1).Own(2, 2);
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  ASSERT_EQ(c.leader(1).calls().size(), 1u);
  EXPECT_EQ(c.leader(1).calls()[0].epoch, 2u);
  EXPECT_TRUE(Agrees(c));
}

TEST(RouterFeeds, AFeedOfBucketsThatCannotBeRaisesAnAlert) {
  Cluster c;
  c.Start();
  c.shard(0).Own(8, 1);
  c.world.RunFor(seconds(1));
  EXPECT_TRUE(c.HasAlert("INVALID_CFG"));
  EXPECT_LE(c.leader(0).subscriptions(), 12u) << "backs off";
  c.shard(0).owned.erase(8);
  c.world.RunFor(seconds(5));
  EXPECT_FALSE(c.HasAlert("INVALID_CFG"));
}

TEST(RouterFeeds, LossDuplicatesAndReorderingConvergeToTheTruth) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    ClusterOptions options;
    options.seed = seed;
    options.quiet = false;
    Cluster c(options);
    c.Start();
    auto& net = c.world.net().options();
    net.loss_permille = 100;
    net.duplicate_permille = 200;
    net.slow_permille = 100;
    std::vector<std::uint64_t> epochs(8, 1);
    for (int i = 0; i < 300; ++i) {
      const auto bucket = static_cast<std::uint32_t>(c.world.random().Below(8));
      const std::uint32_t from = c.shard(0).owned.contains(bucket) ? 0 : 1;
      ++epochs[bucket];
      c.shard(from).Leave(bucket, c.shard(1 - from).uid, epochs[bucket]);
      c.world.RunFor(milliseconds(c.world.random().Below(10)));
      c.shard(1 - from).Own(bucket, epochs[bucket]);
      if (c.world.random().Chance(1, 20)) {
        c.shard(from).Lead("s" + std::to_string(from) + "-" +
                           std::to_string(c.world.random().Below(3)));
      }
    }
    net.loss_permille = 0;
    EXPECT_TRUE(c.world.RunUntil([&] { return Agrees(c); }, seconds(10))) << "seed " << seed;
    c.world.RunFor(seconds(12));
    EXPECT_TRUE(Agrees(c)) << "seed " << seed;
    EXPECT_FALSE(c.HasAlert("DOUBLED_BUCKETS")) << "seed " << seed;
    EXPECT_FALSE(c.HasAlert("LOST_BUCKETS")) << "seed " << seed;
  }
}

TEST(RouterFeeds, OneMillionBuckets) {
  Cluster c({.shards = 4, .replicas = 1, .bucket_count = 1'000'000});
  c.Start();
  EXPECT_EQ(c.router->table()->unknown(), 0u);
  EXPECT_LE(c.router->table()->slot_bytes(), std::size_t{8'000'000});
  EXPECT_EQ(c.Call(c.Make("put", 999'999)).status().code(), 0u);
}

}  // namespace
}  // namespace etalon::router
