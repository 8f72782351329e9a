#include "router/table/claims.h"

namespace etalon::router {

void Claims::Add(std::uint32_t bucket, ShardUid shard, SteadyTime now, bool proven) {
  const Key key{shard, bucket};
  if (const auto it = claims_.find(key); it != claims_.end()) {
    it->second.proven = it->second.proven || proven;
    it->second.listed = true;
  } else if (claims_.size() < kMax) {
    claims_.emplace(key, Claim{now, proven, true});
  }
}

void Claims::BeginList(ShardUid shard) {
  for (auto it = claims_.lower_bound({shard, 0}); it != claims_.end() && it->first.first == shard;
       ++it) {
    it->second.listed = false;
  }
}

void Claims::EndList(ShardUid shard) {
  for (auto it = claims_.lower_bound({shard, 0});
       it != claims_.end() && it->first.first == shard;) {
    it = it->second.listed ? std::next(it) : claims_.erase(it);
  }
}

void Claims::ForgetShard(ShardUid shard) {
  BeginList(shard);
  EndList(shard);
}

std::vector<ShardUid> Claims::TakeStale(SteadyTime now) {
  std::vector<ShardUid> out;
  for (auto it = claims_.begin(); it != claims_.end();) {
    if (it->second.proven || now - it->second.since < patience_) {
      ++it;
      continue;
    }
    if (out.empty() || out.back() != it->first.first) out.push_back(it->first.first);
    it = claims_.erase(it);
  }
  return out;
}

std::vector<std::pair<std::uint32_t, ShardUid>> Claims::Doubled(SteadyTime now) const {
  std::vector<std::pair<std::uint32_t, ShardUid>> out;
  for (const auto& [key, claim] : claims_) {
    if (claim.proven && now - claim.since >= patience_) out.emplace_back(key.second, key.first);
  }
  return out;
}

}  // namespace etalon::router
