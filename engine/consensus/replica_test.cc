#include "engine/consensus/replica.h"

#include <gtest/gtest.h>

#include "engine/consensus/replica_sim.h"

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Of some node that is not `not_this`.
SimNode& Other(SimShard& shard, const SimNode& not_this) {
  for (auto& [id, node] : shard.nodes) {
    if (node.get() != &not_this) return *node;
  }
  return shard.At(1);
}

TEST(Replica, ASoleVoterLeadsAtOnceAndAgainAfterARestart) {
  SimShard shard(1);
  shard.Form(1);
  shard.WaitForLeader(milliseconds(50));
  shard.WriteSome(200);
  shard.At(1).Crash();
  shard.At(1).Start();
  shard.WaitForLeader(milliseconds(50));
  EXPECT_GE(shard.At(1).state().at.index, shard.truth.floor);
  shard.At(1).Read();
  EXPECT_TRUE(shard.RunUntil([&] { return shard.truth.reads == 1; }, milliseconds(10)));
}

TEST(Replica, ThreeVotersAgreeThroughTheCrashOfTheLeader) {
  SimShard shard(2);
  shard.Form(3);
  shard.WriteSome(100);
  SimNode& old = shard.WaitForLeader();
  const SteadyTime crash = shard.world.now();
  old.Crash();
  shard.WriteSome(1);
  EXPECT_LE(shard.world.now() - crash, seconds(3));
  shard.WriteSome(100);
  old.Start();
  shard.Settle();
  EXPECT_GE(shard.truth.writes, 201u);
}

TEST(Replica, FiveVotersOutliveTwo) {
  SimShard shard(3);
  shard.Form(5);
  shard.WriteSome(50);
  shard.WaitForLeader().Crash();
  shard.WaitForLeader().Crash();
  shard.WriteSome(50);
  for (auto& [id, node] : shard.nodes) {
    if (!node->up()) node->Start();
  }
  shard.Settle();
}

TEST(Replica, AFollowerSaysWhoLeads) {
  SimShard shard(4);
  shard.Form(3);
  SimNode& leader = shard.WaitForLeader();
  SimNode& follower = Other(shard, leader);
  ASSERT_TRUE(shard.RunUntil([&] { return follower.replica().status().leader == leader.id(); }));
  const Status refused = follower.replica().Propose("x").status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_EQ(refused.reason(), Reason::kNonMaster);
  EXPECT_EQ(refused.hint().text, ToHex(leader.id().value()));
  EXPECT_EQ(refused.hint().term, leader.replica().status().term);
  std::optional<Status> read;
  follower.replica().ReadBarrier(Deadline::Never(), [&](Status s) { read = std::move(s); });
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->reason(), Reason::kNonMaster);
  EXPECT_EQ(follower.replica().AddLearner(MemberId(9), "").status().reason(), Reason::kNonMaster);
  EXPECT_EQ(follower.roles().back().leader, leader.id());
  EXPECT_EQ(leader.roles().back().role, Role::kLeader);
}

TEST(Replica, ABlankReplicaWaitsUntilItIsAdded) {
  SimShard shard(5);
  shard.Form(1);
  SimNode& blank = shard.Add(2);
  shard.WriteSome(20);
  shard.world.RunFor(seconds(5));
  EXPECT_EQ(blank.replica().status().role, Role::kFollower);
  EXPECT_EQ(blank.replica().status().term, Term(0));
  shard.AddLearner(2);
  shard.Settle();
  EXPECT_EQ(shard.truth.restores, 1u);  // the first members are not in the log
  EXPECT_EQ(blank.last_context(), "");
  EXPECT_EQ(shard.At(1).last_context(), "name 2");
  EXPECT_EQ(blank.replica().members(), (Members{{MemberId(1)}, {MemberId(2)}}));
}

