// Reads off the leader: zones, turns, failover.
#include <gtest/gtest.h>

#include "router/testing/cluster.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Cluster;
using testing::ClusterOptions;
using testing::FakeReplica;

// How many of `count` reads of shard 0 each replica got, in the order of the topology.
std::vector<std::size_t> Spread(Cluster& c, v1::Mode mode, int count) {
  std::vector<std::size_t> before;
  for (std::uint32_t r = 0; r < 3; ++r) before.push_back(c.replica(0, r).calls().size());
  for (int i = 0; i < count; ++i) {
    const auto reply = c.Call(c.Make("get", 0, mode));
    EXPECT_EQ(reply.status().code(), 0u) << reply.status().message();
  }
  std::vector<std::size_t> out;
  for (std::uint32_t r = 0; r < 3; ++r) {
    out.push_back(c.replica(0, r).calls().size() - before[r]);
  }
  return out;
}
using Counts = std::vector<std::size_t>;

TEST(RouterReads, RoGoesToTheNearest) {
  Cluster c;
  c.Start();
  EXPECT_EQ(Spread(c, v1::MODE_RO, 10), (Counts{10, 0, 0}));
  EXPECT_EQ(c.replica(0, 0).calls()[0].mode, v1::MODE_RO) << "labelled";
}

TEST(RouterReads, TheLeaderIsAnOrdinaryReplicaAndFirstAtEqualDistance) {
  Cluster c;
  c.topology.clear_distances();
  c.Start();
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{5, 0, 0})) << "the own zone";
  Cluster elsewhere({.router_zone = "elsewhere"});
  elsewhere.Start();
  EXPECT_EQ(Spread(elsewhere, v1::MODE_RO, 5), (Counts{0, 0, 5})) << "all are equally far";
}

TEST(RouterReads, AZoneOfTheLargestDistanceIsUsedLast) {
  Cluster c;
  c.topology.mutable_distances(0)->set_distance(1000);
  c.Start();
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{0, 5, 0}));
  c.replica(0, 1).ready = false;
  c.replica(0, 2).ready = false;
  c.world.RunFor(seconds(1));
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{5, 0, 0})) << "nobody else is left";
}

TEST(RouterReads, ReSparesTheLeaderAndBalancedModesTakeTurns) {
  Cluster c;
  c.Start();
  EXPECT_EQ(Spread(c, v1::MODE_RE, 10), (Counts{10, 0, 0}));
  EXPECT_EQ(Spread(c, v1::MODE_BRO, 30), (Counts{10, 10, 10}));
  EXPECT_EQ(Spread(c, v1::MODE_BRE, 30), (Counts{15, 15, 0}));
  c.shard(0).Lead("s0-0");
  c.world.RunFor(seconds(1));
  EXPECT_EQ(Spread(c, v1::MODE_RE, 10), (Counts{0, 10, 0}));
}

TEST(RouterReads, AMuteNearestReplicaIsLeftWithinASecondAndComesBack) {
  Cluster c;
  c.Start();
  c.replica(0, 0).mute = true;
  // From the first moment on: no read takes longer than a second.
  for (int i = 0; i < 20; ++i) {
    const SteadyTime start = c.world.now();
    EXPECT_EQ(c.Call(c.Make("get", 0, v1::MODE_RO)).status().code(), 0u);
    EXPECT_LT(c.world.now() - start, seconds(1));
    c.world.RunFor(milliseconds(100));
  }
  const SteadyTime start = c.world.now();
  EXPECT_EQ(Spread(c, v1::MODE_RO, 10), (Counts{0, 10, 0}));
  EXPECT_LT(c.world.now() - start, milliseconds(100)) << "nobody waits for it any more";
  c.replica(0, 0).mute = false;
  c.world.RunFor(seconds(1));
  EXPECT_EQ(Spread(c, v1::MODE_RO, 10), (Counts{10, 0, 0}));
}

TEST(RouterReads, BalancedReadsDoNotKeepHittingAMuteReplica) {
  Cluster c;
  c.Start();
  c.replica(0, 1).mute = true;
  c.world.RunFor(seconds(2));
  const SteadyTime start = c.world.now();
  EXPECT_EQ(Spread(c, v1::MODE_BRO, 30)[1], 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(200));
}

