// A whole router: topologies, readiness, questions, alerts, the end.
#include "router/node/node.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "router/testing/cluster.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Cluster;
using testing::ClusterOptions;

constexpr ShardUid kS0{10}, kS1{11};

v1::ClientRequest Push(const v1::Topology& topology) {
  v1::ClientRequest request;
  *request.mutable_apply_topology() = topology;
  return request;
}

// ---- start and topologies
// -------------------------------------------------------------------------

TEST(RouterNode, IsReadyOnceEveryReplicaWasDialledAndEveryListCame) {
  Cluster c;
  c.StartRouter();
  EXPECT_FALSE(c.router->ready());
  const SteadyTime start = c.world.now();
  ASSERT_TRUE(c.world.RunUntil([&] { return c.router->ready(); }, seconds(1)));
  EXPECT_LT(c.world.now() - start, milliseconds(100));
  EXPECT_EQ(c.router->table()->unknown(), 0u);
  const auto info = c.Info();
  EXPECT_TRUE(info.ready());
  EXPECT_EQ(info.status(), 0u);
  EXPECT_EQ(info.topology_version(), 1u);
  EXPECT_EQ(info.available_rw(), 8u);
  EXPECT_EQ(info.collection(), 7u);
}

TEST(RouterNode, ADeadReplicaIsAlertedByNameAndDoesNotKeepTheRouterFromStarting) {
  Cluster c;
  c.replica(1, 0).mute = true;
  c.StartRouter();
  const SteadyTime start = c.world.now();
  ASSERT_TRUE(c.world.RunUntil([&] { return c.router->ready(); }, seconds(10)));
  EXPECT_GT(c.world.now() - start, milliseconds(500)) << "it was dialled in earnest";
  EXPECT_LT(c.world.now() - start, seconds(2));
  const auto info = c.Info();
  EXPECT_EQ(info.status(), 1u);
  bool named = false;
  for (const v1::Alert& alert : info.alerts()) {
    named = named || (alert.code() == "UNREACHABLE_REPLICA" &&
                      alert.text().find("s1-0") != std::string::npos);
  }
  EXPECT_TRUE(named);
}

TEST(RouterNode, AShardWithoutALeaderDelaysReadinessUpToTheBound) {
  Cluster c;
  c.shard(1).Lead("");
  c.StartRouter();
  const SteadyTime start = c.world.now();
  ASSERT_TRUE(c.world.RunUntil([&] { return c.router->ready(); }, seconds(10)));
  EXPECT_NEAR(std::chrono::duration<double>(c.world.now() - start).count(), 5, 0.1);
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().code(), 0u) << "the other shard serves";
}

TEST(RouterNode, ServesNothingBeforeATopologyAndTakesAPushedOne) {
  Cluster c;
  v1::Topology unusable = c.topology;
  unusable.set_bucket_count(0);
  ClusterOptions options;
  options.router.topology = unusable;
  Cluster bare(options);
  bare.StartRouter();
  EXPECT_FALSE(bare.router->ready());
  EXPECT_EQ(bare.Call(bare.Make("put", 0)).status().reason(), v1::REASON_ROUTER_IS_DISABLED);
  EXPECT_TRUE(bare.HasAlert("NO_TOPOLOGY"));
  EXPECT_TRUE(bare.HasAlert("INVALID_CFG"));
  EXPECT_EQ(bare.Info().status(), 3u);
  EXPECT_TRUE(bare.Ask(Push(bare.topology)).has_done());
  ASSERT_TRUE(bare.world.RunUntil([&] { return bare.router->ready(); }, seconds(1)));
  EXPECT_EQ(bare.Call(bare.Make("put", 0)).status().code(), 0u);
  EXPECT_EQ(bare.Info().status(), 0u);
}

TEST(RouterNode, OneVersionHasOneContent) {
  Cluster c;
  c.Start();
  EXPECT_TRUE(c.Ask(Push(c.topology)).has_done()) << "the same again";
  auto other = c.topology;
  other.mutable_shards(0)->mutable_replicas(0)->set_zone("elsewhere");
  EXPECT_EQ(c.Ask(Push(other)).status().reason(), v1::REASON_TOPOLOGY_CONFLICT);
  EXPECT_TRUE(c.HasAlert("INVALID_CFG"));
  other.set_version(2);
  EXPECT_TRUE(c.Ask(Push(other)).has_done());
  EXPECT_FALSE(c.HasAlert("INVALID_CFG"));
  EXPECT_EQ(c.Info().topology_version(), 2u);
  const auto older = c.Ask(Push(c.topology)).status();
  EXPECT_EQ(older.reason(), v1::REASON_STALE_TOPOLOGY);
  EXPECT_EQ(older.hint().number(), 2u);
}