TEST(Replica, GrowsFromOneVoterToThreeAndShrinksBack) {
  SimShard shard(6);
  shard.Form(1);
  shard.WriteSome(100);
  for (std::uint64_t id : {2, 3}) {
    shard.Add(id);
    shard.AddLearner(id);
    shard.Promote(id);
    shard.WriteSome(50);
  }
  EXPECT_EQ(shard.WaitForLeader().replica().members().voters.size(), 3u);
  shard.Remove(1);  // the leader: it hands over first
  EXPECT_NE(shard.WaitForLeader().id(), MemberId(1));
  shard.At(1).Crash();
  shard.nodes.erase(1);
  shard.WriteSome(50);
  shard.Remove(3);
  shard.At(3).Crash();
  shard.nodes.erase(3);
  shard.WriteSome(50);
  shard.At(2).Crash();
  shard.At(2).Start();
  shard.WriteSome(10);
  EXPECT_EQ(shard.At(2).replica().members(), (Members{{MemberId(2)}, {}}));
  shard.Settle();
}

TEST(Replica, ChangesOfMembersAreJudgedFirst) {
  SimShard shard(7);
  shard.Form(3);
  SimNode& leader = shard.WaitForLeader();
  Replica& replica = leader.replica();
  EXPECT_EQ(replica.AddLearner(MemberId(1), "").status().code(), Code::kAlreadyExists);
  EXPECT_EQ(replica.AddVoter(MemberId(1), "").status().code(), Code::kAlreadyExists);
  EXPECT_EQ(replica.AddVoter(MemberId(7), "").status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(replica.Remove(MemberId(7), "").status().code(), Code::kNotFound);
  EXPECT_EQ(replica.Remove(leader.id(), "").status().code(), Code::kFailedPrecondition);
  ASSERT_TRUE(replica.AddLearner(MemberId(7), "").ok());
  EXPECT_EQ(replica.AddLearner(MemberId(8), "").status().code(),
            Code::kUnavailable);  // one at a time
  shard.AddLearner(7);
  // Never heard of.
  EXPECT_EQ(replica.AddVoter(MemberId(7), "").status().code(), Code::kUnavailable);
  // Alive, but behind.
  SimNode& learner = shard.Add(7);
  ASSERT_TRUE(shard.RunUntil([&] { return bool(replica.GetProgress(MemberId(7))->matched); }));
  shard.world.net().Isolate(learner.name());
  for (int i = 0; i < 60; ++i) leader.Write();
  shard.world.RunFor(milliseconds(100));
  const Status behind = replica.AddVoter(MemberId(7), "").status();
  EXPECT_EQ(behind.code(), Code::kUnavailable);
  EXPECT_NE(behind.message().find("entries"), std::string::npos) << behind.ToString();
  shard.world.net().HealAll();
  shard.world.net().Join(learner.name());
  shard.Promote(7);
  shard.Settle();
  EXPECT_EQ(learner.replica().members().voters.size(), 4u);
}

// ---- snapshots and the log's length ----

// A shard of three whose node 3 is so far behind that the logs of the others do not reach back to
// it.
void FallBehind(SimShard& shard, SimNode& behind) {
  behind.Crash();
  const LogIndex last = behind.state().at.index;
  SimNode& leader = shard.WaitForLeader();
  while (leader.log().First().value() <= last.value() + 1) {
    for (int i = 0; i < 10; ++i) leader.Write(500);
    shard.world.RunFor(milliseconds(5));
    ASSERT_LE(leader.log().SizeBytes(), 400u << 10) << "the log grows and is not trimmed";
  }
}

TEST(Replica, ADeadFollowerDoesNotPinTheLogAndGetsASnapshot) {
  SimShard shard(8);
  shard.Form(3);
  shard.WriteSome(20);
  SimNode& behind = Other(shard, shard.WaitForLeader());
  FallBehind(shard, behind);
  behind.Start();
  shard.Settle();
  EXPECT_EQ(shard.truth.restores, 1u);
  shard.WriteSome(20);
  behind.Crash();  // finds what it restored
  behind.Start();
  shard.WriteSome(20);
  shard.Settle();
  EXPECT_EQ(shard.truth.restores, 1u);
}

TEST(Replica, TheLogIsNeverTrimmedAboveTheCheckpoint) {
  SimShard shard(9);
  shard.Form(1);
  shard.WaitForLeader();
  SimNode& node = shard.At(1);
  shard.WriteSome(200);
  node.HoldCheckpoints(true);
  for (int i = 0; i < 1000; ++i) {
    node.Write(500);
    shard.world.RunFor(milliseconds(1));
    ASSERT_LE(node.log().First().value(), node.CheckpointIndex().value() + 1);
  }
  EXPECT_GT(node.log().SizeBytes(), 400u << 10);  // four times the bound
  node.HoldCheckpoints(false);
  shard.WriteSome(100);
  shard.world.RunFor(seconds(1));
  EXPECT_LT(node.log().SizeBytes(), 200u << 10);
  EXPECT_GT(node.log().First().value(), 900u);
}

TEST(Replica, ABrokenStreamBeginsAnew) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    SimShard shard(seed);
    shard.Form(3);
    shard.WriteSome(20);
    SimNode& behind = Other(shard, shard.WaitForLeader());
    FallBehind(shard, behind);
    behind.Start();
    SimNode& leader = shard.WaitForLeader();
    const auto streaming = [&] {
      const auto progress = leader.replica().GetProgress(behind.id());
      return progress && progress->state == Progress::State::kSnapshot;
    };
    ASSERT_TRUE(shard.RunUntil(streaming));
    shard.world.RunFor(milliseconds(shard.world.random().Below(6)));
    switch (seed % 3) {
      case 0:
        leader.Crash();
        break;
      case 1:
        behind.Crash();
        behind.Start();
        break;
      case 2:
        shard.world.net().Isolate(behind.name());
        shard.world.RunFor(seconds(7));
        EXPECT_FALSE(streaming());  // given up: the follower is not waited for
        shard.world.net().Join(behind.name());
        break;
    }
    EXPECT_TRUE(
        shard.RunUntil([&] { return behind.state().at.index >= shard.truth.floor; }, seconds(30)));
    EXPECT_GE(shard.truth.restores, 1u);
    if (!leader.up()) leader.Start();
    shard.Settle();
  }
}

