// The routing table of a collection as DescribeCollection states it, and how a client derives from
// such an answer who owns which key. A table is taken whole or refused whole; nothing in it is ever
// repaired or guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "placement/modulus.h"

namespace etalon::placement {

// The numbers cross the wire. A number that is none of these comes from a newer peer; the whole
// table is then refused. Legal moves: Creating -> Normal -> Splitting -> not listed.
enum class ShardState : std::int32_t {
  kNormal = 0,     // owns keys, takes writes
  kCreating = 1,   // the same from the commit of its split on; not yet in the topology as Normal
  kSplitting = 2,  // fenced: owns no key, whatever residues stand beside it
  kDropped = 3,    // owns no key
};
std::string_view ShardStateName(
    ShardState state);  // "Normal"; "unknown" for a number from a newer peer

struct ShardInfo {
  std::string
      name;  // may be empty in answers of old peers: then the shard at the same index is meant
  ShardState state = ShardState::kNormal;
  Residues residues;  // any order; all empty when the collection was never split
};

struct DescribeAnswer {
  std::vector<std::string> shard_names;
  std::vector<ShardInfo> infos;  // empty, or index-parallel to shard_names
  std::uint64_t modulus = 0;  // 0: never split, shard i of n owns the keys with `value mod n == i`
  std::string shard_by;       // shard_by.h; "" while never declared
  std::uint32_t shards_num = 0;  // what the answer claims; CountShards() is what counts
};

// Shards in state Normal or Creating; all of them when the answer has no infos.
std::uint32_t CountShards(const DescribeAnswer& answer);

// What one shard claims to own.
struct Claim {
  std::string shard;
  Residues residues;
};

// Who owns which residue, complete: [0, modulus) is tiled. Immutable; safe to share between
// threads.
class RoutingTable {
 public:
  // INVALID_ARGUMENT / MALFORMED or MODULUS_CAP, always permanent, with the shard and the residue
  // at fault:
  //  * infos not parallel to the names, a name that differs from the one at its index, an unknown
  //  state;
  //  * modulus 0 with residues, a modulus without any, modulus 0 while a listed shard owns nothing;
  //  * whatever Build refuses.
  static Result<RoutingTable> Derive(const DescribeAnswer& answer,
                                     std::uint64_t max_modulus = kMaxModulus);

  // From the shards that own keys, `routable`, among the listed `names`. The order of `names`
  // matters when modulus is 0. Refuses: no shard; a name that is empty, doubled, or not listed; a
  // modulus over the cap (nothing is allocated before that is known); a residue not below the
  // modulus, listed twice, claimed by two shards or by none; a shard that owns nothing.
  static Result<RoutingTable> Build(const std::vector<std::string>& names, std::uint64_t modulus,
                                    std::vector<Claim> routable,
                                    std::uint64_t max_modulus = kMaxModulus);

  std::uint64_t modulus() const {
    return slots_.size();
  }  // never 0: the number of shards when never split
  bool never_split() const { return never_split_; }
  const std::vector<Claim>& shards() const {
    return shards_;
  }  // in the order of the list, residues sorted

  std::size_t OwnerIndex(RoutingValue value) const {
    return slots_[value.value() % slots_.size()];
  }  // in shards()
  const std::string& Owner(RoutingValue value) const { return shards_[OwnerIndex(value)].shard; }

 private:
  RoutingTable() = default;

  std::vector<Claim> shards_;
  std::vector<std::uint32_t> slots_;  // by residue
  bool never_split_ = false;
};

}  // namespace etalon::placement
