// Replicas under everything at once: crashes, cuts, pauses, skewed clocks, slow disks, lost, late
// and doubled messages, changes of members, hand-overs. Whatever happens: all apply the same,
// nothing acknowledged is lost, no read is stale, and the same seed gives the same history. More
// seeds: --gtest_random_seed=N begins with another one, --gtest_repeat.
#include <gtest/gtest.h>

#include "engine/consensus/replica_sim.h"

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::uint64_t FirstSeed() {
  return static_cast<std::uint64_t>(::testing::GTEST_FLAG(random_seed)) * 1000 + 1;
}

class Chaos {
 public:
  Chaos(std::uint64_t seed, std::uint64_t voters)
      : shard_(seed), random_(shard_.world.random().Fork()) {
    auto& net = shard_.world.net().options();
    net.loss_permille = static_cast<std::uint32_t>(random_.Below(40));
    net.duplicate_permille = static_cast<std::uint32_t>(random_.Below(40));
    net.slow_permille = static_cast<std::uint32_t>(random_.Below(50));
    net.slow_max = milliseconds(20 + random_.Below(1500));
    net.reorder = random_.Chance(3, 4);
    shard_.Form(voters);
    next_id_ = voters + 1;
  }

  // Returns the trace.
  std::uint64_t Run(Duration duration) {
    SteadyTime next_event = shard_.world.now();
    shard_.Every(
        [&] {
          if (shard_.world.now() >= next_event) {
            Disturb();
            next_event = shard_.world.now() + random_.Between(milliseconds(20), milliseconds(600));
          }
          Work();
          return false;
        },
        duration);
    Calm();
    shard_.Settle(seconds(120));
    EXPECT_EQ(shard_.truth.stale, 0u);
    return shard_.world.trace();
  }
  const Truth& truth() const { return shard_.truth; }

 private:
  SimNode* Any() {
    auto it = shard_.nodes.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(random_.Below(shard_.nodes.size())));
    return it->second.get();
  }

  void Work() {
    for (auto& [id, node] : shard_.nodes) {
      if (!node->up() || !random_.Chance(1, 3)) continue;
      if (random_.Chance(1, 2)) node->Write(random_.Chance(1, 20) ? 3000 : 40);
      node->Read(milliseconds(random_.Below(300)));
    }
  }

  void Disturb() {
    auto& world = shard_.world;
    SimNode* node = Any();
    SimNode* other = Any();
    SimNode* leader = shard_.Leader();
    switch (random_.Below(14)) {
      case 0:
      case 1:
        if (node->up()) node->Crash();
        break;
      case 2:
      case 3:
      case 4:
        for (auto& [id, n] : shard_.nodes) {
          if (!n->up()) {
            n->Start();
            break;
          }
        }
        break;
      case 5:
        world.net().Isolate(node->name());
        break;
      case 6:
        world.net().CutOneWay(node->name(), other->name());
        break;
      case 7:
      case 8:
        Heal();
        break;
      case 9:
        if (node->up()) world.Pause(node->name(), milliseconds(random_.Below(1200)));
        break;
      case 10:
        if (leader)
          leader->replica().TransferLeadership(other->id(), leader->In(seconds(2)),
                                               [](const Status&) {});
        break;
      case 11:
        ChangeMembers(leader);
        break;
      case 12: {
        const auto slowest = milliseconds(random_.Chance(1, 4) ? 3000 : 2);
        world.disk(node->name()).SetLatency(std::chrono::microseconds(20), slowest);
        break;
      }
      case 13:
        if (node->up()) node->RefuseApplies(static_cast<int>(random_.Below(20)));
        break;
    }
  }

  void ChangeMembers(SimNode* leader) {
    if (!leader) return;
    const Members& members = leader->replica().members();
    if (!members.learners.empty()) {
      (void)leader->replica().AddVoter(members.learners.front(), "");
    } else if (members.voters.size() < 5 && random_.Chance(1, 2)) {
      const std::uint64_t id = next_id_++;
      if (leader->replica().AddLearner(MemberId(id), "").ok()) shard_.Add(id);
    } else if (members.voters.size() > 3) {
      (void)leader->replica().Remove(members.voters[random_.Below(members.voters.size())], "");
    }
  }

  void Heal() {
    shard_.world.net().HealAll();
    for (auto& [id, node] : shard_.nodes) shard_.world.net().Join(node->name());
  }

  // Everything works again, and who is no member any more is gone.
  void Calm() {
    Heal();
    auto& net = shard_.world.net().options();
    net.loss_permille = net.duplicate_permille = net.slow_permille = 0;
    for (auto& [id, node] : shard_.nodes) {
      shard_.world.disk(node->name())
          .SetLatency(std::chrono::microseconds(20), std::chrono::microseconds(200));
      node->RefuseApplies(0);
      if (!node->up()) node->Start();
    }
    const auto member = [&](std::uint64_t id, const Members& members) {
      const auto has = [&](const std::vector<MemberId>& ids) {
        return std::find(ids.begin(), ids.end(), MemberId(id)) != ids.end();
      };
      return has(members.voters) || has(members.learners);
    };
    shard_.world.RunFor(seconds(5));
    SimNode& leader = shard_.WaitForLeader(seconds(60));
    for (auto it = shard_.nodes.begin(); it != shard_.nodes.end();) {
      if (member(it->first, leader.replica().members())) {
        ++it;
      } else {
        it->second->Crash();
        it = shard_.nodes.erase(it);
      }
    }
  }

  SimShard shard_;
  Random random_;
  std::uint64_t next_id_ = 0;
};

TEST(ReplicaChaos, NothingIsLostAndNoReadIsStale) {
  Truth sum;
  for (std::uint64_t seed = FirstSeed(); seed < FirstSeed() + 12; ++seed) {
    SCOPED_TRACE(seed);
    Chaos chaos(seed, seed % 3 == 0 ? 5 : 3);
    chaos.Run(seconds(15));
    if (HasFailure()) break;
    sum.writes += chaos.truth().writes;
    sum.lease_reads += chaos.truth().lease_reads;
    sum.reads += chaos.truth().reads;
    sum.restores += chaos.truth().restores;
  }
  EXPECT_GT(sum.writes, 2000u);
  EXPECT_GT(sum.lease_reads, 2000u);
  EXPECT_GT(sum.reads, sum.lease_reads);
  EXPECT_GT(sum.restores, 0u);
}

TEST(ReplicaChaos, TheSameSeedGivesTheSameHistory) {
  EXPECT_EQ(Chaos(FirstSeed(), 3).Run(seconds(5)), Chaos(FirstSeed(), 3).Run(seconds(5)));
  EXPECT_NE(Chaos(FirstSeed(), 3).Run(seconds(5)), Chaos(FirstSeed() + 1, 3).Run(seconds(5)));
}

}  // namespace
}  // namespace etalon::consensus
