// Who owns which bucket, as this router knows: one 64-bit slot a bucket, and nothing else per
// bucket.
//
// A slot holds the number of a shard (16 bits) and the bucket's epoch there (48 bits); 0 is
// unknown. A higher epoch wins, whoever says it: feeds, answers to calls and hints all come through
// Offer. Shards are numbered here as they are met, known to the topology or not: a bucket may move
// to a shard before this router has heard of that shard.
//
// The table has one level, the finest that anybody has named; buckets below are numbers of that
// level. News of a lower level names all parts of a bucket (ForEachPart).
// Not thread-safe: the core executor's alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "placement/modulus.h"

namespace etalon::router {

struct Owner {
  ShardUid shard;
  Epoch epoch;
  bool operator==(const Owner&) const = default;
};

class BucketTable {
 public:
  static constexpr unsigned kEpochBits = 48;
  static constexpr std::uint64_t kMaxEpoch = (std::uint64_t{1} << kEpochBits) - 1;

  // bucket_count >= 1 and not over max_modulus.
  explicit BucketTable(std::uint32_t bucket_count,
                       std::uint64_t max_modulus = placement::kMaxModulus);

  std::uint32_t bucket_count() const { return bucket_count_; }
  std::uint8_t level() const { return level_; }
  std::uint64_t modulus() const { return slots_.size(); }
  std::uint64_t known() const { return known_; }
  std::uint64_t unknown() const { return slots_.size() - known_; }
  // How many buckets name the shard.
  std::uint64_t CountOf(ShardUid shard) const;
  // Sum of all epochs. Of two tables without unknown buckets the one with the greater sum is not
  // the older one: epochs only grow, and a doubling of the modulus doubles the sum.
  std::uint64_t epoch_sum() const { return epoch_sum_; }

  std::uint32_t NumberOf(RoutingValue value) const {
    return static_cast<std::uint32_t>(value.value() % slots_.size());
  }
  std::optional<Owner> At(std::uint32_t number) const;
  std::optional<Owner> Find(RoutingValue value) const { return At(NumberOf(value)); }

  // Makes room for news about `bucket`: a higher level than the table's doubles the modulus as
  // often as needed, both halves of a bucket taking its slot. MODULUS_CAP over the bound,
  // BUCKET_OUT_OF_RANGE for a number that is not below the modulus of its level.
  Status Reach(BucketId bucket);
  // Calls f(number) for each bucket of the table that is part of `bucket`; only after Reach.
  template <typename F>
  void ForEachPart(BucketId bucket, F f) const {
    const std::uint64_t step = placement::Modulus(bucket_count_, bucket.level);
    for (std::uint64_t n = bucket.number; n < slots_.size(); n += step) {
      f(static_cast<std::uint32_t>(n));
    }
  }

  // True when the slot changed: `owner` has a higher epoch than what stood there. What cannot be
  // stored (no shard, epoch 0 or over 48 bits) changes nothing.
  bool Offer(std::uint32_t number, Owner owner);
  // The shard says that it does not have the bucket and that `own` is the highest epoch it ever had
  // it at. An entry that names it up to that epoch becomes unknown; a later one stays, because
  // whoever named the shard knows more than the shard did. True when the slot changed.
  bool Withdraw(std::uint32_t number, ShardUid shard, Epoch own);
  // What the shard itself answers contradicts this entry: it becomes unknown if it still stands.
  bool Forget(std::uint32_t number, Owner owner);
  // A shard that is removed for ever: entries that name it become unknown.
  void ForgetShard(ShardUid shard);

  std::size_t slot_bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  using Slot = std::uint64_t;
  using ShardNumber = std::uint16_t;  // 0 = unknown, else position in shards_ + 1

  struct Named {
    ShardUid uid;
    std::uint64_t count = 0;  // slots that name it; at 0 the number may be given to another shard
  };

  std::optional<ShardNumber> Intern(ShardUid shard);
  void Set(std::uint32_t number, Slot slot);

  const std::uint32_t bucket_count_;
  const std::uint64_t max_modulus_;
  std::uint8_t level_ = 0;
  std::vector<Slot> slots_;
  std::uint64_t known_ = 0;
  std::uint64_t epoch_sum_ = 0;
  std::vector<Named> shards_;
  std::map<ShardUid, ShardNumber> numbers_;
};

}  // namespace etalon::router
