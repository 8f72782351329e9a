// Money goes from account to account while the buckets of the customers move and everything fails.

#include <sstream>

#include "sim/scenarios/chaos.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/accounts.h"

namespace etalon::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

Outcome RunMoney(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.bucket_count = 6;
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Accounts accounts(cluster, {});
  Chaos chaos(cluster, seconds(1));
  CheckedRun run(cluster);
  run.Add(accounts);
  accounts.Start();
  if (!run.For(milliseconds(200))) return Failed(run.failure());
  chaos.Start();
  const SteadyTime end = world.now() + seconds(6);
  while (world.now() < end) {
    if (const auto move = PickMove(cluster)) Order(cluster, *move);
    if (!run.For(milliseconds(20 + world.random().Below(200)))) return Failed(run.failure());
  }
  chaos.Stop();
  (void)run.Conclude();
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = accounts.acknowledged();
  std::ostringstream summary;
  summary << accounts.acknowledged() << " transfers, " << accounts.unknown() << " unknown, "
          << accounts.scans() << " scans, " << accounts.restarted() << " started again, "
          << chaos.kills() << " kills";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