TEST(RouterNode, AForeignOrChangedCollectionIsRefused) {
  Cluster c;
  c.Start();
  auto other = c.topology;
  other.set_version(2);
  other.set_collection(8);
  EXPECT_EQ(c.Ask(Push(other)).status().reason(), v1::REASON_INVALID_CFG);
  other.set_collection(7);
  other.set_bucket_count(16);
  EXPECT_EQ(c.Ask(Push(other)).status().reason(), v1::REASON_INVALID_CFG);
  EXPECT_EQ(c.Info().topology_version(), 1u);
}

TEST(RouterNode, MessagesOfAnotherCollectionAreDropped) {
  Cluster c;
  c.Start();
  v1::NodeMessage message;
  message.set_collection(8);
  v1::ClientRequest request;
  request.set_id(4711);
  request.mutable_info();
  message.set_client_request(request.SerializeAsString());
  c.router->OnMessage("client", Lane::kControl, message.SerializeAsString());
  c.router->OnMessage("client", Lane::kControl, "\xff\xff not a message");
  c.world.RunFor(seconds(1));
  EXPECT_FALSE(c.Answered(4711));
  message.set_collection(0);
  c.router->OnMessage("client", Lane::kControl, message.SerializeAsString());
  EXPECT_NE(c.Await(4711).info().name(), "");
}

TEST(RouterNode, ANewTopologyAddsAndRemovesShards) {
  Cluster c({.shards = 3, .bucket_count = 9});
  c.Start();
  for (std::uint32_t b : {2u, 5u, 8u}) {
    c.shard(2).Leave(b, kS0, 2);
    c.shard(0).Own(b, 2);
  }
  c.world.RunFor(milliseconds(20));
  auto next = c.topology;
  next.set_version(2);
  next.mutable_shards()->DeleteSubrange(2, 1);
  next.add_removed_shards(12);
  ASSERT_TRUE(c.Ask(Push(next)).has_done());
  EXPECT_EQ(c.Info().shards_size(), 2);
  EXPECT_EQ(c.Info().unknown(), 0u);
  EXPECT_EQ(c.Call(c.Make("put", 5)).status().code(), 0u);
  next.set_version(3);
  next.clear_removed_shards();
  *next.add_shards() = c.topology.shards(2);
  ASSERT_TRUE(c.Ask(Push(next)).has_done());
  c.shard(0).Leave(5, ShardUid(12), 3);
  c.shard(2).Own(5, 3);
  EXPECT_EQ(c.Call(c.Make("put", 5)).status().code(), 0u);
  EXPECT_EQ(c.Info().shards_size(), 3);
}

// ---- questions
// ------------------------------------------------------------------------------------

TEST(RouterNode, RouteBucketIdAndRouteAll) {
  Cluster c;
  c.Start();
  v1::ClientRequest request;
  request.mutable_route()->mutable_target()->set_string_key("123456789");
  const auto route = c.Ask(request).route();
  EXPECT_EQ(route.routing_value(), 0xcbf43926u);
  EXPECT_EQ(route.bucket().number(), 0xcbf43926u % 8);
  EXPECT_EQ(route.shard(), kS0.value());
  EXPECT_EQ(route.shard_name(), "s0");
  EXPECT_EQ(route.epoch(), 1u);
  EXPECT_EQ(route.leader(), "s0-2");
  request.Clear();
  request.mutable_bucket_id()->mutable_target()->set_bucket(5);
  const auto bucket = c.Ask(request).bucket_id();
  EXPECT_EQ(bucket.routing_value(), 5u);
  EXPECT_EQ(bucket.bucket().number(), 5u);
  EXPECT_EQ(bucket.modulus(), 8u);
  request.mutable_bucket_id()->mutable_target()->set_int_key(5);
  EXPECT_EQ(c.Ask(request).status().code(), static_cast<unsigned>(Code::kInvalidArgument));
  request.Clear();
  request.mutable_route_all();
  const auto all = c.Ask(request).route_all();
  ASSERT_EQ(all.shards_size(), 2);
  EXPECT_EQ(all.shards(1).leader(), "s1-2");
  EXPECT_EQ(all.shards(1).buckets(), 4u);
  ASSERT_EQ(all.shards(1).replicas_size(), 3);
  EXPECT_EQ(all.shards(1).replicas(1).distance(), 10u);
  EXPECT_TRUE(all.shards(1).replicas(1).healthy());
}

