#include "sim/checkers/ownership_watch.h"

#include <algorithm>

namespace etalon::sim {

namespace {

const bucket::StateMachine* StateOf(Cluster& cluster, int shard, int replica) {
  const storage::Node* node = cluster.storage(shard, replica);
  if (node == nullptr || node->shard() == nullptr || !node->shard()->formed()) return nullptr;
  return &node->shard()->state();
}

}  // namespace

std::string OwnershipWatch::Check() {
  bool changed = false;
  std::string violated;
  for (int shard : cluster_.shards()) changed |= Advance(shard, &violated);
  if (!violated.empty()) return violated;
  return changed ? Compare() : "";
}

// True if what the shard owns is not what it was.
bool OwnershipWatch::Advance(int shard, std::string* violated) {
  Decided& decided = decided_[shard];
  const bucket::StateMachine* furthest = nullptr;
  for (int r = 0; r < cluster_.options().replicas; ++r) {
    const auto* state = StateOf(cluster_, shard, r);
    if (state == nullptr || state->applied_index() <= decided.index) continue;
    decided.index = state->applied_index();
    furthest = state;
  }
  if (furthest == nullptr) return false;
  if (std::string why = CheckSplits(shard, furthest->splits()); !why.empty()) *violated = why;
  std::vector<Owned> owned;
  for (const auto& [number, row] : furthest->rows()) {
    if (bucket::IsWritable(row.status)) owned.push_back({number, row.epoch});
  }
  if (owned == decided.owned && furthest->level() == decided.level) return false;
  decided.owned = std::move(owned);
  decided.level = furthest->level();
  return true;
}

std::string OwnershipWatch::CheckSplits(int shard,
                                        const std::map<std::string, bucket::SplitTask>& now) {
  auto& before = decided_[shard].splits;
  if (before == now) return "";
  for (const auto& [name, task] : before) {
    const auto it = now.find(name);
    const std::string about = "split task " + name + " of shard " + std::to_string(shard);
    if (it == now.end()) return about + " is forgotten";
    if (task.state == bucket::SplitState::kAborted && it->second.state != task.state)
      return about + " goes on after it was aborted";
    if (task.fence && it->second.t_switch && it->second.t_switch != task.fence)
      return about + " has another switch index than its fence";
    if (task.state != bucket::SplitState::kCommitted && task.state != bucket::SplitState::kDone)
      continue;
    if (it->second.state < task.state || it->second.state == bucket::SplitState::kAborted)
      return about + " goes back after it was committed";
    if (it->second.t_switch != task.t_switch) return about + " has another switch index now";
  }
  before = now;
  return "";
}

std::string OwnershipWatch::Compare() {
  const std::uint32_t count = cluster_.options().bucket_count;
  std::uint8_t level = level_;
  for (const auto& [shard, decided] : decided_) level = std::max(level, decided.level);
  const std::uint64_t modulus = std::uint64_t{count} << level;
  if (level != level_) {
    std::map<std::uint32_t, Last> parts;
    for (const auto& [number, last] : highest_) {
      for (std::uint64_t part = number; part < modulus; part += std::uint64_t{count} << level_)
        parts.emplace(static_cast<std::uint32_t>(part), last);
    }
    highest_ = std::move(parts);
    level_ = level;
  }
  std::map<std::uint32_t, int> owner;
  for (const auto& [shard, decided] : decided_) {
    for (const Owned& owned : decided.owned) {
      for (std::uint64_t b = owned.number; b < modulus;
           b += std::uint64_t{count} << decided.level) {
        const auto part = static_cast<std::uint32_t>(b);
        const std::string name =
            "bucket " + std::to_string(part) + " of " + std::to_string(modulus);
        const auto [other, alone] = owner.emplace(part, shard);
        if (!alone) {
          return name + " is writable on shards " + std::to_string(other->second) + " and " +
                 std::to_string(shard);
        }
        const auto [last, first_time] = highest_.emplace(part, Last{owned.epoch, shard});
        if (first_time) continue;
        if (owned.epoch < last->second.epoch ||
            (owned.epoch == last->second.epoch && shard != last->second.shard)) {
          return name + " is on shard " + std::to_string(shard) + " at epoch " +
                 std::to_string(owned.epoch.value()) + " after it was on shard " +
                 std::to_string(last->second.shard) + " at epoch " +
                 std::to_string(last->second.epoch.value());
        }
        last->second = {owned.epoch, shard};
      }
    }
  }
  return "";
}

}  // namespace etalon::sim
