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
  if (message.full()) claims_.BeginList(shard);
  for (const v1::FeedBucket& entry : message.buckets()) {
    const BucketId bucket = BucketAt(message.level(), entry.bucket());
    ETALON_RETURN_IF_ERROR(table_.Reach(bucket));
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
    news(bucket, entry.gone() ? static_cast<bool>(destination) : !entry.readable_only());
  }
  if (message.full()) claims_.EndList(shard);
  return OkStatus();
}

bool Ownership::Hint(RoutingValue value, Owner owner, SteadyTime now) {
  return Offer(table_.NumberOf(value), owner, ShardUid(), now);
}

bool Ownership::Forget(RoutingValue value, Owner owner) {
  return table_.Forget(table_.NumberOf(value), owner);
}

void Ownership::ForgetShard(ShardUid shard) {
  table_.ForgetShard(shard);
  claims_.ForgetShard(shard);
}

}  // namespace etalon::router
