// How keys of the store are laid out (docs/formats.md, "Store keys").
//
//   0x00 ...                                                        metadata of the replica: named
//   by its owners 0x01 be32(v mod n) be32(reversed(low 32 bits of (v div n))) be16(space) key data
//
// v is the routing value, n the collection's bucketCount (fixed for ever). A bucket of level k is v
// mod (n * 2^k), that is v mod n and the k lowest bits of v div n. With the bits of v div n
// reversed those k bits come first, so every bucket of every level is one contiguous range, and the
// two halves of a bucket are the two halves of its range.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/status.h"

namespace etalon::store {

inline constexpr char kMetaPrefix = '\x00';
inline constexpr char kDataPrefix = '\x01';

// Spaces that no user table gets.
inline constexpr SpaceId kNoSpace{0};
inline constexpr SpaceId kRequestSpace{
    0xFFFF};  // first results of writes with a request ID, by that ID

// [begin, end)
struct KeyRange {
  std::string begin;
  std::string end;

  bool Contains(std::string_view key) const { return begin <= key && key < end; }
  bool operator==(const KeyRange&) const = default;
};

struct DataKeyParts {
  // Congruent to the routing value that the key was made of, modulo bucket_count * 2^32: the same
  // bucket at every level. Equal to it if it was below that.
  RoutingValue value;
  SpaceId space;
  std::string_view key;  // a view into what was parsed
};

std::string MetaKey(std::string_view name);

// bucket_count must not be 0, here and below.
std::string DataKey(RoutingValue value, std::uint32_t bucket_count, SpaceId space,
                    std::string_view key);

// DATA_LOSS when it is no data key of a collection with that bucket_count.
Result<DataKeyParts> ParseDataKey(std::string_view data_key, std::uint32_t bucket_count);

// All data.
KeyRange DataRange();

// All data of one bucket. The level is at most 32 and the number below bucket_count * 2^level.
KeyRange BucketRange(BucketId bucket, std::uint32_t bucket_count);

// The bucket of that level (at most 32) that a data key is in; DATA_LOSS as ParseDataKey.
Result<BucketId> BucketOfDataKey(std::string_view data_key, std::uint32_t bucket_count,
                                 std::uint8_t level);

}  // namespace etalon::store
