// New shards that are born of one source each. A split is closed, and its target given its weight,
// when no other split is still on its way: until then the rebalancer counts sources and targets as
// locked, so nothing is moved twice.
#include <fmt/format.h>

#include <algorithm>

#include "operator/plan/planner.h"

namespace etalon::controller {
namespace {

// "split-<source>-<target>-<try>": the same plan finds the same ID again, and a try that was
// reverted is counted.
std::string TaskPrefix(const ShardView& source, const ShardView& target) {
  return fmt::format("split-{}-{}-", source.name, target.name);
}

std::string NextTask(const ShardView& source, const ShardView& target) {
  const std::string prefix = TaskPrefix(source, target);
  std::uint32_t tries = 1;
  for (const v1::SplitTask& task : source.leader->splits()) {
    if (ShardUid(task.target()) == target.uid && task.task().rfind(prefix, 0) == 0 &&
        task.state() == v1::SPLIT_ABORTED) {
      ++tries;
    }
  }
  return prefix + std::to_string(tries);
}

}  // namespace

bool Planner::KnowsTarget(const ShardView& source, ShardUid target) const {
  if (source.leader == nullptr) return false;
  const v1::Topology* topology = view_.TopologyAt(source.leader->topology_version());
  return topology != nullptr &&
         std::any_of(topology->shards().begin(), topology->shards().end(),
                     [&](const v1::ShardInfo& s) { return ShardUid(s.uid()) == target; });
}

void Planner::SurveySplits() {
  std::set<std::string> committed;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || shard.leader == nullptr) continue;
    for (const v1::SplitTask& task : shard.leader->splits()) {
      const ShardUid target(task.target());
      splits_.tried.insert(target);
      if (task.state() == v1::SPLIT_COMMITTED || task.state() == v1::SPLIT_DONE)
        splits_.committed.insert(target);
      if (!IsOpen(task)) continue;
      splits_.open.insert(shard.uid);
      splits_.open.insert(target);
      if (task.state() == v1::SPLIT_COMMITTED) {
        committed.insert(task.task());
      } else {
        splits_.under_way = true;
      }
    }
  }
  splits_.by_split = BySplit();
  if (splits_.by_split) {  // what can begin now belongs to the same wave
    bool target = false;
    bool source = false;
    for (const ShardView& shard : view_.shards()) {
      if (shard.declared == nullptr || shard.role != Role::kKeep || !MayTakeBuckets(shard))
        continue;
      if (splits_.open.contains(shard.uid)) continue;
      if (shard.creating() && shard.weight() == 0) {
        target = target || !splits_.committed.contains(shard.uid);
      } else {
        source = source || (shard.leader != nullptr && OwnedBy(*shard.leader) > 0);
      }
    }
    splits_.under_way = splits_.under_way || (target && source);
  }
  if (!splits_.under_way) splits_.to_close = std::move(committed);
}

bool Planner::BySplit() const {
  std::size_t unborn = 0;
  std::size_t sources = 0;
  std::uint64_t most = 0;
  bool tried = false;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || shard.role != Role::kKeep || !MayTakeBuckets(shard)) continue;
    if (shard.creating() && shard.weight() == 0) {
      ++unborn;
      tried = tried || splits_.tried.contains(shard.uid);
    } else {
      ++sources;
      if (shard.leader != nullptr) most = std::max(most, OwnedBy(*shard.leader));
    }
  }
  if (unborn == 0) return false;
  switch (spec_.strategy) {
    case ReshardingStrategy::kSplit:
      return true;
    case ReshardingStrategy::kWeights:
      return false;
    case ReshardingStrategy::kAutomatic:
      break;
  }
  // One source for each new shard; or there is nothing to give away but halves of buckets; or it
  // was begun like that.
  const std::uint64_t modulus = std::uint64_t{spec_.bucket_count} << view_.level();
  return unborn == sources || most == 1 || modulus < unborn + sources || tried;
}

void Planner::PlanSplits() {
  if (!complete()) return;
  // Splits that nobody wants any more. A committed one stays: its target is drained like any other
  // shard.
  for (const ShardView& shard : view_.shards()) {
    if (shard.leader == nullptr || shard.declared == nullptr) continue;
    for (const v1::SplitTask& task : shard.leader->splits()) {
      if (!IsOpen(task) || task.state() == v1::SPLIT_COMMITTED) continue;
      const ShardView* target = view_.Find(ShardUid(task.target()));
      resharding_ = true;
      if (shard.role == Role::kVictim || target == nullptr || target->role != Role::kKeep) {
        Do(AbortSplit{shard.uid, task.task(), "the number of shards was changed"});
      } else if (target->creating() && target->weight() == 0 && !splits_.by_split) {
        Do(AbortSplit{shard.uid, task.task(), "the resharding strategy was changed"});
      } else {
        WaitFor(
            "split " + task.task(),
            fmt::format("waits for {} to hand half of its buckets to {}", shard.name, target->name),
            v1::SplitState_Name(task.state()),
            "then the split is closed and the new shard gets its weight");
      }
    }
  }
  if (!splits_.by_split) return;
  std::vector<const ShardView*> targets;
  std::vector<const ShardView*> sources;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || shard.role != Role::kKeep || !MayTakeBuckets(shard)) continue;
    if (splits_.open.contains(shard.uid)) continue;
    if (shard.creating() && shard.weight() == 0) {
      if (!splits_.committed.contains(shard.uid)) targets.push_back(&shard);
    } else if (!shard.creating() || shard.weight() > 0) {
      sources.push_back(&shard);
    }
  }
  if (targets.empty()) return;
  resharding_ = true;
  for (const ShardView* shard : targets) {
    if (shard->leader == nullptr)
      return;  // waited for elsewhere; all at once, so that the pairs stay the same
  }
  for (const ShardView* shard : sources) {
    if (shard->leader == nullptr) return;
  }
  std::stable_sort(sources.begin(), sources.end(), [this](const ShardView* a, const ShardView* b) {
    return view_.AtHighestLevel(*a->leader, OwnedBy(*a->leader)) >
           view_.AtHighestLevel(*b->leader, OwnedBy(*b->leader));
  });
  if (sources.empty()) {
    return WaitFor("split source", "waits for a shard that can be split",
                   fmt::format("{} new shards", targets.size()),
                   "then its half goes to a new shard");
  }
  for (std::size_t i = 0; i < std::min(sources.size(), targets.size()); ++i) {
    const ShardView& source = *sources[i];
    const ShardView& target = *targets[i];
    if (OwnedBy(*source.leader) == 0) continue;
    const std::uint64_t version = view_.topology_version();
    if (source.leader->topology_version() != version ||
        target.leader->topology_version() != version) {
      WaitFor("split " + target.name,
              fmt::format("waits for {} and {} to learn topology {}", source.name, target.name,
                          version),
              "", "then the split begins");
      continue;
    }
    Do(Split{source.uid, target.uid, NextTask(source, target)});
  }
}

}  // namespace etalon::controller
