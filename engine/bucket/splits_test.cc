#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

using Step = v1::TransferStep;

struct Fixture : ::testing::Test {
  SplitTask Task(const std::string& name = "t7") { return a.sm->splits().at(name); }
  SplitState State() { return Task().state; }
  Status Open() {
    const Status status = a.Do(OpenCommand(kB, 0, {{2, 1}, {3, 1}}, "t7"));
    x = a.Opened();
    return status;
  }
  Status Do(Step::Kind kind) { return a.Do(StepCommand(kind, x)); }
  void Close() {
    v1::Settings settings;
    settings.set_version(a.sm->settings().version() + 1);
    settings.add_closed_splits("t7");
    settings.add_closed_splits("nobody");
    ASSERT_TRUE(a.Do(SettingsCommand(settings)).ok());
  }

  Shard a;
  TransferId x;
};

TEST_F(Fixture, FromPreparingToDone) {
  ASSERT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  EXPECT_EQ(Task(), (SplitTask{.task = "t7", .target = kB}));
  EXPECT_TRUE(a.sm->busy_with_split());
  EXPECT_TRUE(a.Do(SplitCommand("t7", kB)).ok()) << "the same again";
  const Status other = a.Do(SplitCommand("t8", kB));
  EXPECT_EQ(other.reason(), Reason::kTransferPending);
  EXPECT_EQ(other.hint().text, "t7");
  EXPECT_EQ(a.Do(OpenCommand(kB, 0, {{1, 1}})).reason(), Reason::kReplicasetIsLocked)
      << "counts as locked for everything else";

  ASSERT_TRUE(Open().ok());
  EXPECT_EQ(State(), SplitState::kCopying);
  EXPECT_EQ(Task().transfer, x);
  EXPECT_EQ(a.Do(SplitCommand("t8", kB)).reason(), Reason::kTransferPending);
  EXPECT_EQ(a.Do(OpenCommand(kB, 0, {{1, 1}}, "t7")).reason(), Reason::kTransferPending)
      << "one transfer at a time";
  Close();
  EXPECT_EQ(State(), SplitState::kCopying) << "only a committed task can be closed";

  ASSERT_TRUE(Do(Step::SENDING).ok());
  const LogIndex fence = a.sm->applied_index();
  EXPECT_EQ(State(), SplitState::kFencing);
  EXPECT_EQ(Task().fence, fence);
  EXPECT_EQ(Task().t_switch, LogIndex());
  for (const auto kind : {Step::SENT, Step::SOURCE_GARBAGE, Step::REMOVE}) {
    const Status fenced = a.Do(SplitCommand("t8", kC));
    EXPECT_EQ(fenced.reason(), Reason::kShardFenced);
    EXPECT_EQ(fenced.hint().number, fence.value());
    EXPECT_EQ(fenced.hint().text, "t7");
    a.Restart();
    ASSERT_TRUE(Do(kind).ok());
    EXPECT_EQ(State(), SplitState::kCommitted);
    EXPECT_EQ(Task().t_switch, fence);
  }
  EXPECT_EQ(a.Do(SplitCommand("t8", kC)).reason(), Reason::kShardFenced);
  EXPECT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  EXPECT_EQ(Task().t_switch, fence);
  const Status late = a.Do(AbortSplitCommand("t7"));
  EXPECT_EQ(late.reason(), Reason::kShardFenced);
  EXPECT_EQ(late.hint().number, fence.value());

  a.observer.Take();
  Close();
  EXPECT_EQ(a.observer.Take(), (std::vector<std::string>{"settings", "split t7 4"}));
  EXPECT_EQ(State(), SplitState::kDone);
  EXPECT_EQ(Task().t_switch, fence) << "records are kept";
  EXPECT_FALSE(a.sm->busy_with_split());
  EXPECT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  EXPECT_EQ(a.Do(AbortSplitCommand("t7")).reason(), Reason::kShardFenced);
  EXPECT_EQ(Open().reason(), Reason::kShardFenced) << "a task moves one set";
  EXPECT_TRUE(a.Do(SplitCommand("t8", kC)).ok());
  EXPECT_EQ(a.sm->splits().size(), 2u);
}

TEST_F(Fixture, AnAbortWhileCopyingIsTriedAgain) {
  ASSERT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(Do(Step::ABORT).ok());
  EXPECT_EQ(Task(), (SplitTask{.task = "t7", .target = kB}));
  const TransferId first = x;
  ASSERT_TRUE(Open().ok());
  EXPECT_NE(x, first);
  EXPECT_EQ(Task().transfer, x);
}

