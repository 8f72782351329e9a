// Split tasks, driven by the leader of the source.
#include <gtest/gtest.h>

#include <string>

#include "engine/transfer/testing/cluster.h"

namespace etalon::transfer::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions Options(std::uint32_t buckets, int shards = 2, std::uint64_t seed = 6) {
  ClusterOptions options;
  options.seed = seed;
  options.shards = shards;
  options.bucket_count = buckets;
  return options;
}

void Split(Cluster& cluster, const std::string& task, int from, int to) {
  v1::Control control;
  control.mutable_split()->set_task(task);
  control.mutable_split()->set_target(Cluster::Uid(to).value());
  cluster.shard(from).Propose(control);
}

bucket::SplitState StateOf(Cluster& cluster, const std::string& task, int shard = 0) {
  const auto& splits = cluster.shard(shard).state().splits();
  const auto it = splits.find(task);
  return it == splits.end() ? bucket::SplitState::kPreparing : it->second.state;
}

TEST(Split, MovesTheSecondHalfAsOneSet) {
  Cluster cluster(Options(5));
  for (std::uint32_t b = 0; b < 5; ++b) cluster.Fill(0, b, 3, 100);
  Split(cluster, "t1", 0, 1);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kCommitted; }));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
  EXPECT_EQ(cluster.shard(0).applied_controls["OPEN"], 1);
  for (std::uint32_t b = 0; b < 5; ++b) EXPECT_EQ(cluster.Owns(1, b), b >= 3) << b;
  EXPECT_GT(cluster.shard(0).state().splits().at("t1").t_switch.value(), 0u);
}

TEST(Split, ASingleBucketDoublesTheModulusOfBoth) {
  Cluster cluster(Options(1));
  for (int i = 0; i < 20; ++i) {
    cluster.shard(0).ProposePut(static_cast<std::uint32_t>(i), "k", std::to_string(i));
  }
  cluster.RunFor(milliseconds(50));
  Split(cluster, "t1", 0, 1);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kCommitted; }));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.shard(0).state().level(), 1);
  EXPECT_EQ(cluster.shard(1).state().level(), 1);
  for (std::uint32_t v = 0; v < 20; ++v) {
    Shard& owner = cluster.shard(static_cast<int>(v % 2));
    EXPECT_EQ(owner.Get(v, "k"), std::to_string(v));
    EXPECT_TRUE(owner.state().CheckWrite(RoutingValue(v), Epoch()).ok());
  }
  EXPECT_EQ(cluster.shard(0).RecordsInStore(), 10u);
  EXPECT_EQ(cluster.shard(1).RecordsInStore(), 10u);
}

// A log that is full answers at once; whoever asked waits before it asks again.
TEST(Split, ADoublingThatTheLogDoesNotTakeIsTriedAgainAfterAPause) {
  for (int full : {0, 1}) {
    Cluster cluster(Options(1));
    const SteadyTime end = cluster.now() + seconds(1);
    cluster.shard(full).full = [&](const v1::Control& control) {
      return control.has_rebase() && cluster.now() < end;
    };
    Split(cluster, "t1", 0, 1);
    ASSERT_TRUE(cluster.RunUntil([&] {
      return StateOf(cluster, "t1") == bucket::SplitState::kCommitted ||
             cluster.shard(full).refused_at_once > 1000;
    }));
    EXPECT_GT(cluster.shard(full).refused_at_once, 2);
    EXPECT_LE(cluster.shard(full).refused_at_once, 101) << "shard " << full << " spins";
    EXPECT_EQ(StateOf(cluster, "t1"), bucket::SplitState::kCommitted);
  }
}

TEST(Split, AnAbortWhileCopyingIsTriedAgainUnderTheSameTask) {
  Cluster cluster(Options(4));
  for (std::uint32_t b = 0; b < 4; ++b) cluster.Fill(0, b, 10, 50'000);
  int changes = 0;
  cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
    if (control.has_chunk() && before && changes < 3) {
      ++changes;
      cluster.shard(0).ChangeLeader(9);
    }
  };
  Split(cluster, "t1", 0, 1);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kCommitted; }));
  EXPECT_EQ(changes, 3);
  EXPECT_GT(cluster.shard(0).applied_controls["ABORT"], 0);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(Split, ARevertedFreezeEndsTheTaskForGood) {
  Cluster cluster(Options(4));
  cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
    if (control.step().kind() == v1::TransferStep::SENDING && !before)
      cluster.shard(1).silent = true;
  };
  Split(cluster, "t1", 0, 1);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kAborted; }));
  cluster.shard(1).silent = false;
  cluster.probe = {};
  cluster.RunFor(seconds(30));
  EXPECT_EQ(cluster.shard(0).applied_controls["OPEN"], 1) << "it is not tried again";
  EXPECT_EQ(cluster.CheckAtRest(), "");
  Split(cluster, "t2", 0, 1);  // a new ID is a new try
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t2") == bucket::SplitState::kCommitted; }));
}

