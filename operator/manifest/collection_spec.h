// What a user asks for, checked: the part of a ShardedCollection that the planner reads. Fields
// that only Kubernetes uses are known to the parser and not kept here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::controller {

enum class ShardPolicy : std::uint8_t { kBalanced, kLocked, kDraining };
enum class RebalancingMode : std::uint8_t { kAutomatic, kManual, kDisabled };
enum class ReshardingStrategy : std::uint8_t { kAutomatic, kSplit, kWeights };
enum class ScaleDownPolicy : std::uint8_t { kDrain, kForbid };
enum class ConfigUpdate : std::uint8_t { kRolling, kLive };

struct ShardOverride {
  std::uint32_t weight = 100;  // 0..1000000
  ShardPolicy policy = ShardPolicy::kBalanced;

  bool operator==(const ShardOverride&) const = default;
};

struct RebalancingSpec {
  RebalancingMode mode = RebalancingMode::kAutomatic;
  std::string shard;  // kManual: the shard whose leader runs the rebalancer
  std::uint32_t max_freeze_millis = 5;
  double disbalance_threshold_percent = 1;
  std::uint32_t max_sending = 4;
  std::uint32_t max_receiving = 16;
  std::uint64_t max_transfer_bytes_per_second = 200u << 20;  // 0 = no limit

  bool operator==(const RebalancingSpec&) const = default;
};

struct ZoneDistance {
  std::string from;
  std::string to;
  std::uint32_t distance = 0;

  bool operator==(const ZoneDistance&) const = default;
};

struct CollectionSpec {
  std::string name;
  CollectionId adopt;  // annotation etalon.dev/adopt; 0: none
  std::string version;
  std::uint32_t shard_num = 0;  // 1..1024
  std::uint32_t bucket_count = 3000;
  std::string shard_by_field;
  v1::KeyType key_type = v1::KEY_TYPE_INT64;
  v1::HashFunction hash = v1::HASH_MURMUR3;
  std::uint32_t replicas_per_shard = 3;  // 1, 3 or 5
  std::vector<std::string> spaces;       // names, in the order of the manifest
  std::map<std::string, ShardOverride> shards;
  RebalancingSpec rebalancing;
  ReshardingStrategy strategy = ReshardingStrategy::kAutomatic;
  ScaleDownPolicy scale_down = ScaleDownPolicy::kDrain;
  bool paused = false;
  std::uint32_t routers = 2;
  ConfigUpdate config_update = ConfigUpdate::kRolling;
  std::string leader_zone;
  std::vector<ZoneDistance> distances;
  std::map<std::string, std::string> zones;  // local platform only: process name -> zone

  // The shard as the user named it, or the defaults.
  ShardOverride Override(const std::string& shard) const;

  bool operator==(const CollectionSpec&) const = default;
};

}  // namespace etalon::controller
