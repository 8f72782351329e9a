// A shard is emptied by its weight while everything fails (in some seeds the wish is taken back in
// the middle, and comes again), leaves the topology, retires and is deleted.

#include <sstream>

#include "proto/wire.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Retirement {
 public:
  Retirement(Cluster& cluster, CheckedRun& run, Chaos& chaos, int victim)
      : cluster_(cluster), run_(run), chaos_(chaos), victim_(victim) {}

  bool Play() {
    Random& random = cluster_.world().random();
    if (!ExpectRefused("while it has buckets")) return false;
    if (!Weigh(0)) return false;
    if (random.Chance(1, 3)) {
      if (!run_.For(milliseconds(random.Below(3000))) || !Weigh(100)) return false;
      if (!run_.For(milliseconds(random.Below(3000))) || !Weigh(0)) return false;
    }
    if (!Drain() || !LeaveTopology() || !Retire() || !ExpectClosed()) return false;
    cluster_.DeleteShard(victim_);
    return true;
  }

 private:
  v1::AdminRequest RetireRequest() const {
    v1::AdminRequest request;
    request.mutable_retire();
    return request;
  }

  bool ExpectRefused(const std::string& when) {
    const auto answer = cluster_.AskShard(victim_, RetireRequest(), seconds(60));
    if (!answer) return run_.Fail("the shard does not answer");
    if (FromProto(answer->status()).reason() == Reason::kNonEmpty) return true;
    return run_.Fail("a shard retires " + when + ": " + FromProto(answer->status()).ToString());
  }

  bool Weigh(std::uint32_t weight) {
    cluster_.settings().mutable_shards(victim_)->set_weight(weight);
    return cluster_.ApplySettings(seconds(60)) || run_.Fail("settings cannot be applied");
  }

  bool Drain() {
    const SteadyTime fair = cluster_.world().now() + seconds(20);
    const auto empty = [&] {
      if (cluster_.world().now() > fair) chaos_.Stop();
      const auto* state = cluster_.LeaderState(victim_);
      return state != nullptr && state->rows().empty() && state->incoming().empty();
    };
    return run_.Until(empty, seconds(120), "a shard without weight does not become empty");
  }

  bool LeaveTopology() {
    v1::Topology& topology = cluster_.mutable_topology();
    topology.mutable_shards()->DeleteSubrange(victim_, 1);
    topology.add_removed_shards(Cluster::Uid(victim_).value());
    cluster_.settings().mutable_shards()->DeleteSubrange(victim_, 1);
    if (!cluster_.ApplyTopology(seconds(60))) return run_.Fail("a topology cannot be applied");
    return cluster_.ApplySettings(seconds(60)) || run_.Fail("settings cannot be applied");
  }

  bool Retire() {
    for (int again = 0; again < 2; ++again) {
      if (!cluster_.AdminUntilOk(victim_, RetireRequest(), seconds(60)))
        return run_.Fail("an empty shard does not retire");
      if (const auto leader = cluster_.LeaderOf(victim_)) chaos_.Kill(*leader);
    }
    return true;
  }

  // After restarts too: nothing is taken any more.
  bool ExpectClosed() {
    for (int s : cluster_.shards()) {
      if (s == victim_) continue;
      if (const auto move = PickMove(cluster_, s, victim_)) Order(cluster_, *move);
    }
    if (!run_.For(seconds(2))) return false;
    v1::AdminRequest info;
    info.mutable_info();
    const auto answer = cluster_.AskShard(victim_, info, seconds(60));
    if (!answer || !answer->info().retired()) return run_.Fail("the shard is not retired any more");
    const auto* state = cluster_.LeaderState(victim_);
    if (state != nullptr && !state->rows().empty())
      return run_.Fail("a retired shard has taken a bucket");
    return true;
  }

  Cluster& cluster_;
  CheckedRun& run_;
  Chaos& chaos_;
  const int victim_;
};

}  // namespace

Outcome RunRetire(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.rebalancer = v1::REBALANCER_AUTOMATIC;
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 16, .value_bytes = 60});
  Chaos chaos(cluster, seconds(1));
  CheckedRun run(cluster);
  run.Add(chains);
  chains.Start();
  if (!run.For(milliseconds(300))) return Failed(run.failure());
  chaos.Start();
  // Shard 0 runs the rebalancer.
  const int victim = 1 + static_cast<int>(world.random().Below(2));
  if (Retirement(cluster, run, chaos, victim).Play()) {
    chaos.Stop();
    (void)run.Conclude();
  }
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