TEST(Split, ATargetThatIsAwayDelaysItWithAnAlertAndLosesNothing) {
  Cluster cluster(Options(4));
  cluster.shard(1).silent = true;
  Split(cluster, "t1", 0, 1);
  cluster.RunFor(seconds(60));
  EXPECT_EQ(StateOf(cluster, "t1"), bucket::SplitState::kPreparing);
  EXPECT_EQ(cluster.shard(0).alerts.count({std::string(kAlertSplitWaits), "split t1"}), 1u);
  cluster.shard(1).silent = false;
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kCommitted; }));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(Split, OtherTransfersOfTheSourceGiveWay) {
  ClusterOptions options = Options(4, 3);
  options.settings.set_max_transfer_bytes_per_second(5'000'000);
  Cluster cluster(options);
  for (std::uint32_t b = 0; b < 4; ++b) cluster.Fill(0, b, 20, 60'000);
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(2), {0});
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.shard(2).applied_controls.count("CHUNK") != 0; }));
  Split(cluster, "t1", 0, 1);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kCommitted; }));
  EXPECT_EQ(cluster.shard(0).finished.at(order).reason(), Reason::kReplicasetIsLocked);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(Split, ARemovedTargetAbortsIt) {
  Cluster cluster(Options(4, 3));
  cluster.shard(1).silent = true;
  Split(cluster, "t1", 0, 1);
  cluster.RunFor(milliseconds(100));
  cluster.ChangeTopology([](v1::Topology& t) {
    t.mutable_shards()->DeleteSubrange(1, 1);
    t.add_removed_shards(Cluster::Uid(1).value());
  });
  ASSERT_TRUE(
      cluster.RunUntil([&] { return StateOf(cluster, "t1") == bucket::SplitState::kAborted; }));
}

// Random splits with doublings under lossy messages and leader changes.
TEST(Split, Chaos) {
  int committed = 0;
  int aborted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(Options(seed % 3 == 0 ? 1 : 3, 3, seed));
    Random random(seed);
    cluster.lost = static_cast<int>(random.Below(150));
    cluster.doubled = static_cast<int>(random.Below(150));
    cluster.late = static_cast<int>(random.Below(50));
    int tasks = 0;
    for (int round = 0; round < 60; ++round) {
      cluster.RunFor(random.Between(Duration(0), Duration(milliseconds(10))));
      for (std::uint64_t i = random.Below(3); i > 0; --i) cluster.RandomWrite(6);
      if (random.Chance(1, 15)) {
        const int from = static_cast<int>(random.Below(3));
        Split(cluster, "t" + std::to_string(++tasks), from,
              static_cast<int>((from + 1 + random.Below(2)) % 3));
      }
      if (random.Chance(1, 15)) {
        v1::Control control;
        control.mutable_abort_split()->set_task("t" + std::to_string(1 + random.Below(3)));
        cluster.shard(static_cast<int>(random.Below(3))).Propose(control);
      }
      if (random.Chance(1, 20)) {
        Shard& shard = cluster.shard(static_cast<int>(random.Below(3)));
        shard.ChangeLeader(random.Below(shard.unapplied() + 1));
      }
      if (random.Chance(1, 20)) {
        cluster.ChangeSettings([&](v1::Settings& s) {
          for (int t = 1; t <= tasks; ++t) s.add_closed_splits("t" + std::to_string(t));
        });
      }
    }
    cluster.lost = cluster.doubled = cluster.late = 0;
    const auto settled = [&] {
      for (int i = 0; i < 3; ++i) {
        for (const auto& [name, task] : cluster.shard(i).state().splits()) {
          if (task.state < bucket::SplitState::kCommitted) return false;
        }
      }
      return true;
    };
    for (int i = 0; i < 20 && !settled(); ++i) {
      // Two open splits that want each other's shards wait for each other: somebody has to abort
      // one.
      for (int s = 0; s < 3; ++s) {
        for (const auto& [name, task] : cluster.shard(s).state().splits()) {
          if (task.state != bucket::SplitState::kPreparing || i < 10) continue;
          v1::Control control;
          control.mutable_abort_split()->set_task(name);
          cluster.shard(s).Propose(control);
        }
      }
      cluster.ChangeSettings([&](v1::Settings& s) {
        for (int t = 1; t <= tasks; ++t) s.add_closed_splits("t" + std::to_string(t));
      });
      cluster.RunFor(seconds(3));
    }
    ASSERT_TRUE(settled()) << "seed " << seed;
    ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed;
    cluster.RunFor(seconds(20));
    ASSERT_TRUE(cluster.RunUntilIdle()) << "seed " << seed;
    ASSERT_EQ(cluster.CheckAtRest(), "") << "seed " << seed;
    for (int i = 0; i < 3; ++i) {
      for (const auto& [name, task] : cluster.shard(i).state().splits()) {
        if (task.state == bucket::SplitState::kAborted) {
          ++aborted;
        } else {
          ++committed;
        }
      }
    }
  }
  EXPECT_GT(committed, 100);
  EXPECT_GT(aborted, 20);
}

}  // namespace
}  // namespace etalon::transfer::testing
