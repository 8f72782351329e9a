// One row for each situation: what is asked for, what is seen, what is done.
#include "operator/plan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "operator/plan/names.h"
#include "operator/plan/testing/fixture.h"

namespace etalon::controller {
namespace {

using ::testing::ElementsAre;
using testing::Fixture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Hex(const Fixture& f, std::uint32_t shard) { return ToHex(f.Uid(shard).value()); }

struct Row {
  const char* name;
  std::function<Fixture()> situation;
  // "{n}" stands for the UID of shard n.
  std::vector<std::string> actions;
};

std::string Expand(const Fixture& f, std::string text) {
  for (std::uint32_t shard = 0; shard < 8; ++shard) {
    const std::string mark = "{" + std::to_string(shard) + "}";
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark))
      text.replace(at, mark.size(), Hex(f, shard));
  }
  return text;
}

Fixture AtRest(std::uint32_t shards, const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::AtRest(shards);
  change(f);
  return f;
}

Fixture AtRest3(std::uint32_t shards, const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::AtRest(shards, 3);
  change(f);
  return f;
}

Fixture Blank(std::uint32_t shards, const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::Blank(shards);
  change(f);
  return f;
}

// Two shards became three: the third is declared, formed and known to everybody.
Fixture Grown(std::uint32_t shards, const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::AtRest(shards);
  f.spec.shard_num = shards + 1;
  f.AddCreating(shards);
  change(f);
  return f;
}

// The last of three shards has weight 0 and is to go.
Fixture Draining(const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::AtRest(3);
  f.spec.shard_num = 2;
  f.Settings().mutable_shards(2)->set_weight(0);
  change(f);
  return f;
}

// It went from the topology, and everybody knows.
Fixture Removed(const std::function<void(Fixture&)>& change) {
  Fixture f = Fixture::AtRest(3);
  f.spec.shard_num = 2;
  f.Drain(2, 1);
  f.Info(2).set_retired(true);
  f.Settings().mutable_shards()->RemoveLast();
  v1::Topology& next = f.NextTopology();
  next.mutable_shards()->RemoveLast();
  next.add_removed_shards(f.Uid(2).value());
  for (std::uint32_t i = 0; i < 2; ++i) {
    f.Info(i).set_topology_version(3);
    f.RouterInfo(i).set_topology_version(3);
  }
  change(f);
  return f;
}

void AddTask(v1::InfoResponse* info, const std::string& task, ShardUid target,
             v1::SplitState state) {
  v1::SplitTask* out = info->add_splits();
  out->set_task(task);
  out->set_target(target.value());
  out->set_state(state);
}