TEST(RouterNode, BucketsAreListedInPagesWithTheirAvailability) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(6, ShardUid(), 1);
  c.world.RunFor(milliseconds(20));
  c.shard(0).Lead("");
  for (std::uint32_t r = 0; r < 3; ++r) c.replica(1, r).mute = true;
  c.world.RunFor(seconds(2));
  v1::ClientRequest request;
  request.mutable_buckets()->set_offset(4);
  request.mutable_buckets()->set_limit(3);
  const auto page = c.Ask(request).buckets();
  ASSERT_EQ(page.buckets_size(), 3);
  EXPECT_EQ(page.buckets(0).bucket(), 4u);
  EXPECT_EQ(page.buckets(0).availability(), "available_ro");
  EXPECT_EQ(page.buckets(1).availability(), "unreachable");
  EXPECT_EQ(page.buckets(2).availability(), "unknown");
  request.mutable_buckets()->set_offset(100);
  EXPECT_EQ(c.Ask(request).buckets().buckets_size(), 0);
  const auto info = c.Info();
  EXPECT_EQ(info.available_rw(), 0u);
  EXPECT_EQ(info.available_ro(), 3u);
  EXPECT_EQ(info.unknown(), 1u);
  EXPECT_EQ(info.unreachable(), 4u);
}

TEST(RouterNode, DescribeAnswersOnlyWhenTheTableIsWhole) {
  Cluster c;
  c.Start();
  v1::ClientRequest request;
  request.mutable_describe();
  const auto whole = c.Ask(request).describe();
  EXPECT_EQ(whole.shard_names_size(), 2);
  EXPECT_EQ(whole.routing_modulus(), 8u);
  c.shard(0).Leave(4, ShardUid(), 1);
  c.world.RunFor(milliseconds(20));
  const auto holes = c.Ask(request).describe();
  EXPECT_EQ(holes.status().reason(), v1::REASON_UNKNOWN_BUCKETS);
  EXPECT_EQ(holes.status().hint().number(), 1u);
}

TEST(RouterNode, SyncWaitsForEveryReplicaAndNamesTheOneThatIsMissing) {
  Cluster c;
  c.Start();
  v1::ClientRequest request;
  request.mutable_sync()->set_timeout_millis(2000);
  EXPECT_EQ(c.Ask(request).sync().status().code(), 0u);
  c.leader(1).applied = 200;
  c.replica(1, 1).applied = 200;
  const auto id = c.Send(request);
  c.world.RunFor(seconds(1));
  EXPECT_FALSE(c.Answered(id));
  c.replica(1, 0).applied = 200;
  EXPECT_EQ(c.Await(id).sync().status().code(), 0u);
  c.leader(1).applied = 300;
  c.replica(1, 1).applied = 300;
  const auto failed = c.Ask(request).sync().status();
  EXPECT_EQ(failed.code(), static_cast<unsigned>(Code::kDeadlineExceeded));
  EXPECT_EQ(failed.hint().text(), "s1");
  EXPECT_NE(failed.message().find("s1-0"), std::string::npos);
}

// ---- alerts that need a history
// -------------------------------------------------------------------

TEST(RouterNode, ADoubledBucketIsAlertedAndClears) {
  Cluster c;
  c.Start();
  // s1 wakes up with bucket 0 that s0 has at a higher epoch.
  c.shard(0).Own(0, 4);
  c.world.RunFor(milliseconds(20));
  c.shard(1).Own(0, 2);
  c.world.RunFor(seconds(2));
  EXPECT_FALSE(c.HasAlert("DOUBLED_BUCKETS")) << "may be news that is late";
  c.world.RunFor(seconds(4));
  EXPECT_TRUE(c.HasAlert("DOUBLED_BUCKETS"));
  EXPECT_EQ(c.Info().status(), 3u);
  ASSERT_TRUE(c.world.RunUntil([&] { return !c.leader(1).suspicions().empty(); }, seconds(2)))
      << "the shard of the lower epoch is told";
  const v1::Suspicion& told = c.leader(1).suspicions().front();
  EXPECT_EQ(told.shard(), kS1.value());
  EXPECT_EQ(told.peer(), kS0.value());
  EXPECT_EQ(told.bucket().number(), 0u);
  EXPECT_TRUE(c.leader(0).suspicions().empty());
  c.shard(1).Leave(0, kS0, 4);
  c.world.RunFor(milliseconds(50));
  EXPECT_FALSE(c.HasAlert("DOUBLED_BUCKETS"));
}

