#include "router/table/describe.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "placement/shard_by.h"
#include "proto/wire.h"

namespace etalon::router {

v1::DescribeCollectionResponse Describe(const BucketTable& table, const Directory& directory) {
  v1::DescribeCollectionResponse out;
  const auto refuse = [&out](const Status& status) {
    out.Clear();
    *out.mutable_status() = ToProto(status);
    return out;
  };
  if (table.unknown() != 0) {
    Hint hint;
    hint.number = table.unknown();
    return refuse(Unavailable(
        Reason::kUnknownBuckets,
        fmt::format("the owners of {} buckets are not known yet: ask again", table.unknown()),
        std::move(hint)));
  }
  std::map<ShardUid, v1::HashRouting> owned;
  for (std::uint32_t n = 0; n < table.modulus(); ++n) owned[table.At(n)->shard].add_buckets(n);

  std::map<std::string, const Shard*> by_name;
  for (const auto& [uid, routing] : owned) {
    const Shard* shard = directory.Find(uid);
    if (shard == nullptr) {
      return refuse(Unavailable(
          Reason::kStaleTopology,
          fmt::format("shard {} owns buckets, but topology {} does not name it: ask again",
                      ToHex(uid.value()), directory.version().value())));
    }
    by_name.emplace(shard->name, shard);
  }
  for (const auto& [name, shard] : by_name) {
    out.add_shard_names(name);
    v1::ShardRoutingInfo& info = *out.add_shard_infos();
    info.set_name(name);
    info.set_state(shard->state == v1::SHARD_CREATING ? v1::ShardRoutingInfo::CREATING
                                                      : v1::ShardRoutingInfo::NORMAL);
    info.mutable_hash_routing()->Swap(&owned[shard->uid]);
  }
  out.set_routing_modulus(table.modulus());
  out.set_shard_by(placement::FormatShardBy(directory.topology().shard_by().field()));
  out.set_shards_num(static_cast<std::uint32_t>(by_name.size()));
  out.set_version(table.epoch_sum() + directory.version().value());
  return out;
}

}  // namespace etalon::router
