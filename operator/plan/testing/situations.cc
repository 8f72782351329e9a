#include "operator/plan/testing/situations.h"

#include <gtest/gtest.h>

#include "operator/plan/names.h"

namespace etalon::controller::testing {
namespace {

std::string Expand(const Fixture& f, std::string text) {
  for (std::uint32_t shard = 0; shard < 8; ++shard) {
    const std::string mark = "{" + std::to_string(shard) + "}";
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark)) {
      text.replace(at, mark.size(), ToHex(f.Uid(shard).value()));
    }
  }
  return text;
}

}  // namespace

void CheckRows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Fixture f = row.situation();
    std::vector<std::string> expected;
    for (const std::string& action : row.actions) expected.push_back(Expand(f, action));
    EXPECT_EQ(f.Keys(), expected) << "in the row: " << row.name;
  }
}

Fixture AtRest(std::uint32_t shards, const Change& change) {
  Fixture f = Fixture::AtRest(shards);
  change(f);
  return f;
}

Fixture AtRest3(std::uint32_t shards, const Change& change) {
  Fixture f = Fixture::AtRest(shards, 3);
  change(f);
  return f;
}

Fixture Blank(std::uint32_t shards, const Change& change) {
  Fixture f = Fixture::Blank(shards);
  change(f);
  return f;
}

Fixture Grown(std::uint32_t shards, const Change& change) {
  Fixture f = Fixture::AtRest(shards);
  f.spec.shard_num = shards + 1;
  f.AddCreating(shards);
  change(f);
  return f;
}

Fixture Draining(const Change& change) {
  Fixture f = Fixture::AtRest(3);
  f.spec.shard_num = 2;
  f.Settings().mutable_shards(2)->set_weight(0);
  change(f);
  return f;
}

Fixture Removed(const Change& change) {
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

}  // namespace etalon::controller::testing
