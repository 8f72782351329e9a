// What is declared, and what is told. The tables of actions: plan_processes_test.cc,
// plan_shards_test.cc.
#include "operator/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/plan/testing/situations.h"

namespace etalon::controller {
namespace {

using namespace testing;  // NOLINT: situations
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- what is declared ----

template <class T>
T Only(const Fixture& f) {
  for (const Action& action : f.Plan().actions) {
    if (const T* found = std::get_if<T>(&action)) return *found;
  }
  ADD_FAILURE() << "no such action";
  return T();
}

TEST(Plan, FirstTopologyPlacesAllBuckets) {
  Fixture f = Fixture::Blank(3);
  f.spec.bucket_count = 10;
  for (std::uint32_t i = 0; i < 3; ++i) f.AddBlank(i);
  const v1::Topology topology = Only<CreateTopology>(f).topology;
  EXPECT_FALSE(topology.complete());
  EXPECT_EQ(topology.collection(), f.seen.collection.value());
  ASSERT_EQ(topology.shards_size(), 3);
  std::uint32_t next = 0;
  for (const v1::ShardInfo& shard : topology.shards()) {
    EXPECT_EQ(shard.state(), v1::SHARD_CREATING);
    ASSERT_EQ(shard.replicas_size(), 1);
    EXPECT_THAT(shard.replicas(0).address(), HasSubstr("127.0.0.1:"));
    ASSERT_EQ(shard.initial_size(), 1);
    EXPECT_EQ(shard.initial(0).first(), next);
    next = shard.initial(0).last() + 1;
  }
  EXPECT_EQ(next, 10u);
}

TEST(Plan, CompleteOnceEveryShardIsLed) {
  Fixture f = Fixture::AtRest(2);
  f.Topology().set_complete(false);
  for (auto& shard : *f.Topology().mutable_shards()) shard.set_state(v1::SHARD_CREATING);
  f.Silence(1);
  EXPECT_THAT(f.Keys(), IsEmpty());
  f.Storage(1).info = InfoOf(f, 1, 0);
  const v1::Topology topology = Only<CreateTopology>(f).topology;
  EXPECT_TRUE(topology.complete());
  EXPECT_EQ(topology.shards(0).state(), v1::SHARD_NORMAL);
}

TEST(Plan, TheFormIsMadeOfWhatIsStored) {
  Fixture f = Fixture::AtRest(2, 3);
  f.seen.forms.get()->clear();
  f.Topology().set_complete(false);
  f.Topology().mutable_shards(1)->add_initial()->set_last(7);
  for (std::uint32_t s = 0; s < 2; ++s) {
    for (std::uint32_t i = 0; i < 3; ++i) f.AddBlank(s, i);
  }
  std::vector<v1::FormRequest> forms;
  for (const Action& action : f.Plan().actions) {
    if (const auto* create = std::get_if<CreateForm>(&action)) forms.push_back(create->form);
  }
  ASSERT_EQ(forms.size(), 2u);
  EXPECT_EQ(forms[1].members_size(), 3);
  EXPECT_EQ(forms[1].ranges(0).last(), 7u);
  EXPECT_EQ(forms[1].topology().version(), 2u);
  EXPECT_EQ(forms[1].settings().version(), 1u);
  // Half done: only those that are still blank are asked again, with the same content.
  f.seen.forms.get()->emplace(f.Uid(1), forms[1]);
  f.Storage(1, 0).info = InfoOf(f, 1, 0);
  const Form again = Only<Form>(f);
  EXPECT_THAT(again.replicas, ElementsAre(f.Replica(1, 1), f.Replica(1, 2)));
}

TEST(Plan, ASplitIsClosedWithTheWeightOfItsTarget) {
  Fixture f = Grown(1, [](Fixture& g) {
    g.spec.shards["shard-1"].weight = 70;
    AddTask(&g.Info(0), "split-shard-0-shard-1-1", g.Uid(1), v1::SPLIT_COMMITTED);
  });
  const v1::Settings settings = Only<CreateSettings>(f).settings;
  EXPECT_THAT(settings.closed_splits(), ElementsAre("split-shard-0-shard-1-1"));
  EXPECT_EQ(settings.shards(1).weight(), 70u);
}

TEST(Plan, NoSplitIsClosedWhileAnotherIsOnItsWay) {
  Fixture f = Fixture::AtRest(2);
  f.spec.shard_num = 4;
  f.AddCreating(2);
  f.AddCreating(3);
  EXPECT_THAT(f.Keys(),
              ElementsAre("split split-shard-0-shard-2-1", "split split-shard-1-shard-3-1"));
  AddTask(&f.Info(0), "split-shard-0-shard-2-1", f.Uid(2), v1::SPLIT_COMMITTED);
  EXPECT_THAT(f.Keys(), ElementsAre("split split-shard-1-shard-3-1"));
  AddTask(&f.Info(1), "split-shard-1-shard-3-1", f.Uid(3), v1::SPLIT_FENCING);
  EXPECT_THAT(f.Keys(), IsEmpty());
  f.Info(1).mutable_splits(0)->set_state(v1::SPLIT_COMMITTED);
  EXPECT_EQ(Only<CreateSettings>(f).settings.closed_splits_size(), 2);
}

TEST(Plan, NewSpacesGetNewNumbersAndOldOnesKeepTheirs) {
  Fixture f = Fixture::AtRest(1);
  f.spec.spaces = {"accounts", "orders"};
  const v1::Topology topology = Only<CreateTopology>(f).topology;
  ASSERT_EQ(topology.spaces_size(), 2);
  EXPECT_EQ(topology.spaces(0).name(), "orders");
  EXPECT_EQ(topology.spaces(0).number(), 1u);
  EXPECT_EQ(topology.spaces(1).number(), 2u);
}

TEST(Plan, RemovedShardsAreNamedForEver) {
  Fixture f = Draining([](Fixture& g) {
    g.Drain(2, 1);
    g.Info(2).set_retired(true);
  });
  const v1::Topology topology = Only<CreateTopology>(f).topology;
  EXPECT_EQ(topology.shards_size(), 2);
  EXPECT_THAT(topology.removed_shards(), ElementsAre(f.Uid(2).value()));
}

// ---- what is told ----

TEST(Plan, ConditionsExplain) {
  Fixture f = Fixture::AtRest(3);
  Report report = f.Plan().report;
  EXPECT_EQ(report.Find("Ready")->status, ConditionStatus::kTrue);
  EXPECT_EQ(report.Find("Available")->status, ConditionStatus::kTrue);
  EXPECT_EQ(report.Find("TopologyConverged")->status, ConditionStatus::kTrue);
  EXPECT_EQ(report.Find("Resharding")->status, ConditionStatus::kFalse);
  EXPECT_EQ(report.Find("Balanced")->status, ConditionStatus::kTrue);
  EXPECT_EQ(report.Find("FewBuckets")->status, ConditionStatus::kFalse);

  f.seen.rebalancer.get()->set_remaining(7);
  report = f.Plan().report;
  EXPECT_EQ(report.Find("Ready")->message, "7 buckets are still to move");
  EXPECT_EQ(report.Find("Resharding")->reason, "BucketsMove");
  f.seen.rebalancer.get()->set_remaining(0);

  f.spec.shard_num = 2;
  f.spec.scale_down = ScaleDownPolicy::kForbid;
  report = f.Plan().report;
  EXPECT_EQ(report.Find("ScaleDownBlocked")->status, ConditionStatus::kTrue);
  EXPECT_THAT(report.Find("ScaleDownBlocked")->message,
              HasSubstr("scaleDown.policy is Forbid: shard-2 would have to go"));
  EXPECT_EQ(report.Find("Ready")->reason, "ScaleDownBlocked");

  f.spec.scale_down = ScaleDownPolicy::kDrain;
  for (std::uint32_t i = 0; i < 3; ++i) f.Info(i).set_free_bytes(70 << 20);
  EXPECT_THAT(f.Plan().report.Find("ScaleDownBlocked")->message,
              HasSubstr("180 MiB each, and the smallest volume has 170 MiB"));
}

TEST(Plan, EveryWaitTellsWhatForHowMuchAndSinceWhen) {
  Fixture f = Draining([](Fixture& g) {
    g.Info(2).mutable_buckets()->set_active(12);
    g.Info(2).mutable_buckets()->set_pinned(2);
  });
  const Report first = f.Plan().report;
  ASSERT_EQ(first.waits.size(), 1u);
  EXPECT_THAT(first.waits[0].what, HasSubstr("shard-2 to be drained; 2 of them are pinned"));
  EXPECT_EQ(first.waits[0].left, "14 buckets");
  EXPECT_THAT(first.waits[0].next, HasSubstr("volumes are kept"));
  EXPECT_EQ(first.waits[0].since, f.now);
  EXPECT_THAT(first.Find("Resharding")->message, HasSubstr("14 buckets"));
  const SteadyTime began = f.now;
  f.seen.last = first;
  f.now += std::chrono::seconds(30);
  f.Info(2).mutable_buckets()->set_active(3);
  const Report second = f.Plan().report;
  EXPECT_EQ(second.waits[0].since, began);
  EXPECT_EQ(second.waits[0].left, "5 buckets");
  EXPECT_EQ(second.Find("Resharding")->since, began);
}

TEST(Plan, ADrainThatNobodyDrivesSaysSo) {
  Fixture f = Draining([](Fixture& g) {
    g.spec.rebalancing.mode = RebalancingMode::kDisabled;
    g.Settings().set_mode(v1::REBALANCER_DISABLED);
    g.Settings().set_rebalancer(0);
  });
  EXPECT_THAT(f.Plan().report.waits.at(0).what,
              HasSubstr("rebalancing.mode is Disabled, so nothing moves"));
}

TEST(Plan, Warnings) {
  Fixture f = Fixture::AtRest(3);
  for (const char* shard : {"shard-0", "shard-1", "shard-2"}) f.spec.shards[shard].weight = 0;
  EXPECT_EQ(f.Plan().report.Find("Balanced")->reason, "AllWeightsZero");
  Fixture few = Fixture::AtRest(3);
  few.spec.bucket_count = 299;
  few.Topology().set_bucket_count(299);
  EXPECT_EQ(few.Plan().report.Find("FewBuckets")->status, ConditionStatus::kTrue);
  few.spec.bucket_count = 3;  // bucketCount = shardNum is a layout of its own
  few.Topology().set_bucket_count(3);
  EXPECT_EQ(few.Plan().report.Find("FewBuckets")->status, ConditionStatus::kFalse);
}

TEST(Plan, ForeignVolumesAreNamedWithTheWayOut) {
  Fixture f = Fixture::Blank(1);
  f.AddBlank(0);
  f.Info(0).set_collection(99);
  const Report report = f.Plan().report;
  EXPECT_EQ(report.Find("Stalled")->status, ConditionStatus::kTrue);
  EXPECT_THAT(report.Find("Stalled")->message, HasSubstr("etalon.dev/adopt: <collection ID>"));
  EXPECT_THAT(report.Find("Stalled")->message, HasSubstr("0000000000000063"));
}

TEST(Plan, AnAdoptedCollectionIsCompleteAtOnce) {
  Fixture f = Fixture::AtRest(2);
  f.seen.topologies = Topologies();
  f.seen.settings = SettingsByVersion();
  f.seen.forms = Forms();
  f.seen.routers = std::map<std::string, RouterSeen>();
  const v1::Topology topology = Only<CreateTopology>(f).topology;
  EXPECT_TRUE(topology.complete());
  EXPECT_EQ(topology.version(), 3u);
}

TEST(Plan, WakesForARestart) {
  Fixture f = Fixture::AtRest(1);
  f.Kill(0);
  f.Storage(0).process.restart_at = f.now + std::chrono::seconds(2);
  const PlanOutput plan = f.Plan();
  EXPECT_EQ(plan.wake_at, f.now + std::chrono::seconds(2));
  EXPECT_EQ(plan.report.Find("Available")->status, ConditionStatus::kFalse);
}

TEST(Plan, AShardWithoutRoomIsNotAvailable) {
  Fixture f = Fixture::AtRest(2);
  f.Info(1).add_alerts()->set_code("DISK_FULL");
  const Report report = f.Plan().report;
  EXPECT_EQ(report.Find("Available")->status, ConditionStatus::kFalse);
  EXPECT_EQ(report.Find("Available")->reason, "DiskFull");
  EXPECT_THAT(report.Find("Available")->message, HasSubstr(f.Info(1).replica()));
}

TEST(Plan, ALostMajorityIsSaidAndLeftAlone) {
  Fixture f = Fixture::AtRest(2, 3);
  const auto says = [&] {
    const PlanOutput plan = f.Plan();
    EXPECT_TRUE(plan.actions.empty());
    return *plan.report.Find("Available");
  };
  // Nobody leads: that alone says nothing of disks.
  f.Info(1, 0).set_leader(false);
  f.Info(1, 0).set_lease(false);
  EXPECT_EQ(says().reason, "NoAnswer");
  // One blank disk, one damaged: what is left is no majority.
  f.Info(1, 0).set_member(77);
  f.Info(1, 0).set_formed(false);
  EXPECT_EQ(says().reason, "NoAnswer");
  f.Kill(1, 1);
  f.Storage(1, 1).process.disk_lost = true;
  EXPECT_EQ(says().reason, "MajorityLost");
  EXPECT_EQ(says().status, ConditionStatus::kFalse);
  for (const std::string& part :
       {f.Replica(1, 0), f.Replica(1, 1), f.Replica(1, 2), std::string("etalonctl recover")})
    EXPECT_THAT(says().message, HasSubstr(part));
  // One that is merely down may come back.
  f.Storage(1, 1).process.disk_lost = false;
  f.Storage(1, 1).process.restart_at = SteadyTime::max();
  EXPECT_NE(says().reason, "MajorityLost");
}

TEST(Plan, AFailureThatRepeatsStalls) {
  Fixture f = Fixture::AtRest(1);
  f.seen.failures["split x"] = {"all buckets are pinned", f.now, 5};
  EXPECT_THAT(f.Plan().report.Find("Stalled")->message,
              HasSubstr("split x failed 5 times: all buckets are pinned"));
}

}  // namespace
}  // namespace etalon::controller
