// What people are told: conditions in the manner of Kubernetes, and everything that is being waited
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace etalon::controller {

enum class ConditionStatus : std::uint8_t { kFalse, kTrue, kUnknown };

// Types: Ready, Available, Reconciling, Stalled, Resharding, Balanced, ScaleDownBlocked,
// TopologyConverged, FewBuckets, Paused. docs/operations.md says what each means.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::kUnknown;
  std::string reason;   // CamelCase
  std::string message;  // a sentence
  SteadyTime since;     // of this status

  bool operator==(const Condition&) const = default;
};

// One thing that is waited for.
struct Wait {
  std::string key;   // the same as long as it is the same wait
  std::string what;  // "waits for ..."
  std::string left;  // how much of it is left; may be empty
  std::string next;  // what happens then
  SteadyTime since;

  bool operator==(const Wait&) const = default;
};

struct ShardReport {
  std::string name;
  ShardUid uid;
  std::string state;  // Creating, Normal, Draining, Locked, Retired, Removed
  std::string leader;
  std::uint64_t term = 0;
  std::uint32_t replicas = 0;
  std::uint32_t ready_replicas = 0;
  std::uint32_t weight = 0;
  std::optional<std::uint64_t> buckets;  // at the highest level of the collection; absent: unknown
  std::optional<double> etalon;
  std::optional<double> disbalance_percent;
  std::optional<std::uint64_t> bytes;

  bool operator==(const ShardReport&) const = default;
};

struct Report {
  std::vector<Condition> conditions;  // by type
  std::vector<Wait> waits;            // by key
  std::vector<ShardReport> shards;
  std::uint64_t topology_version = 0;
  std::uint64_t settings_version = 0;
  std::uint64_t modulus = 0;
  std::uint32_t ready_routers = 0;

  const Condition* Find(std::string_view type) const;
  bool operator==(const Report&) const = default;
};

std::string_view StatusName(ConditionStatus status);  // "True"

// Takes over `since` of what has not changed since the last report.
void KeepSince(const Report& last, SteadyTime now, Report* report);

}  // namespace etalon::controller
