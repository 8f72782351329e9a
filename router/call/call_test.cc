#include "router/call/call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "router/call/verdict.h"

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using WaitFor = CallMachine::WaitFor;
using Ask = CallMachine::Ask;

constexpr ShardUid kA{0xa}, kB{0xb};
const SteadyTime kStart{seconds(100)};

class World final : public Routing {
 public:
  std::optional<Owner> Find(RoutingValue) const override { return owner; }
  bool Knows(ShardUid shard) const override { return leaders.contains(shard); }
  std::optional<NodeName> Leader(ShardUid shard) const override {
    const NodeName& name = leaders.at(shard);
    if (name.empty()) return std::nullopt;
    return name;
  }
  std::optional<NodeName> Reader(ShardUid shard, v1::Mode,
                                 const std::vector<NodeName>& tried) override {
    for (const NodeName& name : readers[shard]) {
      if (std::find(tried.begin(), tried.end(), name) == tried.end()) return name;
    }
    return std::nullopt;
  }

  std::optional<Owner> owner = Owner{kA, Epoch(3)};
  std::map<ShardUid, NodeName> leaders = {{kA, "a1"}, {kB, "b1"}};
  std::map<ShardUid, std::vector<NodeName>> readers = {{kA, {"a2", "a3", "a1"}},
                                                       {kB, {"b2", "b1"}}};
};

class CallTest : public testing::Test {
 protected:
  CallMachine Make(v1::Mode mode, bool read, bool safe) {
    CallMachine::Traits traits;
    traits.mode = mode;
    traits.read = read;
    traits.safe = safe;
    traits.deadline = kStart + seconds(10);
    return {traits, options};
  }
  CallMachine Write() { return Make(v1::MODE_RW, false, false); }
  CallMachine SafeWrite() { return Make(v1::MODE_RW, false, true); }
  CallMachine Read() { return Make(v1::MODE_RO, true, true); }

  static std::string Peer(const CallMachine::Output& out) {
    const auto* send = std::get_if<CallMachine::Send>(&out.action);
    return send == nullptr ? "" : send->to;
  }
  static std::optional<WaitFor> Waits(const CallMachine::Output& out) {
    const auto* wait = std::get_if<CallMachine::Wait>(&out.action);
    if (wait == nullptr) return std::nullopt;
    return wait->what;
  }
  static SteadyTime Until(const CallMachine::Output& out) {
    if (const auto* wait = std::get_if<CallMachine::Wait>(&out.action)) return wait->until;
    return std::get<CallMachine::Send>(out.action).until;
  }
  static Status Result(const CallMachine::Output& out) {
    const auto* finish = std::get_if<CallMachine::Finish>(&out.action);
    return finish == nullptr ? Internal("not finished") : finish->status;
  }

  CallOptions options;
  World world;
  Random random{1};
};

Status Wrong() { return Aborted(Reason::kWrongBucket, "not here"); }
Status Moving() { return Unavailable(Reason::kTransferIsInProgress, "moves"); }
Status NotLeader() { return Unavailable(Reason::kNonMaster, "not me"); }

TEST_F(CallTest, GoesToTheLeaderWithTheEpochAndFinishesWithTheAnswer) {
  auto call = Write();
  auto out = call.Start(kStart, world, random);
  ASSERT_EQ(Peer(out), "a1");
  EXPECT_EQ(std::get<CallMachine::Send>(out.action).owner, (Owner{kA, Epoch(3)}));
  EXPECT_EQ(Until(out), kStart + seconds(10)) << "a write that may not be repeated waits";
  EXPECT_TRUE(Result(call.OnReply(kStart, OkStatus(), world, random)).ok());
}

TEST_F(CallTest, AFinalRefusalIsTheAnswer) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  const Status s = Result(
      call.OnReply(kStart, FailedPrecondition(Reason::kConditionFailed, "no"), world, random));
  EXPECT_EQ(s.reason(), Reason::kConditionFailed);
}