TEST_F(Fixture, ARevertedFreezeAbortsTheTaskForGood) {
  ASSERT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(Do(Step::SENDING).ok());
  v1::Control abort = StepCommand(Step::ABORT, x);
  abort.mutable_step()->set_why("too slow");
  ASSERT_TRUE(a.Do(abort).ok());
  EXPECT_EQ(
      Task(),
      (SplitTask{.task = "t7", .target = kB, .state = SplitState::kAborted, .why = "too slow"}));
  EXPECT_FALSE(a.sm->busy_with_split());
  EXPECT_EQ(a.Do(SplitCommand("t7", kB)).reason(), Reason::kSplitAborted);
  EXPECT_EQ(Open().reason(), Reason::kSplitAborted);
  EXPECT_TRUE(a.Do(SplitCommand("t8", kB)).ok());
}

TEST_F(Fixture, AbortSplitInEachState) {
  EXPECT_EQ(a.Do(AbortSplitCommand("t7")).code(), Code::kNotFound);
  for (const int steps : {0, 1, 2}) {
    Shard fresh;
    std::swap(a.store.map, fresh.store.map);
    a.Restart();
    ASSERT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
    if (steps >= 1) {
      ASSERT_TRUE(Open().ok());
    }
    if (steps >= 2) {
      ASSERT_TRUE(Do(Step::SENDING).ok());
    }
    ASSERT_TRUE(a.Do(AbortSplitCommand("t7", "changed my mind")).ok());
    EXPECT_EQ(
        Task(),
        (SplitTask{
            .task = "t7", .target = kB, .state = SplitState::kAborted, .why = "changed my mind"}));
    EXPECT_TRUE(a.sm->outgoing().empty());
    EXPECT_EQ(a.sm->counts().active(), 4u);
    EXPECT_TRUE(a.Do(AbortSplitCommand("t7", "again")).ok());
    EXPECT_EQ(Task().why, "changed my mind");
  }
}

TEST_F(Fixture, QuarantineActsOnTheTaskAsAnAbort) {
  ASSERT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  ASSERT_TRUE(Open().ok());
  ASSERT_TRUE(a.Do(QuarantineCommand(2, 1, 5)).ok());
  EXPECT_EQ(State(), SplitState::kPreparing);
}

TEST_F(Fixture, Refusals) {
  const auto reason = [&](const v1::Control& control) { return a.Do(control).reason(); };
  EXPECT_EQ(reason(SplitCommand("", kB)), Reason::kMalformed);
  EXPECT_TRUE(a.sm->splits().empty());
  EXPECT_EQ(reason(SplitCommand(std::string(129, 't'), kB)), Reason::kMalformed);
  EXPECT_EQ(reason(SplitCommand("t7", kA)), Reason::kMoveToSelf);
  EXPECT_EQ(reason(SplitCommand("t7", ShardUid(99))), Reason::kNoSuchReplicaset);
  EXPECT_EQ(a.Do(OpenCommand(kB, 0, {{2, 1}}, "t7")).code(), Code::kNotFound);
  ASSERT_TRUE(a.Do(PinCommand({0, 1, 2, 3})).ok());
  EXPECT_EQ(reason(SplitCommand("t7", kB)), Reason::kBucketIsPinned);
  ASSERT_TRUE(a.Do(PinCommand({3}, true)).ok());
  EXPECT_TRUE(a.Do(SplitCommand("t7", kB)).ok());
  EXPECT_EQ(reason(SplitCommand("t7", kC)), Reason::kMalformed) << "another target";
  EXPECT_EQ(reason(OpenCommand(kC, 0, {{3, 1}}, "t7")), Reason::kTransferPending);

  Shard empty(kB);
  EXPECT_EQ(empty.Do(SplitCommand("t7", kA)).reason(), Reason::kUnknownBuckets);
}

TEST(SplitCapTest, TheModulusEndsAtTheCap) {
  v1::FormRequest request = TestForm(kA, 1u << 20);
  request.mutable_ranges(0)->set_last(0);
  Shard a(request);
  EXPECT_EQ(a.Do(SplitCommand("t", kB)).reason(), Reason::kModulusCap);
  request.mutable_topology()->set_bucket_count(1u << 19);
  Shard b(request);
  EXPECT_TRUE(b.Do(SplitCommand("t", kB)).ok());
}

TEST(SplitTargetTest, ATargetIsBusyWhileASetArrives) {
  Shard b(kB);
  ASSERT_TRUE(b.Do(ReceivingCommand({kA, Term(1), LogIndex(5)}, 0, {{1, 1}})).ok());
  EXPECT_FALSE(b.sm->busy_with_split());
  ASSERT_TRUE(b.Do(ReceivingCommand({kA, Term(1), LogIndex(6)}, 0, {{2, 1}, {3, 1}})).ok());
  EXPECT_TRUE(b.sm->busy_with_split());
}

}  // namespace
}  // namespace etalon::bucket::testing
