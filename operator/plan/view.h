// What follows from the observations without any decision: who leads, who is formed, which versions
// are about.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/manifest/collection_spec.h"
#include "operator/plan/observed.h"

namespace etalon::controller {

struct ReplicaView {
  std::string name;
  const StorageSeen* seen = nullptr;  // null: the platform knows no such process
  const v1::InfoResponse* info =
      nullptr;  // it answered, as a replica of this shard of this collection
  ProcessState state() const {
    return seen == nullptr ? ProcessState::kAbsent : seen->process.state;
  }
  bool unformed() const { return info != nullptr && !info->formed() && info->member() != 0; }
};

enum class Role : std::uint8_t {
  kNew,      // to be made; no topology names it yet
  kKeep,     // declared, and to stay
  kVictim,   // declared, and to go
  kRetired,  // declared, and holds nothing any more, for good
  kRemoved,  // the topology says that it is gone; processes or volumes are left
  kStray,    // processes or volumes of a shard that no topology has named
};

struct ShardView {
  std::string name;
  ShardUid uid;
  Role role = Role::kStray;
  const v1::ShardInfo* declared = nullptr;      // in the newest topology
  const v1::FormRequest* form = nullptr;        // on record
  const v1::InfoResponse* leader = nullptr;     // answered with a lease
  const v1::ShardSettings* settings = nullptr;  // in the newest settings
  std::vector<ReplicaView> replicas;  // every one that is declared, wanted or seen; by name
  bool may_have_quorum = false;       // not known to be without

  bool creating() const { return declared != nullptr && declared->state() == v1::SHARD_CREATING; }
  std::uint64_t weight() const { return settings == nullptr ? 0 : settings->weight(); }
  const ReplicaView* Find(const std::string& replica) const;
};

// Rows of any status: what keeps a shard from retiring.
std::uint64_t RowsOf(const v1::InfoResponse& info);
// Buckets it owns: ACTIVE, PINNED, SENDING.
std::uint64_t OwnedBy(const v1::InfoResponse& info);
// Whether a split task still holds its source: everything before Done, except Aborted.
bool IsOpen(const v1::SplitTask& task);

class View {
 public:
  View(const CollectionSpec& spec, const Observed& observed);

  const v1::Topology* topology() const { return topology_; }  // newest stored; null: none
  const v1::Settings* settings() const { return settings_; }
  std::uint64_t topology_version() const { return topology_ == nullptr ? 0 : topology_->version(); }
  std::uint64_t settings_version() const { return settings_ == nullptr ? 0 : settings_->version(); }
  // Highest that anybody named, stored or not.
  std::uint64_t highest_topology() const { return highest_topology_; }
  std::uint64_t highest_settings() const { return highest_settings_; }
  const v1::Topology* TopologyAt(std::uint64_t version) const;
  bool IsRemoved(ShardUid shard) const;

  std::vector<ShardView>& shards() { return shards_; }
  const std::vector<ShardView>& shards() const { return shards_; }
  const ShardView* Find(ShardUid shard) const;

  // Every router that runs says that it has at least that version. A router that does not answer is
  // not known to have it; `who` then names it.
  bool RoutersKnow(std::uint64_t version, std::string* who) const;

  // Over the shards that are led: the highest level of any, and a shard's buckets at that level.
  std::uint32_t level() const { return level_; }
  std::uint64_t AtHighestLevel(const v1::InfoResponse& info, std::uint64_t buckets) const;

  // Answers that do not fit: another collection, another shard. Sentences.
  const std::vector<std::string>& foreign() const { return foreign_; }

 private:
  void AddShard(const std::string& name, ShardUid uid, Role role);
  void FillShard(ShardView* shard);

  const CollectionSpec& spec_;
  const Observed& observed_;
  const v1::Topology* topology_ = nullptr;
  const v1::Settings* settings_ = nullptr;
  std::uint64_t highest_topology_ = 0;
  std::uint64_t highest_settings_ = 0;
  std::uint32_t level_ = 0;
  std::vector<ShardView> shards_;
  std::vector<std::string> foreign_;
};

}  // namespace etalon::controller
