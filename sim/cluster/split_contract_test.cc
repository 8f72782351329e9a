// What a split promises to whoever asked for it, on real replicas under writes: a fence is
// committed once, its switch index never moves, and the source serves all that it keeps.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/wire.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {
namespace {

using bucket::SplitState;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kSource = 0;
constexpr int kTarget = 2;

ClusterOptions Options() {
  ClusterOptions options;
  options.bucket_count = 8;
  options.shards_with_buckets = 2;
  options.fast_checkpoints = true;
  return options;
}

class SplitContract : public ::testing::Test {
 protected:
  explicit SplitContract(std::uint64_t seed = 13)
      : world(seed),
        cluster(world, Options()),
        chains(cluster, {.keys = 16, .readers = 1, .pause = milliseconds(30), .value_bytes = 200}),
        run(cluster) {
    run.Add(chains);
  }

  void SetUp() override {
    ASSERT_TRUE(cluster.Form(seconds(30)));
    chains.Start();
    ASSERT_TRUE(run.For(milliseconds(500))) << run.failure();
    for (const auto& [number, row] : cluster.LeaderState(kSource)->rows()) owned.push_back(number);
    ASSERT_EQ(owned.size(), 4u);
  }

  void TearDown() override {
    EXPECT_TRUE(run.Conclude()) << run.failure();
    EXPECT_GT(chains.acknowledged(), 100u);
  }

  // ---- asking ----
  v1::AdminResponse Ask(const v1::AdminRequest& request) {
    const auto answer = cluster.AskShard(kSource, request, seconds(30));
    EXPECT_TRUE(answer) << "the source decides nothing";
    return answer.value_or(v1::AdminResponse());
  }
  v1::AdminResponse Split(const std::string& task) {
    v1::AdminRequest request;
    request.mutable_split()->set_task(task);
    request.mutable_split()->set_target(Cluster::Uid(kTarget).value());
    return Ask(request);
  }
  Status Abort(const std::string& task) {
    v1::AdminRequest request;
    request.mutable_abort_split()->set_task(task);
    request.mutable_abort_split()->set_why("changed our mind");
    return FromProto(Ask(request).status());
  }
  void Close(const std::string& task) {
    cluster.settings().add_closed_splits(task);
    ASSERT_TRUE(cluster.ApplySettings(seconds(60)));
  }

  // ---- seeing ----
  const bucket::SplitTask* Task(const std::string& task) {
    const auto* state = cluster.LeaderState(kSource);
    if (state == nullptr || !state->splits().contains(task)) return nullptr;
    return &state->splits().at(task);
  }
  bool Is(const std::string& task, SplitState state) {
    const auto* t = Task(task);
    return t != nullptr && t->state == state;
  }
  bool Until(const std::string& task, SplitState state, Duration limit = seconds(60)) {
    return run.Until([&] { return Is(task, state); }, limit, task + " does not come so far");
  }
  void ExpectFenced(const Status& status, LogIndex index, const std::string& task) {
    EXPECT_EQ(status.reason(), Reason::kShardFenced) << status.ToString();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_EQ(status.hint().number, index.value());
    EXPECT_EQ(status.hint().text, task);
  }

