// Buckets that two shards claim. While a bucket moves, the old owner's word that it is gone may
// come later than the new owner's word that it has it; a claim that stands longer than that is a
// bucket with two owners, which must never be.
//
// Only a shard itself makes and takes back its claim. When a newer owner displaces an entry it is
// not known whether the old one still claims it; such an entry is `unproven`: when it gets old, the
// shard is asked for its list again, and claims or does not.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace etalon::router {

class Claims {
 public:
  // More entries than that are not remembered, only that there were more.
  static constexpr std::size_t kMax = 4096;

  explicit Claims(Duration patience) : patience_(patience) {}

  // The shard says that it has the bucket although another has it at no lower epoch.
  void Proven(std::uint32_t bucket, ShardUid shard, SteadyTime now) {
    Add(bucket, shard, now, true);
  }
  // The shard was the owner until another one said that it has the bucket at a higher epoch.
  void Unproven(std::uint32_t bucket, ShardUid shard, SteadyTime now) {
    Add(bucket, shard, now, false);
  }
  void Retract(std::uint32_t bucket, ShardUid shard) { claims_.erase({shard, bucket}); }
  // Around the reading of a full list of the shard: what it claims again keeps its age, the rest is
  // taken back.
  void BeginList(ShardUid shard);
  void EndList(ShardUid shard);
  void ForgetShard(ShardUid shard);
  // Numbers of buckets change their meaning: shards will be asked again.
  void OnLevelChange() { claims_.clear(); }

  // Shards whose unproven claims are older than the patience, which are dropped: ask them again.
  std::vector<ShardUid> TakeStale(SteadyTime now);
  // (bucket, shard): proven for longer than the patience.
  std::vector<std::pair<std::uint32_t, ShardUid>> Doubled(SteadyTime now) const;
  bool empty() const { return claims_.empty(); }

 private:
  struct Claim {
    SteadyTime since;
    bool proven = false;
    bool listed = true;  // false: not seen yet in the list that is being read
  };
  using Key = std::pair<ShardUid, std::uint32_t>;

  void Add(std::uint32_t bucket, ShardUid shard, SteadyTime now, bool proven);

  const Duration patience_;
  std::map<Key, Claim> claims_;
};

}  // namespace etalon::router