TEST(Replica, ASnapshotThatFindsNoPlaceIsOfferedAgainNowAndThen) {
  SimShard shard(23);
  shard.Form(3);
  shard.WriteSome(20);
  SimNode& behind = Other(shard, shard.WaitForLeader());
  FallBehind(shard, behind);
  SimNode& leader = shard.WaitForLeader();
  leader.RefuseSnapshots(true);
  behind.RefuseRestores(true);
  behind.Start();
  shard.world.RunFor(seconds(5));
  leader.RefuseSnapshots(false);
  shard.world.RunFor(seconds(10));
  EXPECT_GE(leader.snapshots_started(), 5);
  EXPECT_LE(leader.snapshots_started(), 11);
  EXPECT_EQ(shard.truth.restores, 0u);
  behind.RefuseRestores(false);
  shard.Settle();
  EXPECT_EQ(shard.truth.restores, 1u);
}

TEST(Replica, ACrashAnywhereInARestoreLeavesTheOldOrTheNewState) {
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    SimShard shard(seed);
    shard.options.snapshot.chunk_bytes = 4000;
    shard.Form(3);
    shard.WriteSome(20);
    SimNode& behind = Other(shard, shard.WaitForLeader());
    FallBehind(shard, behind);
    behind.Start();
    const LogIndex before = behind.state().at.index;
    ASSERT_TRUE(shard.RunUntil(
        [&] { return behind.log().First() > before.Next(); }));  // the log has the snapshot
    shard.world.RunFor(std::chrono::microseconds(shard.world.random().Below(1500)));
    behind.Crash();
    behind.Start();  // the harness checks that the log's base and a generation fit
    shard.Settle();
    late += shard.truth.late_swaps;
  }
  EXPECT_GT(late, 0u);  // the log's base had to name the state
}

// ---- hand-over ----

TEST(Replica, HandsOver) {
  SimShard shard(10);
  shard.Form(3);
  shard.WriteSome(50);
  SimNode& leader = shard.WaitForLeader();
  SimNode& to = Other(shard, leader);
  const SteadyTime start = shard.world.now();
  EXPECT_TRUE(shard.Transfer(to.id().value()).ok());
  EXPECT_LE(shard.world.now() - start, milliseconds(100));
  EXPECT_TRUE(to.leads());
  EXPECT_TRUE(shard.Transfer(to.id().value()).ok());  // to itself: it leads already
  EXPECT_EQ(shard.Transfer(77).code(), Code::kFailedPrecondition);
  EXPECT_EQ(shard.WaitForLeader().replica().BestSuccessor().has_value(), true);
}

