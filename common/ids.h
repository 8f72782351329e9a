// Strong identifiers: numbers that cannot be mixed up. Ordered, hashable, printable.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace etalon {

template <class Tag, class Rep = std::uint64_t>
class StrongId {
 public:
  using rep = Rep;
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr explicit operator bool() const { return value_ != Rep{}; }
  constexpr auto operator<=>(const StrongId&) const = default;
  constexpr StrongId Next() const { return StrongId(static_cast<Rep>(value_ + 1)); }

 private:
  Rep value_{};
};

using CollectionId =
    StrongId<struct CollectionIdTag>;           // random, made once, on every disk; 0 = none
using ShardUid = StrongId<struct ShardUidTag>;  // random, never reused; 0 = none
using MemberId =
    StrongId<struct MemberIdTag>;  // disk incarnation of a replica: random, never reused; 0 = none
using Term = StrongId<struct TermTag>;          // Raft's
using LogIndex = StrongId<struct LogIndexTag>;  // Raft's; 0 = before everything
using Epoch = StrongId<struct EpochTag>;        // per bucket, +1 on each move; 1 at Form
using TopologyVersion = StrongId<struct TopologyVersionTag>;
using SettingsVersion = StrongId<struct SettingsVersionTag>;
using SpaceId = StrongId<struct SpaceIdTag, std::uint16_t>;
using RoutingValue =
    StrongId<struct RoutingValueTag>;  // hash of a key, or the bucket when the caller names one
using LogTime =
    StrongId<struct LogTimeTag>;  // milliseconds counted by leaders, monotonic within a log

// Residue of a routing value modulo bucketCount * 2^level. A number never travels without its
// level.
struct BucketId {
  std::uint8_t level = 0;
  std::uint32_t number = 0;
  constexpr auto operator<=>(const BucketId&) const = default;
};

// Names one transfer for ever: where and when its OPEN entry stands.
struct TransferId {
  ShardUid source;
  Term term;
  LogIndex index;
  constexpr auto operator<=>(const TransferId&) const = default;
  constexpr explicit operator bool() const { return static_cast<bool>(source); }
};

// 16 lower-case hex digits, as UIDs are shown to people and written into files.
std::string ToHex(std::uint64_t value);
// 0 when `text` is not 1 to 16 hex digits.
std::uint64_t FromHex(std::string_view text);

std::string ToString(const BucketId& bucket);  // "17" at level 0, else "17/2"
std::string ToString(const TransferId& id);    // "<uid hex>.<term>.<index>"

}  // namespace etalon

template <class Tag, class Rep>
struct std::hash<etalon::StrongId<Tag, Rep>> {
  std::size_t operator()(const etalon::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>()(id.value());
  }
};