  // ---- calls that no router corrects ----
  Status WriteAtSource(std::uint32_t bucket) {
    v1::PutArgs put;
    put.set_space("rows");
    put.set_key("direct");
    put.set_value("1");
    v1::Call call;
    call.set_routing_value(bucket);
    call.set_function("put");
    call.set_args(put.SerializeAsString());
    call.set_timeout_millis(3000);
    for (int attempt = 0; attempt < 20; ++attempt) {
      const auto leader = cluster.LeaderOf(kSource);
      const auto reply = leader ? cluster.CallStorage(*leader, call, seconds(4)) : std::nullopt;
      if (!reply) {
        (void)run.For(milliseconds(500));
        continue;
      }
      const Status status = FromProto(reply->status());
      if (status.reason() != Reason::kNonMaster) return status;
    }
    return Internal("the source has no leader");
  }
  // After the commit: what moved is refused with where it is, all else is served.
  void ExpectServedAsCommitted() {
    for (std::size_t i = 0; i < owned.size(); ++i) {
      const Status status = WriteAtSource(owned[i]);
      if (i < owned.size() / 2) {
        EXPECT_TRUE(status.ok()) << owned[i] << ": " << status.ToString();
        continue;
      }
      EXPECT_EQ(status.reason(), Reason::kWrongBucket) << owned[i] << ": " << status.ToString();
      EXPECT_EQ(status.hint().destination, Cluster::Uid(kTarget));
      EXPECT_EQ(status.hint().epoch, Epoch(2));
    }
  }
  void ExpectAllServed() {
    for (const std::uint32_t bucket : owned) {
      const Status status = WriteAtSource(bucket);
      EXPECT_TRUE(status.ok()) << bucket << ": " << status.ToString();
    }
  }

  // ---- faults ----
  // Loses its power; comes back while another one leads.
  void RestartLeader(int shard) {
    const auto leader = cluster.LeaderOf(shard);
    ASSERT_TRUE(leader) << "shard " << shard;
    cluster.Crash(*leader);
    ASSERT_TRUE(run.For(milliseconds(300))) << run.failure();
    cluster.Restart(*leader);
    ASSERT_TRUE(run.Until([&] { return cluster.LeaderOf(shard).has_value(); }, seconds(20),
                          "no new leader"))
        << run.failure();
  }
  void RestartAll(int shard) {
    for (const NodeName& name : cluster.StoragesOf(shard)) cluster.Crash(name);
    for (const NodeName& name : cluster.StoragesOf(shard)) cluster.Restart(name);
    ASSERT_TRUE(run.Until([&] { return cluster.LeaderOf(shard).has_value(); }, seconds(20),
                          "no new leader"))
        << run.failure();
  }

