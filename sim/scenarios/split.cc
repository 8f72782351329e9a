// A shard is split into a new one while everything fails; in each state of the task, and right
// after its modulus doubled, the leader of the source or of the target dies. The task is asked for
// again and again, as an operator would: it is Done, or Aborted and tried under a new ID; its
// switch index never moves.

#include <optional>
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

constexpr int kNewShard = 2;

enum class Moment { kDoubled, kPreparing, kCopying, kFencing, kCommitted };
constexpr const char* kMomentNames[] = {"the modulus doubled", "it was Preparing", "it was Copying",
                                        "it was Fencing", "it was Committed"};

struct Situation {
  Moment moment;
  bool source_dies;
};
Situation At(int number) { return {static_cast<Moment>(number / 2), (number & 1) != 0}; }

bool IsNow(Cluster& cluster, int source, Moment moment, const std::string& task) {
  const auto* state = cluster.LeaderState(source);
  if (state == nullptr) return false;
  const auto it = state->splits().find(task);
  if (it == state->splits().end()) return false;
  switch (moment) {
    case Moment::kDoubled:
      return state->level() > 0 && it->second.state == bucket::SplitState::kPreparing;
    case Moment::kPreparing:
      return it->second.state == bucket::SplitState::kPreparing;
    case Moment::kCopying:
      return it->second.state == bucket::SplitState::kCopying;
    case Moment::kFencing:
      return it->second.state == bucket::SplitState::kFencing;
    case Moment::kCommitted:
      return it->second.state == bucket::SplitState::kCommitted;
  }
  return false;
}

// Asks for the task as an operator does. nullopt: nobody decides now.
std::optional<v1::SplitTask> Ask(Cluster& cluster, int source, const std::string& task,
                                 std::string* refused) {
  v1::AdminRequest request;
  request.mutable_split()->set_task(task);
  request.mutable_split()->set_target(Cluster::Uid(kNewShard).value());
  const auto answer = cluster.AskShard(source, request, seconds(30));
  if (!answer) return std::nullopt;
  const Status status = FromProto(answer->status());
  if (status.reason() == Reason::kSplitAborted) {
    v1::SplitTask aborted;
    aborted.set_state(v1::SPLIT_ABORTED);
    return aborted;
  }
  if (!status.ok()) *refused = "a split is refused: " + status.ToString();
  return answer->split();
}

}  // namespace

const int kSplitSituations = 10;

std::string SplitSituation(int number) {
  const Situation s = At(number);
  return std::string(s.source_dies ? "source" : "target") + "'s leader dies when " +
         kMomentNames[static_cast<int>(s.moment)];
}

Outcome RunSplit(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  const int number = static_cast<int>(seed % static_cast<std::uint64_t>(kSplitSituations));
  const Situation situation = At(number);
  ClusterOptions options;
  options.shards_with_buckets = 2;
  // With one bucket a shard the modulus has to double.
  options.bucket_count =
      situation.moment == Moment::kDoubled || world.random().Chance(1, 3) ? 2 : 9;
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 16, .value_bytes = 200});
  Chaos chaos(cluster, seconds(1));
  CheckedRun run(cluster);
  run.Add(chains);
  chains.Start();
  chaos.Start();
  if (!run.For(milliseconds(world.random().Below(1000)))) return Failed(run.failure());
  const int source = static_cast<int>(world.random().Below(2));
  int attempt = 1;
  v1::SplitTask task;
  std::string refused;
  const SteadyTime end = world.now() + seconds(120);
  while (task.state() != v1::SPLIT_COMMITTED && world.now() < end) {
    if (task.state() == v1::SPLIT_ABORTED) ++attempt;
    if (world.now() > end - seconds(60)) chaos.Stop();  // fairness: failures end
    const std::string name = "split-" + std::to_string(attempt);
    if (const auto now = Ask(cluster, source, name, &refused)) task = *now;
    if (!refused.empty()) return Failed(refused);
    bool there = false;
    const auto is_now = [&] { return IsNow(cluster, source, situation.moment, name); };
    if (!run.Until(is_now, milliseconds(500), &there)) return Failed(run.failure());
    const auto victim = cluster.LeaderOf(situation.source_dies ? source : kNewShard);
    if (!there || !victim || !out.reached.empty()) continue;
    chaos.Kill(*victim);
    out.reached.push_back(number);
  }
  chaos.Stop();
  if (task.state() != v1::SPLIT_COMMITTED) return Failed("the split never commits");
  // Asking again after restarts returns the same switch.
  for (const NodeName& name : cluster.StoragesOf(source)) chaos.Kill(name);
  const auto again = Ask(cluster, source, task.task(), &refused);
  if (!again || again->t_switch() != task.t_switch() || task.t_switch() == 0) {
    return Failed("the switch index moved from " + std::to_string(task.t_switch()) + " to " +
                  (again ? std::to_string(again->t_switch()) : "nothing"));
  }
  cluster.settings().add_closed_splits(task.task());
  if (!cluster.ApplySettings(seconds(60))) return Failed("settings cannot be applied");
  if (run.Conclude()) {
    const auto* state = cluster.LeaderState(kNewShard);
    const std::uint64_t expected = options.bucket_count == 2 ? 1 : 2;  // of 4 or 5
    if (state == nullptr || state->counts().active() != expected)
      run.Fail("the new shard does not hold half of its source");
  }
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged();
  std::ostringstream summary;
  summary << chains.acknowledged() << " writes, " << chains.unknown() << " unknown, "
          << chaos.kills() << " kills, " << attempt << " tries";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
