// One row for each situation: shards that come and go, members, changes of mind.
#include <gtest/gtest.h>

#include "operator/plan/testing/situations.h"

namespace etalon::controller::testing {
namespace {

TEST(PlanShards, Table) {
  CheckRows({
      // ---- scale up ----
      {"up: the process first",
       [] { return AtRest(2, [](Fixture& f) { f.spec.shard_num = 3; }); },
       {"start storage orders-shard-2-0"}},
      {"up: then the topology",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.spec.shard_num = 3;
           f.AddBlank(2);
         });
       },
       {"create topology 3"}},
      {"up: settings name it, and only then its form is recorded",
       [] {
         return Grown(2, [](Fixture& f) {
           f.AddBlank(2);
           f.seen.forms.get()->erase(f.Uid(2));
           f.Settings().mutable_shards()->RemoveLast();
         });
       },
       {"create settings 2"}},
      {"up: the form is recorded",
       [] {
         return Grown(2, [](Fixture& f) {
           f.AddBlank(2);
           f.seen.forms.get()->erase(f.Uid(2));
         });
       },
       {"record the form of shard {2}"}},
      {"up: it is formed",
       [] { return Grown(2, [](Fixture& f) { f.AddBlank(2); }); },
       {"form shard {2}"}},
      {"up: not formed before the routers know it",
       [] {
         return Grown(2, [](Fixture& f) {
           f.AddBlank(2);
           f.seen.forms.get()->at(f.Uid(2)).mutable_topology()->set_version(3);
           f.Router(0).info = Seen<v1::RouterInfoResponse>::Unknown("no answer");
         });
       },
       {}},
      {"two become three: by weights",
       [] { return Grown(2, [](Fixture&) {}); },
       {"create settings 2"}},
      {"two become three, strategy Split: the larger one is split",
       [] {
         return Grown(2, [](Fixture& f) {
           f.spec.strategy = ReshardingStrategy::kSplit;
           f.Info(1).mutable_buckets()->set_active(2000);
         });
       },
       {"split split-shard-1-shard-2-1"}},
      {"one becomes two: by a split",
       [] { return Grown(1, [](Fixture&) {}); },
       {"split split-shard-0-shard-1-1"}},
      {"one becomes two, strategy Weights",
       [] { return Grown(1, [](Fixture& f) { f.spec.strategy = ReshardingStrategy::kWeights; }); },
       {"create settings 2"}},
      {"sources own a single bucket: by a split",
       [] {
         return Grown(2, [](Fixture& f) {
           f.spec.bucket_count = 2;
           f.Topology().set_bucket_count(2);
           f.Info(0).mutable_buckets()->set_active(1);
           f.Info(1).mutable_buckets()->set_active(1);
         });
       },
       {"split split-shard-0-shard-2-1"}},
      {"a split was reverted: another try has another ID",
       [] {
         return Grown(1, [](Fixture& f) {
           AddTask(&f.Info(0), "split-shard-0-shard-1-1", f.Uid(1), v1::SPLIT_ABORTED);
         });
       },
       {"split split-shard-0-shard-1-2"}},
      {"a split is on its way: wait",
       [] {
         return Grown(1, [](Fixture& f) {
           AddTask(&f.Info(0), "split-shard-0-shard-1-1", f.Uid(1), v1::SPLIT_COPYING);
         });
       },
       {}},
      {"a split is committed: its target gets its weight",
       [] {
         return Grown(1, [](Fixture& f) {
           AddTask(&f.Info(0), "split-shard-0-shard-1-1", f.Uid(1), v1::SPLIT_COMMITTED);
         });
       },
       {"create settings 2"}},
      {"it has its weight: Normal",
       [] { return Grown(1, [](Fixture& f) { f.Settings().mutable_shards(1)->set_weight(100); }); },
       {"create topology 3"}},
      {"strategy changed to Weights in the middle: the split is aborted",
       [] {
         return Grown(1, [](Fixture& f) {
           f.spec.strategy = ReshardingStrategy::kWeights;
           AddTask(&f.Info(0), "split-shard-0-shard-1-1", f.Uid(1), v1::SPLIT_COPYING);
         });
       },
       {"create settings 2", "abort split split-shard-0-shard-1-1"}},
      // ---- changed mind while going up ----
      {"taken back before it was formed: the topology drops it",
       [] {
         return Grown(2, [](Fixture& f) {
           f.spec.shard_num = 2;
           f.AddBlank(2);
           f.seen.forms.get()->erase(f.Uid(2));
         });
       },
       {"create topology 3"}},
      {"taken back while it is split off: the split is aborted",
       [] {
         return Grown(1, [](Fixture& f) {
           f.spec.shard_num = 1;
           AddTask(&f.Info(0), "split-shard-0-shard-1-1", f.Uid(1), v1::SPLIT_COPYING);
         });
       },
       {"abort split split-shard-0-shard-1-1"}},
      {"taken back once formed: it retires",
       [] { return Grown(2, [](Fixture& f) { f.spec.shard_num = 2; }); },
       {"retire shard {2}"}},
      // ---- scale down ----
      {"down: weight 0 first",
       [] { return AtRest(3, [](Fixture& f) { f.spec.shard_num = 2; }); },
       {"create settings 2"}},
      {"down: wait for the drain", [] { return Draining([](Fixture&) {}); }, {}},
      {"down: empty, it retires",
       [] { return Draining([](Fixture& f) { f.Drain(2, 1); }); },
       {"retire shard {2}"}},
      {"down: rows of any kind keep it from retiring",
       [] {
         return Draining([](Fixture& f) {
           f.Drain(2, 1);
           f.Info(2).mutable_buckets()->set_sent(1);
         });
       },
       {}},
      {"down: it retired, the topology drops it",
       [] {
         return Draining([](Fixture& f) {
           f.Drain(2, 1);
           f.Info(2).set_retired(true);
         });
       },
       {"create topology 3"}},
      {"down: it retired and its leader is silent: nothing",
       [] {
         return Draining([](Fixture& f) {
           f.Drain(2, 1);
           f.Info(2).set_retired(true);
           f.Info(2).set_lease(false);
         });
       },
       {}},
      {"down: everybody forgot it: deleted",
       [] { return Removed([](Fixture&) {}); },
       {"delete shard-2 ({2})"}},
      {"down: a shard still knows it: not yet",
       [] { return Removed([](Fixture& f) { f.Info(1).set_topology_version(2); }); },
       {"apply topology 3"}},
      {"down: a shard that may have a quorum is silent: not yet",
       [] { return Removed([](Fixture& f) { f.Silence(1); }); },
       {}},
      {"down: a router still knows it: not yet",
       [] {
         return Removed([](Fixture& f) {
           f.RouterInfo(1).set_topology_version(2);
           StartSurge(&f, 3, true);
         });
       },
       {"restart router orders-router-1 with topology 3"}},
      {"down: its leader cannot prove that it is empty: not yet",
       [] { return Removed([](Fixture& f) { f.Silence(2); }); },
       {}},
      {"down: it holds a row: never",
       [] { return Removed([](Fixture& f) { f.Info(2).mutable_buckets()->set_active(1); }); },
       {}},
      {"down: the proof is on record, it has stopped already",
       [] {
         return Removed([](Fixture& f) {
           f.Kill(2);
           f.seen.doomed.get()->insert(f.Uid(2));
         });
       },
       {"delete shard-2 ({2})"}},
      {"down: the one marked Draining goes first",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           f.spec.shards["shard-0"].policy = ShardPolicy::kDraining;
           f.Settings().mutable_shards(0)->set_weight(0);
           f.Settings().set_rebalancer(f.Uid(1).value());
           f.Drain(0, 1);
         });
       },
       {"retire shard {0}"}},
      {"down is forbidden",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           f.spec.scale_down = ScaleDownPolicy::kForbid;
         });
       },
       {}},
      {"down: no room",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           for (std::uint32_t i = 0; i < 3; ++i) f.Info(i).set_free_bytes(70 << 20);
         });
       },
       {}},
      {"down: just room enough",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           for (std::uint32_t i = 0; i < 3; ++i) f.Info(i).set_free_bytes(80 << 20);
         });
       },
       {"create settings 2"}},
      {"down: whether there is room is unknown",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           f.Silence(1);
         });
       },
       {}},
      {"down: the victim is Locked",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shard_num = 2;
           f.spec.shards["shard-2"].policy = ShardPolicy::kLocked;
           f.Settings().mutable_shards(2)->set_locked(true);
         });
       },
       {}},
      {"up again while it drains: its weight comes back",
       [] { return Draining([](Fixture& f) { f.spec.shard_num = 3; }); },
       {"create settings 2"}},
      {"up again when it has retired: another one takes its place",
       [] {
         return Draining([](Fixture& f) {
           f.spec.shard_num = 3;
           f.Drain(2, 1);
           f.Info(2).set_retired(true);
         });
       },
       {"start storage orders-shard-3-0", "create topology 3"}},
      {"up again when it is gone: its number is not used again",
       [] {
         return Removed([](Fixture& f) {
           f.spec.shard_num = 3;
           f.seen.storages.get()->erase(f.Replica(2));
         });
       },
       {"start storage orders-shard-3-0"}},
      // ---- members ----
      {"more replicas: processes",
       [] { return AtRest(1, [](Fixture& f) { f.spec.replicas_per_shard = 3; }); },
       {"start storage orders-shard-0-1", "start storage orders-shard-0-2"}},
      {"more replicas: the topology names them",
       [] {
         return AtRest(1, [](Fixture& f) {
           f.spec.replicas_per_shard = 3;
           f.AddBlank(0, 1);
           f.AddBlank(0, 2);
         });
       },
       {"create topology 3"}},
      {"a disk that is not named in the log joins as a learner",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.AddBlank(0, 2);
           f.Info(0).mutable_members()->RemoveLast();
         });
       },
       {"add learner 00000000000003ea of orders-shard-0-2 in shard {0}"}},
      {"a learner that lags waits",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.Info(0).mutable_members(2)->set_learner(true);
           f.Info(0).mutable_progress(2)->set_match_index(10);
         });
       },
       {}},
      {"a learner that caught up is promoted",
       [] {
         return AtRest3(1, [](Fixture& f) { f.Info(0).mutable_members(2)->set_learner(true); });
       },
       {"promote 00000000000003ea of orders-shard-0-2 in shard {0}"}},
      {"fewer replicas: one leaves the log at a time",
       [] { return AtRest3(1, [](Fixture& f) { f.spec.replicas_per_shard = 1; }); },
       {"remove member 00000000000003ea of orders-shard-0-2 in shard {0}"}},
      {"fewer replicas: not while another one does not answer",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.spec.replicas_per_shard = 1;
           f.Info(0).mutable_progress(1)->set_recent(false);
         });
       },
       {}},
      {"fewer replicas: the leader hands over first",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.spec.replicas_per_shard = 1;
           f.Info(0).mutable_members()->RemoveLast();
           v1::InfoResponse leader = f.Info(0);
           leader.set_member(1001);
           leader.set_replica(f.Replica(0, 1));
           f.Info(0).set_leader(false);
           f.Info(0, 1) = leader;
           f.Topology().mutable_shards(0)->mutable_replicas()->RemoveLast();
           f.seen.storages.get()->erase(f.Replica(0, 2));
         });
       },
       {"hand shard {0} over to orders-shard-0-0"}},
      {"fewer replicas: out of the log, then out of the topology",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.spec.replicas_per_shard = 1;
           f.Info(0).mutable_members()->DeleteSubrange(1, 2);
         });
       },
       {"create topology 3"}},
      {"fewer replicas: then the processes stop",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.spec.replicas_per_shard = 1;
           f.Info(0).mutable_members()->DeleteSubrange(1, 2);
           f.Topology().mutable_shards(0)->mutable_replicas()->DeleteSubrange(1, 2);
         });
       },
       {"stop storage orders-shard-0-1", "stop storage orders-shard-0-2"}},
      {"a lost disk leaves the log",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.Kill(0, 2);
           f.Storage(0, 2).process.disk_lost = true;
           f.Info(0).mutable_progress(2)->set_recent(false);
         });
       },
       {"remove member 00000000000003ea of orders-shard-0-2 in shard {0}"}},
      {"a lost disk that the log no longer names is replaced",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.Kill(0, 2);
           f.Storage(0, 2).process.disk_lost = true;
           f.Info(0).mutable_members()->RemoveLast();
         });
       },
       {"replace disk of orders-shard-0-2"}},
      {"a replica that answers with another disk: the old one leaves",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.AddBlank(0, 2);
           f.Info(0, 2).set_member(77);
         });
       },
       {"remove member 00000000000003ea of orders-shard-0-2 in shard {0}"}},
      {"without a quorum that would survive it: nothing",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.Kill(0, 2);
           f.Storage(0, 2).process.disk_lost = true;
           f.Info(0).mutable_progress(1)->set_recent(false);
           f.Info(0).mutable_progress(2)->set_recent(false);
         });
       },
       {}},
      {"the only disk is lost: nothing",
       [] {
         return AtRest(1, [](Fixture& f) {
           f.Kill(0);
           f.Storage(0).process.disk_lost = true;
         });
       },
       {}},
      {"leaders go to the zone that was asked for",
       [] {
         return AtRest3(1, [](Fixture& f) {
           f.spec.leader_zone = "b";
           f.spec.zones[f.Replica(0, 1)] = "b";
           f.Topology().mutable_shards(0)->mutable_replicas(1)->set_zone("b");
           f.Settings().set_leader_zone("b");
         });
       },
       {"hand shard {0} over to orders-shard-0-1"}},
  });
}

}  // namespace
}  // namespace etalon::controller::testing