TEST(Replica, AFailedHandOverEndsAndTheLeaderGoesOn) {
  SimShard shard(11);
  shard.Form(3);
  shard.WriteSome(20);
  SimNode& leader = shard.WaitForLeader();
  SimNode& to = Other(shard, leader);
  const Term term = leader.replica().status().term;
  shard.world.net().CutOneWay(leader.name(), to.name());  // still counted as active
  std::optional<Status> first;
  std::optional<Status> second;
  leader.replica().TransferLeadership(to.id(), leader.In(seconds(9)),
                                      [&](Status s) { first = std::move(s); });
  leader.replica().TransferLeadership(to.id(), leader.In(seconds(9)),
                                      [&](Status s) { second = std::move(s); });
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->code(), Code::kUnavailable);
  const Status refused = leader.replica().Propose("x").status();
  EXPECT_EQ(refused.reason(), Reason::kNonMaster);
  EXPECT_TRUE(refused.hint().text.empty());
  ASSERT_TRUE(shard.RunUntil([&] { return first.has_value(); }, seconds(5)));
  EXPECT_EQ(first->code(), Code::kAborted);
  // That term has no lease any more, so the leader goes on in the next one, with the votes of those
  // that it reaches, and without an election timeout.
  ASSERT_TRUE(shard.RunUntil(
      [&] { return leader.leads() && leader.replica().status().term > term; }, milliseconds(300)));
  ASSERT_TRUE(shard.RunUntil([&] { return leader.replica().HasLease(); }, milliseconds(300)));
  EXPECT_EQ(leader.replica().status().term, term.Next());
  EXPECT_TRUE(leader.Write());
  const std::uint64_t reads = shard.truth.reads;
  leader.Read();
  EXPECT_EQ(shard.truth.reads, reads + 1);
}

TEST(Replica, AHandOverEndsAtItsDeadline) {
  SimShard shard(12);
  shard.Form(3);
  shard.WriteSome(20);
  SimNode& leader = shard.WaitForLeader();
  SimNode& to = Other(shard, leader);
  shard.world.net().CutOneWay(leader.name(), to.name());
  std::optional<Status> answer;
  leader.replica().TransferLeadership(to.id(), leader.In(milliseconds(50)),
                                      [&](Status s) { answer = std::move(s); });
  ASSERT_TRUE(shard.RunUntil([&] { return answer.has_value(); }, milliseconds(250)));
  EXPECT_EQ(answer->code(), Code::kDeadlineExceeded);
}

// ---- trouble ----

TEST(Replica, AHungDiskLosesTheLeadership) {
  SimShard shard(13);
  shard.Form(3);
  shard.WriteSome(50);
  SimNode& hung = shard.WaitForLeader();
  const Term term = hung.replica().status().term;
  shard.world.disk(hung.name()).SetLatency(seconds(1000), seconds(1000));
  const SteadyTime start = shard.world.now();
  ASSERT_TRUE(shard.Every(
      [&] {
        if (hung.leads()) {
          hung.Write();  // clients go on, and so do appends to the followers
          hung.Read();
        }
        SimNode* leader = shard.Leader();
        return leader && leader != &hung && leader->replica().status().term > term;
      },
      seconds(5)));
  EXPECT_FALSE(hung.leads());
  EXPECT_TRUE(hung.replica().stalled());
  shard.WriteSome(1);
  EXPECT_LE(shard.world.now() - start, seconds(5));
  shard.WriteSome(50);
  EXPECT_EQ(hung.replica().status().role, Role::kFollower);  // it does not even ask for votes
  EXPECT_EQ(shard.truth.stale, 0u);
}

