// One row for each situation: bootstrap, processes, routers, versions of topology and settings.
#include <gtest/gtest.h>

#include "operator/plan/testing/situations.h"

namespace etalon::controller::testing {
namespace {

TEST(PlanProcesses, Table) {
  CheckRows({

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
           f.Info(0) = InfoOf(f, 0, 0);
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
  });
}

}  // namespace
}  // namespace etalon::controller::testing
