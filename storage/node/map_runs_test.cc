#include "storage/node/map_runs.h"

#include <optional>
#include <set>

#include "proto/wire.h"
#include "storage/node/testing/call_world.h"

namespace etalon::storage {
namespace {

using testing::CallWorld;
using testing::KeysOf;
using testing::buckets::PutCall;
using testing::buckets::RebaseCommand;
using testing::buckets::StepCommand;

using Buckets = std::multiset<std::uint32_t>;
using Named = std::vector<std::pair<std::uint32_t, std::uint64_t>>;  // bucket, epoch

v1::MapRun RunOf(std::uint32_t level, const Named& buckets, const std::string& function,
                 const std::string& args) {
  v1::MapRun run;
  run.set_id(9);
  run.set_level(level);
  for (const auto& [bucket, epoch] : buckets) {
    run.add_buckets()->set_bucket(bucket);
    run.mutable_buckets()->rbegin()->set_epoch(epoch);
  }
  run.set_function(function);
  run.set_args(args);
  run.set_write(IsWriteFunction(function));
  return run;
}
v1::MapRun PutRun(std::uint32_t level, const Named& buckets) {
  return RunOf(level, buckets, "put", PutCall(0, "k", "v").args());
}
v1::MapRun ScanRun(std::uint32_t level, const Named& buckets) {
  v1::ScanArgs args;
  args.set_whole_bucket(true);
  return RunOf(level, buckets, "scan", args.SerializeAsString());
}

template <class List>
Buckets In(const List& list) {
  Buckets out;
  for (const v1::BucketResult& r : list) out.insert(r.bucket());
  return out;
}

// Four buckets, all here at epoch 1.
class MapRuns : public ::testing::Test {
 protected:
  void Start(const v1::MapRun& run) {
    RunMap(w.calls, run, w.shard.sm->level(), w.shard.sm->bucket_count(),
           [this](v1::MapRunReply reply) {
             EXPECT_FALSE(answer) << "answered twice";
             answer = std::move(reply);
           });
  }
  v1::MapRunReply Finish() {
    w.EndTurn();
    w.ApplyAll();
    EXPECT_TRUE(answer);
    const v1::MapRunReply out = answer.value_or(v1::MapRunReply());
    answer.reset();
    EXPECT_EQ(out.id(), 9u);
    EXPECT_TRUE(w.calls.idle());
    return out;
  }
  v1::MapRunReply Do(const v1::MapRun& run) {
    Start(run);
    return Finish();
  }

