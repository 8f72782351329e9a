// The rebalancer's slots on real shards.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/checkers/invariants.h"
#include "sim/checkers/log_reader.h"
#include "sim/scenarios/run.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Steps of transfers in the logs of all shards.
std::map<std::string, int> StepsLogged(Cluster& cluster) {
  std::map<std::string, int> steps;
  for (int s : cluster.shards()) {
    const storage::Shard& shard = *cluster.storage(*cluster.LeaderOf(s))->shard();
    EXPECT_TRUE(ForEachControl(shard, shard.log().First(), [&](LogIndex, const v1::Control& c) {
      if (c.has_open()) ++steps["OPEN"];
      if (c.has_receiving()) ++steps["RECEIVING"];
      if (c.has_step()) ++steps[v1::TransferStep::Kind_Name(c.step().kind())];
    }));
  }
  return steps;
}

// Many slots to send with, one to receive with: the targets refuse most of the time, and each
// refusal must come before anything is copied.
TEST(Slots, ManyToSendAndFewToReceiveWasteNoCopy) {
  SimWorld world(7);
  ClusterOptions options;
  options.shards = 4;
  options.shards_with_buckets = 1;
  options.bucket_count = 40;
  options.rebalancer = v1::REBALANCER_AUTOMATIC;
  Cluster cluster(world, options);
  cluster.settings().set_max_sending(15);
  cluster.settings().set_max_receiving(1);
  ASSERT_TRUE(cluster.Form(seconds(30)));
  CheckedRun run(cluster);
  Chains chains(cluster, {.keys = 40, .readers = 0, .value_bytes = 500});
  run.Add(chains);
  chains.Start();
  const SteadyTime begin = world.now();
  std::string why;
  const auto balanced = [&] {
    for (int s : cluster.shards()) {
      const auto* state = cluster.LeaderState(s);
      if (state == nullptr || state->counts().active() != 10) return false;
    }
    return IsSettled(cluster, &why);
  };
  ASSERT_TRUE(run.Until(Every(world, milliseconds(20), balanced), seconds(60), "not balanced"))
      << run.failure() << ": " << why;
  // Had each refusal cost a pause of seconds, 30 moves would have taken minutes.
  EXPECT_LT(world.now() - begin, seconds(30));
  const auto steps = StepsLogged(cluster);
  EXPECT_EQ(steps, (std::map<std::string, int>{{"OPEN", 30},
                                               {"RECEIVING", 30},
                                               {"SENDING", 30},
                                               {"SENT", 30},
                                               {"ACTIVATE", 30},
                                               {"SOURCE_GARBAGE", 30},
                                               {"REMOVE", 30}}));
  EXPECT_TRUE(run.Conclude()) << run.failure();
}

}  // namespace
}  // namespace etalon::sim
