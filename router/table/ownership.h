// What this router believes about buckets: the table, and who contradicts it. Feeds and hints come
// in here; whoever waits for a bucket hears about it from here.
#pragma once

#include <functional>

#include "etalon/v1/peer.pb.h"
#include "router/table/bucket_table.h"
#include "router/table/claims.h"

namespace etalon::router {

class Ownership {
 public:
  // A feed mentioned the bucket. `writable`: somebody takes writes for it, as far as is known.
  using News = std::function<void(BucketId bucket, bool writable)>;

  Ownership(std::uint32_t bucket_count, Duration patience)
      : table_(bucket_count), claims_(patience) {}

  const BucketTable& table() const { return table_; }
  const Claims& claims() const { return claims_; }

  // A full list or delta that is in its place in the shard's feed, or the next part of one. Fails
  // without having read the rest at the first bucket that cannot be of this collection.
  Status ApplyFeed(ShardUid shard, const v1::FeedMessage& message, SteadyTime now,
                   const News& news);
  // An answer says where a bucket is, of a level that the table has reached. True when that was
  // new.
  bool Hint(BucketId bucket, Owner owner, SteadyTime now);
  // A caller names a bucket of a level that the table has not reached.
  Status Reach(BucketId bucket);
  // `shard` itself answered that it does not have what the table says it has.
  bool Forget(BucketId bucket, Owner owner);
  void ForgetShard(ShardUid shard);
  // See Claims::TakeStale.
  std::vector<ShardUid> TakeStaleClaims(SteadyTime now) { return claims_.TakeStale(now); }

 private:
  void Told(ShardUid shard, BucketId bucket, const v1::FeedBucket& entry, SteadyTime now);
  void Claimed(std::uint32_t number, Owner owner, SteadyTime now);
  bool Offer(std::uint32_t number, Owner owner, ShardUid speaker, SteadyTime now);

  BucketTable table_;
  Claims claims_;
};

}  // namespace etalon::router