TEST_F(CallTest, AMovedBucketIsFollowedAtOnce) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  world.owner = Owner{kB, Epoch(4)};  // the owner of the machine took the hint
  EXPECT_EQ(Peer(call.OnReply(kStart, Wrong(), world, random)), "b1");
}

TEST_F(CallTest, AHigherEpochOfTheSameShardIsFollowedAtOnce) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  world.owner = Owner{kA, Epoch(5)};
  EXPECT_EQ(Peer(call.OnReply(kStart, Wrong(), world, random)), "a1");
}

TEST_F(CallTest, WithoutADestinationOwnersAreAskedAndNewsAwaited) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  auto out = call.OnReply(kStart, Wrong(), world, random);
  EXPECT_EQ(Waits(out), WaitFor::kOwner);
  EXPECT_EQ(out.ask, Ask::kOwners);
  EXPECT_EQ(out.shard, kA);
  world.owner = Owner{kB, Epoch(4)};
  EXPECT_EQ(Peer(call.OnNews(kStart, world, random)), "b1");
}

TEST_F(CallTest, TwoShardsThatNameEachOtherAreNotAskedInTurnsWithoutAnEnd) {
  auto call = Write();
  auto out = call.Start(kStart, world, random);
  unsigned sends = 0;
  for (std::uint64_t epoch = 4; !Peer(out).empty(); ++epoch) {
    ASSERT_LT(++sends, 10u);
    world.owner = Owner{epoch % 2 == 0 ? kB : kA, Epoch(epoch)};
    out = call.OnReply(kStart, Wrong(), world, random);
  }
  EXPECT_EQ(sends, 1 + options.max_hops);
  EXPECT_EQ(Waits(out), WaitFor::kOwner);
  EXPECT_GT(Until(out), kStart);
}

TEST_F(CallTest, AMovingBucketIsWaitedForWithGrowingPauses) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  SteadyTime now = kStart;
  unsigned tries = 1;
  while (now < kStart + seconds(2)) {
    auto out = call.OnReply(now, Moving(), world, random);
    ASSERT_EQ(Waits(out), WaitFor::kBucket);
    ASSERT_GE(Until(out) - now, milliseconds(50));
    now = Until(out);
    ASSERT_EQ(Peer(call.OnWake(now, world, random)), "a1");
    ++tries;
  }
  EXPECT_LE(tries, 12u);
  EXPECT_EQ(call.tries(), tries);
}

TEST_F(CallTest, ALeaderHintIsFollowedAndWithoutOneReplicasAreAsked) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  world.leaders[kA] = "a2";
  EXPECT_EQ(Peer(call.OnReply(kStart, NotLeader(), world, random)), "a2");
  world.leaders[kA] = "";
  auto out = call.OnReply(kStart, NotLeader(), world, random);
  EXPECT_EQ(Waits(out), WaitFor::kReplica);
  EXPECT_EQ(out.ask, Ask::kReplicas);
  EXPECT_EQ(out.shard, kA);
}

TEST_F(CallTest, TheSameLeaderIsNotAskedAgainAtOnce) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  EXPECT_EQ(Waits(call.OnReply(kStart, NotLeader(), world, random)), WaitFor::kReplica);
}