void StartSurge(Fixture* f, std::uint64_t version, bool ready) {
  RouterSeen surge = f->Router(0);
  surge.info.get()->set_topology_version(version);
  surge.info.get()->set_ready(ready);
  f->seen.routers.get()->emplace(SurgeRouterName("orders"), surge);
}

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      // ---- bootstrap ----
      {"nothing there: processes first",
       [] { return Fixture::Blank(2); },
       {"start storage orders-shard-0-0", "start storage orders-shard-1-0"}},
      {"one replica has not answered: no topology",
       [] {
         return Blank(2, [](Fixture& f) {
           f.AddBlank(0);
           f.AddBlank(1);
           f.Silence(1);
         });
       },
       {}},
      {"all are blank: the first topology",
       [] {
         return Blank(2, [](Fixture& f) {
           f.AddBlank(0);
           f.AddBlank(1);
         });
       },
       {"create topology 1"}},
      {"somebody already names a topology: the first one comes after it",
       [] {
         return Blank(1, [](Fixture& f) {
           f.AddBlank(0);
           f.Info(0) = testing::InfoOf(f, 0, 0);
           f.Info(0).set_topology_version(7);
         });
       },
       {"create topology 8"}},
      {"a disk of another collection: nothing",
       [] {
         return Blank(2, [](Fixture& f) {
           f.AddBlank(0);
           f.AddBlank(1);
           f.Info(1).set_collection(99);
         });
       },
       {}},
      {"it is to be adopted",
       [] {
         return Blank(1, [](Fixture& f) {
           f.AddBlank(0);
           f.Info(0).set_collection(99);
           f.spec.adopt = CollectionId(99);
         });
       },
       {"adopt collection 0000000000000063"}},
      {"every weight is 0: no topology",
       [] {
         return Blank(1, [](Fixture& f) {
           f.AddBlank(0);
           f.spec.shards["shard-0"].weight = 0;
         });
       },
       {}},
      {"fewer shards after all: the blank one stops",
       [] {
         return Blank(1, [](Fixture& f) {
           f.AddBlank(0);
           f.AddBlank(1);
         });
       },
       {"stop storage orders-shard-1-0", "create topology 1"}},
      // ---- at rest ----
      {"at rest: nothing", [] { return Fixture::AtRest(3); }, {}},
      {"at rest with three replicas: nothing", [] { return Fixture::AtRest(3, 3); }, {}},
      {"paused: nothing, whatever is missing",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Kill(1);
           f.spec.paused = true;
         });
       },
       {}},
      {"the list of topologies cannot be read: nothing",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Kill(1);
           f.seen.topologies = Seen<Topologies>::Unknown("disk error");
         });
       },
       {}},
      {"the manifest does not fit to the collection: nothing",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.bucket_count = 64;
           f.spec.shard_num = 4;
         });
       },
       {}},
      // ---- processes ----
      {"a dead storage is started",
       [] { return AtRest(3, [](Fixture& f) { f.Kill(1); }); },
       {"start storage orders-shard-1-0"}},
      {"a dead storage waits for its time",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Kill(1);
           f.Storage(1).process.restart_at = f.now + std::chrono::seconds(1);
         });
       },
       {}},
      {"a storage whose state is unknown is left alone",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Silence(1);
           f.Storage(1).process.state = ProcessState::kUnknown;
         });
       },
       {}},
      {"a dead router is started with the newest topology",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Router(1).process.state = ProcessState::kDown;
           f.Router(1).process.restart_at = f.now;
           f.Router(1).info = Seen<v1::RouterInfoResponse>::Unknown("down");
         });
       },
       {"start router orders-router-1"}},
      {"a router that has been silent for long is restarted",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Router(0).info = Seen<v1::RouterInfoResponse>::Unknown("no answer");
           f.Router(0).silent_since = f.now - std::chrono::seconds(16);
         });
       },
       {"restart router orders-router-0 with topology 2"}},
      {"fewer routers",
       [] { return AtRest(3, [](Fixture& f) { f.spec.routers = 1; }); },
       {"stop router orders-router-1"}},
      // ---- topology and settings ----
      {"another address: a new topology",
       [] { return AtRest(3, [](Fixture& f) { f.Storage(0).process.address = "127.0.0.1:9"; }); },
       {"create topology 3"}},
      {"another space",
       [] { return AtRest(3, [](Fixture& f) { f.spec.spaces.push_back("accounts"); }); },
       {"create topology 3"}},
      {"another weight: settings alone",
       [] { return AtRest(3, [](Fixture& f) { f.spec.shards["shard-1"].weight = 50; }); },
       {"create settings 2"}},
      {"new settings go to every shard that is led",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.spec.shards["shard-1"].weight = 50;
           f.NextSettings().mutable_shards(1)->set_weight(50);
           f.Silence(2);
         });
       },
       {"apply settings 2 to shard {0}", "apply settings 2 to shard {1}"}},
      {"a shard names newer settings than are stored: newer ones still",
       [] { return AtRest(3, [](Fixture& f) { f.Info(1).set_settings_version(6); }); },
       {"create settings 7"}},
      {"rolling: first an extra router",
       [] { return AtRest(2, [](Fixture& f) { f.NextTopology(); }); },
       {"start router orders-router-surge"}},
      {"rolling: the extra one is not ready",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           StartSurge(&f, 3, false);
         });
       },
       {}},
      {"rolling: then the first",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           StartSurge(&f, 3, true);
         });
       },
       {"restart router orders-router-0 with topology 3"}},
      {"rolling: the next waits for the first to be ready",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           StartSurge(&f, 3, true);
           f.RouterInfo(0).set_topology_version(3);
           f.RouterInfo(0).set_ready(false);
         });
       },
       {}},
      {"rolling: then the next",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           StartSurge(&f, 3, true);
           f.RouterInfo(0).set_topology_version(3);
         });
       },
       {"restart router orders-router-1 with topology 3"}},
      {"rolled: the extra one stops, the storages learn it",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           StartSurge(&f, 3, true);
           f.RouterInfo(0).set_topology_version(3);
           f.RouterInfo(1).set_topology_version(3);
         });
       },
       {"stop router orders-router-surge", "apply topology 3"}},
      {"live: routers are pushed",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           f.spec.config_update = ConfigUpdate::kLive;
           f.RouterInfo(0).set_topology_version(3);
         });
       },
       {"push topology 3 to router orders-router-1"}},
      {"a silent router keeps storages from a new topology",
       [] {
         return AtRest(2, [](Fixture& f) {
           f.NextTopology();
           f.RouterInfo(0).set_topology_version(3);
           f.Router(1).info = Seen<v1::RouterInfoResponse>::Unknown("no answer");
           f.Router(1).silent_since = f.now;
         });
       },
       {}},
      {"the rebalancer's shard lost its quorum long ago: another is named",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Silence(0);
           f.seen.led[f.Uid(0)] = f.now - std::chrono::seconds(11);
         });
       },
       {"create settings 2"}},
      {"an election is not a loss",
       [] {
         return AtRest(3, [](Fixture& f) {
           f.Silence(0);
           f.seen.led[f.Uid(0)] = f.now - std::chrono::seconds(2);
         });
       },
       {}},
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
  };
  return rows;
}

TEST(Plan, Table) {
  for (const Row& row : Rows()) {
    const Fixture f = row.situation();
    std::vector<std::string> expected;
    for (const std::string& action : row.actions) expected.push_back(Expand(f, action));
    EXPECT_EQ(f.Keys(), expected) << "in the row: " << row.name;
  }
}

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
  f.Storage(1).info = testing::InfoOf(f, 1, 0);
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
  f.Storage(1, 0).info = testing::InfoOf(f, 1, 0);
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

TEST(Plan, AFailureThatRepeatsStalls) {
  Fixture f = Fixture::AtRest(1);
  f.seen.failures["split x"] = {"all buckets are pinned", f.now, 5};
  EXPECT_THAT(f.Plan().report.Find("Stalled")->message,
              HasSubstr("split x failed 5 times: all buckets are pinned"));
}

}  // namespace
}  // namespace etalon::controller