TEST(RouterNode, ADisplacedOwnerThatStillClaimsIsFoundOut) {
  Cluster c;
  c.Start();
  c.shard(1).Own(0, 2);  // s0 owns it at 1 and says nothing
  c.world.RunFor(seconds(15));
  EXPECT_TRUE(c.HasAlert("DOUBLED_BUCKETS"));
  EXPECT_LE(c.leader(0).subscriptions(), 4u);
}

TEST(RouterNode, ALostBucketIsAlertedOnceAllShardsWereHeard) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(4, ShardUid(), 1);
  c.world.RunFor(seconds(2));
  EXPECT_TRUE(c.HasAlert("UNKNOWN_BUCKETS"));
  c.world.RunFor(seconds(12));
  EXPECT_TRUE(c.HasAlert("LOST_BUCKETS"));
  EXPECT_FALSE(c.HasAlert("UNKNOWN_BUCKETS"));
  c.shard(0).Own(4, 2);
  c.world.RunFor(seconds(2));
  EXPECT_FALSE(c.HasAlert("LOST_BUCKETS"));
}

TEST(RouterNode, AStuckTransferIsAlertedAndClears) {
  Cluster c;
  c.Start();
  bool stuck = true;
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (stuck) return Unavailable(Reason::kTransferIsInProgress, "moves");
    return std::nullopt;
  };
  c.Call(c.Make("put", 0));
  EXPECT_TRUE(c.HasAlert("STUCK_TRANSFER"));
  stuck = false;
  c.Call(c.Make("put", 0));
  EXPECT_FALSE(c.HasAlert("STUCK_TRANSFER"));
}

TEST(RouterNode, AQuarantinedBucketIsAlertedAndForgottenAfterAWhile) {
  Cluster c;
  c.Start();
  c.leader(0).refuse = [](const v1::Call&) {
    return FailedPrecondition(Reason::kQuarantined, "two owners");
  };
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().reason(), v1::REASON_QUARANTINED);
  EXPECT_TRUE(c.HasAlert("QUARANTINED_BUCKETS"));
  c.world.RunFor(seconds(32));
  EXPECT_FALSE(c.HasAlert("QUARANTINED_BUCKETS"));
}

TEST(RouterNode, AnInterruptedFeedIsAlertedAndClears) {
  Cluster c;
  c.Start();
  for (std::uint32_t r = 0; r < 3; ++r) c.replica(0, r).mute_feed = true;
  c.shard(0).Lead("s0-1");
  c.world.RunFor(seconds(8));
  EXPECT_TRUE(c.HasAlert("FEED_INTERRUPTED"));
  for (std::uint32_t r = 0; r < 3; ++r) c.replica(0, r).mute_feed = false;
  c.world.RunFor(seconds(5));
  EXPECT_FALSE(c.HasAlert("FEED_INTERRUPTED"));
}

TEST(RouterNode, ATopologyThatCannotBeFetchedIsAlerted) {
  Cluster c;
  c.Start();
  auto unusable = c.topology;
  unusable.set_version(2);
  unusable.mutable_shards(0)->clear_replicas();
  c.leader(0).topology = unusable;
  c.world.RunFor(seconds(7));
  EXPECT_TRUE(c.HasAlert("STALE_TOPOLOGY"));
  EXPECT_TRUE(c.HasAlert("INVALID_CFG"));
  EXPECT_LE(c.leader(0).fetches(), 80u);
  auto usable = c.topology;
  usable.set_version(3);
  c.leader(0).topology = usable;
  c.world.RunFor(seconds(1));
  EXPECT_EQ(c.AlertCodes(), std::vector<std::string>());
  EXPECT_EQ(c.Info().topology_version(), 3u);
}

