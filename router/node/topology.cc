// How a node takes a topology.
#include <fmt/format.h>

#include <set>
#include <utility>

#include "router/node/node.h"

namespace etalon::router {

Status Node::CheckTopology(const v1::Topology& topology) const {
  const CollectionId mine = directory_ ? directory_->collection() : options_.collection;
  if (mine && CollectionId(topology.collection()) != mine) {
    return InvalidArgument(
        fmt::format("topology {} is of collection {}, this router serves {}", topology.version(),
                    ToHex(topology.collection()), ToHex(mine.value())),
        Reason::kInvalidCfg);
  }
  if (!directory_) return OkStatus();
  Hint hint;
  hint.number = directory_->version().value();
  if (topology.version() < directory_->version().value()) {
    return FailedPrecondition(Reason::kStaleTopology,
                              fmt::format("topology {} is older than {}, which is loaded",
                                          topology.version(), directory_->version().value()),
                              std::move(hint));
  }
  if (topology.version() == directory_->version().value() &&
      topology.SerializeAsString() != directory_->topology().SerializeAsString()) {
    return FailedPrecondition(
        Reason::kTopologyConflict,
        fmt::format("topology {} is loaded with another content: a version is never used twice",
                    topology.version()),
        std::move(hint));
  }
  if (topology.bucket_count() != directory_->bucket_count()) {
    return InvalidArgument(
        fmt::format("topology {} changes the bucket count from {} to {}: it is fixed at creation",
                    topology.version(), directory_->bucket_count(), topology.bucket_count()),
        Reason::kInvalidCfg);
  }
  return OkStatus();
}

Status Node::ApplyTopology(const v1::Topology& topology) {
  ETALON_RETURN_IF_ERROR(CheckTopology(topology));
  if (directory_ && topology.version() == directory_->version().value()) return OkStatus();
  ETALON_ASSIGN_OR_RETURN(directory_, Directory::Make(topology, options_.zone));
  invalid_topology_.clear();
  if (!ownership_) {
    ownership_.emplace(directory_->bucket_count(), options_.doubled_after);
    ready_by_ = now() + options_.ready_bound;
  }
  for (const auto& [uid, shard] : directory_->shards()) {
    for (const Replica& replica : shard.replicas) {
      env_.net.SetAddress(replica.name, replica.address);
    }
  }
  TakeHealth(health_.SetDirectory(now(), directory_, env_.random));
  UpdateFeeds();
  for (std::uint64_t removed : topology.removed_shards()) {
    ownership_->ForgetShard(ShardUid(removed));
  }
  topology_news_ = true;
  env_.log.Info("router_topology_loaded", {{"version", topology.version()}});
  return OkStatus();
}

void Node::UpdateFeeds() {
  for (auto it = feeds_.begin(); it != feeds_.end();) {
    if (directory_->Find(it->first) != nullptr) {
      ++it;
      continue;
    }
    TakeFeed(it->first, it->second, it->second.Stop());
    feed_alarms_.Clear(it->first);
    invalid_feeds_.erase(it->first);
    it = feeds_.erase(it);
  }
  for (const auto& [uid, shard] : directory_->shards()) {
    std::vector<NodeName> names;
    for (const Replica& replica : shard.replicas) names.push_back(replica.name);
    if (const auto it = feeds_.find(uid); it != feeds_.end()) {
      TakeFeed(uid, it->second, it->second.SetReplicas(now(), std::move(names), env_.random));
      continue;
    }
    Feed& feed = feeds_.try_emplace(uid, uid, std::move(names), options_.feed).first->second;
    TakeFeed(uid, feed, feed.Start(now(), env_.random));
  }
}

}  // namespace etalon::router
