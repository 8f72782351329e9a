// Calls through a whole router: each reason to try again, bounds, frames.
#include "router/node/calls.h"

#include <gtest/gtest.h>

#include "router/testing/cluster.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Cluster;
using testing::ClusterOptions;
using testing::FakeReplica;

constexpr ShardUid kS1{11}, kS9{19};

Status Transfer() { return Unavailable(Reason::kTransferIsInProgress, "the bucket moves"); }

v1::ClientCall WithRequestId(v1::ClientCall call, std::uint64_t sequence = 1) {
  call.mutable_request()->set_client(77);
  call.mutable_request()->set_sequence(sequence);
  return call;
}

TEST(RouterCalls, WriteAndReadBack) {
  Cluster c;
  c.Start();
  const auto put = c.Call(c.Make("put", 3));
  ASSERT_EQ(put.status().code(), 0u) << put.status().message();
  const auto got = c.Call(c.Make("get", 3));
  v1::GetResult result;
  ASSERT_TRUE(result.ParseFromString(got.result()));
  EXPECT_TRUE(result.found());
  // Exactly one try each, at the leader of the bucket's shard, with its epoch.
  EXPECT_EQ(c.CallsSeen(), 2u);
  ASSERT_EQ(c.leader(1).calls().size(), 2u);
  EXPECT_EQ(c.leader(1).calls()[0].epoch, 1u);
  EXPECT_EQ(c.leader(1).calls()[0].routing_value, 3u);
}

TEST(RouterCalls, AKeyIsHashed) {
  Cluster c;
  c.Start();
  auto call = c.Make("put", 0);
  call.mutable_target()->set_string_key("123456789");
  EXPECT_EQ(c.Call(call).status().code(), 0u);
  const std::uint64_t crc = 0xcbf43926;  // the check value of CRC-32/IEEE
  ASSERT_EQ(c.leader(crc % 2).calls().size(), 1u);
  EXPECT_EQ(c.leader(crc % 2).calls()[0].routing_value, crc);
}

TEST(RouterCalls, WhatMakesNoSenseIsRefusedWithoutATry) {
  Cluster c;
  c.Start();
  auto call = c.Make("put", 0);
  call.mutable_target()->set_int_key(5);
  EXPECT_EQ(c.Call(call).status().code(), static_cast<unsigned>(Code::kInvalidArgument));
  call.clear_target();
  EXPECT_EQ(c.Call(call).status().code(), static_cast<unsigned>(Code::kInvalidArgument));
  EXPECT_EQ(c.Call(c.Make("get", 8)).status().reason(), v1::REASON_BUCKET_OUT_OF_RANGE);
  EXPECT_EQ(c.Call(c.Make("put", 0, v1::MODE_RO)).status().code(),
            static_cast<unsigned>(Code::kInvalidArgument));
  EXPECT_EQ(c.Call(c.Make("get", 0, static_cast<v1::Mode>(9))).status().code(),
            static_cast<unsigned>(Code::kInvalidArgument));
  EXPECT_EQ(c.CallsSeen(), 0u);
}

TEST(RouterCalls, TheClientsRequestIdTravelsAndNoneIsInvented) {
  Cluster c;
  c.Start();
  c.Call(WithRequestId(c.Make("put", 0)));
  c.Call(c.Make("put", 0));
  const auto& calls = c.leader(0).calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].client, 77u);
  EXPECT_EQ(calls[1].client, 0u);
}

TEST(RouterCalls, AMovedBucketIsFollowedAtOnceAndRemembered) {
  Cluster c;
  c.Start();
  // Bucket 2 moves without a word of the feeds.
  c.shard(0).Leave(2, kS1, 2, true);
  c.shard(1).Own(2, 2, true);
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(10)) << "no pause";
  EXPECT_EQ(c.CallsSeen(), 2u);
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
  EXPECT_EQ(c.CallsSeen(), 3u) << "the next call goes straight there";
}

TEST(RouterCalls, AHintOfAnOlderEpochIsNotBelieved) {
  Cluster c;
  c.Start();
  c.shard(0).Own(2, 6);
  c.world.RunFor(milliseconds(20));
  unsigned lies = 0;
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (lies++ != 0) return std::nullopt;
    Hint hint;
    hint.destination = kS1;
    hint.epoch = Epoch(5);
    return Aborted(Reason::kWrongBucket, "moved long ago", hint);
  };
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
  EXPECT_EQ(c.leader(1).calls().size(), 0u);
  EXPECT_EQ(c.leader(0).calls().size(), 2u);
}

