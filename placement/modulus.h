// Buckets, levels and the modulus. M = bucketCount * 2^level; a bucket is the residue `routing
// value mod M`, 0-based.
//
// Level k+1 halves every bucket: r becomes r and r + M. Because v mod (bucketCount * 2^k) equals
// (v mod bucketCount) + bucketCount * ((v div bucketCount) mod 2^k), the halves of a bucket are
// told apart by one more low bit of `v div bucketCount`, which is what the store's key layout
// relies on.
//
// Functions that return a plain value require valid arguments: bucket_count >= 1, modulus <= 2^32,
// number < modulus; they abort otherwise. Numbers from outside go through CheckLevel and
// CheckBucket first.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/status.h"

namespace etalon::placement {

// Largest modulus of a collection. A parameter wherever it is checked: the Milvus contract's own
// limit is lower.
inline constexpr std::uint64_t kMaxModulus = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMilvusMaxModulus = std::uint64_t{1} << 15;

// Residues modulo some M that stands beside them: a bare list means nothing.
using Residues = std::vector<std::uint64_t>;

std::uint64_t Modulus(std::uint32_t bucket_count, std::uint8_t level);

// INVALID_ARGUMENT for bucket_count 0; FAILED_PRECONDITION / MODULUS_CAP for a modulus over
// `max_modulus`.
Status CheckLevel(std::uint32_t bucket_count, std::uint8_t level,
                  std::uint64_t max_modulus = kMaxModulus);
// CheckLevel, and OUT_OF_RANGE / BUCKET_OUT_OF_RANGE for a number that is not below the modulus of
// its level.
Status CheckBucket(BucketId bucket, std::uint32_t bucket_count,
                   std::uint64_t max_modulus = kMaxModulus);

BucketId BucketOf(RoutingValue value, std::uint32_t bucket_count, std::uint8_t level);

// The buckets of `to_level` (not below the bucket's own) that hold the same keys, ascending.
std::vector<std::uint32_t> ExpandBucket(BucketId bucket, std::uint8_t to_level,
                                        std::uint32_t bucket_count);

// Every key of `fine` is a key of `coarse`. A bucket contains itself.
bool Contains(BucketId coarse, BucketId fine, std::uint32_t bucket_count);

// The shortest list that holds the same keys: what another entry contains is dropped, two halves
// become their parent, as often as possible. Sorted by (level, number).
std::vector<BucketId> Collapse(const std::vector<BucketId>& buckets, std::uint32_t bucket_count);

// The same keys, listed modulo `to` instead of `from`: r, r + from, r + 2 * from, ... below `to`.
// Sorted. INVALID_ARGUMENT when `from` is 0, `to` is not a multiple of it, or a residue is not
// below `from`; MODULUS_CAP when `to` is over the cap.
Result<Residues> RebaseResidues(const Residues& residues, std::uint64_t from, std::uint64_t to,
                                std::uint64_t max_modulus = kMaxModulus);

}  // namespace etalon::placement
