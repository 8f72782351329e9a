#include "router/table/bucket_table.h"

#include <limits>

#include "common/check.h"

namespace etalon::router {

BucketTable::BucketTable(std::uint32_t bucket_count, std::uint64_t max_modulus)
    : bucket_count_(bucket_count), max_modulus_(max_modulus) {
  ETALON_CHECK(bucket_count >= 1 && bucket_count <= max_modulus, "bucket count out of range");
  slots_.assign(bucket_count, 0);
}

std::optional<Owner> BucketTable::At(std::uint32_t number) const {
  const Slot slot = slots_[number];
  if (slot == 0) return std::nullopt;
  return Owner{shards_[(slot >> kEpochBits) - 1].uid, Epoch(slot & kMaxEpoch)};
}

std::uint64_t BucketTable::CountOf(ShardUid shard) const {
  const auto it = numbers_.find(shard);
  return it == numbers_.end() ? 0 : shards_[it->second - 1].count;
}

Status BucketTable::Reach(BucketId bucket) {
  ETALON_RETURN_IF_ERROR(placement::CheckBucket(bucket, bucket_count_, max_modulus_));
  if (bucket.level <= level_) return OkStatus();
  const std::uint64_t old = slots_.size();
  const std::uint64_t modulus = placement::Modulus(bucket_count_, bucket.level);
  std::vector<Slot> grown;
  grown.reserve(modulus);
  while (grown.size() < modulus) grown.insert(grown.end(), slots_.begin(), slots_.end());
  slots_ = std::move(grown);
  level_ = bucket.level;
  const std::uint64_t factor = modulus / old;
  known_ *= factor;
  epoch_sum_ *= factor;
  for (Named& shard : shards_) shard.count *= factor;
  return OkStatus();
}

std::optional<BucketTable::ShardNumber> BucketTable::Intern(ShardUid shard) {
  if (const auto it = numbers_.find(shard); it != numbers_.end()) return it->second;
  if (shards_.size() < std::numeric_limits<ShardNumber>::max()) {
    shards_.push_back({shard});
    return numbers_[shard] = static_cast<ShardNumber>(shards_.size());
  }
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].count != 0) continue;
    numbers_.erase(shards_[i].uid);
    shards_[i].uid = shard;
    return numbers_[shard] = static_cast<ShardNumber>(i + 1);
  }
  return std::nullopt;
}

void BucketTable::Set(std::uint32_t number, Slot slot) {
  Slot& place = slots_[number];
  if (place != 0) {
    --shards_[(place >> kEpochBits) - 1].count;
    --known_;
    epoch_sum_ -= place & kMaxEpoch;
  }
  place = slot;
  if (place != 0) {
    ++shards_[(place >> kEpochBits) - 1].count;
    ++known_;
    epoch_sum_ += place & kMaxEpoch;
  }
}

bool BucketTable::Offer(std::uint32_t number, Owner owner) {
  const std::uint64_t epoch = owner.epoch.value();
  if (!owner.shard || epoch > kMaxEpoch || epoch <= (slots_[number] & kMaxEpoch)) return false;
  const auto shard = Intern(owner.shard);
  if (!shard) return false;
  Set(number, (Slot{*shard} << kEpochBits) | epoch);
  return true;
}

bool BucketTable::Withdraw(std::uint32_t number, ShardUid shard, Epoch own) {
  const auto owner = At(number);
  if (!owner || owner->shard != shard || owner->epoch > own) return false;
  Set(number, 0);
  return true;
}

bool BucketTable::Forget(std::uint32_t number, Owner owner) {
  if (At(number) != owner) return false;
  Set(number, 0);
  return true;
}

void BucketTable::ForgetShard(ShardUid shard) {
  if (CountOf(shard) == 0) return;
  for (std::uint32_t n = 0; n < slots_.size(); ++n) {
    if (const auto owner = At(n); owner && owner->shard == shard) Set(n, 0);
  }
}

}  // namespace etalon::router