TEST(RouterCalls, WithoutADestinationTheFeedsAreAsked) {
  Cluster c;
  c.Start();
  c.world.RunFor(seconds(2));
  // Bucket 2 is at s1, but neither the feed nor the refusal says so.
  c.shard(0).owned.erase(2);
  c.shard(1).owned[2] = 2;
  const std::size_t before = c.leader(0).subscriptions();
  const SteadyTime start = c.world.now();
  const auto reply = c.Call(c.Make("put", 2));
  EXPECT_EQ(reply.status().code(), static_cast<unsigned>(Code::kDeadlineExceeded))
      << "s1's feed never said that it has the bucket";
  EXPECT_GT(c.leader(0).subscriptions(), before) << "the shard that contradicts was asked again";
  EXPECT_LE(c.leader(0).calls().size(), 2u) << "and not called again";
  EXPECT_GE(c.world.now() - start, seconds(9));
  // Its feed says so: the next one arrives.
  c.shard(1).Own(2, 2);
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
}

TEST(RouterCalls, OneMovedBucketInAFrameIsTriedAgainAlone) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(2, kS1, 2, true);
  c.shard(1).Own(2, 2, true);
  std::vector<std::uint64_t> ids;
  for (std::uint64_t bucket : {0, 2, 4, 6}) ids.push_back(c.SendCall(c.Make("put", bucket)));
  for (std::uint64_t id : ids) EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_EQ(c.leader(0).calls().size(), 4u);
  ASSERT_EQ(c.leader(1).calls().size(), 1u);
  EXPECT_EQ(c.leader(1).calls()[0].routing_value, 2u);
}

TEST(RouterCalls, WhatQueuesInOneTurnIsOneFrame) {
  Cluster c;
  c.Start();
  c.world.Pause("router", milliseconds(50));
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(c.SendCall(c.Make("put", 2 * (i % 4))));
  for (std::uint64_t id : ids) ASSERT_EQ(c.Await(id).call().status().code(), 0u);
  const auto& calls = c.leader(0).calls();
  ASSERT_EQ(calls.size(), 20u);
  for (const auto& seen : calls) EXPECT_EQ(seen.frame, 1u);
}

TEST(RouterCalls, ABlockedBucketCostsAHandfulOfTries) {
  Cluster c;
  c.Start();
  const SteadyTime unblock = c.world.now() + seconds(2);
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (c.world.now() < unblock) return Transfer();
    return std::nullopt;
  };
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().code(), 0u);
  EXPECT_LE(c.leader(0).calls().size(), 12u);
  EXPECT_GE(c.leader(0).calls().size(), 3u);
  EXPECT_EQ(c.leader(0).subscriptions(), 1u) << "a move is no reason to read the list again";
}

TEST(RouterCalls, NewsOfTheBucketEndsTheWaitAtOnce) {
  Cluster c;
  c.Start();
  bool blocked = true;
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (blocked) return Transfer();
    return std::nullopt;
  };
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(seconds(3));  // pauses have grown
  ASSERT_FALSE(c.Answered(id));
  const std::size_t tries = c.leader(0).calls().size();
  // News of other buckets wakes nobody, nor does news that this one takes no writes.
  c.shard(0).sending.insert(0);
  for (int i = 0; i < 5; ++i) {
    c.shard(0).Publish({0});
    c.world.RunFor(milliseconds(2));
  }
  EXPECT_LE(c.leader(0).calls().size(), tries + 1);
  c.shard(0).Own(2, 2);
  c.shard(0).Own(4, 2);
  c.world.RunFor(milliseconds(5));
  EXPECT_LE(c.leader(0).calls().size(), tries + 1);
  c.shard(0).Leave(0, kS1, 2);
  c.shard(1).Own(0, 2);
  const SteadyTime moved = c.world.now();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_LT(c.world.now() - moved, milliseconds(20));
  EXPECT_EQ(c.leader(1).calls().size(), 1u);
}

TEST(RouterCalls, TheDeadlineCarriesTheLastReason) {
  Cluster c;
  c.Start();
  c.leader(0).refuse = [](const v1::Call&) { return Transfer(); };
  const SteadyTime start = c.world.now();
  const auto reply = c.Call(c.Make("put", 0, v1::MODE_RW, 700));
  EXPECT_EQ(reply.status().code(), static_cast<unsigned>(Code::kDeadlineExceeded));
  EXPECT_EQ(reply.status().reason(), v1::REASON_TRANSFER_IS_IN_PROGRESS);
  EXPECT_NEAR(std::chrono::duration<double>(c.world.now() - start).count(), 0.7, 0.02);
  EXPECT_EQ(reply.id(), 900u);
}

