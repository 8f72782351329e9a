#include "operator/plan/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "operator/plan/names.h"

namespace etalon::controller {

const ReplicaView* ShardView::Find(const std::string& replica) const {
  const auto it = std::find_if(replicas.begin(), replicas.end(),
                               [&](const ReplicaView& r) { return r.name == replica; });
  return it == replicas.end() ? nullptr : &*it;
}

std::uint64_t RowsOf(const v1::InfoResponse& info) {
  const v1::BucketCounts& c = info.buckets();
  return c.active() + c.pinned() + c.sending() + c.sent() + c.receiving() + c.garbage() +
         c.quarantined();
}

std::uint64_t OwnedBy(const v1::InfoResponse& info) {
  const v1::BucketCounts& c = info.buckets();
  return c.active() + c.pinned() + c.sending();
}

bool IsOpen(const v1::SplitTask& task) {
  return task.state() != v1::SPLIT_DONE && task.state() != v1::SPLIT_ABORTED;
}

View::View(const CollectionSpec& spec, const Observed& observed)
    : spec_(spec), observed_(observed) {
  if (const Topologies* all = observed.topologies.get(); all != nullptr && !all->empty())
    topology_ = &all->rbegin()->second;
  if (const SettingsByVersion* all = observed.settings.get(); all != nullptr && !all->empty()) {
    settings_ = &all->rbegin()->second;
  }
  highest_topology_ = topology_version();
  highest_settings_ = settings_version();

  std::set<ShardUid> known;
  std::uint32_t active = 0;
  if (topology_ != nullptr) {
    for (const v1::ShardInfo& shard : topology_->shards()) {
      AddShard(shard.name(), ShardUid(shard.uid()), Role::kKeep);
      known.insert(ShardUid(shard.uid()));
      if (shards_.back().role == Role::kKeep) ++active;
    }
  }
  // Shards that are to be made. A collection that is not complete is finished as it was begun.
  if (topology_ == nullptr || topology_->complete()) {
    for (std::uint32_t number = 0; active < spec.shard_num; ++number) {
      const ShardUid uid = UidOf(observed.collection, number);
      const bool doomed = observed.doomed.get() != nullptr && observed.doomed.value().contains(uid);
      if (known.contains(uid) || IsRemoved(uid) || doomed) continue;
      AddShard(ShardName(number), uid, Role::kNew);
      known.insert(uid);
      ++active;
    }
  }
  if (const auto* storages = observed.storages.get()) {
    for (const auto& [name, seen] : *storages) {
      if (known.contains(seen.uid)) continue;
      known.insert(seen.uid);
      const bool doomed =
          observed.doomed.get() != nullptr && observed.doomed.value().contains(seen.uid);
      AddShard(seen.shard, seen.uid, doomed || IsRemoved(seen.uid) ? Role::kRemoved : Role::kStray);
    }
  }
  if (const auto* routers = observed.routers.get()) {
    for (const auto& [name, router] : *routers) {
      if (router.info.known())
        highest_topology_ = std::max(highest_topology_, router.info.value().topology_version());
    }
  }
  for (const ShardView& shard : shards_) {
    if (shard.leader != nullptr) level_ = std::max(level_, shard.leader->level());
  }
}

void View::AddShard(const std::string& name, ShardUid uid, Role role) {
  ShardView shard;
  shard.name = name;
  shard.uid = uid;
  shard.role = role;
  FillShard(&shard);
  shards_.push_back(std::move(shard));
}

void View::FillShard(ShardView* shard) {
  if (topology_ != nullptr) {
    for (const v1::ShardInfo& declared : topology_->shards()) {
      if (ShardUid(declared.uid()) == shard->uid) shard->declared = &declared;
    }
  }
  if (settings_ != nullptr) {
    for (const v1::ShardSettings& settings : settings_->shards()) {
      if (ShardUid(settings.uid()) == shard->uid) shard->settings = &settings;
    }
  }
  if (const Forms* forms = observed_.forms.get()) {
    if (const auto it = forms->find(shard->uid); it != forms->end()) shard->form = &it->second;
  }
  std::set<std::string> names;
  if (shard->declared != nullptr) {
    for (const v1::ReplicaInfo& replica : shard->declared->replicas()) names.insert(replica.name());
  }
  if (shard->role == Role::kNew || shard->role == Role::kKeep) {
    for (std::uint32_t i = 0; i < spec_.replicas_per_shard; ++i)
      names.insert(ReplicaName(spec_.name, shard->name, i));
  }
  const auto* storages = observed_.storages.get();
  if (storages != nullptr) {
    for (const auto& [name, seen] : *storages) {
      if (seen.uid == shard->uid) names.insert(name);
    }
  }
  for (const std::string& name : names) {
    ReplicaView replica;
    replica.name = name;
    if (storages != nullptr) {
      if (const auto it = storages->find(name); it != storages->end()) replica.seen = &it->second;
    }
    if (replica.seen != nullptr && replica.seen->process.disk_foreign) {
      foreign_.push_back(fmt::format("{} has a disk that belongs to somebody else ({})", name,
                                     replica.seen->process.last_words));
    }
    if (replica.seen != nullptr && replica.seen->info.known()) {
      const v1::InfoResponse& info = replica.seen->info.value();
      const bool identified = info.member() != 0;
      if (identified && (CollectionId(info.collection()) != observed_.collection ||
                         ShardUid(info.shard()) != shard->uid)) {
        foreign_.push_back(
            fmt::format("{} answers as shard {} of collection {}, not as shard {} of collection {}",
                        name, ToHex(info.shard()), ToHex(info.collection()),
                        ToHex(shard->uid.value()), ToHex(observed_.collection.value())));
      } else if (identified) {
        replica.info = &info;
        highest_topology_ = std::max(highest_topology_, info.topology_version());
        highest_settings_ = std::max(highest_settings_, info.settings_version());
        if (info.formed() && info.leader() && info.lease() &&
            (shard->leader == nullptr || shard->leader->term() < info.term())) {
          shard->leader = &info;
        }
        // Applied somewhere means committed, and nothing leads back from there.
        if (info.retired() && shard->role == Role::kKeep) shard->role = Role::kRetired;
      }
    }
    shard->replicas.push_back(std::move(replica));
  }
  std::size_t running = 0;
  std::size_t members = 0;
  for (const ReplicaView& replica : shard->replicas) {
    const bool declared =
        shard->declared == nullptr ||
        std::any_of(shard->declared->replicas().begin(), shard->declared->replicas().end(),
                    [&](const v1::ReplicaInfo& r) { return r.name() == replica.name; });
    if (!declared) continue;
    ++members;
    running += replica.state() == ProcessState::kUp || replica.state() == ProcessState::kUnknown;
  }
  shard->may_have_quorum =
      shard->leader != nullptr || (shard->form != nullptr && running * 2 > members);
}

const v1::Topology* View::TopologyAt(std::uint64_t version) const {
  const Topologies* all = observed_.topologies.get();
  if (all == nullptr) return nullptr;
  const auto it = all->find(version);
  return it == all->end() ? nullptr : &it->second;
}

bool View::IsRemoved(ShardUid shard) const {
  if (topology_ == nullptr) return false;
  const auto& removed = topology_->removed_shards();
  return std::find(removed.begin(), removed.end(), shard.value()) != removed.end();
}

const ShardView* View::Find(ShardUid shard) const {
  const auto it = std::find_if(shards_.begin(), shards_.end(),
                               [&](const ShardView& s) { return s.uid == shard; });
  return it == shards_.end() ? nullptr : &*it;
}

bool View::RoutersKnow(std::uint64_t version, std::string* who) const {
  const auto* routers = observed_.routers.get();
  if (routers == nullptr) {
    *who = "the routers, which could not be listed";
    return false;
  }
  for (const auto& [name, router] : *routers) {
    switch (router.process.state) {
      case ProcessState::kAbsent:
      case ProcessState::kDown:
        continue;
      case ProcessState::kUnknown:
      case ProcessState::kUp:
        break;
    }
    if (!router.info.known()) {
      *who = fmt::format("router {}, which does not answer", name);
      return false;
    }
    if (router.info.value().topology_version() < version) {
      *who = fmt::format("router {}, which has topology {}", name,
                         router.info.value().topology_version());
      return false;
    }
  }
  return true;
}

std::uint64_t View::AtHighestLevel(const v1::InfoResponse& info, std::uint64_t buckets) const {
  return buckets << (level_ - info.level());
}

}  // namespace etalon::controller
