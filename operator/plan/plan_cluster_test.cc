// The planner against a model of a collection: every change of mind, with the operator killed after
// every action, ends where the last manifest says, at rest, and on the way nothing happened that
// must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "operator/plan/names.h"
#include "operator/plan/testing/fake_cluster.h"

namespace etalon::controller {
namespace {

using testing::FakeCluster;
using testing::Faults;
using ::testing::IsEmpty;

CollectionSpec Spec(std::uint32_t shards, std::uint32_t replicas = 1) {
  CollectionSpec spec;
  spec.name = "orders";
  spec.version = "0.1.0";
  spec.shard_num = shards;
  spec.bucket_count = 120;
  spec.replicas_per_shard = replicas;
  spec.shard_by_field = "id";
  return spec;
}

// One operator after another at one cluster.
class Operators {
 public:
  Operators(FakeCluster& cluster, CollectionSpec wish) : spec(std::move(wish)), cluster_(cluster) {}

  CollectionSpec spec;
  std::size_t done = 0;  // actions carried out so far
  std::function<bool(std::size_t)> dies = [](std::size_t) {
    return false;
  };                                                            // after the action of that number
  std::function<void(std::size_t)> after = [](std::size_t) {};  // the same moment, outside

  // One round. True when there was nothing to do.
  bool Round() {
    Observed seen = cluster_.Observe();
    seen.led = led_;
    seen.failures = failures_;
    seen.last = last_;
    PlanOutput plan = Plan(spec, seen, cluster_.now());
    last_ = plan.report;
    if (seen.storages.known()) {
      for (const auto& [name, storage] : seen.storages.value()) {
        if (storage.info.known() && storage.info.value().lease())
          led_[storage.uid] = cluster_.now();
      }
    }
    for (const Action& action : plan.actions) {
      trace_.push_back(Key(action));
      const Status status = cluster_.Execute(action);
      if (status.ok()) {
        failures_.erase(Key(action));
      } else {
        failures_[Key(action)].times++;
      }
      ++done;
      after(done);
      if (dies(done)) {  // what it knew is gone; what it had planned is not done
        led_.clear();
        failures_.clear();
        last_ = {};
        break;
      }
    }
    return plan.actions.empty();
  }

  // Until nothing is to be done any more and all is as asked for.
  bool Converge(int ticks = 3000) {
    int quiet = 0;
    for (int i = 0; i < ticks; ++i) {
      const bool rest = Round();
      cluster_.Tick();
      quiet = rest && Settled() ? quiet + 1 : 0;
      if (quiet >= 5) return true;
    }
    return false;
  }

  bool Settled() const {
    const Condition* ready = last_.Find("Ready");
    return ready != nullptr && ready->status == ConditionStatus::kTrue &&
           cluster_.Owned().size() == spec.shard_num && Balanced();
  }

  bool Balanced() const {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t most = 0;
    for (const auto& [name, owned] : cluster_.Owned()) {
      least = std::min(least, owned);
      most = std::max(most, owned);
    }
    return most - least <= 1;
  }

  std::string Story() const {
    std::string out;
    for (std::size_t i = trace_.size() > 60 ? trace_.size() - 60 : 0; i < trace_.size(); ++i)
      out += "  " + trace_[i] + "\n";
    for (const Wait& wait : last_.waits) out += "  WAITS: " + wait.what + " " + wait.left + "\n";
    if (const Condition* ready = last_.Find("Ready")) out += "  READY: " + ready->message + "\n";
    return out;
  }