TEST(RouterCalls, TheDefaultDeadlineIsTenSeconds) {
  Cluster c;
  c.Start();
  c.leader(0).refuse = [](const v1::Call&) { return Transfer(); };
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().code(),
            static_cast<unsigned>(Code::kDeadlineExceeded));
  EXPECT_NEAR(std::chrono::duration<double>(c.world.now() - start).count(), 10, 0.05);
}

TEST(RouterCalls, ALeaderHintIsFollowedAtOnce) {
  Cluster c;
  c.Start();
  FakeReplica& old = c.leader(0);
  c.shard(0).Lead("s0-0");
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().code(), 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(10));
  EXPECT_EQ(old.calls().size(), 1u);
  EXPECT_EQ(c.replica(0, 0).calls().size(), 1u);
}

TEST(RouterCalls, WithoutALeaderTheCallWaitsForOne) {
  Cluster c;
  c.Start();
  c.shard(0).Lead("");
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(seconds(2));
  ASSERT_FALSE(c.Answered(id));
  EXPECT_LE(c.CallsSeen(), 8u);
  c.shard(0).Lead("s0-1");
  const SteadyTime elected = c.world.now();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_LT(c.world.now() - elected, milliseconds(400)) << "the next ping tells";
}

TEST(RouterCalls, ACrashedLeadersUnansweredWritesAreSettled) {
  Cluster c;
  c.Start();
  c.leader(0).mute = true;
  const auto unsafe = c.SendCall(c.Make("put", 0));
  const auto safe = c.SendCall(WithRequestId(c.Make("put", 2)));
  const auto read = c.SendCall(c.Make("get", 4));
  c.world.RunFor(milliseconds(1500));
  c.shard(0).Lead("s0-1");
  const SteadyTime elected = c.world.now();
  EXPECT_EQ(c.Await(unsafe).call().status().reason(), v1::REASON_OUTCOME_UNKNOWN);
  EXPECT_EQ(c.Await(safe).call().status().code(), 0u);
  EXPECT_EQ(c.Await(read).call().status().code(), 0u);
  EXPECT_LT(c.world.now() - elected, seconds(1));
  for (const auto& seen : c.replica(0, 1).calls()) EXPECT_NE(seen.routing_value, 0u);
}

TEST(RouterCalls, ALostAnswerOfASafeWriteIsAskedForAgainAndTheWriteIsAppliedOnce) {
  Cluster c;
  c.Start();
  c.world.net().CutOneWay("s0-2", "router");
  const auto id = c.SendCall(WithRequestId(c.Make("put", 0)));
  c.world.RunFor(milliseconds(50));
  c.world.net().Heal("s0-2", "router");
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_EQ(c.leader(0).calls().size(), 2u);
  EXPECT_EQ(c.shard(0).runs.at("0/k"), 1u);
}

TEST(RouterCalls, ALostAnswerOfAnUnsafeWriteIsReportedAndNotSentAgain) {
  Cluster c;
  c.Start();
  c.world.net().CutOneWay("s0-2", "router");
  const auto id = c.SendCall(c.Make("put", 0, v1::MODE_RW, 3000));
  c.world.RunFor(milliseconds(50));
  c.world.net().Heal("s0-2", "router");
  const auto reply = c.Await(id).call();
  EXPECT_EQ(reply.status().code(), static_cast<unsigned>(Code::kUnavailable));
  EXPECT_EQ(reply.status().reason(), v1::REASON_OUTCOME_UNKNOWN);
  EXPECT_EQ(c.leader(0).calls().size(), 1u);
}

// A write without request ID is out at the leader, s0-2, which takes it and does not answer.
std::uint64_t SendUnsafe(Cluster& c) {
  c.leader(0).mute_calls = true;
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(20));
  EXPECT_EQ(c.leader(0).calls().size(), 1u);
  EXPECT_FALSE(c.Answered(id));
  return id;
}
// It was answered within that time, and is not sent again.
void ExpectUnknown(Cluster& c, std::uint64_t id, SteadyTime by, const std::string& why) {
  c.leader(0).mute_calls = false;
  const auto reply = c.Await(id).call();
  EXPECT_LE(c.answered_at.at(id), by);
  EXPECT_EQ(reply.status().code(), static_cast<unsigned>(Code::kUnavailable));
  EXPECT_EQ(reply.status().reason(), v1::REASON_OUTCOME_UNKNOWN);
  for (const std::string& part :
       {why, std::string("outcome is unknown"), std::string("no request ID")}) {
    EXPECT_NE(reply.status().message().find(part), std::string::npos) << reply.status().message();
  }
  c.world.RunFor(seconds(15));
  EXPECT_EQ(c.CallsSeen(), 1u) << "a write without request ID is sent once";
}