TEST(RouterNode, ADeadLeaderIsAlertedAndClears) {
  Cluster c;
  c.Start();
  c.leader(0).mute = true;
  c.world.RunFor(seconds(2));
  EXPECT_TRUE(c.HasAlert("UNREACHABLE_MASTER"));
  c.shard(0).Lead("");
  c.leader(1).mute = false;
  c.replica(0, 2).mute = false;
  c.world.RunFor(seconds(1));
  EXPECT_TRUE(c.HasAlert("MISSING_MASTER"));
  c.shard(0).Lead("s0-0");
  c.world.RunFor(seconds(3));
  EXPECT_EQ(c.AlertCodes(), std::vector<std::string>());
}

// ---- the end
// --------------------------------------------------------------------------------------

TEST(RouterNode, StopWaitsForCallsAndRefusesNewOnes) {
  Cluster c;
  c.Start();
  bool blocked = true;
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (blocked) return Unavailable(Reason::kTransferIsInProgress, "moves");
    return std::nullopt;
  };
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(50));
  bool stopped = false;
  c.router->Stop(seconds(5), [&] { stopped = true; });
  EXPECT_EQ(c.Call(c.Make("put", 1)).status().reason(), v1::REASON_ROUTER_IS_DISABLED);
  c.world.RunFor(seconds(1));
  EXPECT_FALSE(stopped);
  blocked = false;
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_TRUE(c.world.RunUntil([&] { return stopped; }, milliseconds(10)));
}

TEST(RouterNode, StopEndsWithTheGrace) {
  Cluster c;
  c.Start();
  c.leader(0).mute_calls = true;
  c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(50));
  bool stopped = false;
  const SteadyTime start = c.world.now();
  c.router->Stop(seconds(2), [&] { stopped = true; });
  EXPECT_TRUE(c.world.RunUntil([&] { return stopped; }, seconds(10)));
  EXPECT_NEAR(std::chrono::duration<double>(c.world.now() - start).count(), 2, 0.05);
}

TEST(RouterNode, ARestartedRouterLearnsEverythingAnew) {
  Cluster c;
  c.Start();
  c.Call(c.Make("put", 0));
  c.SendCall(c.Make("put", 1));
  c.StopRouter();
  c.world.RunFor(milliseconds(100));
  c.Start();
  EXPECT_EQ(c.router->table()->unknown(), 0u);
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
}

TEST(RouterNode, AnswersToAnEarlierLifeAreNotTakenForOthers) {
  Cluster c;
  c.Start();
  unsigned calls = 0;
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (calls++ != 0) return std::nullopt;
    return FailedPrecondition(Reason::kConditionFailed, "for the first life");
  };
  c.leader(0).hold_replies = true;
  c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(20));
  c.StopRouter();
  c.Start();
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(20));
  ASSERT_EQ(calls, 2u);
  c.leader(0).Release();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
}

// ---- determinism
// ----------------------------------------------------------------------------------

std::uint64_t Trace(std::uint64_t seed) {
  ClusterOptions options;
  options.seed = seed;
  options.quiet = false;
  Cluster c(options);
  c.world.net().options().loss_permille = 20;
  c.world.net().options().duplicate_permille = 20;
  c.StartRouter();
  for (int i = 0; i < 200; ++i) {
    auto call = c.Make(i % 3 == 0 ? "put" : "get", i % 8,
                       i % 3 == 0 ? v1::MODE_RW : static_cast<v1::Mode>(i % 5));
    if (i % 2 == 0) {
      call.mutable_request()->set_client(1);
      call.mutable_request()->set_sequence(i + 1);
    }
    c.SendCall(call);
    if (i % 40 == 20) c.shard(0).Lead("s0-" + std::to_string(i % 3));
    if (i % 50 == 25) {
      c.shard(0).Leave(i % 8 & ~1u, kS1, 2 + i);
      c.shard(1).Own(i % 8 & ~1u, 2 + i);
    }
    c.world.RunFor(milliseconds(20));
  }
  c.world.RunFor(seconds(15));
  EXPECT_GT(c.answers.size(), 150u);
  return c.world.trace();
}

TEST(RouterNode, TheSameSeedGivesTheSameHistory) {
  EXPECT_EQ(Trace(1), Trace(1));
  EXPECT_NE(Trace(1), Trace(2));
}

}  // namespace
}  // namespace etalon::router