TEST_F(CallTest, AnUnknownShardIsWaitedForUntilTheDeadline) {
  auto call = Write();
  world.owner = Owner{ShardUid(0xc), Epoch(9)};
  auto out = call.Start(kStart, world, random);
  EXPECT_EQ(Waits(out), WaitFor::kTopology);
  EXPECT_EQ(out.ask, Ask::kTopology);
  out = call.OnWake(kStart + seconds(3), world, random);
  EXPECT_EQ(Waits(out), WaitFor::kTopology);
  const Status s = Result(call.OnWake(kStart + seconds(10), world, random));
  EXPECT_EQ(s.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(s.reason(), Reason::kNoSuchReplicaset);
}

TEST_F(CallTest, TheDeadlineCarriesTheLastReasonAndItsHint) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  Hint hint;
  hint.number = 7;
  (void)call.OnReply(kStart, Unavailable(Reason::kTransferIsInProgress, "moves", hint), world,
                     random);
  const Status s = Result(call.OnWake(kStart + seconds(10), world, random));
  EXPECT_EQ(s.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(s.reason(), Reason::kTransferIsInProgress);
  EXPECT_EQ(s.hint().number, 7u);
  EXPECT_NE(s.message().find("moves"), std::string::npos);
}

TEST_F(CallTest, NoWaitAndNoTryOutlivesTheDeadline) {
  for (bool safe : {false, true}) {
    auto call = safe ? SafeWrite() : Write();
    auto out = call.Start(kStart, world, random);
    EXPECT_LE(Until(out), kStart + seconds(10));
    out = call.OnReply(kStart + milliseconds(9999), Moving(), world, random);
    EXPECT_EQ(Until(out), kStart + seconds(10));
    EXPECT_EQ(Result(call.OnReply(kStart + seconds(11), Moving(), world, random)).code(),
              Code::kDeadlineExceeded);
  }
}

TEST_F(CallTest, ALostWriteWithoutRequestIdIsNotSentTwice) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  const Status s = Result(call.OnLost(kStart + seconds(1), Loss::kDown, world, random));
  EXPECT_EQ(s.code(), Code::kUnavailable);
  EXPECT_EQ(s.reason(), Reason::kOutcomeUnknown);
}

TEST_F(CallTest, WhyTheOutcomeIsUnknownIsSaid) {
  for (const auto& [why, text] : std::map<Loss, std::string>{
           {Loss::kDown, "a1 does not answer any more"},
           {Loss::kDisconnected, "a1's connection ended before it answered"},
           {Loss::kDeposed, "a1 was replaced as the leader"},
           {Loss::kSilent, "a1 did not answer in time"}}) {
    auto call = Write();
    (void)call.Start(kStart, world, random);
    const Status s = Result(call.OnLost(kStart, why, world, random));
    EXPECT_EQ(s.reason(), Reason::kOutcomeUnknown);
    EXPECT_NE(s.message().find(text), std::string::npos) << s.message();
    EXPECT_NE(s.message().find("no request ID"), std::string::npos) << s.message();
  }
}

TEST_F(CallTest, ADeposedLeaderHasAMomentToAnswer) {
  for (bool safe : {false, true}) {
    auto call = safe ? SafeWrite() : Write();
    (void)call.Start(kStart, world, random);
    EXPECT_FALSE(call.deposed());
    const SteadyTime until = call.OnDeposed(kStart + milliseconds(100));
    EXPECT_EQ(until, kStart + milliseconds(100) + options.deposed_grace);
    EXPECT_TRUE(call.deposed());
    world.leaders[kA] = "a2";
    const auto out = call.OnWake(until, world, random);
    if (safe) {
      EXPECT_EQ(Peer(out), "a2");
      EXPECT_FALSE(call.deposed()) << "the next try is at the new leader";
    } else {
      EXPECT_EQ(Result(out).reason(), Reason::kOutcomeUnknown);
    }
  }
  auto answered = Write();
  (void)answered.Start(kStart, world, random);
  (void)answered.OnDeposed(kStart);
  EXPECT_TRUE(Result(answered.OnReply(kStart, OkStatus(), world, random)).ok());
}

TEST_F(CallTest, TheMomentOfADeposedLeaderDoesNotOutliveTheTry) {
  auto call = SafeWrite();
  const auto out = call.Start(kStart, world, random);
  EXPECT_EQ(call.OnDeposed(Until(out) - milliseconds(1)), Until(out));
}

