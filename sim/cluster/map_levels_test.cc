// Shards of different levels, asked for everything at once.
#include <gtest/gtest.h>

#include "proto/wire.h"
#include "sim/scenarios/run.h"
#include "sim/workloads/table.h"

namespace etalon::sim {
namespace {

using std::chrono::seconds;

// One shard doubled the modulus for its split, another one stands at the old level: a MapCall names
// buckets of the finer one.
TEST(MapCall, RunsOnPartsOfTheBucketsOfAShardAtALowerLevel) {
  SimWorld world(3);
  ClusterOptions options;
  options.bucket_count = 2;
  options.shards_with_buckets = 2;
  Cluster cluster(world, options);
  ASSERT_TRUE(cluster.Form(seconds(30)));
  CheckedRun run(cluster);
  Table table(cluster, {.keys = 64});
  run.Add(table);
  ASSERT_TRUE(table.Load(seconds(30)));
  v1::AdminRequest split;
  split.mutable_split()->set_task("t");
  split.mutable_split()->set_target(Cluster::Uid(2).value());
  ASSERT_TRUE(cluster.AdminUntilOk(0, split, seconds(30)));
  const auto committed = [&] {
    const auto* state = cluster.LeaderState(0);
    return state != nullptr && state->splits().at("t").state == bucket::SplitState::kCommitted;
  };
  ASSERT_TRUE(run.Until(committed, seconds(30), "not split")) << run.failure();
  ASSERT_EQ(cluster.LeaderState(0)->level(), 1);
  ASSERT_EQ(cluster.LeaderState(1)->level(), 0);
  ASSERT_TRUE(table.CompareByScan(seconds(30)));
  ASSERT_TRUE(run.For(Duration::zero())) << run.failure();
  EXPECT_EQ(cluster.LeaderState(1)->level(), 0) << "a read changes nothing";
  EXPECT_TRUE(run.Conclude()) << run.failure();
}

}  // namespace
}  // namespace etalon::sim
