// Names and UIDs of what a collection is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace etalon::controller {

std::string ShardName(std::uint32_t number);                       // "shard-3"
std::optional<std::uint32_t> ShardNumber(std::string_view shard);  // of such a name
std::string ReplicaName(const std::string& collection, const std::string& shard,
                        std::uint32_t ordinal);
// nullopt: `replica` is none of that shard.
std::optional<std::uint32_t> ReplicaOrdinal(const std::string& collection, const std::string& shard,
                                            std::string_view replica);
std::string RouterName(const std::string& collection, std::uint32_t ordinal);
std::string SurgeRouterName(const std::string& collection);

// A shard's UID follows from the collection's random ID and the shard's number. So an operator that
// crashed before it could write anything down finds the same UID again, and since the UIDs of
// removed shards stay in the topology, a number is never used twice. Never 0.
ShardUid UidOf(CollectionId collection, std::uint32_t number);

}  // namespace etalon::controller
