// Topology and settings as they come through the log: newer versions only, and nothing is taken
// back that records or epochs rest on.
#include <algorithm>
#include <set>
#include <string>

#include "engine/bucket/commands.h"
#include "engine/bucket/topology_rules.h"

namespace etalon::bucket {
namespace {

constexpr std::uint32_t kLastSpace = 65534;

Status Invalid(const std::string& what) {
  return InvalidArgument("topology: " + what, Reason::kInvalidCfg);
}

// OK for a newer version and for the same content again; `again` tells them apart.
template <class Message>
Status CheckVersion(std::string_view what, const Message& old, const Message& next, bool* again) {
  *again = false;
  if (next.version() > old.version()) return OkStatus();
  if (next.version() < old.version()) {
    return FailedPrecondition(Reason::kStaleTopology,
                              std::string(what) + " " + std::to_string(next.version()) +
                                  " is older than " + std::to_string(old.version()) +
                                  ", which this shard has",
                              {.number = old.version()});
  }
  if (next.SerializeAsString() != old.SerializeAsString()) {
    return FailedPrecondition(Reason::kTopologyConflict,
                              std::string(what) + " " + std::to_string(next.version()) +
                                  " is here with another content; make a new version",
                              {.number = old.version()});
  }
  *again = true;
  return OkStatus();
}

}  // namespace

Status CheckTopology(const v1::Topology& topology) {
  if (topology.collection() == 0) return Invalid("it names no collection");
  if (topology.bucket_count() == 0 || topology.bucket_count() > kModulusCap) {
    return Invalid("bucketCount must be 1 to " + std::to_string(kModulusCap));
  }
  std::set<std::string> names;
  std::set<std::uint64_t> numbers;
  for (const v1::Space& space : topology.spaces()) {
    if (space.number() == 0 || space.number() > kLastSpace) {
      return Invalid("space " + space.name() + " has number " + std::to_string(space.number()) +
                     "; numbers are 1 to " + std::to_string(kLastSpace));
    }
    if (space.name().empty() || !names.insert(space.name()).second ||
        !numbers.insert(space.number()).second) {
      return Invalid("space names and numbers must differ, \"" + space.name() + "\" does not");
    }
  }
  names.clear();
  numbers.clear();
  for (const v1::ShardInfo& shard : topology.shards()) {
    if (shard.uid() == 0 || shard.name().empty() || !names.insert(shard.name()).second ||
        !numbers.insert(shard.uid()).second) {
      return Invalid("shard names and UIDs must differ, those of \"" + shard.name() + "\" do not");
    }
  }
  for (const std::uint64_t removed : topology.removed_shards()) {
    if (numbers.contains(removed)) return Invalid("a removed shard is among the shards");
  }
  return OkStatus();
}

Status CheckTopologyChange(const v1::Topology& old, const v1::Topology& topology) {
  bool again = false;
  ETALON_RETURN_IF_ERROR(CheckVersion("topology", old, topology, &again));
  if (again) return OkStatus();
  ETALON_RETURN_IF_ERROR(CheckTopology(topology));
  if (topology.collection() != old.collection() || topology.bucket_count() != old.bucket_count() ||
      topology.shard_by().SerializeAsString() != old.shard_by().SerializeAsString()) {
    return Invalid("collection, bucketCount and shardBy never change");
  }
  for (const v1::Space& space : old.spaces()) {
    const auto& spaces = topology.spaces();
    if (std::none_of(spaces.begin(), spaces.end(), [&](const v1::Space& kept) {
          return kept.name() == space.name() && kept.number() == space.number();
        })) {
      return Invalid("space " + space.name() + " must keep its number " +
                     std::to_string(space.number()) + "; spaces are only added");
    }
  }
  const std::set<std::uint64_t> removed(topology.removed_shards().begin(),
                                        topology.removed_shards().end());
  for (const std::uint64_t gone : old.removed_shards()) {
    if (!removed.contains(gone)) return Invalid("a removed shard must stay in the list");
  }
  if (old.complete() && !topology.complete())
    return Invalid("a complete collection stays complete");
  return OkStatus();
}

Status Commands::SetTopology(const v1::Topology& topology) {
  ETALON_RETURN_IF_ERROR(CheckTopologyChange(state_.topology(), topology));
  if (topology.version() > state_.topology().version()) state_.SetTopology(topology);
  return OkStatus();
}

Status Commands::SetSettings(const v1::Settings& settings) {
  bool again = false;
  ETALON_RETURN_IF_ERROR(CheckVersion("settings", state_.settings(), settings, &again));
  if (again) return OkStatus();
  state_.SetSettings(settings);
  CloseSplits(settings);
  return OkStatus();
}

}  // namespace etalon::bucket
