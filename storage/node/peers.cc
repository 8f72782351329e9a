#include "storage/node/peers.h"

#include <algorithm>

namespace etalon::storage {

void Peers::SetTopology(const v1::Topology& topology, Transport* net) {
  std::map<ShardUid, Known> shards;
  for (const auto& shard : topology.shards()) {
    Known& known = shards[ShardUid(shard.uid())];
    for (const auto& replica : shard.replicas()) {
      known.replicas.push_back(replica.name());
      if (!replica.address().empty()) net->SetAddress(replica.name(), replica.address());
    }
    if (auto old = shards_.find(ShardUid(shard.uid())); old != shards_.end()) {
      const bool still_there = std::find(known.replicas.begin(), known.replicas.end(),
                                         old->second.leader) != known.replicas.end();
      known.leader = still_there ? old->second.leader : NodeName();
      known.term = old->second.term;
    }
  }
  shards_ = std::move(shards);
}

void Peers::SetMembers(const std::vector<v1::MemberInfo>& members) {
  members_.clear();
  for (const auto& m : members) members_[MemberId(m.member())] = m.name();
}

std::optional<NodeName> Peers::NameOf(MemberId member) const {
  if (auto it = members_.find(member); it != members_.end()) return it->second;
  if (auto it = learned_.find(member); it != learned_.end()) return it->second;
  return std::nullopt;
}

std::optional<MemberId> Peers::MemberOf(const NodeName& name) const {
  for (const auto& [member, n] : members_) {
    if (n == name) return member;
  }
  return std::nullopt;
}

std::optional<NodeName> Peers::LeaderOf(ShardUid shard) {
  auto it = shards_.find(shard);
  if (it == shards_.end() || it->second.replicas.empty()) return std::nullopt;
  Known& known = it->second;
  if (!known.leader.empty()) return known.leader;
  return known.replicas[known.next++ % known.replicas.size()];
}

void Peers::LeaderHint(ShardUid shard, const NodeName& leader, Term term) {
  auto it = shards_.find(shard);
  if (it == shards_.end() || term < it->second.term) return;
  it->second.leader = leader;
  it->second.term = term;
}

const std::vector<NodeName>& Peers::ReplicasOf(ShardUid shard) const {
  static const std::vector<NodeName> kNone;
  auto it = shards_.find(shard);
  return it == shards_.end() ? kNone : it->second.replicas;
}

}  // namespace etalon::storage