TEST_F(CallTest, AWriteWithoutRequestIdThatIsOutAtTheDeadlineIsOfUnknownOutcome) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  const Status s = Result(call.OnWake(kStart + seconds(10), world, random));
  EXPECT_EQ(s.code(), Code::kUnavailable);
  EXPECT_EQ(s.reason(), Reason::kOutcomeUnknown);
}

TEST_F(CallTest, AStorageThatDoesNotKnowTheOutcomeIsBelieved) {
  const Status unknown = Unavailable(Reason::kOutcomeUnknown, "lost leadership");
  auto call = Write();
  (void)call.Start(kStart, world, random);
  EXPECT_EQ(Result(call.OnReply(kStart, unknown, world, random)).reason(), Reason::kOutcomeUnknown);
  auto safe = SafeWrite();
  (void)safe.Start(kStart, world, random);
  EXPECT_EQ(Waits(safe.OnReply(kStart, unknown, world, random)), WaitFor::kBackoff);
}

TEST_F(CallTest, ALostWriteWithRequestIdIsSentAgain) {
  auto call = SafeWrite();
  auto out = call.Start(kStart, world, random);
  EXPECT_EQ(Until(out), kStart + options.leader_try);
  world.leaders[kA] = "a2";
  out = call.OnWake(Until(out), world, random);
  EXPECT_EQ(Peer(out), "a2");
  EXPECT_EQ(Until(out), kStart + 3 * options.leader_try) << "the second try has twice the time";
}

TEST_F(CallTest, AfterALostTryARefusalDoesNotMakeTheOutcomeKnown) {
  auto call = SafeWrite();
  (void)call.Start(kStart, world, random);
  (void)call.OnLost(kStart + seconds(1), Loss::kDown, world, random);
  (void)call.OnReply(kStart + seconds(2), NotLeader(), world, random);
  const Status s = Result(call.OnWake(kStart + seconds(10), world, random));
  EXPECT_EQ(s.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(s.reason(), Reason::kOutcomeUnknown);
}

TEST_F(CallTest, AMuteReplicaIsLeftForTheNextOne) {
  auto call = Read();
  auto out = call.Start(kStart, world, random);
  EXPECT_EQ(Peer(out), "a2");
  EXPECT_EQ(Until(out), kStart + options.read_try);
  out = call.OnWake(Until(out), world, random);
  EXPECT_EQ(Peer(out), "a3");
  EXPECT_LT(Until(out), kStart + seconds(1));
}

TEST_F(CallTest, AShortDeadlineLeavesTimeForASecondReplica) {
  CallMachine::Traits traits;
  traits.mode = v1::MODE_RO;
  traits.read = traits.safe = true;
  traits.deadline = kStart + milliseconds(200);
  CallMachine call(traits, options);
  auto out = call.Start(kStart, world, random);
  EXPECT_EQ(Until(out), kStart + milliseconds(100));
  EXPECT_EQ(Peer(call.OnWake(Until(out), world, random)), "a3");
}

TEST_F(CallTest, AReadAsksEveryReplicaBeforeItWaits) {
  for (const Status& refusal : {Wrong(), Moving(), NotLeader(), ResourceExhausted("busy"),
                                Unavailable(Reason::kStorageIsDisabled, "starting")}) {
    auto call = Read();
    auto out = call.Start(kStart, world, random);
    std::string order;
    while (!Peer(out).empty()) {
      order += Peer(out) + " ";
      out = call.OnReply(kStart, refusal, world, random);
    }
    EXPECT_EQ(order, "a2 a3 a1 ") << refusal.ToString();
    EXPECT_GT(Until(out), kStart);
    EXPECT_EQ(Peer(call.OnWake(Until(out), world, random)), "a2") << "a new round";
  }
}

TEST_F(CallTest, AnOverloadedLeaderIsLeftAloneForAWhile) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  auto out = call.OnReply(kStart, ResourceExhausted("busy"), world, random);
  EXPECT_EQ(Waits(out), WaitFor::kBackoff);
  EXPECT_EQ(Peer(call.OnWake(Until(out), world, random)), "a1");
}

