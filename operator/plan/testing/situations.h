// The situations that the planner's table of tests is about.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/plan/testing/fixture.h"

namespace etalon::controller::testing {

using Change = std::function<void(Fixture&)>;

Fixture AtRest(std::uint32_t shards, const Change& change);
Fixture AtRest3(std::uint32_t shards, const Change& change);  // three replicas a shard
Fixture Blank(std::uint32_t shards, const Change& change);
// One shard more than there were: it is declared, formed and known to everybody, and owns nothing.
Fixture Grown(std::uint32_t shards, const Change& change);
// The last of three shards has weight 0 and is to go.
Fixture Draining(const Change& change);
// It went from the topology, and everybody knows.
Fixture Removed(const Change& change);

void AddTask(v1::InfoResponse* info, const std::string& task, ShardUid target,
             v1::SplitState state);
// An extra router, while the others are being rolled.
void StartSurge(Fixture* f, std::uint64_t version, bool ready);

// One row of the table: what is asked for and seen, and what is done.
struct Row {
  const char* name;
  std::function<Fixture()> situation;
  std::vector<std::string> actions;  // "{n}" stands for the UID of shard n
};
void CheckRows(const std::vector<Row>& rows);

}  // namespace etalon::controller::testing
