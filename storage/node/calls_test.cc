#include "storage/node/calls.h"

#include "storage/node/testing/call_world.h"

namespace etalon::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Answer;
using testing::CallWorld;
using testing::GetCall;
using testing::buckets::PutCall;
using testing::buckets::StepCommand;

v1::Call WithTimeout(v1::Call call, std::uint32_t millis) {
  call.set_timeout_millis(millis);
  return call;
}
v1::Call AtEpoch(v1::Call call, std::uint64_t epoch) {
  call.set_epoch(epoch);
  return call;
}
std::string Megabyte() { return std::string(1 << 20, 'x'); }

TEST(StorageCalls, WriteAndReadBack) {
  CallWorld w;
  EXPECT_TRUE(w.Do(PutCall(5, "k", "v")).status.ok());
  const Answer got = w.Do(GetCall(5, "k"));
  v1::GetResult result;
  ASSERT_TRUE(result.ParseFromString(got.result));
  EXPECT_EQ(result.value(), "v");
  EXPECT_TRUE(w.calls.idle());
}

// ---- writes of one turn -------------------------------------------------------------------------

TEST(StorageCalls, WritesOfOneTurnAreOneEntry) {
  CallWorld w;
  for (int i = 0; i < 10; ++i) w.Send(PutCall(1, std::to_string(i), "v"));
  EXPECT_TRUE(w.proposed.empty());
  w.EndTurn();
  ASSERT_EQ(w.proposed.size(), 1u);
  EXPECT_EQ(w.proposed[0].size(), 10u);
  w.ApplyAll();
  EXPECT_EQ(w.answers.size(), 10u);
}

TEST(StorageCalls, AnEntryIsBoundedAndALargerCallStandsAlone) {
  CallWorld w;
  const std::string third(Calls::kMaxEntryBytes / 3, 'x');
  for (int i = 0; i < 4; ++i) w.Send(PutCall(1, std::to_string(i), third));
  w.Send(PutCall(1, "large", Megabyte()));
  w.Send(PutCall(1, "small", "v"));
  w.EndTurn();
  std::vector<std::size_t> sizes;
  for (const auto& batch : w.proposed) sizes.push_back(batch.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 2, 1, 1}));
}

TEST(StorageCalls, WhatCannotBeProposedIsAnswered) {
  CallWorld w;
  const auto a = w.Send(PutCall(1, "a", "v"));
  const auto b = w.Send(PutCall(1, "b", "v"));
  w.propose = ResourceExhausted("too much is proposed");
  w.EndTurn();
  EXPECT_EQ(w.StatusOf(a).reason(), Reason::kOverloaded);
  EXPECT_EQ(w.StatusOf(b).reason(), Reason::kOverloaded);
  EXPECT_TRUE(w.calls.idle());
}

// ---- bounds and deadlines -----------------------------------------------------------------------

TEST(StorageCalls, BytesAreBoundedBeforeAnythingIsQueued) {
  CallWorld w;
  std::vector<std::uint64_t> admitted;
  std::uint64_t refused = 0;
  while (refused == 0) {
    const auto id = w.Send(PutCall(1, "k", Megabyte()));
    (w.Answered(id) ? refused : admitted.emplace_back()) = id;
  }
  EXPECT_EQ(w.StatusOf(refused).code(), Code::kResourceExhausted);
  EXPECT_EQ(w.StatusOf(refused).reason(), Reason::kOverloaded);
  EXPECT_EQ(admitted.size(), 63u);
  EXPECT_LE(w.calls.queued_bytes(), Calls::kMaxQueuedBytes);
  EXPECT_GT(w.calls.queued_bytes(), Calls::kMaxQueuedBytes - (2u << 20));
  EXPECT_TRUE(w.Answered(w.Send(GetCall(1, "k")))) << "a small call still finds room";
  w.EndTurn();
  EXPECT_GT(w.calls.queued_bytes(), 0u) << "what is proposed counts until it is answered";
  w.ApplyAll();
  for (const auto id : admitted) EXPECT_TRUE(w.StatusOf(id).ok());
  EXPECT_EQ(w.calls.queued_bytes(), 0u);
  EXPECT_TRUE(w.Do(PutCall(1, "k", Megabyte())).status.ok());
}

