#include "sim/checkers/invariants.h"

#include <map>

#include "common/ids.h"

namespace etalon::sim {

namespace {

// Ownership is compared at the finest level that any leader stands at.
std::uint8_t FinestLevel(Cluster& cluster) {
  std::uint8_t level = 0;
  for (const NodeName& name : cluster.storages()) {
    storage::Node* node = cluster.storage(name);
    if (node != nullptr && node->shard() != nullptr && node->shard()->formed()) {
      level = std::max(level, node->shard()->state().level());
    }
  }
  return level;
}

template <typename F>
void ForEachPart(const bucket::StateMachine& state, std::uint32_t number, std::uint8_t level,
                 F&& f) {
  const std::uint64_t modulus = std::uint64_t{state.bucket_count()} << level;
  for (std::uint64_t b = number; b < modulus; b += state.modulus())
    f(static_cast<std::uint32_t>(b));
}

template <typename F>
void ForEachLease(Cluster& cluster, F&& f) {
  for (const NodeName& name : cluster.storages()) {
    storage::Node* node = cluster.storage(name);
    if (node == nullptr || node->shard() == nullptr || !node->shard()->is_leader()) continue;
    if (node->shard()->replica().HasLease()) f(name, *node->shard());
  }
}

}  // namespace

std::string CheckLeases(Cluster& cluster) {
  std::map<int, NodeName> leaders;
  std::string violated;
  ForEachLease(cluster, [&](const NodeName& name, const storage::Shard&) {
    const auto [first, alone] = leaders.emplace(cluster.ShardOf(name), name);
    if (!alone) violated = first->second + " and " + name + " lead one shard, both with a lease";
  });
  return violated;
}

std::string CheckOwners(Cluster& cluster) {
  const std::uint8_t level = FinestLevel(cluster);
  std::map<std::uint32_t, NodeName> owner;
  std::string violated;
  ForEachLease(cluster, [&](const NodeName& name, const storage::Shard& shard) {
    for (const auto& [number, row] : shard.state().rows()) {
      if (!bucket::IsWritable(row.status)) continue;
      ForEachPart(shard.state(), number, level, [&](std::uint32_t part) {
        auto [it, fresh] = owner.emplace(part, name);
        if (!fresh)
          violated =
              "bucket " + std::to_string(part) + " is writable on " + it->second + " and " + name;
      });
    }
  });
  return violated;
}

std::string CheckAlarms(Cluster& cluster) {
  for (int s : cluster.shards()) {
    const auto leader = cluster.LeaderOf(s);
    if (!leader) continue;
    const storage::AlertFacts facts = cluster.storage(*leader)->shard()->Facts();
    if (!facts.lost.empty()) return *leader + " finds lost buckets: " + facts.lost.front();
    if (!facts.held.empty()) return *leader + " holds a transfer: " + facts.held.front();
    if (facts.quarantined > 0) return *leader + " has quarantined buckets";
  }
  return "";
}

bool IsSettled(Cluster& cluster, std::string* why) {
  const std::uint8_t level = FinestLevel(cluster);
  const std::uint64_t modulus = std::uint64_t{cluster.options().bucket_count} << level;
  std::map<std::uint32_t, int> owners;
  for (int s : cluster.shards()) {
    const auto leader = cluster.LeaderOf(s);
    if (!leader) {
      *why = "shard " + std::to_string(s) + " has no leader";
      return false;
    }
    const auto& state = cluster.storage(*leader)->shard()->state();
    if (!state.outgoing().empty() || !state.incoming().empty()) {
      *why = "shard " + std::to_string(s) + " has open transfers";
      return false;
    }
    for (const auto& [number, row] : state.rows()) {
      if (!bucket::IsWritable(row.status) || row.transfer) {
        *why = "bucket " + std::to_string(number) + " is " +
               std::string(bucket::RowStatusName(row.status)) + " on shard " + std::to_string(s);
        return false;
      }
      ForEachPart(state, number, level, [&](std::uint32_t part) { ++owners[part]; });
    }
  }
  for (std::uint64_t b = 0; b < modulus; ++b) {
    const int n =
        owners.count(static_cast<std::uint32_t>(b)) ? owners[static_cast<std::uint32_t>(b)] : 0;
    if (n != 1) {
      *why = "bucket " + std::to_string(b) + " is owned " + std::to_string(n) + " times";
      return false;
    }
  }
  return true;
}

bool ReplicasEqual(Cluster& cluster, std::string* why) {
  for (int s : cluster.shards()) {
    bool first = true;
    LogIndex index;
    std::uint64_t checksum = 0;
    for (const NodeName& name : cluster.StoragesOf(s)) {
      storage::Node* node = cluster.storage(name);
      if (node == nullptr || node->shard() == nullptr || !node->shard()->formed()) {
        *why = name + " is down";
        return false;
      }
      auto sum = node->shard()->state().Checksum();
      if (!sum.ok()) {
        *why = name + ": " + sum.status().ToString();
        return false;
      }
      if (first) {
        index = node->shard()->state().applied_index();
        checksum = sum->checksum();
        first = false;
      } else if (node->shard()->state().applied_index() != index) {
        *why = name + " has not applied what the others have";
        return false;
      } else if (sum->checksum() != checksum) {
        *why = name + " differs from the other replicas at index " + std::to_string(index.value());
        return false;
      }
    }
  }
  return true;
}

}  // namespace etalon::sim
