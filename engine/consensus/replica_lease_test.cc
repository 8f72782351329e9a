// Leases: that they hold through what PROTOCOLS.md section 1 names, and that reads are never stale,
// whatever happens. Each of the first tests fails if the rule that it is named after is taken out
// of lease.cc, replica.cc or raft_glue.
#include <gtest/gtest.h>

#include "engine/consensus/replica_sim.h"

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A leader with a lease that only `voter` answered, and a candidate that has not heard from the
// leader for long.
struct Scene {
  explicit Scene(std::uint64_t seed) : shard(seed) {
    shard.Form(3);
    shard.WriteSome(30);
    leader = &shard.WaitForLeader();
    for (auto& [id, node] : shard.nodes) {
      if (node.get() != leader) (voter ? candidate : voter) = node.get();
    }
    shard.world.net().Cut(leader->name(), candidate->name());
    shard.world.RunFor(seconds(4));
    EXPECT_TRUE(leader->leads());
    EXPECT_TRUE(leader->replica().HasLease());
    EXPECT_EQ(candidate->replica().status().role, Role::kCandidate);
  }
  // For as long as an old lease could last: whoever leads writes, everybody who may reads.
  void Race() {
    shard.Every(
        [&] {
          for (auto& [id, node] : shard.nodes) {
            if (!node->up()) continue;
            node->Write();
            node->Read();
          }
          return false;
        },
        seconds(3));
  }
  SimShard shard;
  SimNode* leader = nullptr;
  SimNode* voter = nullptr;
  SimNode* candidate = nullptr;
};

TEST(ReplicaLease, ReadsAreAnsweredAtOnceWhileTheVotersAnswer) {
  SimShard shard(1);
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  shard.world.RunFor(milliseconds(500));
  int without = 0;
  shard.Every(
      [&] {
        without += !leader.replica().HasLease();
        leader.Read();
        return false;
      },
      seconds(5));
  EXPECT_EQ(without, 0);
  EXPECT_EQ(shard.truth.lease_reads, shard.truth.reads);
}

TEST(ReplicaLease, EndsSoonAfterTheLastAnswer) {
  SimShard shard(2);
  shard.Form(3);
  shard.WriteSome(10);
  SimNode& leader = shard.WaitForLeader();
  shard.world.RunFor(milliseconds(500));
  ASSERT_TRUE(leader.replica().HasLease());
  shard.world.net().Isolate(leader.name());
  shard.world.RunFor(milliseconds(430));  // the bound is 405 ms of the leader's clock
  EXPECT_TRUE(leader.leads());
  EXPECT_FALSE(leader.replica().HasLease());
}

// A voter that has forgotten whom it answered.
TEST(ReplicaLease, ARestartedVoterIsSilentAtFirst) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Scene s(seed);
    s.voter->Crash();
    s.shard.world.net().Cut(s.leader->name(), s.voter->name());
    s.voter->Start();
    s.Race();
    EXPECT_EQ(s.shard.truth.stale, 0u);
    EXPECT_GT(s.candidate->replica().status().term, s.leader->replica().status().term);
  }
}

// A hand-over to a replica that stands for a while: the message that asks it to campaign waits.
struct LateHandOver {
  explicit LateHandOver(std::uint64_t seed, Duration stands) : shard(seed) {
    shard.Form(3);
    shard.WriteSome(30);
    leader = &shard.WaitForLeader();
    to = &shard.At(leader->id() == MemberId(1) ? 2 : 1);
    third = &shard.At(6 - leader->id().value() - to->id().value());
    // So that the message leaves at once.
    EXPECT_TRUE(shard.RunUntil(
        [&] { return leader->replica().GetProgress(to->id())->matched == leader->log().Last(); }));
    term = leader->replica().status().term;
    leader->replica().TransferLeadership(to->id(), Deadline::Never(),
                                         [this](Status s) { answer = std::move(s); });
    wakes = shard.world.now() + stands;
    shard.world.Pause(to->name(), stands);
  }

  SimShard shard;
  SimNode* leader = nullptr;
  SimNode* to = nullptr;
  SimNode* third = nullptr;
  Term term;
  SteadyTime wakes;
  std::optional<Status> answer;
};

TEST(ReplicaLease, IsGivenUpWhileAHandOverIsUnderWay) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    LateHandOver s(seed, milliseconds(300));
    // Shortly before the successor wakes up, nothing reaches the leader any more.
    s.shard.world.RunFor(s.wakes - milliseconds(1) - s.shard.world.now());
    ASSERT_TRUE(s.leader->leads());
    s.shard.world.net().CutOneWay(s.to->name(), s.leader->name());
    s.shard.world.net().CutOneWay(s.third->name(), s.leader->name());
    s.shard.Every(
        [&] {
          if (s.to->leads()) s.to->Write();
          s.leader->Read();
          return false;
        },
        milliseconds(150));
    EXPECT_TRUE(s.to->leads());
    EXPECT_TRUE(s.leader->leads());  // it does not know better
    EXPECT_FALSE(s.answer.has_value());
    EXPECT_EQ(s.shard.truth.stale, 0u);
  }
}

// The message comes when the hand-over has long failed, and the leader has a lease in a new term.
TEST(ReplicaLease, OfTheTermAfterAFailedHandOverStandsALateMessage) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    LateHandOver s(seed, seconds(3));
    s.shard.world.RunFor(s.wakes - milliseconds(1) - s.shard.world.now());
    ASSERT_TRUE(s.answer.has_value());
    EXPECT_FALSE(s.answer->ok());
    ASSERT_TRUE(s.leader->leads());
    EXPECT_EQ(s.leader->replica().status().term, s.term.Next());
    EXPECT_TRUE(s.leader->replica().HasLease());
    s.shard.Every(
        [&] {
          for (SimNode* node : {s.leader, s.to, s.third}) {
            if (node->leads()) node->Write();
          }
          s.leader->Read();
          return false;
        },
        seconds(2));
    EXPECT_TRUE(s.leader->leads());
    EXPECT_EQ(s.leader->replica().status().term, s.term.Next());
    EXPECT_TRUE(s.leader->replica().HasLease());
    EXPECT_EQ(s.shard.truth.stale, 0u);
  }
}

}  // namespace
}  // namespace etalon::consensus
