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

// The message that asks the successor to campaign comes when the hand-over has long failed.
TEST(ReplicaLease, IsGivenUpByAHandOverEvenIfItFails) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    SimShard shard(seed);
    shard.Form(3);
    shard.WriteSome(30);
    SimNode& leader = shard.WaitForLeader();
    SimNode& to = shard.At(leader.id() == MemberId(1) ? 2 : 1);
    // So that the message leaves at once.
    ASSERT_TRUE(shard.RunUntil(
        [&] { return leader.replica().GetProgress(to.id())->matched == leader.log().Last(); }));
    SimNode& third = shard.At(6 - leader.id().value() - to.id().value());
    std::optional<Status> answer;
    leader.replica().TransferLeadership(to.id(), Deadline::Never(),
                                        [&](Status s) { answer = std::move(s); });
    const SteadyTime wakes = shard.world.now() + seconds(3);
    shard.world.Pause(to.name(), seconds(3));  // what comes to it waits
    ASSERT_TRUE(shard.RunUntil([&] { return answer.has_value(); }, seconds(2)));
    ASSERT_FALSE(answer->ok());
    // It leads on, but writes nothing: the successor's log is as good as any.
    shard.world.RunFor(wakes - milliseconds(1) - shard.world.now());
    ASSERT_TRUE(leader.leads());
    // Shortly before the successor wakes up, nothing reaches the leader any more.
    shard.world.net().CutOneWay(to.name(), leader.name());
    shard.world.net().CutOneWay(third.name(), leader.name());
    shard.Every(
        [&] {
          if (to.leads()) to.Write();
          leader.Read();
          return false;
        },
        milliseconds(400));
    EXPECT_TRUE(to.leads());
    EXPECT_TRUE(leader.leads());  // it does not know better
    EXPECT_EQ(shard.truth.stale, 0u);
  }
}

}  // namespace
}  // namespace etalon::consensus
