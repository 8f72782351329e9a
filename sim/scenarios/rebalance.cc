// Weights change at random while everything fails: the rebalancer brings the collection to its
// etalon all the same.

#include <sstream>

#include "sim/checkers/invariants.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Every shard holds what the rebalancer says it should.
bool AtEtalon(Cluster& cluster, std::string* why) {
  for (int s : cluster.shards()) {
    const auto leader = cluster.LeaderOf(s);
    if (!leader) {
      *why = "shard " + std::to_string(s) + " has no leader";
      return false;
    }
    const storage::Shard& shard = *cluster.storage(*leader)->shard();
    const auto counts = shard.state().counts();
    const auto have = static_cast<double>(counts.active() + counts.pinned());
    if (!shard.etalon() || *shard.etalon() != have) {
      *why = "shard " + std::to_string(s) + " has " + std::to_string(have) +
             " buckets, its etalon is " +
             (shard.etalon() ? std::to_string(*shard.etalon()) : "unknown");
      return false;
    }
  }
  return true;
}

}  // namespace

Outcome RunRebalance(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.rebalancer = v1::REBALANCER_AUTOMATIC;
  options.bucket_count = 24;
  options.shards_with_buckets = 2;  // the third one is filled by the rebalancer
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 24, .value_bytes = 60});
  Chaos chaos(cluster, seconds(1));
  CheckedRun run(cluster);
  run.Add(chains);
  chains.Start();
  chaos.Start();
  for (int round = 0; round < 3; ++round) {
    if (!run.For(milliseconds(1000 + world.random().Below(3000)))) return Failed(run.failure());
    auto& shard = *cluster.settings().mutable_shards(static_cast<int>(world.random().Below(3)));
    shard.set_weight(static_cast<std::uint32_t>(world.random().Below(4) * 50));
    if (world.random().Chance(1, 4)) shard.set_locked(!shard.locked());
    (void)cluster.ApplySettings(seconds(60));
  }
  chaos.Stop();
  for (auto& shard : *cluster.settings().mutable_shards()) {
    shard.set_weight(100 + static_cast<std::uint32_t>(world.random().Below(2)) * 100);
    shard.set_locked(false);
  }
  world.net().HealAll();
  if (!cluster.ApplySettings(seconds(60))) return Failed("settings cannot be applied");
  std::string why;
  bool reached = false;
  const auto balanced = [&] { return AtEtalon(cluster, &why) && IsSettled(cluster, &why); };
  if (!run.Until(Every(world, milliseconds(50), balanced), seconds(120), &reached))
    return Failed(run.failure());
  if (!reached) return Failed("does not reach its etalon: " + why);
  (void)run.Conclude();
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged();
  std::ostringstream summary;
  summary << chains.acknowledged() << " writes, " << chains.unknown() << " unknown, "
          << chaos.kills() << " kills";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