TEST(RouterReads, AReplicaThatAnswersPingsButNoCallsNeverGetsAllTries) {
  Cluster c;
  c.Start();
  c.replica(0, 0).mute_calls = true;
  for (int i = 0; i < 5; ++i) {
    const SteadyTime start = c.world.now();
    EXPECT_EQ(c.Call(c.Make("get", 0, v1::MODE_RO)).status().code(), 0u);
    EXPECT_LT(c.world.now() - start, seconds(1));
  }
}

TEST(RouterReads, TwoMuteReplicasLeaveTheThird) {
  Cluster c;
  c.Start();
  c.replica(0, 0).mute = c.replica(0, 1).mute = true;
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("get", 0, v1::MODE_RO)).status().code(), 0u);
  EXPECT_LT(c.world.now() - start, seconds(1));
}

TEST(RouterReads, ALaggingReplicaIsUsedOnlyWhenNobodyElseIsLeft) {
  Cluster c;
  c.replica(0, 0).lag_millis = 31000;
  c.Start();
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{0, 5, 0}));
  c.replica(0, 0).lag_millis = 10;
  c.world.RunFor(seconds(1));
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{5, 0, 0}));
  c.replica(0, 0).lag_millis = 31000;
  c.shard(0).Lead("");
  c.replica(0, 1).mute = c.replica(0, 2).mute = true;
  c.world.RunFor(seconds(2));
  EXPECT_EQ(Spread(c, v1::MODE_RO, 5), (Counts{5, 0, 0})) << "reads go on without a leader";
}

TEST(RouterReads, AReadFallsBackToTheLeaderWhenReplicasRefuse) {
  Cluster c;
  c.Start();
  for (std::uint32_t r : {0u, 1u}) {
    c.replica(0, r).refuse = [](const v1::Call&) {
      return Unavailable(Reason::kStorageIsDisabled, "starting");
    };
  }
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("get", 0, v1::MODE_RE)).status().code(), 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(20));
  EXPECT_EQ(c.leader(0).calls().size(), 1u);
}

TEST(RouterReads, AFollowerThatIsBehindIsNoReasonToWait) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(0, ShardUid(11), 2);
  c.shard(1).Own(0, 2);
  c.world.RunFor(milliseconds(20));
  c.replica(1, 0).refuse = [](const v1::Call&) {
    return Unavailable(Reason::kTransferIsInProgress, "still receiving");
  };
  c.replica(1, 1).refuse = [](const v1::Call&) {
    Hint hint;
    hint.destination = ShardUid(10);
    hint.epoch = Epoch(1);
    return Aborted(Reason::kWrongBucket, "not here yet", hint);
  };
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("get", 0, v1::MODE_RO)).status().code(), 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(20));
  EXPECT_EQ(c.leader(1).calls().size(), 1u);
  for (std::uint32_t r = 0; r < 3; ++r) EXPECT_EQ(c.replica(0, r).calls().size(), 0u);
}

TEST(RouterReads, ASlowReadIsGivenMoreTimeAtTheNextReplica) {
  Cluster c({.replicas = 1});
  c.Start();
  // Answers come 450 ms late: more than the first try may take.
  c.world.net().options().latency_min = c.world.net().options().latency_max = milliseconds(225);
  const auto reply = c.Call(c.Make("get", 0, v1::MODE_RO));
  EXPECT_EQ(reply.status().code(), 0u) << reply.status().message();
}

TEST(RouterReads, MaxStalenessIsPassedOn) {
  Cluster c;
  c.Start();
  std::uint32_t bound = 0;
  c.replica(0, 0).refuse = [&](const v1::Call& call) -> std::optional<Status> {
    bound = call.max_staleness_millis();
    return std::nullopt;
  };
  auto call = c.Make("get", 0, v1::MODE_RO);
  call.set_max_staleness_millis(1234);
  EXPECT_EQ(c.Call(call).status().code(), 0u);
  EXPECT_EQ(bound, 1234u);
}

}  // namespace
}  // namespace etalon::router
