// Map calls while shards are split, each time by doubling the modulus: a router's table is at one
// moment above the level of a shard and at the next one below it. Half of the seeds are calm, and
// then no call may fail; in the others everything does.

#include "sim/workloads/maps.h"

#include <sstream>
#include <string>

#include "proto/wire.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kTarget = 2;

// Splits `source` into the third shard, asking again and again as an operator does.
bool Split(Cluster& cluster, CheckedRun& run, Chaos& chaos, int source, int number) {
  SimWorld& world = cluster.world();
  const SteadyTime end = world.now() + seconds(120);
  for (int attempt = 1; world.now() < end;) {
    const std::string task = "split-" + std::to_string(number) + "-" + std::to_string(attempt);
    v1::AdminRequest request;
    request.mutable_split()->set_task(task);
    request.mutable_split()->set_target(Cluster::Uid(kTarget).value());
    if (world.now() > end - seconds(60)) chaos.Stop();  // fairness: failures end
    if (const auto answer = cluster.AskShard(source, request, seconds(30))) {
      const Reason refused = FromProto(answer->status()).reason();
      const auto state = answer->split().state();
      if (refused == Reason::kSplitAborted || state == v1::SPLIT_ABORTED) ++attempt;
      if (state == v1::SPLIT_COMMITTED || state == v1::SPLIT_DONE) {
        cluster.settings().add_closed_splits(task);
        return cluster.ApplySettings(seconds(60)) || run.Fail("settings cannot be applied");
      }
    }
    if (!run.For(milliseconds(20 + world.random().Below(200)))) return false;
  }
  return run.Fail("a split never commits");
}

}  // namespace

Outcome RunMaps(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  const bool calm = world.random().Chance(1, 2);
  ClusterOptions options;
  options.shards_with_buckets = kTarget;
  options.bucket_count = 2;  // one bucket a shard
  options.fast_checkpoints = world.random().Chance(1, 2);
  if (!calm) options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  if (!calm) RoughNetwork(world);
  Chains chains(cluster, {.keys = 4});
  Maps maps(cluster, {.nothing_fails = calm});
  Chaos chaos(cluster, milliseconds(700));
  CheckedRun run(cluster);
  run.Add(chains);
  run.Add(maps);
  chains.Start();
  maps.Start();
  if (!calm) chaos.Start();
  // The third one brings the shard that was split first to level 2; the second one stays at 1.
  for (int number = 0; number < 3; ++number) {
    if (!run.For(milliseconds(50 + world.random().Below(calm ? 300 : 3000)))) break;
    if (!Split(cluster, run, chaos, number % 2, number)) break;
  }
  chaos.Stop();
  // What is still cut heals by itself; then calls that were under way end, and later ones succeed.
  const auto gets_on = [&, writes = maps.acknowledged(), reads = maps.reads()] {
    return maps.acknowledged() > writes + 1 && maps.reads() > reads + 1;
  };
  if (run.failure().empty() && run.Until(gets_on, seconds(60), "map calls do not get on"))
    (void)run.Conclude();
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged() + maps.acknowledged();
  std::ostringstream summary;
  summary << (calm ? "calm, " : "rough, ") << maps.acknowledged() << " map writes, " << maps.reads()
          << " map reads, " << maps.mixed() << " over two levels, " << chaos.kills() << " kills";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