TEST(StorageCalls, ADeadlineThatPassedInTheQueueIsSeenWhenTheCallIsTaken) {
  CallWorld w;
  const auto late = w.Send(WithTimeout(PutCall(1, "late", "v"), 10));
  const auto good = w.Send(WithTimeout(PutCall(1, "good", "v"), 11));
  w.now += milliseconds(10);
  w.EndTurn();
  EXPECT_EQ(w.StatusOf(late).code(), Code::kDeadlineExceeded);
  ASSERT_EQ(w.proposed.size(), 1u);
  EXPECT_EQ(w.proposed[0].size(), 1u) << "no work is done for a caller who has gone";
  w.ApplyAll();
  EXPECT_TRUE(w.StatusOf(good).ok());
  EXPECT_EQ(w.shard.Get(1, "late"), std::nullopt);
}

TEST(StorageCalls, AReadThatWaitedTooLongDoesNotRun) {
  CallWorld w;
  w.barriers_open = false;
  const auto id = w.Send(WithTimeout(GetCall(1, "k"), 10));
  ASSERT_EQ(w.barriers.size(), 1u);
  w.now += milliseconds(10);
  w.barriers[0](OkStatus());
  EXPECT_EQ(w.StatusOf(id).code(), Code::kDeadlineExceeded);
}

// Whoever takes the answers of reads slowly waits for the next ones; writes go on.
TEST(StorageCalls, ReadsArePutOffWhileAnswersPileUp) {
  CallWorld w;
  w.replies_fit = false;
  const auto first = w.Send(GetCall(1, "k"));
  const auto second = w.Send(GetCall(1, "k"));
  EXPECT_FALSE(w.Answered(first));
  EXPECT_TRUE(w.Do(PutCall(1, "k", "v")).status.ok());
  w.calls.Resume("router");  // nothing has changed
  EXPECT_FALSE(w.Answered(first));
  EXPECT_FALSE(w.calls.idle());
  w.replies_fit = true;
  w.calls.Resume("somebody else");
  EXPECT_FALSE(w.Answered(first));
  w.calls.Resume("router");
  EXPECT_TRUE(w.StatusOf(first).ok());
  EXPECT_TRUE(w.StatusOf(second).ok());
  EXPECT_TRUE(w.calls.idle());
}

// What was confirmed before the wait is not after it.
TEST(StorageCalls, AReadThatWasPutOffIsConfirmedAnew) {
  CallWorld w;
  w.barriers_open = false;
  const auto id = w.Send(GetCall(1, "k"));
  ASSERT_EQ(w.barriers.size(), 1u);
  w.replies_fit = false;
  w.barriers[0](OkStatus());
  EXPECT_FALSE(w.Answered(id));
  w.replies_fit = true;
  w.calls.Resume("router");
  EXPECT_FALSE(w.Answered(id));
  ASSERT_EQ(w.barriers.size(), 2u);
  w.leader = false;
  w.barriers[1](w.NotLeader());
  EXPECT_EQ(w.StatusOf(id).reason(), Reason::kNonMaster);
}

