#include "router/table/directory.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <utility>

namespace etalon::router {

namespace {

Status Invalid(std::string message) {
  return InvalidArgument("the topology cannot be used: " + std::move(message), Reason::kInvalidCfg);
}

std::optional<placement::KeyType> KeyTypeOf(v1::KeyType type) {
  if (type == v1::KEY_TYPE_INT64) return placement::KeyType::kInt64;
  if (type == v1::KEY_TYPE_STRING) return placement::KeyType::kString;
  return std::nullopt;
}

std::optional<placement::HashFunction> HashOf(v1::HashFunction hash) {
  if (hash == v1::HASH_MURMUR3) return placement::HashFunction::kMurmur3;
  if (hash == v1::HASH_CRC32) return placement::HashFunction::kCrc32;
  if (hash == v1::HASH_VSHARD_CRC32C) return placement::HashFunction::kVshardCrc32c;
  return std::nullopt;
}

std::uint32_t DistanceTo(const v1::Topology& topology, const std::string& from,
                         const std::string& to) {
  if (from.empty() || to.empty()) return kInfiniteDistance;
  for (const v1::ZoneDistance& d : topology.distances()) {
    if (d.from() == from && d.to() == to) return d.distance();
  }
  return from == to ? 0 : kInfiniteDistance;
}

}  // namespace

Result<std::shared_ptr<const Directory>> Directory::Make(const v1::Topology& topology,
                                                         const std::string& zone,
                                                         std::uint64_t max_modulus) {
  if (topology.version() == 0 || topology.collection() == 0) {
    return Invalid("it names no version or no collection");
  }
  if (topology.bucket_count() == 0 || topology.bucket_count() > max_modulus) {
    return Invalid(
        fmt::format("bucket count {} is not in 1..{}", topology.bucket_count(), max_modulus));
  }
  const auto key_type = KeyTypeOf(topology.shard_by().type());
  const auto hash = HashOf(topology.shard_by().hash());
  if (!key_type || !hash) return Invalid("this version does not know its key type or hash");
  if (const Status s = placement::CheckHash(*key_type, *hash); !s.ok()) {
    return Invalid(s.message());
  }

  std::shared_ptr<Directory> out(new Directory());
  out->topology_ = topology;
  out->key_type_ = *key_type;
  out->hash_ = *hash;
  std::set<std::string> names;
  for (const v1::ShardInfo& info : topology.shards()) {
    const ShardUid uid(info.uid());
    if (!uid || info.name().empty()) return Invalid("a shard has no UID or no name");
    if (!names.insert(info.name()).second || out->shards_.contains(uid)) {
      return Invalid("shard " + info.name() + " is listed twice");
    }
    if (info.replicas().empty()) return Invalid("shard " + info.name() + " has no replicas");
    Shard shard{uid, info.name(), info.state(), {}};
    for (const v1::ReplicaInfo& r : info.replicas()) {
      if (r.name().empty() || !out->by_replica_.emplace(r.name(), uid).second) {
        return Invalid("replica '" + r.name() + "' is listed twice or has no name");
      }
      shard.replicas.push_back(
          {r.name(), r.address(), r.zone(), DistanceTo(topology, zone, r.zone())});
    }
    out->shards_.emplace(uid, std::move(shard));
  }
  return std::shared_ptr<const Directory>(std::move(out));
}

const Shard* Directory::Find(ShardUid uid) const {
  const auto it = shards_.find(uid);
  return it == shards_.end() ? nullptr : &it->second;
}

const Shard* Directory::ShardOf(const NodeName& replica) const {
  const auto it = by_replica_.find(replica);
  return it == by_replica_.end() ? nullptr : Find(it->second);
}

}  // namespace etalon::router