TEST(RouterCalls, AnUnsafeWriteIsAnsweredWhenItsConnectionEnds) {
  Cluster c;
  c.Start();
  const auto id = SendUnsafe(c);
  c.router->OnDisconnect("s0-0");  // another replica's
  c.world.RunFor(milliseconds(20));
  EXPECT_FALSE(c.Answered(id));
  c.router->OnDisconnect("s0-2");
  ExpectUnknown(c, id, c.world.now() + milliseconds(2), "s0-2's connection ended");
}

TEST(RouterCalls, AnUnsafeWriteIsAnsweredWhenItsProcessDies) {
  Cluster c;
  c.Start();
  const auto id = SendUnsafe(c);
  c.world.Crash("s0-2", sim::CrashKind::kProcess);
  ExpectUnknown(c, id, c.world.now() + milliseconds(5), "s0-2's connection ended");
}

TEST(RouterCalls, AnUnsafeWriteIsAnsweredWhenAnotherReplicaLeads) {
  Cluster c;
  c.Start();
  const auto id = SendUnsafe(c);
  c.shard(0).Lead("s0-0");
  // The router hears of it with the next pings.
  ExpectUnknown(c, id, c.world.now() + milliseconds(300) + CallOptions().deposed_grace,
                "s0-2 was replaced as the leader");
}

TEST(RouterCalls, AnAnswerThatWasOnItsWayWhenTheLeaderChangedCounts) {
  Cluster c;
  c.Start();
  FakeReplica& old = c.leader(0);
  old.hold_replies = true;
  const auto id = c.SendCall(c.Make("put", 0));
  c.world.RunFor(milliseconds(20));
  c.shard(0).Lead("s0-0");
  // Another call finds out at once.
  old.hold_replies = false;
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);
  c.world.RunFor(CallOptions().deposed_grace - milliseconds(50));
  ASSERT_FALSE(c.Answered(id));
  old.Release();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
}

TEST(RouterCalls, ASafeWriteGoesToTheNextLeaderWhenTheOldOneCannotAnswer) {
  for (bool disconnect : {false, true}) {
    Cluster c;
    c.Start();
    c.leader(0).mute_calls = true;
    const auto id = c.SendCall(WithRequestId(c.Make("put", 0)));
    c.world.RunFor(milliseconds(20));
    c.shard(0).Lead("s0-0");
    c.world.RunFor(milliseconds(300));
    if (disconnect) c.router->OnDisconnect("s0-2");
    const SteadyTime start = c.world.now();
    EXPECT_EQ(c.Await(id).call().status().code(), 0u);
    EXPECT_LE(c.world.now() - start,
              disconnect ? milliseconds(5) : Duration(CallOptions().deposed_grace));
    EXPECT_EQ(c.replica(0, 0).calls().size(), 1u);
  }
}

TEST(RouterCalls, AReadOffTheLeaderDoesNotCareWhoLeads) {
  Cluster c;
  c.Start();
  c.replica(0, 0).mute_calls = true;
  const auto id = c.SendCall(c.Make("get", 0, v1::MODE_RO));
  c.world.RunFor(milliseconds(5));
  c.shard(0).Lead("s0-1");
  EXPECT_EQ(c.Call(c.Make("put", 2)).status().code(), 0u);  // the router has heard of it
  c.world.RunFor(milliseconds(200));
  EXPECT_FALSE(c.Answered(id));
  c.router->OnDisconnect("s0-0");
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_LT(c.world.now() - start, milliseconds(5)) << "but the next replica is asked at once";
}

TEST(RouterCalls, ALateAnswerToAnEarlierTryIsNotTakenForTheLaterOne) {
  Cluster c;
  c.Start();
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (c.leader(0).calls().size() > 1) return std::nullopt;
    return FailedPrecondition(Reason::kConditionFailed, "the first try only");
  };
  c.leader(0).hold_replies = true;
  const auto id = c.SendCall(WithRequestId(c.Make("put", 0)));
  ASSERT_TRUE(c.world.RunUntil([&] { return c.leader(0).calls().size() == 2; }, seconds(3)));
  c.world.RunFor(milliseconds(5));
  c.leader(0).Release();
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
}

TEST(RouterCalls, AnOverloadedStorageIsNotHammered) {
  Cluster c;
  c.Start();
  const SteadyTime calm = c.world.now() + seconds(2);
  c.leader(0).refuse = [&](const v1::Call&) -> std::optional<Status> {
    if (c.world.now() < calm) return ResourceExhausted("queue is full");
    return std::nullopt;
  };
  EXPECT_EQ(c.Call(c.Make("put", 0)).status().code(), 0u);
  EXPECT_LE(c.leader(0).calls().size(), 12u);
}