TEST_F(CallTest, WhatWasNotSentIsTriedAgainWhateverItIs) {
  auto call = Write();
  (void)call.Start(kStart, world, random);
  auto out = call.OnNotSent(kStart, ResourceExhausted("full"), world, random);
  EXPECT_EQ(Waits(out), WaitFor::kBackoff);
  EXPECT_EQ(Peer(call.OnWake(Until(out), world, random)), "a1");
  const Status s = Result(call.OnReply(kStart + seconds(1), OkStatus(), world, random));
  EXPECT_TRUE(s.ok());
}

TEST_F(CallTest, WaitsWhileNobodyIsKnown) {
  auto call = Read();
  world.owner.reset();
  auto out = call.Start(kStart, world, random);
  EXPECT_EQ(Waits(out), WaitFor::kOwner);
  EXPECT_EQ(out.ask, Ask::kOwners);
  world.owner = Owner{kA, Epoch(1)};
  world.readers[kA].clear();
  out = call.OnNews(kStart, world, random);
  EXPECT_EQ(Waits(out), WaitFor::kReplica);
  EXPECT_EQ(out.ask, Ask::kReplicas);
}

// docs/protocols/router.md, "Refusals": one row each.
TEST(Verdict, Table) {
  const std::map<Reason, Verdict> rows = {
      {Reason::kWrongBucket, Verdict::kReroute},
      {Reason::kStaleEpoch, Verdict::kReroute},
      {Reason::kShardRetired, Verdict::kReroute},
      {Reason::kTransferIsInProgress, Verdict::kMoving},
      {Reason::kBucketIsLocked, Verdict::kMoving},
      {Reason::kNonMaster, Verdict::kNotLeader},
      {Reason::kMissingMaster, Verdict::kNotLeader},
      {Reason::kStaleTopology, Verdict::kTopology},
      {Reason::kNoSuchReplicaset, Verdict::kTopology},
      {Reason::kOverloaded, Verdict::kBusy},
      {Reason::kDuplicateInFlight, Verdict::kBusy},
      {Reason::kNoQuorum, Verdict::kBusy},
      {Reason::kUnformed, Verdict::kBusy},
      {Reason::kStorageIsDisabled, Verdict::kBusy},
      {Reason::kCollectionIncomplete, Verdict::kBusy},
      {Reason::kUnreachableReplicaset, Verdict::kBusy},
      {Reason::kOutcomeUnknown, Verdict::kUnknown},
      {Reason::kConditionFailed, Verdict::kFinal},
      {Reason::kQuarantined, Verdict::kFinal},
      {Reason::kDiskFull, Verdict::kFinal},
      {Reason::kScanRestarted, Verdict::kFinal},
      {Reason::kTooLarge, Verdict::kFinal},
  };
  for (const auto& [reason, verdict] : rows) {
    // The reason decides, whatever the code.
    for (Code code : {Code::kUnavailable, Code::kAborted, Code::kInvalidArgument}) {
      EXPECT_EQ(Judge(Status(code, reason, "x")), verdict) << ReasonName(reason);
    }
  }
  EXPECT_EQ(Judge(OkStatus()), Verdict::kFinal);
}

TEST(Verdict, TheCodeDecidesForAReasonOfANewerProgram) {
  const auto judge = [](Code code) { return Judge(Status(code, static_cast<Reason>(9999), "x")); };
  EXPECT_EQ(judge(Code::kUnavailable), Verdict::kBusy);
  EXPECT_EQ(judge(Code::kAborted), Verdict::kBusy);
  EXPECT_EQ(judge(Code::kResourceExhausted), Verdict::kBusy);
  EXPECT_EQ(judge(Code::kFailedPrecondition), Verdict::kFinal);
  EXPECT_EQ(judge(Code::kInternal), Verdict::kFinal);
}

}  // namespace
}  // namespace etalon::router