TEST(Replica, ASlowDiskIsNotAHungOne) {
  SimShard shard(14);
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  const Term term = leader.replica().status().term;
  shard.world.disk(leader.name()).SetLatency(milliseconds(10), milliseconds(40));
  for (int i = 0; i < 2000; ++i) {
    leader.Write();
    shard.world.RunFor(milliseconds(5));
  }
  EXPECT_EQ(leader.replica().status().term, term);
  EXPECT_TRUE(leader.leads());
}

TEST(Replica, ALeaderWithAFullDiskReadsOnAndRefusesWrites) {
  SimShard shard(15);
  shard.Form(3);
  shard.WriteSome(50);
  SimNode& leader = shard.WaitForLeader();
  auto& disk = shard.world.disk(leader.name());
  disk.SetCapacity(disk.used());
  Status refused;
  ASSERT_TRUE(shard.Every([&] {
    const auto proposed = leader.replica().Propose(std::string(2000, 'x'));
    refused = proposed.status();
    return !proposed.ok();
  }));
  EXPECT_EQ(refused.reason(), Reason::kDiskFull);
  shard.world.RunFor(seconds(5));
  EXPECT_TRUE(leader.leads());
  EXPECT_TRUE(leader.replica().HasLease());
  disk.SetCapacity(1u << 30);
  EXPECT_TRUE(shard.Every([&] { return leader.Write(); }, seconds(20)));
  shard.Settle();
}

TEST(Replica, ALeaderThatCannotApplyLeadsNoMoreAndGoesOnLater) {
  SimShard shard(16);
  shard.Form(3);
  shard.WriteSome(50);
  SimNode& sick = shard.WaitForLeader();
  sick.RefuseApplies(100);
  sick.Write();
  shard.world.RunFor(milliseconds(200));
  EXPECT_FALSE(sick.leads());
  EXPECT_TRUE(sick.replica().stalled());
  const LogIndex stuck = sick.state().at.index;
  shard.WriteSome(20);  // by another
  EXPECT_EQ(sick.state().at.index, stuck);
  shard.Settle();
  EXPECT_GT(sick.state().at.index, stuck);
  EXPECT_FALSE(sick.replica().stalled());
}

TEST(Replica, ALateTimerYieldsOneTick) {
  SimShard shard(17);
  shard.Form(3);
  SimNode& follower = Other(shard, shard.WaitForLeader());
  shard.world.RunFor(seconds(1));
  shard.world.net().Isolate(follower.name());
  shard.world.RunFor(milliseconds(100));  // what was under way has arrived
  const Term term = follower.replica().status().term;
  ASSERT_EQ(follower.replica().status().role, Role::kFollower);
  shard.world.Pause(follower.name(), seconds(30));
  shard.world.RunFor(seconds(30));
  // At most three ticks before the pause; the other seven take 350 ms (334 ms if its clock is fast)
  // after it.
  shard.world.RunFor(milliseconds(300));
  EXPECT_EQ(follower.replica().status().role, Role::kFollower);
  EXPECT_TRUE(shard.RunUntil([&] { return follower.replica().status().role == Role::kCandidate; },
                             seconds(2)));
  EXPECT_EQ(follower.replica().status().term, term);  // it only asks whether it would be elected
}

TEST(Replica, AFailedLogIsReported) {
  SimShard shard(18);
  shard.Form(3);
  SimNode& leader = shard.WaitForLeader();
  shard.world.disk(leader.name()).FailSync();
  leader.Write();
  EXPECT_TRUE(shard.RunUntil([&] { return leader.log_failed(); }, seconds(1)));
  leader.Crash();
  shard.WriteSome(10);
  leader.Start();
  shard.Settle();
}

// ---- reads ----

TEST(Replica, AReadEndsAtItsDeadlineWhenNobodyAnswers) {
  SimShard shard(19);
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  shard.world.net().Isolate(leader.name());
  ASSERT_TRUE(shard.RunUntil([&] { return !leader.replica().HasLease(); }, seconds(1)));
  ASSERT_TRUE(leader.leads());
  std::optional<Status> read;
  leader.replica().ReadBarrier(leader.In(milliseconds(20)), [&](Status s) { read = std::move(s); });
  EXPECT_FALSE(read.has_value());
  EXPECT_TRUE(shard.RunUntil([&] { return read.has_value(); }, milliseconds(150)));
  EXPECT_EQ(read->code(), Code::kDeadlineExceeded);
}