TEST(RouterCalls, AnUnknownDestinationWaitsForTheNewerTopology) {
  Cluster c({.shards = 3});
  auto newer = c.topology;
  newer.set_version(2);
  // The router starts without s2, which owns nothing it would notice.
  c.topology.mutable_shards()->DeleteSubrange(2, 1);
  c.shard(2).uid = kS9;
  newer.mutable_shards(2)->set_uid(kS9.value());
  for (std::uint32_t b : {2u, 5u}) {
    c.shard(2).owned.erase(b);
    c.shard(b % 2).Own(b, 1, true);
  }
  c.Start();
  c.shard(0).Leave(2, kS9, 2, true);
  c.shard(2).Own(2, 2, true);
  const auto id = c.SendCall(c.Make("put", 2));
  c.world.RunFor(seconds(3));
  ASSERT_FALSE(c.Answered(id));
  EXPECT_LE(c.leader(0).calls().size(), 2u);
  EXPECT_LE(c.leader(0).fetches() + c.leader(1).fetches(), 30u);
  c.leader(1).topology = newer;
  EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  EXPECT_EQ(c.router->topology_version(), TopologyVersion(2));
  EXPECT_EQ(c.leader(2).calls().size(), 1u);
}

TEST(RouterCalls, BytesOfOneClientAreBoundedBeforeAnythingIsQueued) {
  ClusterOptions options;
  options.router.calls.client_bytes = 1000;
  Cluster c(options);
  c.Start();
  c.leader(0).mute_calls = true;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(c.SendCall(c.Make("put", 0)));
  c.world.RunFor(milliseconds(50));
  std::size_t refused = 0;
  for (std::uint64_t id : ids) {
    if (!c.Answered(id)) continue;
    EXPECT_EQ(c.answers[id].call().status().code(),
              static_cast<unsigned>(Code::kResourceExhausted));
    ++refused;
  }
  EXPECT_GT(refused, 10u);
  EXPECT_LT(refused, 30u);
  EXPECT_EQ(c.leader(0).calls().size(), 30 - refused);
  // Another client has its own bound; what is answered makes room.
  const auto other = c.SendCall(c.Make("put", 1), "client2");
  EXPECT_EQ(c.Await(other).call().status().code(), 0u);
  for (std::uint64_t id : ids) c.Await(id);
  EXPECT_EQ(c.Call(c.Make("put", 1)).status().code(), 0u);
}

TEST(RouterCalls, BytesForOnePeerAreBounded) {
  ClusterOptions options;
  options.router.calls.outbox.peer_bytes = 400;
  Cluster c(options);
  c.Start();
  c.leader(0).mute_calls = true;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(c.SendCall(c.Make("put", 0)));
  c.world.RunFor(milliseconds(50));
  std::size_t refused = 0;
  for (std::uint64_t id : ids) refused += c.Answered(id);
  EXPECT_GT(refused, 10u);
  EXPECT_LT(refused, 30u);
  EXPECT_EQ(c.Call(c.Make("put", 1)).status().code(), 0u) << "the other shard serves";
}

TEST(RouterCalls, LateAndDoubledAnswersAreDropped) {
  ClusterOptions options;
  options.quiet = false;
  Cluster c(options);
  c.world.net().options().duplicate_permille = 500;
  c.Start();
  for (int i = 0; i < 200; ++i) {
    const auto id = c.SendCall(WithRequestId(c.Make("put", i % 8), i + 1));
    EXPECT_EQ(c.Await(id).call().status().code(), 0u);
  }
}

TEST(RouterCalls, RetriesAreCountedByReason) {
  Cluster c;
  c.Start();
  c.shard(0).Leave(2, kS1, 2, true);
  c.shard(1).Own(2, 2, true);
  c.Call(c.Make("put", 2));
  const auto info = c.Info();
  EXPECT_EQ(info.retries().at("WRONG_BUCKET"), 1u);
  ASSERT_EQ(info.calls_size(), 1);
  EXPECT_EQ(info.calls(0).mode(), "rw");
  EXPECT_EQ(info.calls(0).function(), "put");
  EXPECT_EQ(info.calls(0).code(), "OK");
  EXPECT_EQ(info.calls(0).count(), 1u);
  std::uint64_t measured = 0;
  for (std::uint64_t count : info.call_seconds().counts()) measured += count;
  EXPECT_EQ(measured, 1u);
  EXPECT_EQ(info.call_seconds().counts_size(), info.call_seconds().bounds_size() + 1);
}

}  // namespace
}  // namespace etalon::router