  CallWorld w;
  std::optional<v1::MapRunReply> answer;
};

TEST_F(MapRuns, RunsOnExactlyTheNamedBuckets) {
  const auto reply = Do(PutRun(0, {{0, 1}, {2, 1}}));
  EXPECT_EQ(reply.status().code(), 0u);
  EXPECT_EQ(reply.level(), 0u);
  EXPECT_EQ(In(reply.results()), (Buckets{0, 2}));
  EXPECT_EQ(reply.rest_size(), 0);
  EXPECT_FALSE(reply.more());
  EXPECT_EQ(w.shard.Get(0, "k"), "v");
  EXPECT_EQ(w.shard.Get(2, "k"), "v");
  EXPECT_EQ(w.shard.Get(1, "k"), std::nullopt);
  EXPECT_EQ(Do(PutRun(0, {})).results_size(), 0);
}

TEST_F(MapRuns, ABucketThatIsNamedTwiceIsRunOnce) {
  const auto reply = Do(RunOf(0, {{1, 1}, {1, 1}}, "insert", PutCall(0, "k", "v").args()));
  ASSERT_EQ(reply.results_size(), 1);
  EXPECT_EQ(reply.results(0).status().code(), 0u);
}

TEST_F(MapRuns, WhatIsNotHereIsReturnedWithWhereItIs) {
  w.MoveAway(1);
  const TransferId id = w.Open(2);
  w.Control(StepCommand(v1::TransferStep::SENDING, id));
  const auto reply = Do(PutRun(0, {{0, 1}, {1, 1}, {2, 1}, {3, 5}}));
  EXPECT_EQ(reply.status().code(), 0u);
  EXPECT_EQ(In(reply.results()), (Buckets{0}));
  ASSERT_EQ(In(reply.rest()), (Buckets{1, 2, 3}));
  for (const v1::BucketResult& rest : reply.rest()) {
    const Status s = FromProto(rest.status());
    if (rest.bucket() == 2) {
      EXPECT_EQ(s.reason(), Reason::kTransferIsInProgress);
      continue;
    }
    EXPECT_EQ(s.reason(), Reason::kWrongBucket);
    if (rest.bucket() == 3) continue;  // the caller has heard of an owner we do not know
    EXPECT_EQ(s.hint().destination, testing::buckets::kB);
    EXPECT_EQ(s.hint().epoch, Epoch(2));
  }
  EXPECT_EQ(w.shard.Get(3, "k"), std::nullopt);
}

TEST_F(MapRuns, AFailureOfTheFunctionIsAResult) {
  ASSERT_TRUE(w.Do(PutCall(1, "k", "v")).status.ok());
  const auto reply = Do(RunOf(0, {{0, 1}, {1, 1}}, "insert", PutCall(0, "k", "v").args()));
  EXPECT_EQ(In(reply.results()), (Buckets{0, 1}));
  for (const v1::BucketResult& r : reply.results()) {
    EXPECT_EQ(r.status().reason(), r.bucket() == 1 ? v1::REASON_KEY_EXISTS : v1::REASON_NONE);
  }
}

// ---- levels -------------------------------------------------------------------------------------

TEST_F(MapRuns, ACoarserCallerIsAnsweredForTheBucketsThatAreHere) {
  w.Control(RebaseCommand(2));
  const auto reply = Do(PutRun(0, {{1, 1}, {3, 1}}));
  EXPECT_EQ(reply.level(), 2u);
  EXPECT_EQ(In(reply.results()), (Buckets{1, 5, 9, 13, 3, 7, 11, 15}));
  EXPECT_EQ(reply.rest_size(), 0);
  for (const std::uint64_t value : {1, 5, 9, 13}) EXPECT_EQ(w.shard.Get(value, "k"), "v");
}

TEST_F(MapRuns, OfACoarserBucketThePartsThatAreGoneAreReturned) {
  w.Control(RebaseCommand(1));
  w.MoveAway(5);
  const auto reply = Do(PutRun(0, {{1, 1}}));
  EXPECT_EQ(reply.level(), 1u);
  EXPECT_EQ(In(reply.results()), (Buckets{1}));
  EXPECT_EQ(In(reply.rest()), (Buckets{5}));
}

TEST_F(MapRuns, AFinerCallerGetsThePartsThatItNames) {
  const auto reply = Do(PutRun(2, {{1, 1}, {9, 1}, {2, 4}}));
  EXPECT_EQ(reply.level(), 2u);
  EXPECT_EQ(In(reply.results()), (Buckets{1, 9}));
  EXPECT_EQ(In(reply.rest()), (Buckets{2})) << "the epoch is that of the bucket it is part of";
  EXPECT_EQ(w.shard.Get(1, "k"), "v");
  EXPECT_EQ(w.shard.Get(9, "k"), "v");
  EXPECT_EQ(w.shard.Get(5, "k"), std::nullopt) << "the other parts were not named";
}

TEST_F(MapRuns, EveryKeyIsReadOnceWhateverTheLevels) {
  const std::uint32_t kValues = 64;
  for (std::uint8_t shard_level = 0; shard_level < 3; ++shard_level) {
    if (shard_level != 0) w.Control(RebaseCommand(shard_level));
    for (std::uint32_t v = 0; v < kValues; ++v) {
      ASSERT_TRUE(w.Do(PutCall(v, std::to_string(v), "v")).status.ok());
    }
    for (const std::uint32_t level : {0u, 1u, 2u, 3u}) {
      Named all;
      for (std::uint32_t b = 0; b < (4u << level); ++b) all.emplace_back(b, 1);
      const auto reply = Do(ScanRun(level, all));
      EXPECT_EQ(reply.rest_size(), 0);
      std::multiset<std::string> keys;
      for (const v1::BucketResult& r : reply.results()) {
        v1::ScanResult page;
        ASSERT_TRUE(page.ParseFromString(r.result()));
        EXPECT_TRUE(page.cursor().empty());
        for (const v1::Record& record : page.records()) {
          EXPECT_EQ(record.routing_value() % (4u << reply.level()), r.bucket());
          keys.insert(record.key());
        }
      }
      EXPECT_EQ(keys.size(), kValues) << "shard " << int{shard_level} << ", caller " << level;
      EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), kValues);
    }
  }
}

TEST_F(MapRuns, ADoublingBetweenAdmissionAndApplyReturnsTheBucketInsteadOfOneHalf) {
  Start(PutRun(0, {{0, 1}, {1, 1}}));
  w.EndTurn();  // proposed
  w.Control(RebaseCommand(1));
  auto reply = Finish();
  EXPECT_EQ(reply.level(), 0u);
  EXPECT_EQ(reply.results_size(), 0);
  EXPECT_EQ(In(reply.rest()), (Buckets{0, 1}));
  EXPECT_EQ(w.shard.Get(1, "k"), std::nullopt);
  reply = Do(PutRun(0, {{0, 1}, {1, 1}}));
  EXPECT_EQ(reply.level(), 1u);
  EXPECT_EQ(In(reply.results()), (Buckets{0, 4, 1, 5}));
}

TEST_F(MapRuns, ADoublingBeforeAReadRunsReturnsTheBucketToo) {
  w.barriers_open = false;
  Start(ScanRun(0, {{1, 1}}));
  w.Control(RebaseCommand(1));
  w.barriers.at(0)(OkStatus());
  const auto reply = Finish();
  EXPECT_EQ(reply.results_size(), 0);
  EXPECT_EQ(In(reply.rest()), (Buckets{1}));
}