  SimWorld world;
  Cluster cluster;
  Chains chains;
  CheckedRun run;
  std::vector<std::uint32_t> owned;  // by the source, in the beginning
};

// The contract's test case T13, with the restarts of leaders in each state of a task.
TEST_F(SplitContract, T13FenceIsCommittedOnce) {
  // No task ID: refused, nothing is fenced.
  EXPECT_EQ(FromProto(Split("").status()).code(), Code::kInvalidArgument);
  EXPECT_TRUE(cluster.LeaderState(kSource)->splits().empty());
  ExpectAllServed();

  // Preparing: the target does not hear of it.
  CutShards(cluster, kSource, kTarget);
  EXPECT_EQ(Split("task-7").split().state(), v1::SPLIT_PREPARING);
  EXPECT_EQ(FromProto(Split("task-8").status()).reason(), Reason::kTransferPending);
  RestartLeader(kSource);
  RestartLeader(kTarget);
  EXPECT_EQ(Split("task-7").split().state(), v1::SPLIT_PREPARING);
  EXPECT_EQ(FromProto(Split("task-8").status()).hint().text, "task-7");
  ExpectAllServed();

  // Copying, which stands still while nothing arrives. A new leader of the target goes on with it,
  // one of the source begins again.
  HealShards(cluster, kSource, kTarget);
  ASSERT_TRUE(Until("task-7", SplitState::kCopying)) << run.failure();
  CutShards(cluster, kSource, kTarget);
  const TransferId first = Task("task-7")->transfer;
  RestartLeader(kTarget);
  ASSERT_TRUE(Is("task-7", SplitState::kCopying));
  EXPECT_EQ(Task("task-7")->transfer, first);
  EXPECT_EQ(Split("task-7").split().t_switch(), 0u);
  EXPECT_EQ(FromProto(Split("task-8").status()).reason(), Reason::kTransferPending);
  RestartLeader(kSource);
  HealShards(cluster, kSource, kTarget);
  const auto copies_again = [&] {
    return Is("task-7", SplitState::kCopying) && Task("task-7")->transfer != first;
  };
  ASSERT_TRUE(run.Until(copies_again, seconds(60), "the same task gets no new transfer"))
      << run.failure();
  CutShards(cluster, kSource, kTarget);
  EXPECT_EQ(Split("task-7").split().state(), v1::SPLIT_COPYING);
  ExpectAllServed();
  HealShards(cluster, kSource, kTarget);

  // Fencing: the index is known, and it becomes the switch.
  ASSERT_TRUE(Until("task-7", SplitState::kFencing)) << run.failure();
  const LogIndex fence = Task("task-7")->fence;
  ASSERT_TRUE(Until("task-7", SplitState::kCommitted)) << run.failure();
  EXPECT_EQ(Task("task-7")->t_switch, fence);

  // Committed: to everybody, after any restart, the same.
  const auto expect_committed = [&](v1::SplitState state) {
    const v1::AdminResponse again = Split("task-7");
    EXPECT_EQ(again.status().code(), 0u);
    EXPECT_EQ(again.split().state(), state);
    EXPECT_EQ(again.split().t_switch(), fence.value());
    ExpectFenced(Abort("task-7"), fence, "task-7");
    ExpectServedAsCommitted();
  };
  const auto expect_fenced = [&] {
    expect_committed(v1::SPLIT_COMMITTED);
    ExpectFenced(FromProto(Split("task-8").status()), fence, "task-7");
  };
  expect_fenced();
  RestartLeader(kSource);
  expect_fenced();
  RestartLeader(kTarget);
  expect_fenced();
  RestartAll(kSource);
  expect_fenced();

  // Done: it no longer fences, and is still known.
  Close("task-7");
  expect_committed(v1::SPLIT_DONE);
  RestartLeader(kSource);
  RestartLeader(kTarget);
  expect_committed(v1::SPLIT_DONE);
  CutShards(cluster, kSource, kTarget);
  EXPECT_EQ(Split("task-8").split().state(), v1::SPLIT_PREPARING);
  EXPECT_TRUE(Abort("task-8").ok());
  RestartAll(kSource);
  EXPECT_EQ(FromProto(Split("task-8").status()).reason(), Reason::kSplitAborted);
  expect_committed(v1::SPLIT_DONE);
}

// The freeze cannot end in time: everything is as it was, and the task is Aborted for good.
TEST_F(SplitContract, ARevertedFreezeEndsTheTask) {
  ASSERT_EQ(Split("task-6").status().code(), 0u);
  ASSERT_TRUE(Until("task-6", SplitState::kFencing)) << run.failure();
  const LogIndex fence = Task("task-6")->fence;
  CutShards(cluster, kSource, kTarget);
  const v1::AdminResponse again = Split("task-6");
  EXPECT_EQ(again.split().state(), v1::SPLIT_FENCING);
  EXPECT_EQ(again.split().t_switch(), 0u) << "not yet";
  ExpectFenced(FromProto(Split("task-8").status()), fence, "task-6");
  ASSERT_TRUE(Is("task-6", SplitState::kFencing)) << "or nothing was seen";
  ASSERT_TRUE(Until("task-6", SplitState::kAborted)) << run.failure();
  HealShards(cluster, kSource, kTarget);
  ExpectAllServed();
  RestartLeader(kSource);
  EXPECT_EQ(FromProto(Split("task-6").status()).reason(), Reason::kSplitAborted);
  ExpectAllServed();
  ASSERT_EQ(Split("task-7").status().code(), 0u) << "a new ID is a new try";
  ASSERT_TRUE(Until("task-7", SplitState::kCommitted)) << run.failure();
  EXPECT_NE(Task("task-7")->t_switch, fence);
  ExpectServedAsCommitted();
}

class AbortSplit : public SplitContract, public ::testing::WithParamInterface<SplitState> {};

TEST_P(AbortSplit, BeforeTheCommitLeavesTheSourceAsItWas) {
  if (GetParam() == SplitState::kPreparing) CutShards(cluster, kSource, kTarget);
  ASSERT_EQ(Split("task-7").status().code(), 0u);
  ASSERT_TRUE(Until("task-7", GetParam())) << run.failure();
  CutShards(cluster, kSource, kTarget);  // it gets no further meanwhile
  ASSERT_TRUE(Abort("task-7").ok());
  EXPECT_TRUE(Is("task-7", SplitState::kAborted));
  HealShards(cluster, kSource, kTarget);
  ExpectAllServed();
  RestartLeader(kSource);
  EXPECT_EQ(FromProto(Split("task-7").status()).reason(), Reason::kSplitAborted);
  EXPECT_TRUE(Abort("task-7").ok()) << "again";
  const auto empty = [&] {
    const auto* state = cluster.LeaderState(kTarget);
    return state != nullptr && state->rows().empty() && state->incoming().empty();
  };
  EXPECT_TRUE(run.Until(empty, seconds(60), "the target keeps what arrived")) << run.failure();
}

INSTANTIATE_TEST_SUITE_P(Each, AbortSplit,
                         ::testing::Values(SplitState::kPreparing, SplitState::kCopying,
                                           SplitState::kFencing));

enum class Victims { kOfSource, kOfTarget, kBoth };

class RestartAtPhase : public SplitContract,
                       public ::testing::WithParamInterface<std::tuple<SplitState, Victims>> {};

// The moment a task is in a state its leaders die. Whatever becomes of it, it is one of the two:
// Aborted with everything where it was, or committed at the one index that was told.
TEST_P(RestartAtPhase, TheSwitchNeverMoves) {
  const auto [phase, victims] = GetParam();
  if (phase == SplitState::kPreparing) CutShards(cluster, kSource, kTarget);
  const auto committed = [&](const std::string& task) {
    return Is(task, SplitState::kCommitted) || Is(task, SplitState::kDone);
  };
  ASSERT_EQ(Split("task-1").status().code(), 0u);
  if (phase == SplitState::kDone) {
    ASSERT_TRUE(Until("task-1", SplitState::kCommitted)) << run.failure();
    Close("task-1");
  }
  ASSERT_TRUE(Until("task-1", phase)) << run.failure();
  const LogIndex told =
      phase == SplitState::kFencing ? Task("task-1")->fence : Task("task-1")->t_switch;
  if (victims != Victims::kOfTarget) RestartLeader(kSource);
  if (victims != Victims::kOfSource) RestartLeader(kTarget);
  HealShards(cluster, kSource, kTarget);
  const auto ended = [&] { return committed("task-1") || Is("task-1", SplitState::kAborted); };
  ASSERT_TRUE(run.Until(ended, seconds(60), "task-1 does not end")) << run.failure();
  std::string task = "task-1";
  if (Is("task-1", SplitState::kAborted)) {
    ASSERT_EQ(phase, SplitState::kFencing) << "an ABORT while Copying is tried again";
    ExpectAllServed();
    task = "task-2";
    ASSERT_EQ(Split(task).status().code(), 0u);
    ASSERT_TRUE(Until(task, SplitState::kCommitted)) << run.failure();
    EXPECT_NE(Task(task)->t_switch, told);
  } else if (told) {
    EXPECT_EQ(Task(task)->t_switch, told);
  }
  const LogIndex t_switch = Task(task)->t_switch;
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(Split(task).split().t_switch(), t_switch.value());
    ExpectFenced(Abort(task), t_switch, task);
    ExpectServedAsCommitted();
    RestartLeader(kSource);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, RestartAtPhase,
    ::testing::Combine(::testing::Values(SplitState::kPreparing, SplitState::kCopying,
                                         SplitState::kFencing, SplitState::kCommitted,
                                         SplitState::kDone),
                       ::testing::Values(Victims::kOfSource, Victims::kOfTarget, Victims::kBoth)));

}  // namespace
}  // namespace etalon::sim