TEST(StorageCalls, ReadsThatWerePutOffEndWithTheirDeadlineOrTheirPeer) {
  CallWorld w;
  w.replies_fit = false;
  v1::Call soon = GetCall(1, "k");
  soon.set_timeout_millis(100);
  const auto late = w.Send(soon);
  const auto left = w.Send(GetCall(1, "k"));
  w.now += milliseconds(100);
  w.calls.OnTick();
  EXPECT_EQ(w.StatusOf(late).code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(w.Answered(left));
  w.calls.Forget("router");
  EXPECT_EQ(w.StatusOf(left).code(), Code::kCancelled);
  EXPECT_TRUE(w.calls.idle());
}

TEST(StorageCalls, TimeoutsAreCapped) {
  CallWorld w;
  const auto forever = w.Send(WithTimeout(PutCall(1, "k", "v"), 0xffffffff));
  const auto standard = w.Send(PutCall(1, "k", "v"));
  w.EndTurn();
  ASSERT_EQ(w.proposed.at(0).size(), 2u);
  EXPECT_TRUE(w.proposed[0][0].deadline.Passed(w.now + Calls::kMaxTimeout));
  EXPECT_FALSE(w.proposed[0][1].deadline.Passed(w.now + Calls::kDefaultTimeout - milliseconds(1)));
  EXPECT_TRUE(w.proposed[0][1].deadline.Passed(w.now + Calls::kDefaultTimeout));
  w.ApplyAll();
  EXPECT_TRUE(w.StatusOf(forever).ok());
  EXPECT_TRUE(w.StatusOf(standard).ok());
}

// ---- writes that wait for a move ----------------------------------------------------------------

// Bucket 1 is at the end of a move, and its writes are held.
class HeldWrites : public ::testing::Test {
 protected:
  void SetUp() override {
    id = w.Open(1);
    w.calls.StartHold(1);
    w.Control(StepCommand(v1::TransferStep::SENDING, id));
  }
  void Release(v1::TransferStep::Kind step) {
    w.Control(StepCommand(step, id));
    w.calls.EndHold(1);
    w.EndTurn();
    w.ApplyAll();
  }

  CallWorld w;
  TransferId id;
};

TEST_F(HeldWrites, AreAnsweredWithWhereTheBucketWent) {
  const auto held = w.Send(AtEpoch(PutCall(1, "k", "v"), 1));
  w.EndTurn();
  EXPECT_FALSE(w.Answered(held));
  EXPECT_GT(w.calls.held_bytes(), 0u);
  EXPECT_TRUE(w.Do(PutCall(2, "k", "v")).status.ok()) << "other buckets do not wait";
  EXPECT_TRUE(w.Do(GetCall(1, "k")).status.ok()) << "nor do reads";
  Release(v1::TransferStep::SENT);
  const Status s = w.StatusOf(held);
  EXPECT_EQ(s.code(), Code::kAborted);
  EXPECT_EQ(s.reason(), Reason::kWrongBucket);
  EXPECT_EQ(s.hint().destination, testing::buckets::kB);
  EXPECT_EQ(s.hint().epoch, Epoch(2));
  EXPECT_EQ(w.calls.held_bytes(), 0u);
  EXPECT_TRUE(w.calls.idle());
}

TEST_F(HeldWrites, GoOnWhenTheMoveIsGivenUp) {
  const auto held = w.Send(AtEpoch(PutCall(1, "k", "v"), 1));
  Release(v1::TransferStep::ABORT);
  EXPECT_TRUE(w.StatusOf(held).ok()) << w.StatusOf(held).ToString();
  EXPECT_EQ(w.shard.Get(1, "k"), "v");
}

TEST_F(HeldWrites, AWriteThatMetTheFreezeAtApplyIsHeldToo) {
  // Proposed before SENDING was applied, ordered behind it.
  CallWorld other;
  const TransferId x = other.Open(1);
  const auto late = other.Send(PutCall(1, "k", "v"));
  other.EndTurn();
  other.calls.StartHold(1);
  other.Control(StepCommand(v1::TransferStep::SENDING, x));
  other.ApplyAll();
  EXPECT_FALSE(other.Answered(late));
  other.Control(StepCommand(v1::TransferStep::ABORT, x));
  other.calls.EndHold(1);
  other.EndTurn();
  other.ApplyAll();
  EXPECT_TRUE(other.StatusOf(late).ok());
  EXPECT_EQ(other.shard.Get(1, "k"), "v");
}

TEST_F(HeldWrites, AreBoundedInBytes) {
  std::vector<std::uint64_t> held;
  std::uint64_t refused = 0;
  while (refused == 0) {
    const auto call = w.Send(PutCall(1, "k", Megabyte()));
    (w.Answered(call) ? refused : held.emplace_back()) = call;
  }
  EXPECT_EQ(w.StatusOf(refused).reason(), Reason::kTransferIsInProgress);
  EXPECT_EQ(held.size(), 15u);
  EXPECT_LE(w.calls.held_bytes(), Calls::kMaxHeldBytes);
  Release(v1::TransferStep::ABORT);
  for (const auto call : held) EXPECT_TRUE(w.StatusOf(call).ok());
  EXPECT_EQ(w.calls.held_bytes(), 0u);
  EXPECT_EQ(w.calls.queued_bytes(), 0u);
}

TEST_F(HeldWrites, AreAnsweredAtTheirDeadline) {
  const auto soon = w.Send(WithTimeout(PutCall(1, "a", "v"), 10));
  const auto later = w.Send(WithTimeout(PutCall(1, "b", "v"), 1000));
  w.now += milliseconds(10);
  w.calls.OnTick();
  EXPECT_EQ(w.StatusOf(soon).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(w.StatusOf(soon).reason(), Reason::kTransferIsInProgress)
      << "it says what it waited for";
  EXPECT_FALSE(w.Answered(later));
  w.now += seconds(1);
  Release(v1::TransferStep::ABORT);
  EXPECT_EQ(w.StatusOf(later).code(), Code::kDeadlineExceeded) << "checked again when it is taken";
  EXPECT_EQ(w.shard.Get(1, "b"), std::nullopt);
  EXPECT_EQ(w.calls.held_bytes(), 0u);
}

TEST_F(HeldWrites, ALostLeadershipAnswersThemAndWhatIsQueued) {
  const auto held = w.Send(PutCall(1, "k", "v"));
  const auto queued = w.Send(PutCall(2, "k", "v"));
  w.leader = false;
  w.calls.OnLeadershipLost();
  for (const auto call : {held, queued}) {
    EXPECT_EQ(w.StatusOf(call).reason(), Reason::kNonMaster);
    EXPECT_EQ(w.StatusOf(call).hint().leader, "s-1");
    EXPECT_EQ(w.StatusOf(call).hint().term, Term(7));
  }
  w.EndTurn();
  EXPECT_TRUE(w.proposed.empty());
  EXPECT_TRUE(w.calls.idle());
  EXPECT_EQ(w.calls.held_bytes(), 0u);
}

TEST(StorageCalls, WithoutAHoldAFrozenBucketIsRefused) {
  CallWorld w;
  const TransferId id = w.Open(1);
  w.Control(StepCommand(v1::TransferStep::SENDING, id));
  EXPECT_EQ(w.Do(PutCall(1, "k", "v")).status.reason(), Reason::kTransferIsInProgress);
}

// ---- who may answer -----------------------------------------------------------------------------

TEST(StorageCalls, OnlyTheLeaderWritesAndReadsInModeRw) {
  CallWorld w;
  w.leader = false;
  for (const auto& call : {PutCall(1, "k", "v"), GetCall(1, "k")}) {
    const Status s = w.Do(call).status;
    EXPECT_EQ(s.reason(), Reason::kNonMaster);
    EXPECT_EQ(s.hint().leader, "s-1");
    EXPECT_EQ(s.hint().term, Term(7));
  }
  EXPECT_TRUE(w.Do(GetCall(1, "k", v1::MODE_RO)).status.ok());
}

TEST(StorageCalls, AReadMayBoundHowOldTheStateIs) {
  CallWorld w;
  w.leader = false;
  w.staleness = milliseconds(501);
  auto call = GetCall(1, "k", v1::MODE_RE);
  call.set_max_staleness_millis(500);
  EXPECT_EQ(w.Do(call).status.code(), Code::kUnavailable);
  call.set_max_staleness_millis(501);
  EXPECT_TRUE(w.Do(call).status.ok());
  call.set_max_staleness_millis(0);
  w.staleness = std::chrono::hours(1);
  EXPECT_TRUE(w.Do(call).status.ok()) << "no bound was asked for";
}

TEST(StorageCalls, AFullDiskRefusesWritesOnly) {
  CallWorld w;
  w.writes = ResourceExhausted("the disk is full", Reason::kDiskFull);
  EXPECT_EQ(w.Do(PutCall(1, "k", "v")).status.reason(), Reason::kDiskFull);
  EXPECT_TRUE(w.Do(GetCall(1, "k")).status.ok());
  w.writes = OkStatus();
  EXPECT_TRUE(w.Do(PutCall(1, "k", "v")).status.ok());
}

TEST(StorageCalls, ABarrierThatFailsIsTheAnswer) {
  CallWorld w;
  w.barriers_open = false;
  const auto id = w.Send(GetCall(1, "k"));
  w.barriers.at(0)(w.NotLeader());
  EXPECT_EQ(w.StatusOf(id).reason(), Reason::kNonMaster);
}

TEST(StorageCalls, EpochsAreCompared) {
  CallWorld w;
  EXPECT_TRUE(w.Do(AtEpoch(PutCall(1, "k", "v"), 1)).status.ok());
  for (const auto& call : {PutCall(1, "k", "v"), GetCall(1, "k"), GetCall(1, "k", v1::MODE_RO)}) {
    EXPECT_EQ(w.Do(AtEpoch(call, 2)).status.reason(), Reason::kWrongBucket);
  }
  w.MoveAway(1);
  for (const auto& call : {PutCall(1, "k", "v"), GetCall(1, "k"), GetCall(1, "k", v1::MODE_RO)}) {
    const Status s = w.Do(AtEpoch(call, 1)).status;
    EXPECT_EQ(s.reason(), Reason::kWrongBucket);
    EXPECT_EQ(s.hint().destination, testing::buckets::kB);
    EXPECT_EQ(s.hint().epoch, Epoch(2));
  }
}

TEST(StorageCalls, ALostOutcomeIsTheAnswer) {
  CallWorld w;
  const auto id = w.Send(PutCall(1, "k", "v"));
  w.EndTurn();
  auto batches = std::exchange(w.proposed, {});
  for (auto& ticket : batches.at(0)) {
    w.calls.OnLost(std::move(ticket), Unavailable(Reason::kOutcomeUnknown, "lost"));
  }
  EXPECT_EQ(w.StatusOf(id).reason(), Reason::kOutcomeUnknown);
  EXPECT_TRUE(w.calls.idle());
}

// ---- calls that cannot be right -----------------------------------------------------------------

TEST(StorageCalls, NonsenseIsRefused) {
  CallWorld w;
  auto call = PutCall(1, "k", "v");
  call.set_mode(v1::MODE_RO);
  EXPECT_EQ(w.Do(call).status.code(), Code::kInvalidArgument) << "a write in a mode for reads";
  call.set_mode(v1::MODE_RW);
  call.set_function("launch");
  EXPECT_EQ(w.Do(call).status.reason(), Reason::kUnknownFunction);
  call.set_function("put");
  call.set_args("\xff");
  EXPECT_EQ(w.Do(call).status.code(), Code::kInvalidArgument);
  for (const char* function : {"get", "scan"}) {
    call.set_function(function);
    EXPECT_EQ(w.Do(call).status.code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(w.proposed.empty());
  EXPECT_TRUE(w.calls.idle());
  bool told = false;
  w.calls.Handle("x", "\xff", [&](const Status& status, std::string) {
    told = status.code() == Code::kInvalidArgument;
  });
  EXPECT_TRUE(told);
}

TEST(StorageCalls, ABucketOfALowerLevelIsRefusedOnceTheModulusHasDoubled) {
  CallWorld w;
  auto call = PutCall(1, "k", "v");
  call.set_level(0);
  EXPECT_TRUE(w.Do(call).status.ok());
  // Admitted before, applied after.
  const auto late = w.Send(call);
  w.EndTurn();
  w.Control(testing::buckets::RebaseCommand(1));
  w.ApplyAll();
  for (const Status& s : {w.StatusOf(late), w.Do(call).status}) {
    EXPECT_EQ(s.code(), Code::kAborted);
    EXPECT_EQ(s.reason(), Reason::kBucketOutOfRange);
    EXPECT_EQ(s.hint().number, 1u);
  }
  call.set_level(3);
  EXPECT_TRUE(w.Do(call).status.ok()) << "a part of a bucket";
  call.set_level(40);
  EXPECT_EQ(w.Do(call).status.reason(), Reason::kModulusCap);
}

}  // namespace
}  // namespace etalon::storage
