// Which shards go when there are more than were asked for, and why they may not.
#include <fmt/format.h>

#include <algorithm>

#include "operator/plan/names.h"
#include "operator/plan/planner.h"

namespace etalon::controller {

void Planner::ChooseVictims() {
  std::vector<ShardView*> keep;
  for (ShardView& shard : view_.shards()) {
    if (shard.role == Role::kKeep) keep.push_back(&shard);
  }
  if (keep.size() <= spec_.shard_num || !complete()) return;
  // Those marked Draining first, then the youngest.
  std::stable_sort(keep.begin(), keep.end(), [&](const ShardView* a, const ShardView* b) {
    const bool drains_a = spec_.Override(a->name).policy == ShardPolicy::kDraining;
    const bool drains_b = spec_.Override(b->name).policy == ShardPolicy::kDraining;
    if (drains_a != drains_b) return drains_a;
    return ShardNumber(a->name).value_or(0) > ShardNumber(b->name).value_or(0);
  });
  keep.resize(keep.size() - spec_.shard_num);
  down_blocked_ = WhyNotDown(keep);
  if (!down_blocked_.empty()) return;
  for (ShardView* shard : keep) shard->role = Role::kVictim;
}

std::string Planner::WhyNotDown(const std::vector<ShardView*>& victims) {
  if (spec_.scale_down == ScaleDownPolicy::kForbid) {
    return fmt::format(
        "spec.scaleDown.policy is Forbid: {} would have to go; set it to Drain, or shardNum back",
        victims.front()->name);
  }
  const auto goes = [&](const ShardView& shard) {
    return std::any_of(victims.begin(), victims.end(),
                       [&](const ShardView* v) { return v->uid == shard.uid; });
  };
  for (const ShardView* shard : victims) {
    if (spec_.Override(shard->name).policy == ShardPolicy::kLocked) {
      return fmt::format("{} would have to go and is Locked, so it sends nothing: unlock it",
                         shard->name);
    }
  }
  bool takers = false;
  for (const ShardView& shard : view_.shards()) {
    const ShardOverride wish = spec_.Override(shard.name);
    takers = takers || (shard.role == Role::kKeep && !goes(shard) &&
                        wish.policy == ShardPolicy::kBalanced && wish.weight > 0);
  }
  if (!takers)
    return "no shard that stays may take buckets: unlock one, or give one a weight above 0";
  return WhyNoRoom(victims);
}

std::string Planner::WhyNoRoom(const std::vector<ShardView*>& victims) {
  // Asked before the drain begins; once weights are 0 the answer would change with every bucket
  // that moves.
  const bool begun = std::all_of(victims.begin(), victims.end(),
                                 [](const ShardView* v) { return v->weight() == 0; });
  if (begun) return "";
  std::uint64_t bytes = 0;
  std::uint64_t smallest = ~std::uint64_t{0};
  std::uint64_t remaining = 0;
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kKeep) continue;
    if (shard.leader == nullptr) {
      return fmt::format(
          "whether the other shards have room cannot be told: no leader of {} answers", shard.name);
    }
    bytes += shard.leader->store_bytes();
    if (std::any_of(victims.begin(), victims.end(),
                    [&](const ShardView* v) { return v->uid == shard.uid; }))
      continue;
    ++remaining;
    smallest = std::min(smallest, shard.leader->free_bytes() + shard.leader->store_bytes() +
                                      shard.leader->log_bytes());
  }
  const double needed =
      static_cast<double>(bytes) / static_cast<double>(remaining) * kCapacityFactor;
  if (needed <= static_cast<double>(smallest)) return "";
  return fmt::format(
      "{} shards would have to hold {:.0f} MiB each, and the smallest volume has {:.0f} MiB: "
      "enlarge it, or "
      "set shardNum back",
      remaining, needed / (1 << 20), static_cast<double>(smallest) / (1 << 20));
}

}  // namespace etalon::controller
