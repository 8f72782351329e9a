// Who is where: members of our own shard by disk, leaders of other shards by what they last told.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "env/transport.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::storage {

class Peers {
 public:
  // Addresses of every replica go to the transport.
  void SetTopology(const v1::Topology& topology, Transport* net);
  void SetMembers(const std::vector<v1::MemberInfo>& members);
  // A member that a message came from: how a blank disk learns whom to answer.
  void Learn(MemberId member, const NodeName& name) { learned_[member] = name; }

  std::optional<NodeName> NameOf(MemberId member) const;
  std::optional<MemberId> MemberOf(const NodeName& name) const;

  // The replica to ask for the leader of a shard: the last hint, else another one each time it is
  // asked, so that a wrong guess is not repeated. nullopt: this topology does not know the shard.
  std::optional<NodeName> LeaderOf(ShardUid shard);
  // `leader` empty: whoever was asked does not lead and knows nobody.
  void LeaderHint(ShardUid shard, const NodeName& leader, Term term);
  // A message of the leader itself arrived.
  void LeaderSeen(ShardUid shard, const NodeName& leader, Term term) {
    LeaderHint(shard, leader, term);
  }

  const std::vector<NodeName>& ReplicasOf(ShardUid shard) const;

 private:
  struct Known {
    std::vector<NodeName> replicas;
    NodeName leader;
    Term term;
    std::size_t next = 0;
  };
  std::map<MemberId, NodeName> members_;
  std::map<MemberId, NodeName> learned_;
  std::map<ShardUid, Known> shards_;
};

}  // namespace etalon::storage
