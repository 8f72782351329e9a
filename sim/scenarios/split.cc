// A shard is split into a new one while everything fails. The task is asked for again and again, as
// an operator would: it is Done, or Aborted and tried under a new ID; its switch index never moves.

#include <sstream>

#include "sim/scenarios/chaos.h"
#include "sim/scenarios/scenario.h"

namespace etalon::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

}  // namespace

Outcome RunSplit(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.shards_with_buckets = 2;
  options.bucket_count =
      world.random().Chance(1, 2) ? 2 : 9;  // one bucket a shard: the modulus has to double
  options.fast_checkpoints = world.random().Chance(1, 2);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) {
    out.failure = "the collection does not form";
    return out;
  }
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 16, .value_bytes = 200});
  chains.Start();
  Chaos chaos(cluster, seconds(3));
  chaos.Start();
  const int source = static_cast<int>(world.random().Below(2));
  int attempt = 1;
  std::uint64_t t_switch = 0;
  bool committed = false;
  const SteadyTime end = world.now() + seconds(120);
  while (!committed && world.now() < end) {
    v1::AdminRequest request;
    request.mutable_split()->set_task("split-" + std::to_string(attempt));
    request.mutable_split()->set_target(Cluster::Uid(2).value());
    v1::AdminResponse response;
    if (!cluster.AdminUntilOk(source, request, seconds(30), &response)) continue;
    const auto& task = response.split();
    if (task.state() == v1::SPLIT_ABORTED) ++attempt;
    committed = task.state() == v1::SPLIT_COMMITTED || task.state() == v1::SPLIT_DONE;
    if (committed) t_switch = task.t_switch();
    out.failure = RunChecked(
        cluster, [] { return false; }, milliseconds(100 + world.random().Below(400)), nullptr);
    if (!out.failure.empty()) return out;
    if (world.now() > end - seconds(60)) chaos.Stop();  // fairness: failures end
  }
  chaos.Stop();
  if (!committed) {
    out.failure = "the split never commits";
    return out;
  }
  // Asking again after restarts returns the same switch.
  for (const NodeName& name : cluster.StoragesOf(source)) chaos.Kill(name);
  v1::AdminRequest again;
  again.mutable_split()->set_task("split-" + std::to_string(attempt));
  again.mutable_split()->set_target(Cluster::Uid(2).value());
  v1::AdminResponse response;
  if (!cluster.AdminUntilOk(source, again, seconds(60), &response) ||
      response.split().t_switch() != t_switch || t_switch == 0) {
    out.failure = "the switch index moved from " + std::to_string(t_switch) + " to " +
                  std::to_string(response.split().t_switch());
    return out;
  }
  cluster.settings().add_closed_splits("split-" + std::to_string(attempt));
  if (!cluster.ApplySettings(seconds(60))) {
    out.failure = "settings cannot be applied";
    return out;
  }
  out.failure = Conclude(cluster, chains);
  if (out.failure.empty()) {
    const auto leader = cluster.LeaderOf(2);
    if (!leader || cluster.storage(*leader)->shard()->state().counts().active() == 0)
      out.failure = "the new shard holds nothing";
  }
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged();
  std::ostringstream summary;
  summary << chains.acknowledged() << " writes, " << chains.unknown() << " unknown, "
          << chaos.kills() << " kills, " << attempt << " tries";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
