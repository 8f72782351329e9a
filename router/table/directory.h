// The shards, replicas and zones of one topology, seen from one router: immutable, shared by
// pointer, replaced as a whole by the next topology.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "env/transport.h"
#include "etalon/v1/topology.pb.h"
#include "placement/hash.h"
#include "placement/modulus.h"

namespace etalon::router {

// Of a zone that no distance names and that is not the router's own.
inline constexpr std::uint32_t kInfiniteDistance = 0xffffffff;

struct Replica {
  NodeName name;
  std::string address;
  std::string zone;
  std::uint32_t distance = kInfiniteDistance;  // from the router's zone
};

struct Shard {
  ShardUid uid;
  std::string name;
  v1::ShardLifecycle state = v1::SHARD_NORMAL;
  std::vector<Replica> replicas;  // in the order of the topology
};

class Directory {
 public:
  // `zone` is the router's; empty: every distance is infinite, so that leaders come first. The
  // distance of a zone is what the topology names for (zone, that zone), else 0 for the own zone,
  // else infinite. INVALID_ARGUMENT / INVALID_CFG, with what to correct, for a topology that cannot
  // be used: no collection, bucket count out of range, a hash that does not go with the key type,
  // doubled names or UIDs, a shard without replicas.
  static Result<std::shared_ptr<const Directory>> Make(
      const v1::Topology& topology, const std::string& zone,
      std::uint64_t max_modulus = placement::kMaxModulus);

  TopologyVersion version() const { return TopologyVersion(topology_.version()); }
  CollectionId collection() const { return CollectionId(topology_.collection()); }
  std::uint32_t bucket_count() const { return topology_.bucket_count(); }
  placement::KeyType key_type() const { return key_type_; }
  placement::HashFunction hash() const { return hash_; }
  const v1::Topology& topology() const { return topology_; }

  const std::map<ShardUid, Shard>& shards() const { return shards_; }
  const Shard* Find(ShardUid uid) const;  // null: this topology does not know it
  const Shard* ShardOf(const NodeName& replica) const;

 private:
  Directory() = default;

  v1::Topology topology_;
  placement::KeyType key_type_{};
  placement::HashFunction hash_{};
  std::map<ShardUid, Shard> shards_;
  std::map<NodeName, ShardUid> by_replica_;
};

}  // namespace etalon::router