TEST(Replica, WaitingReadsAreBoundedAndFailWithTheRole) {
  SimShard shard(20);
  shard.options.waiting_reads = 3;
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  shard.world.net().Isolate(leader.name());
  ASSERT_TRUE(shard.RunUntil([&] { return !leader.replica().HasLease(); }, seconds(1)));
  std::vector<Status> answers;
  for (int i = 0; i < 5; ++i) {
    leader.replica().ReadBarrier(Deadline::Never(),
                                 [&](Status s) { answers.push_back(std::move(s)); });
  }
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].code(), Code::kResourceExhausted);
  ASSERT_TRUE(shard.RunUntil([&] { return answers.size() == 5; }, seconds(5)));
  EXPECT_EQ(answers[4].reason(), Reason::kNonMaster);
  EXPECT_FALSE(leader.leads());
}

TEST(Replica, CallsNobodyAfterItsEnd) {
  SimShard shard(21);
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  shard.world.net().Isolate(leader.name());
  ASSERT_TRUE(shard.RunUntil([&] { return !leader.replica().HasLease(); }, seconds(1)));
  int calls = 0;
  leader.replica().ReadBarrier(leader.In(milliseconds(10)), [&](const Status&) { ++calls; });
  leader.replica().TransferLeadership(Other(shard, leader).id(), leader.In(milliseconds(10)),
                                      [&](const Status&) { ++calls; });
  leader.Crash();
  shard.world.RunFor(seconds(1));
  EXPECT_EQ(calls, 0);
}

// ---- beginnings ----

class BaseTest : public ::testing::Test {
 protected:
  BaseTest() : env_(world_.AddNode("r1")) {}
  void Open() {
    log_.reset();
    auto opened = log::SegmentedLog::Open(env_.disk, env_.core, env_.clock, env_.random.Fork(),
                                          env_.log, {.dir = "log"});
    ASSERT_TRUE(opened.ok());
    log_ = *std::move(opened);
  }
  Status Write(const Snapshot& base) {
    Status answer = Internal("no answer");
    const Status at_once =
        WriteBase(*log_, base, Term(1), [&](Status s) { answer = std::move(s); });
    if (!at_once.ok()) return at_once;
    world_.RunFor(seconds(1));
    return answer;
  }
  sim::SimWorld world_{1};
  Env env_;
  std::unique_ptr<log::SegmentedLog> log_;
  const Snapshot base_ = FirstBase({{MemberId(2), MemberId(1)}, {}});
};

TEST_F(BaseTest, CanBeRepeatedButNotChanged) {
  Open();
  EXPECT_TRUE(Write(base_).ok());
  Open();
  EXPECT_FALSE(log_->recovered().blank);
  EXPECT_EQ(log_->First(), LogIndex(2));
  EXPECT_EQ(log_->hard_state(), (HardState{Term(1), MemberId(), LogIndex(1)}));
  EXPECT_EQ(log_->recovered().snapshot->members, (Members{{MemberId(1), MemberId(2)}, {}}));
  EXPECT_TRUE(Write(base_).ok());
  Open();
  EXPECT_EQ(Write(FirstBase({{MemberId(1)}, {}})).reason(), Reason::kForeignDisk);
}

TEST_F(BaseTest, AReplicaRefusesAStateThatIsNotTheLogs) {
  SimShard shard(22);
  shard.Form(1);
  shard.WriteSome(5);
  SimNode& node = shard.At(1);
  node.Crash();
  Open();  // blank, another disk
  const auto blank = Replica::Open(shard.options, env_, *log_, node);
  EXPECT_EQ(blank.status().code(), Code::kDataLoss) << blank.status().ToString();
  EXPECT_TRUE(Write(base_).ok());
  Open();
  ASSERT_GT(node.Applied().index, log_->Last());
  const auto behind = Replica::Open(shard.options, env_, *log_, node);
  EXPECT_EQ(behind.status().code(), Code::kDataLoss) << behind.status().ToString();
}

}  // namespace
}  // namespace etalon::consensus