 private:
  FakeCluster& cluster_;
  std::map<ShardUid, SteadyTime> led_;
  std::map<std::string, Failure> failures_;
  Report last_;
  std::vector<std::string> trace_;
};

void ExpectAtRest(FakeCluster& cluster, Operators& op) {
  EXPECT_THAT(cluster.violations(), IsEmpty());
  EXPECT_EQ(cluster.topology().shards_size(), static_cast<int>(op.spec.shard_num));
  std::size_t processes = op.spec.routers;
  for (const v1::ShardInfo& shard : cluster.topology().shards()) {
    EXPECT_EQ(shard.state(), v1::SHARD_NORMAL);
    EXPECT_EQ(shard.replicas_size(), static_cast<int>(op.spec.replicas_per_shard));
    processes += op.spec.replicas_per_shard;
  }
  EXPECT_EQ(cluster.Processes().size(), processes);
  const std::size_t before = op.done;
  for (int i = 0; i < 100; ++i) {
    op.Round();
    cluster.Tick();
  }
  EXPECT_EQ(op.done, before) << "at rest nothing is to be done\n" << op.Story();
}

struct Scenario {
  const char* name;
  std::uint32_t first;
  std::uint32_t then;
  std::uint32_t replicas = 1;
  ReshardingStrategy strategy = ReshardingStrategy::kAutomatic;
};

class Scenarios : public ::testing::TestWithParam<Scenario> {
 protected:
  // Runs to `first`, then changes to `then`; returns the number of actions that the change took.
  std::size_t Change(Operators& op) {
    EXPECT_TRUE(op.Converge()) << op.Story();
    const std::size_t before = op.done;
    op.spec.shard_num = GetParam().then;
    EXPECT_TRUE(op.Converge()) << op.Story();
    return op.done - before;
  }
  CollectionSpec First() const {
    CollectionSpec spec = Spec(GetParam().first, GetParam().replicas);
    spec.strategy = GetParam().strategy;
    return spec;
  }
};

TEST_P(Scenarios, KilledAfterEachAction) {
  std::size_t actions = 0;
  {
    FakeCluster cluster(120, 1);
    Operators op(cluster, First());
    actions = Change(op);
    ExpectAtRest(cluster, op);
  }
  ASSERT_GT(actions, 5u);
  for (std::size_t death = 1; death <= actions; ++death) {
    FakeCluster cluster(120, 1);
    Operators op(cluster, First());
    ASSERT_TRUE(op.Converge()) << op.Story();
    const std::size_t start = op.done;
    op.dies = [&](std::size_t n) { return n == start + death; };
    op.spec.shard_num = GetParam().then;
    ASSERT_TRUE(op.Converge()) << "killed after action " << death << "\n" << op.Story();
    ExpectAtRest(cluster, op);
  }
}

TEST_P(Scenarios, TakenBackAfterEachAction) {
  std::size_t actions = 0;
  {
    FakeCluster cluster(120, 1);
    Operators op(cluster, First());
    actions = Change(op);
  }
  for (std::size_t turn = 1; turn <= actions; ++turn) {
    FakeCluster cluster(120, turn);
    Operators op(cluster, First());
    ASSERT_TRUE(op.Converge()) << op.Story();
    const std::size_t start = op.done;
    op.spec.shard_num = GetParam().then;
    op.after = [&](std::size_t n) {
      if (n == start + turn) op.spec.shard_num = GetParam().first;
    };
    // Killed then, and a few times more.
    op.dies = [&](std::size_t n) { return n == start + turn || n % 7 == turn % 7; };
    ASSERT_TRUE(op.Converge()) << "taken back after action " << turn << "\n" << op.Story();
    ExpectAtRest(cluster, op);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Scenarios,
    ::testing::Values(Scenario{"UpByWeights", 2, 3}, Scenario{"UpBySplit", 2, 4},
                      Scenario{"UpByTwo", 3, 5},
                      Scenario{"UpForcedSplit", 2, 3, 1, ReshardingStrategy::kSplit},
                      Scenario{"Down", 3, 2}, Scenario{"DownByTwo", 4, 2},
                      Scenario{"UpOfThree", 2, 3, 3}, Scenario{"DownOfThree", 3, 2, 3}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(Cluster, KilledAfterEveryActionOfItsLife) {
  FakeCluster cluster(120, 3);
  Operators op(cluster, Spec(2, 3));
  op.dies = [](std::size_t) { return true; };
  for (const std::uint32_t shards : {2u, 4u, 3u, 1u, 2u}) {
    op.spec.shard_num = shards;
    ASSERT_TRUE(op.Converge()) << shards << "\n" << op.Story();
    ExpectAtRest(cluster, op);
  }
}

TEST(Cluster, ReplicasComeAndGo) {
  FakeCluster cluster(120, 4);
  Operators op(cluster, Spec(2, 1));
  for (const std::uint32_t replicas : {1u, 3u, 5u, 3u, 1u, 3u}) {
    op.spec.replicas_per_shard = replicas;
    ASSERT_TRUE(op.Converge()) << replicas << "\n" << op.Story();
    ExpectAtRest(cluster, op);
  }
}

TEST(Cluster, ClassicLayoutGrowsByDoublingTheModulus) {
  CollectionSpec spec = Spec(2);
  spec.bucket_count = 2;
  FakeCluster cluster(2, 5);
  Operators op(cluster, spec);
  ASSERT_TRUE(op.Converge()) << op.Story();
  op.spec.shard_num = 4;
  ASSERT_TRUE(op.Converge()) << op.Story();
  EXPECT_EQ(cluster.modulus(), 4u);
  op.spec.shard_num = 8;
  ASSERT_TRUE(op.Converge()) << op.Story();
  EXPECT_EQ(cluster.modulus(), 8u);
  ExpectAtRest(cluster, op);
}

TEST(Cluster, RollingRoutersNeverCostsCapacity) {
  FakeCluster cluster(120, 6);
  Operators op(cluster, Spec(2));
  ASSERT_TRUE(op.Converge()) << op.Story();
  op.spec.shard_num = 3;
  for (int i = 0; i < 400; ++i) {
    op.Round();
    cluster.Tick();
    ASSERT_GE(cluster.ready_routers(), op.spec.routers) << op.Story();
  }
  EXPECT_TRUE(op.Settled()) << op.Story();
}

TEST(Cluster, LiveRoutersAreNeverRestarted) {
  CollectionSpec spec = Spec(2);
  spec.config_update = ConfigUpdate::kLive;
  FakeCluster cluster(120, 7);
  Operators op(cluster, spec);
  ASSERT_TRUE(op.Converge()) << op.Story();
  op.spec.shard_num = 4;
  ASSERT_TRUE(op.Converge()) << op.Story();
  EXPECT_THAT(op.Story(), ::testing::Not(::testing::HasSubstr("restart router")));
  ExpectAtRest(cluster, op);
}

// Faults of every kind, and manifests that change all the time; then the faults stop.
TEST(Cluster, Chaos) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    Faults faults;
    faults.silent_percent = 10;
    faults.fail_percent = 10;
    faults.lost_reply_percent = 10;
    faults.kill_permille = 20;
    faults.lose_disk_permille = seed % 2 == 0 ? 5 : 0;
    faults.abort_split_percent = 30;
    FakeCluster cluster(120, seed, faults);
    Operators op(cluster, Spec(1 + static_cast<std::uint32_t>(random.Below(4)),
                               random.Chance(1, 2) ? 3 : 1));
    op.dies = [&](std::size_t) { return random.Chance(1, 5); };
    for (int i = 0; i < 600; ++i) {
      op.Round();
      cluster.Tick();
      if (random.Chance(1, 40)) op.spec.shard_num = 1 + static_cast<std::uint32_t>(random.Below(5));
      if (random.Chance(1, 150)) op.spec.replicas_per_shard = random.Chance(1, 2) ? 3 : 1;
      if (random.Chance(1, 100))
        op.spec.strategy =
            random.Chance(1, 2) ? ReshardingStrategy::kSplit : ReshardingStrategy::kAutomatic;
      ASSERT_THAT(cluster.violations(), IsEmpty()) << "seed " << seed << "\n" << op.Story();
    }
    cluster.StopFaults();
    op.dies = [](std::size_t) { return false; };
    ASSERT_TRUE(op.Converge(6000)) << "seed " << seed << "\n" << op.Story();
    ExpectAtRest(cluster, op);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace etalon::controller
