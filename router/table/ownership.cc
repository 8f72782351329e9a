#include "router/table/ownership.h"

#include <algorithm>

namespace etalon::router {

namespace {

BucketId BucketAt(std::uint32_t level, std::uint32_t number) {
  return {static_cast<std::uint8_t>(std::min<std::uint32_t>(level, 255)), number};
}

}  // namespace

Status Ownership::Reach(BucketId bucket) {
  const std::uint8_t level = table_.level();
  ETALON_RETURN_IF_ERROR(table_.Reach(bucket));
  if (table_.level() != level) claims_.OnLevelChange();
  return OkStatus();
}

// `speaker` has spoken for itself; an owner that it displaces has not.
bool Ownership::Offer(std::uint32_t number, Owner owner, ShardUid speaker, SteadyTime now) {
  const auto before = table_.At(number);
  if (!table_.Offer(number, owner)) return false;
  if (before && before->shard != owner.shard && before->shard != speaker) {
    claims_.Unproven(number, before->shard, now);
  }
  return true;
}

void Ownership::Claimed(std::uint32_t number, Owner owner, SteadyTime now) {
  Offer(number, owner, owner.shard, now);
  const auto stands = table_.At(number);
  if (stands && stands->shard != owner.shard) {
    claims_.Proven(number, owner.shard, now);
  } else {
    claims_.Retract(number, owner.shard);
  }
}

Status Ownership::ApplyFeed(ShardUid shard, const v1::FeedMessage& message, SteadyTime now,
                            const News& news) {
  ETALON_RETURN_IF_ERROR(Reach(BucketAt(message.level(), 0)));
  if (message.full() && message.part() == 0) claims_.BeginList(shard);
  for (const v1::FeedBucket& entry : message.buckets()) {
    const std::uint64_t end =
        std::uint64_t{entry.bucket()} + std::max<std::uint32_t>(entry.count(), 1);
    const auto last = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - 1, 0xffffffff));
    ETALON_RETURN_IF_ERROR(table_.Reach(BucketAt(message.level(), last)));
    for (std::uint64_t number = entry.bucket(); number < end; ++number) {
      const BucketId bucket = BucketAt(message.level(), static_cast<std::uint32_t>(number));
      Told(shard, bucket, entry, now);
      news(bucket, entry.gone() ? entry.destination() != 0 : !entry.readable_only());
    }
  }
  if (message.full() && !message.more()) claims_.EndList(shard);
  return OkStatus();
}

void Ownership::Told(ShardUid shard, BucketId bucket, const v1::FeedBucket& entry, SteadyTime now) {
  const Epoch epoch(entry.epoch());
  const ShardUid destination(entry.destination());
  table_.ForEachPart(bucket, [&](std::uint32_t n) {
    if (!entry.gone()) return Claimed(n, {shard, epoch}, now);
    claims_.Retract(n, shard);
    if (destination) {
      Offer(n, {destination, epoch}, shard, now);
    } else {
      table_.Withdraw(n, shard, epoch);
    }
  });
}

bool Ownership::Hint(BucketId bucket, Owner owner, SteadyTime now) {
  bool changed = false;
  table_.ForEachPart(
      bucket, [&](std::uint32_t n) { changed = Offer(n, owner, ShardUid(), now) || changed; });
  return changed;
}

bool Ownership::Forget(BucketId bucket, Owner owner) {
  bool changed = false;
  table_.ForEachPart(bucket,
                     [&](std::uint32_t n) { changed = table_.Forget(n, owner) || changed; });
  return changed;
}

void Ownership::ForgetShard(ShardUid shard) {
  table_.ForgetShard(shard);
  claims_.ForgetShard(shard);
}

}  // namespace etalon::router
