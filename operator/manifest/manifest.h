// From the text of a manifest to a CollectionSpec. All errors are found in one go; each is a
// sentence that begins with the path of the field ("spec.shardNum: must be 1 to 1024, it is 0").
//
// On top of what Kubernetes takes, the local platform reads
//
//   zones:
//     assignments: [{node: local, zone: a, replicas: [orders-shard-0-0, orders-router-0]}]
//
// which puts processes into zones: on one machine there is nothing to learn them from. `node` is
// for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/manifest/collection_spec.h"

namespace etalon::controller {

inline constexpr std::size_t kMaxManifestBytes = 1u << 20;

struct Manifest {
  std::optional<CollectionSpec> spec;  // empty when there are errors
  std::vector<std::string> errors;
};

// YAML with exactly one ShardedCollection; documents of another kind are ignored. Never throws.
Manifest ParseManifest(std::string_view text);

// What must hold when a collection is made, and not any more later.
std::vector<std::string> CheckCreation(const CollectionSpec& spec);

// What never changes: name, bucketCount, shardBy; spaces are only added. Empty: the new spec may
// take the old one's place.
std::vector<std::string> CheckChange(const CollectionSpec& before, const CollectionSpec& after);

}  // namespace etalon::controller
