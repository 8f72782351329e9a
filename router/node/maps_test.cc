// MapCall through a whole router.
#include "router/node/maps.h"

#include <gtest/gtest.h>

#include <set>

#include "proto/wire.h"
#include "router/testing/cluster.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Cluster;
using testing::ClusterOptions;

constexpr ShardUid kS0{10}, kS1{11};

v1::ClientRequest Map(std::vector<std::uint32_t> buckets = {}, bool write = false) {
  v1::ClientRequest request;
  v1::MapCallRequest& map = *request.mutable_map_call();
  map.set_function("count");
  map.set_write(write);
  for (std::uint32_t b : buckets) map.add_buckets(b);
  return request;
}

std::multiset<std::uint32_t> Buckets(const v1::MapCallResponse& response) {
  std::multiset<std::uint32_t> out;
  for (const v1::MapResult& r : response.results()) out.insert(r.bucket());
  return out;
}

// How often the function ran on each bucket, over all shards.
std::map<std::string, std::uint64_t> Runs(Cluster& c) {
  std::map<std::string, std::uint64_t> out;
  for (std::uint32_t s = 0; s < 2; ++s) {
    for (const auto& [bucket, count] : c.shard(s).runs) out[bucket] += count;
  }
  return out;
}

TEST(RouterMaps, EveryBucketOnce) {
  Cluster c;
  c.Start();
  const auto response = c.Ask(Map()).map_call();
  EXPECT_EQ(response.status().code(), 0u);
  EXPECT_EQ(response.missing(), 0u);
  EXPECT_EQ(Buckets(response), (std::multiset<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  for (const v1::MapResult& r : response.results()) {
    EXPECT_EQ(r.result(), r.bucket() % 2 == 0 ? "s0" : "s1");
    EXPECT_EQ(r.shard(), r.bucket() % 2 == 0 ? kS0.value() : kS1.value());
  }
  for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
}

TEST(RouterMaps, OnlyTheNamedBuckets) {
  Cluster c;
  c.Start();
  const auto response = c.Ask(Map({5, 6, 5})).map_call();
  EXPECT_EQ(Buckets(response), (std::multiset<std::uint32_t>{5, 6}));
  EXPECT_EQ(c.Ask(Map({5, 8})).status().reason(), v1::REASON_BUCKET_OUT_OF_RANGE);
}

TEST(RouterMaps, LargeSetsGoInBoundedRuns) {
  ClusterOptions options;
  options.bucket_count = 100;
  options.router.maps.map.run_buckets = 7;
  Cluster c(options);
  c.Start();
  int largest = 0;
  int runs = 0;
  c.leader(0).map_run = [&](const v1::MapRun& run) -> std::optional<v1::MapRunReply> {
    largest = std::max(largest, run.buckets_size());
    ++runs;
    return std::nullopt;
  };
  const auto response = c.Ask(Map()).map_call();
  EXPECT_EQ(response.results_size(), 100);
  EXPECT_EQ(largest, 7);
  EXPECT_EQ(runs, 8);
}

TEST(RouterMaps, MovedBucketsAreAskedForAtTheirNewOwner) {
  Cluster c;
  c.Start();
  // Both moved without a word of the feeds; the answer says where to.
  c.shard(0).Leave(2, kS1, 2, true);
  c.shard(1).Own(2, 2, true);
  const SteadyTime start = c.world.now();
  const auto response = c.Ask(Map({}, true)).map_call();
  EXPECT_LT(c.world.now() - start, milliseconds(20)) << "no pause";
  EXPECT_EQ(response.status().code(), 0u);
  EXPECT_EQ(response.results_size(), 8);
  for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
}

TEST(RouterMaps, WithoutADestinationTheShardsListIsReadAgain) {
  Cluster c;
  c.Start();
  c.world.RunFor(seconds(2));
  c.shard(0).owned.erase(2);
  c.shard(1).owned[2] = 2;
  const std::size_t before = c.leader(0).subscriptions();
  const auto id = c.Send(Map({}, true));
  c.world.RunFor(milliseconds(1500));
  EXPECT_FALSE(c.Answered(id));
  EXPECT_GT(c.leader(0).subscriptions(), before) << "its word and the table contradict";
  c.shard(1).Publish({2});
  const auto response = c.Await(id).map_call();
  EXPECT_EQ(response.status().code(), 0u);
  EXPECT_EQ(response.results_size(), 8);
  for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
}

TEST(RouterMaps, AStaleEpochIsCorrectedByTheAnswer) {
  Cluster c;
  c.Start();
  c.shard(0).Own(2, 5, true);
  c.leader(0).map_run = [&](const v1::MapRun& run) -> std::optional<v1::MapRunReply> {
    for (const v1::BucketEpoch& named : run.buckets()) {
      if (named.bucket() != 2 || named.epoch() == 5) continue;
      v1::MapRunReply reply;
      v1::BucketResult& rest = *reply.add_rest();
      rest.set_bucket(2);
      *rest.mutable_status() = ToProto(Aborted(Reason::kStaleEpoch, "moved and came back",
                                               {.destination = ShardUid(10), .epoch = Epoch(5)}));
      reply.set_more(true);
      return reply;
    }
    return std::nullopt;
  };
  const SteadyTime start = c.world.now();
  EXPECT_EQ(c.Ask(Map()).map_call().results_size(), 8);
  EXPECT_LT(c.world.now() - start, milliseconds(20));
}

TEST(RouterMaps, ARunThatMeetsAFollowerGoesToTheLeaderThatItNames) {
  Cluster c;
  c.Start();
  c.shard(0).Lead("s0-0");
  c.replica(0, 2).map_run = [&](const v1::MapRun&) {
    v1::MapRunReply reply;
    *reply.mutable_status() = ToProto(Unavailable(
        Reason::kNonMaster, "not me", {.leader = "s0-0", .term = Term(c.shard(0).term)}));
    return std::optional(reply);
  };
  const auto id = c.Send(Map());
  c.world.RunFor(milliseconds(10));
  c.replica(0, 0).map_run = [](const v1::MapRun& run) {
    v1::MapRunReply reply;
    for (const auto& b : run.buckets()) reply.add_results()->set_bucket(b.bucket());
    return std::optional(reply);
  };
  EXPECT_EQ(c.Await(id).map_call().results_size(), 8);
  v1::ClientRequest route;
  route.mutable_route()->mutable_target()->set_bucket(0);
  EXPECT_EQ(c.Ask(route).route().leader(), "s0-0");
}

TEST(RouterMaps, WhatDidNotFitIntoAnAnswerIsAskedForAtOnce) {
  Cluster c;
  c.Start();
  int runs = 0;
  c.leader(0).map_run = [&](const v1::MapRun& run) {
    ++runs;
    v1::MapRunReply reply;
    reply.add_results()->set_bucket(run.buckets(0).bucket());
    reply.set_more(run.buckets_size() > 1);
    return std::optional(reply);
  };
  const SteadyTime start = c.world.now();
  const auto response = c.Ask(Map()).map_call();
  EXPECT_EQ(Buckets(response), (std::multiset<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(runs, 4);
  EXPECT_LT(c.world.now() - start, milliseconds(50)) << "no pauses in between";
}

// ---- levels -------------------------------------------------------------------------------------

std::multiset<std::string> Ran(const v1::MapCallResponse& response) {
  std::multiset<std::string> out;
  for (const v1::MapResult& r : response.results()) {
    out.insert(std::to_string(r.bucket()) + "/" + std::to_string(r.level()));
  }
  return out;
}

TEST(RouterMaps, AShardAboveTheTablesLevelAnswersForItsHalves) {
  for (bool write : {false, true}) {
    Cluster c;
    c.Start();
    c.shard(0).Rebase(1, true);
    ASSERT_EQ(c.router->table()->modulus(), 8u) << "nobody has said so";
    const auto response = c.Ask(Map({}, write)).map_call();
    EXPECT_EQ(response.status().code(), 0u);
    EXPECT_EQ(Ran(response),
              (std::multiset<std::string>{"1/0", "3/0", "5/0", "7/0", "0/1", "2/1", "4/1", "6/1",
                                          "8/1", "10/1", "12/1", "14/1"}));
    for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
    EXPECT_EQ(c.router->table()->modulus(), 16u) << "the answer said so";
  }
}

TEST(RouterMaps, OfAHalvedBucketTheHalfThatMovedIsAskedForAtItsNewOwner) {
  Cluster c;
  c.Start();
  c.shard(0).Rebase(1, true);
  c.shard(1).Rebase(1, true);
  c.shard(0).Leave(10, kS1, 2, true);
  c.shard(1).Own(10, 2, true);
  const SteadyTime start = c.world.now();
  const auto response = c.Ask(Map({2}, true)).map_call();
  EXPECT_LT(c.world.now() - start, milliseconds(20));
  EXPECT_EQ(Ran(response), (std::multiset<std::string>{"2/1", "10/1"}));
  for (const v1::MapResult& r : response.results()) {
    EXPECT_EQ(r.shard(), r.bucket() == 10 ? kS1.value() : kS0.value());
  }
  for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
}

TEST(RouterMaps, AShardBelowTheTablesLevelRunsOnTheNamedParts) {
  Cluster c;
  c.Start();
  c.shard(1).Rebase(2);
  c.world.RunFor(milliseconds(20));
  ASSERT_EQ(c.router->table()->modulus(), 32u);
  std::uint32_t level = 0;
  c.leader(0).map_run = [&](const v1::MapRun& run) -> std::optional<v1::MapRunReply> {
    level = run.level();
    return std::nullopt;
  };
  const SteadyTime start = c.world.now();
  const auto response = c.Ask(Map({}, true)).map_call();
  EXPECT_LT(c.world.now() - start, milliseconds(20));
  EXPECT_EQ(level, 2u);
  EXPECT_EQ(response.results_size(), 32);
  for (const auto& [bucket, count] : Runs(c)) EXPECT_EQ(count, 1u) << bucket;
}

TEST(RouterMaps, AnAnswerOfAnImpossibleLevelIsNoAnswer) {
  for (bool write : {false, true}) {
    Cluster c;
    c.Start();
    int runs = 0;
    c.leader(0).map_run = [&](const v1::MapRun&) -> std::optional<v1::MapRunReply> {
      if (++runs > 1) return std::nullopt;
      v1::MapRunReply reply;
      reply.set_level(40);
      reply.add_results()->set_bucket(0);
      return reply;
    };
    auto request = Map({}, write);
    request.mutable_map_call()->set_timeout_millis(3000);
    const auto response = c.Ask(request).map_call();
    EXPECT_EQ(response.status().reason(), write ? v1::REASON_OUTCOME_UNKNOWN : v1::REASON_NONE);
    EXPECT_EQ(runs, write ? 1 : 2);
    EXPECT_EQ(c.router->table()->modulus(), 8u);
  }
}

// ---- lost runs ----------------------------------------------------------------------------------

TEST(RouterMaps, ALostRunIsKnownWithItsConnection) {
  for (bool safe : {false, true}) {
    Cluster c;
    c.Start();
    c.leader(0).mute_calls = true;
    auto request = Map({}, true);
    if (safe) request.mutable_map_call()->mutable_request()->set_client(5);
    const auto id = c.Send(request);
    c.world.RunFor(milliseconds(20));
    c.leader(0).mute_calls = false;
    const SteadyTime start = c.world.now();
    c.router->OnDisconnect("s0-2");
    const auto response = c.Await(id).map_call();
    EXPECT_LT(c.world.now() - start, milliseconds(300)) << "not at the deadline";
    EXPECT_EQ(response.status().reason(), safe ? v1::REASON_NONE : v1::REASON_OUTCOME_UNKNOWN);
    EXPECT_EQ(response.missing(), safe ? 0u : 4u);
    EXPECT_EQ(c.shard(0).runs.empty(), !safe) << "never tried again without a request ID";
  }
}

TEST(RouterMaps, ADeposedLeadersRunIsOverAfterAMoment) {
  for (bool safe : {false, true}) {
    Cluster c;
    c.Start();
    c.leader(0).mute_calls = true;
    auto request = Map({}, true);
    if (safe) request.mutable_map_call()->mutable_request()->set_client(5);
    const auto id = c.Send(request);
    c.world.RunFor(milliseconds(20));
    c.shard(0).Lead("s0-0");
    const SteadyTime start = c.world.now();
    const auto response = c.Await(id).map_call();
    EXPECT_LT(c.world.now() - start, seconds(1)) << "not at the deadline";
    EXPECT_EQ(response.status().reason(), safe ? v1::REASON_NONE : v1::REASON_OUTCOME_UNKNOWN);
    EXPECT_EQ(c.shard(0).runs.empty(), !safe);
  }
}

TEST(RouterMaps, ADuplicatedAnswerCountsOnce) {
  ClusterOptions options;
  options.quiet = false;
  Cluster c(options);
  c.Start();
  c.world.net().options().duplicate_permille = 1000;
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(Buckets(c.Ask(Map()).map_call()),
              (std::multiset<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

TEST(RouterMaps, AFailureOfTheFunctionIsAResult) {
  Cluster c;
  c.Start();
  c.leader(0).map_run = [](const v1::MapRun& run) {
    v1::MapRunReply reply;
    for (const v1::BucketEpoch& b : run.buckets()) {
      v1::BucketResult& result = *reply.add_results();
      result.set_bucket(b.bucket());
      if (b.bucket() != 4) continue;
      result.mutable_status()->set_code(9);
      result.mutable_status()->set_reason(v1::REASON_CONDITION_FAILED);
    }
    return std::optional(reply);
  };
  const auto response = c.Ask(Map()).map_call();
  EXPECT_EQ(response.status().code(), 0u);
  EXPECT_EQ(response.missing(), 0u);
  for (const v1::MapResult& r : response.results()) {
    EXPECT_EQ(r.status().reason(), r.bucket() == 4 ? v1::REASON_CONDITION_FAILED : v1::REASON_NONE);
  }
}

TEST(RouterMaps, AShardWithoutALeaderIsMissing) {
  Cluster c;
  c.Start();
  c.shard(0).Lead("");
  c.world.RunFor(seconds(1));
  auto request = Map();
  request.mutable_map_call()->set_timeout_millis(1000);
  auto response = c.Ask(request).map_call();
  EXPECT_EQ(response.status().code(), static_cast<unsigned>(Code::kDeadlineExceeded));
  EXPECT_EQ(response.missing(), 4u);
  EXPECT_EQ(response.results_size(), 0) << "nothing partial unless asked for";
  request.mutable_map_call()->set_partial(true);
  response = c.Ask(request).map_call();
  EXPECT_EQ(response.missing(), 4u);
  EXPECT_EQ(Buckets(response), (std::multiset<std::uint32_t>{1, 3, 5, 7}));
}

TEST(RouterMaps, ALostRunOfAWriteWithoutRequestIdIsNotRepeated) {
  Cluster c;
  c.Start();
  c.leader(0).mute_calls = true;
  auto request = Map({}, true);
  request.mutable_map_call()->set_timeout_millis(3000);
  request.mutable_map_call()->set_partial(true);
  const auto response = c.Ask(request).map_call();
  EXPECT_EQ(response.status().reason(), v1::REASON_OUTCOME_UNKNOWN);
  EXPECT_EQ(response.missing(), 4u);
  EXPECT_EQ(response.results_size(), 4);
}

TEST(RouterMaps, AWriteWithoutRequestIdIsNotRepeatedAtTheNextLeader) {
  Cluster c;
  c.Start();
  c.leader(0).mute = true;
  auto request = Map({}, true);
  request.mutable_map_call()->set_timeout_millis(5000);
  request.mutable_map_call()->set_partial(true);
  const auto id = c.Send(request);
  c.world.RunFor(milliseconds(500));
  c.shard(0).Lead("s0-0");
  const auto response = c.Await(id).map_call();
  EXPECT_EQ(response.status().reason(), v1::REASON_OUTCOME_UNKNOWN);
  EXPECT_EQ(response.missing(), 4u);
  EXPECT_EQ(Buckets(response), (std::multiset<std::uint32_t>{1, 3, 5, 7}));
  EXPECT_TRUE(c.shard(0).runs.empty());
}

TEST(RouterMaps, ResultsThatWereNotAskedForOrComeTwiceDoNotCount) {
  Cluster c;
  c.Start();
  c.leader(0).map_run = [](const v1::MapRun&) {
    v1::MapRunReply reply;
    for (std::uint32_t bucket : {0u, 2u, 2u, 1u, 4u, 6u}) {
      reply.add_results()->set_bucket(bucket);
    }
    return std::optional(reply);
  };
  EXPECT_EQ(Buckets(c.Ask(Map()).map_call()),
            (std::multiset<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(RouterMaps, ALostRunThatMayBeRepeatedIs) {
  for (bool write : {false, true}) {
    Cluster c;
    c.Start();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ids;
    c.leader(0).map_run = [&](const v1::MapRun& run) -> std::optional<v1::MapRunReply> {
      ids.emplace_back(run.client(), run.sequence());
      return std::nullopt;
    };
    c.world.net().CutOneWay("router", "s0-2");
    auto request = Map({}, write);
    if (write) {
      request.mutable_map_call()->mutable_request()->set_client(5);
      request.mutable_map_call()->mutable_request()->set_sequence(6);
    }
    const auto id = c.Send(request);
    c.world.RunFor(milliseconds(100));
    c.world.net().Heal("router", "s0-2");
    const auto response = c.Await(id).map_call();
    EXPECT_EQ(response.status().code(), 0u) << response.status().message();
    EXPECT_EQ(response.results_size(), 8);
    ASSERT_EQ(ids.size(), 1u);
    EXPECT_EQ(ids[0].first, write ? 5u : 0u);
    EXPECT_EQ(ids[0].second, write ? 6u : 0u);
  }
}

TEST(RouterMaps, ADownLeaderHandsItsRunToTheNextOne) {
  Cluster c;
  c.Start();
  c.leader(0).mute = true;
  const auto id = c.Send(Map());
  c.world.RunFor(milliseconds(500));
  c.shard(0).Lead("s0-0");
  const SteadyTime elected = c.world.now();
  EXPECT_EQ(c.Await(id).map_call().results_size(), 8);
  EXPECT_LT(c.world.now() - elected, seconds(3));
}

TEST(RouterMaps, TheModulusGrowsInTheMiddle) {
  Cluster c;
  c.Start();
  c.shard(0).Lead("");  // s0's buckets wait
  c.world.RunFor(milliseconds(500));
  const auto id = c.Send(Map());
  c.world.RunFor(milliseconds(100));
  c.shard(1).Rebase(1);
  c.world.RunFor(milliseconds(100));
  ASSERT_EQ(c.router->table()->modulus(), 16u);
  c.shard(0).Lead("s0-1");
  const auto response = c.Await(id).map_call();
  EXPECT_EQ(response.status().code(), 0u);
  EXPECT_EQ(Ran(response),
            (std::multiset<std::string>{"1/0", "3/0", "5/0", "7/0", "0/1", "2/1", "4/1", "6/1",
                                        "8/1", "10/1", "12/1", "14/1"}));
}

TEST(RouterMaps, ResultsAndRunningCallsAreBounded) {
  ClusterOptions options;
  options.router.maps.max_running = 2;
  options.router.maps.map.result_bytes = 1000;
  Cluster c(options);
  c.Start();
  c.leader(0).map_run = [](const v1::MapRun& run) {
    v1::MapRunReply reply;
    for (const v1::BucketEpoch& b : run.buckets()) {
      v1::BucketResult& result = *reply.add_results();
      result.set_bucket(b.bucket());
      result.set_result(std::string(400, 'x'));
    }
    return std::optional(reply);
  };
  c.leader(1).mute_calls = true;
  EXPECT_EQ(c.Ask(Map()).map_call().status().reason(), v1::REASON_TOO_LARGE);
  c.leader(1).mute_calls = false;
  c.leader(0).mute_calls = true;
  const auto first = c.Send(Map());
  const auto second = c.Send(Map());
  c.world.RunFor(milliseconds(20));
  EXPECT_EQ(c.Ask(Map()).status().reason(), v1::REASON_OVERLOADED);
  c.Await(first);
  c.Await(second);
  EXPECT_NE(c.Ask(Map({1})).map_call().results_size(), 0);
}

}  // namespace
}  // namespace etalon::router