TEST_F(MapRuns, ARequestIdCountsPerBucketAtEveryLevel) {
  auto run = PutRun(0, {{1, 1}});
  run.set_function("insert");
  run.set_client(5);
  run.set_sequence(6);
  EXPECT_EQ(Do(run).results(0).status().code(), 0u);
  EXPECT_EQ(Do(run).results(0).status().code(), 0u) << "the first result, not KEY_EXISTS";
  // The answer was lost, and meanwhile the modulus doubled: the half that is new is run, the other
  // one is not run again.
  w.Control(RebaseCommand(1));
  const auto reply = Do(run);
  EXPECT_EQ(In(reply.results()), (Buckets{1, 5}));
  for (const v1::BucketResult& r : reply.results()) EXPECT_EQ(r.status().code(), 0u);
  EXPECT_EQ(w.shard.Get(5, "k"), "v");
}

// ---- bounds -------------------------------------------------------------------------------------

// Eight buckets with a record of almost a megabyte each. All scans are admitted at once, or each is
// through before the next.
void ExpectBoundedAnswers(bool at_once) {
  CallWorld w(8);
  Named todo;
  for (std::uint32_t bucket = 0; bucket < 8; ++bucket) {
    ASSERT_TRUE(w.Do(PutCall(bucket, "a", std::string(1'000'000, 'x'))).status.ok());
    todo.emplace_back(bucket, 1);
  }
  Buckets seen;
  for (int rounds = 0; !todo.empty(); ++rounds) {
    ASSERT_LT(rounds, 2);
    v1::MapRunReply reply;
    w.barriers_open = !at_once;
    RunMap(w.calls, ScanRun(0, todo), 0, 8, [&](v1::MapRunReply r) { reply = std::move(r); });
    for (auto& barrier : std::exchange(w.barriers, {})) barrier(OkStatus());
    EXPECT_LE(reply.ByteSizeLong(), kMaxMapReplyBytes + (2u << 20));
    for (const v1::BucketResult& r : reply.results()) {
      EXPECT_GT(r.result().size(), 1'000'000u);
      seen.insert(r.bucket());
      std::erase_if(todo, [&](const auto& named) { return named.first == r.bucket(); });
    }
    EXPECT_EQ(reply.rest_size(), 0);
    EXPECT_EQ(reply.more(), !todo.empty());
  }
  EXPECT_EQ(seen, (Buckets{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(MapRuns, AnAnswerIsBoundedAndSaysThatThereIsMore) { ExpectBoundedAnswers(false); }
TEST_F(MapRuns, ResultsOfReadsThatComeTogetherAreBoundedToo) { ExpectBoundedAnswers(true); }

TEST_F(MapRuns, PartsOfOneRunAreBounded) {
  // 65536 parts of one bucket: more than one run takes.
  CallWorld big(1);
  big.Control(RebaseCommand(16));
  v1::MapRunReply reply;
  RunMap(big.calls, RunOf(0, {{0, 1}}, "get", testing::GetCall(0, "k").args()), 16, 1,
         [&](v1::MapRunReply r) { reply = std::move(r); });
  EXPECT_EQ(static_cast<std::size_t>(reply.results_size()), kMaxMapParts);
  EXPECT_TRUE(reply.more());
}

TEST_F(MapRuns, RefusesWhatCannotBe) {
  EXPECT_EQ(Do(PutRun(0, {{4, 1}})).status().reason(), v1::REASON_BUCKET_OUT_OF_RANGE);
  EXPECT_EQ(Do(PutRun(1, {{8, 1}})).status().reason(), v1::REASON_BUCKET_OUT_OF_RANGE);
  EXPECT_EQ(Do(PutRun(30, {{0, 1}})).status().reason(), v1::REASON_MODULUS_CAP);
  EXPECT_EQ(Do(PutRun(0xffffffff, {{0, 1}})).status().reason(), v1::REASON_MODULUS_CAP);
  EXPECT_EQ(Do(PutRun(0, Named(kMaxMapBuckets + 1, {0, 1}))).status().reason(),
            v1::REASON_TOO_LARGE);
  auto run = PutRun(0, {{0, 1}});
  run.set_write(false);
  EXPECT_EQ(Do(run).status().code(), static_cast<unsigned>(Code::kInvalidArgument));
  EXPECT_EQ(w.shard.Get(0, "k"), std::nullopt);
}

TEST_F(MapRuns, AShardThatLosesItsLeaderSaysSoForEachBucket) {
  Start(PutRun(0, {{0, 1}, {1, 1}}));
  w.leader = false;
  w.calls.OnLeadershipLost();
  const auto reply = Finish();
  EXPECT_EQ(In(reply.results()), (Buckets{0, 1}));
  for (const v1::BucketResult& r : reply.results()) {
    EXPECT_EQ(r.status().reason(), v1::REASON_NON_MASTER);
    EXPECT_EQ(r.status().hint().leader(), "s-1");
  }
}

}  // namespace
}  // namespace etalon::storage
