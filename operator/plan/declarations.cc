// The two declarations: the topology, which routers must know, and the settings, which concern
// storages alone. A new version is made when what should be declared differs from the newest
// version, whatever its number.
#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "operator/plan/names.h"
#include "operator/plan/planner.h"
#include "placement/etalon.h"

namespace etalon::controller {
namespace {

template <class Message>
bool SameButVersion(Message a, Message b) {
  a.clear_version();
  b.clear_version();
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

}  // namespace

// ---- topology
// -----------------------------------------------------------------------------------------------------------

bool Planner::FirstReplicasReady(const ShardView& shard, bool must_be_blank) {
  std::vector<std::string> missing;
  for (std::uint32_t i = 0; i < spec_.replicas_per_shard; ++i) {
    const ReplicaView* replica = shard.Find(ReplicaName(spec_.name, shard.name, i));
    const bool answered =
        replica != nullptr && replica->info != nullptr && !replica->seen->process.address.empty();
    if (!answered || (must_be_blank && replica->info->formed()))
      missing.push_back(ReplicaName(spec_.name, shard.name, i));
  }
  if (missing.empty()) return true;
  std::string why;
  if (const ReplicaView* replica = shard.Find(missing.front());
      replica != nullptr && replica->seen != nullptr) {
    if (!replica->seen->process.last_words.empty())
      why = ", which ended: " + replica->seen->process.last_words;
  }
  WaitFor(
      "first replicas of " + shard.name,
      fmt::format("waits for {} to answer that its disk belongs to no shard yet{}", missing.front(),
                  why),
      fmt::format("{} of {} replicas of {}", missing.size(), spec_.replicas_per_shard, shard.name),
      "then a topology names the shard and it is formed");
  return false;
}

void Planner::DescribeReplicas(const ShardView& shard, v1::ShardInfo* info) {
  std::vector<v1::ReplicaInfo> replicas;
  for (const ReplicaView& replica : shard.replicas) {
    const v1::ReplicaInfo* before = nullptr;
    for (const v1::ReplicaInfo& r : info->replicas()) {
      if (r.name() == replica.name) before = &r;
    }
    const bool wanted = ReplicaOrdinal(spec_.name, shard.name, replica.name).value_or(~0u) <
                        spec_.replicas_per_shard;
    const auto named = [&] {
      return std::any_of(shard.leader->members().begin(), shard.leader->members().end(),
                         [&](const v1::MemberInfo& m) { return m.name() == replica.name; });
    };
    const bool keep = before != nullptr && (wanted || shard.leader == nullptr || named());
    const bool add = before == nullptr && wanted && replica.info != nullptr &&
                     !replica.seen->process.address.empty();
    if (!keep && !add) continue;
    v1::ReplicaInfo out = before == nullptr ? v1::ReplicaInfo() : *before;
    out.set_name(replica.name);
    if (replica.seen != nullptr && !replica.seen->process.address.empty()) {
      out.set_address(replica.seen->process.address);
      out.set_node(replica.seen->process.node);
      out.set_zone(replica.seen->process.zone);
    }
    if (const auto zone = spec_.zones.find(replica.name); zone != spec_.zones.end())
      out.set_zone(zone->second);
    replicas.push_back(std::move(out));
  }
  info->mutable_replicas()->Assign(replicas.begin(), replicas.end());
}

void Planner::DescribeSpec(v1::Topology* topology) const {
  std::uint32_t highest = 0;
  std::set<std::string> names;
  for (const v1::Space& space : topology->spaces()) {
    highest = std::max(highest, space.number());
    names.insert(space.name());
  }
  for (const std::string& name : spec_.spaces) {
    if (!names.insert(name).second) continue;
    v1::Space* space = topology->add_spaces();
    space->set_name(name);
    space->set_number(++highest);
  }
  topology->clear_distances();
  for (const ZoneDistance& d : spec_.distances) {
    v1::ZoneDistance* out = topology->add_distances();
    out->set_from(d.from);
    out->set_to(d.to);
    out->set_distance(d.distance);
  }
}

v1::Topology Planner::FirstTopology() {
  v1::Topology topology;
  topology.set_collection(seen_.collection.value());
  topology.set_collection_name(spec_.name);
  topology.set_bucket_count(spec_.bucket_count);
  topology.mutable_shard_by()->set_field(spec_.shard_by_field);
  topology.mutable_shard_by()->set_type(spec_.key_type);
  topology.mutable_shard_by()->set_hash(spec_.hash);
  DescribeSpec(&topology);
  std::vector<placement::ShardLoad> loads;
  // An adopted collection is formed and serves already.
  topology.set_complete(
      std::all_of(view_.shards().begin(), view_.shards().end(),
                  [](const ShardView& s) { return s.role != Role::kNew || s.leader != nullptr; }));
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kNew) continue;
    const ShardOverride wish = spec_.Override(shard.name);
    placement::ShardLoad load;
    load.name = shard.name;
    load.uid = shard.uid;
    load.weight = wish.policy == ShardPolicy::kDraining ? 0 : wish.weight;
    load.locked = wish.policy == ShardPolicy::kLocked;
    loads.push_back(std::move(load));
    v1::ShardInfo* info = topology.add_shards();
    info->set_name(shard.name);
    info->set_uid(shard.uid.value());
    info->set_state(topology.complete() ? v1::SHARD_NORMAL : v1::SHARD_CREATING);
    DescribeReplicas(shard, info);
  }
  const auto ranges = placement::PlanBootstrap(loads, spec_.bucket_count);
  if (!ranges.ok()) {
    WaitFor("ranges",
            "waits for a manifest by which the buckets can be placed: " + ranges.status().message(),
            "", "then the first topology is made");
    return {};
  }
  for (const placement::BucketRange& range : *ranges) {
    for (v1::ShardInfo& info : *topology.mutable_shards()) {
      if (ShardUid(info.uid()) != range.uid) continue;
      v1::BucketRange* out = info.add_initial();
      out->set_first(range.first);
      out->set_last(range.first + range.count - 1);
    }
  }
  return topology;
}

v1::Topology Planner::DesiredTopology() {
  v1::Topology topology = *view_.topology();
  DescribeSpec(&topology);
  std::vector<v1::ShardInfo> shards;
  bool all_led = true;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr) continue;
    const bool never_formed =
        shard.role == Role::kVictim && shard.creating() && shard.form == nullptr;
    const bool retired = shard.role == Role::kRetired && shard.leader != nullptr &&
                         shard.leader->retired() && RowsOf(*shard.leader) == 0;
    if (never_formed || retired) {
      topology.add_removed_shards(shard.uid.value());
      continue;
    }
    v1::ShardInfo info = *shard.declared;
    DescribeReplicas(shard, &info);
    all_led = all_led && shard.leader != nullptr;
    // A later shard is Normal once it takes its part; one that is to take none, once it serves.
    if (complete() && shard.creating() && shard.role == Role::kKeep && shard.leader != nullptr &&
        shard.leader->settings_version() == view_.settings_version() &&
        (shard.weight() > 0 || !MayTakeBuckets(shard))) {
      info.set_state(v1::SHARD_NORMAL);
    }
    shards.push_back(std::move(info));
  }
  if (!topology.complete() && all_led) {
    topology.set_complete(true);
    for (v1::ShardInfo& info : shards) info.set_state(v1::SHARD_NORMAL);
  }
  // All new shards at once, so that what moves is planned once.
  bool ready = complete();
  for (const ShardView& shard : view_.shards()) {
    if (shard.role == Role::kNew && !FirstReplicasReady(shard, true)) ready = false;
  }
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kNew || !ready) continue;
    v1::ShardInfo info;
    info.set_name(shard.name);
    info.set_uid(shard.uid.value());
    info.set_state(v1::SHARD_CREATING);
    DescribeReplicas(shard, &info);
    shards.push_back(std::move(info));
  }
  topology.mutable_shards()->Assign(shards.begin(), shards.end());
  return topology;
}

void Planner::PlanTopology() {
  v1::Topology topology;
  if (view_.topology() == nullptr) {
    // Not before every first replica has said that it is blank, or (a collection that was adopted)
    // already part of this one.
    bool ready = true;
    for (const ShardView& shard : view_.shards()) {
      if (shard.role == Role::kNew && !FirstReplicasReady(shard, false)) ready = false;
    }
    if (!ready) return;
    topology = FirstTopology();
    if (topology.shards().empty()) return;
  } else {
    topology = DesiredTopology();
    const bool behind = view_.highest_topology() > view_.topology_version();
    if (!behind && SameButVersion(topology, *view_.topology())) return;
  }
  topology.set_version(view_.highest_topology() + 1);
  Do(CreateTopology{std::move(topology)});
}

// ---- settings
// -----------------------------------------------------------------------------------------------------------

bool Planner::MayTakeBuckets(const ShardView& shard) const {
  const ShardOverride wish = spec_.Override(shard.name);
  return wish.policy == ShardPolicy::kBalanced && wish.weight > 0;
}

std::uint32_t Planner::DesiredWeight(const ShardView& shard) const {
  if (shard.role != Role::kKeep) return 0;
  const ShardOverride wish = spec_.Override(shard.name);
  const std::uint32_t weight = wish.policy == ShardPolicy::kDraining ? 0 : wish.weight;
  if (shard.settings == nullptr && !complete()) return weight;  // the first settings
  // A shard that took nothing so far may have retired meanwhile, which only it can tell.
  if (shard.weight() == 0 && shard.leader == nullptr) return 0;
  if (!shard.creating() || shard.weight() > 0) return weight;
  if (!complete()) return weight;
  // A new shard gets its weight when its split is closed, or, without a split, when all new shards
  // serve and everybody knows them.
  if (splits_.by_split)
    return splits_.committed.contains(shard.uid) && !splits_.under_way ? weight : 0;
  for (const ShardView& other : view_.shards()) {
    if (other.role == Role::kNew) return 0;
    if (other.declared == nullptr || other.role == Role::kRetired) continue;
    if (other.creating() && other.role == Role::kKeep && other.leader == nullptr) return 0;
    if (other.leader != nullptr && !KnowsTarget(other, shard.uid)) return 0;
  }
  return weight;
}

ShardUid Planner::ChooseRebalancer() const {
  const auto fit = [&](const ShardView& shard) {
    return shard.declared != nullptr && shard.role == Role::kKeep &&
           spec_.Override(shard.name).policy != ShardPolicy::kLocked;
  };
  switch (spec_.rebalancing.mode) {
    case RebalancingMode::kDisabled:
      return {};
    case RebalancingMode::kManual:
      for (const ShardView& shard : view_.shards()) {
        if (shard.declared != nullptr && shard.name == spec_.rebalancing.shard) return shard.uid;
      }
      return {};
    case RebalancingMode::kAutomatic:
      break;
  }
  const ShardUid current(view_.settings() == nullptr ? 0 : view_.settings()->rebalancer());
  const ShardView* now = view_.Find(current);
  if (now != nullptr && fit(*now)) {
    const auto led = seen_.led.find(current);
    if (now->leader != nullptr || (led != seen_.led.end() && now_ - led->second < kRebalancerGrace))
      return current;
  }
  for (const ShardView& shard : view_.shards()) {
    if (fit(shard) && (shard.leader != nullptr || !complete())) return shard.uid;
  }
  return now == nullptr || now->declared == nullptr ? ShardUid() : current;  // nobody is better
}

v1::Settings Planner::DesiredSettings() {
  v1::Settings settings;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr) continue;
    v1::ShardSettings* out = settings.add_shards();
    out->set_uid(shard.uid.value());
    out->set_weight(DesiredWeight(shard));
    out->set_locked(shard.role == Role::kKeep &&
                    spec_.Override(shard.name).policy == ShardPolicy::kLocked);
  }
  const RebalancingSpec& r = spec_.rebalancing;
  switch (r.mode) {
    case RebalancingMode::kAutomatic:
      settings.set_mode(v1::REBALANCER_AUTOMATIC);
      break;
    case RebalancingMode::kManual:
      settings.set_mode(v1::REBALANCER_MANUAL);
      break;
    case RebalancingMode::kDisabled:
      settings.set_mode(v1::REBALANCER_DISABLED);
      break;
  }
  settings.set_rebalancer(ChooseRebalancer().value());
  settings.set_max_sending(r.max_sending);
  settings.set_max_receiving(r.max_receiving);
  settings.set_disbalance_threshold_percent(r.disbalance_threshold_percent);
  settings.set_max_freeze_millis(r.max_freeze_millis);
  settings.set_max_transfer_bytes_per_second(r.max_transfer_bytes_per_second);
  settings.set_leader_zone(spec_.leader_zone);
  std::set<std::string> closed = splits_.to_close;
  if (view_.settings() != nullptr) {
    closed.insert(view_.settings()->closed_splits().begin(),
                  view_.settings()->closed_splits().end());
  }
  for (const std::string& task : closed) settings.add_closed_splits(task);
  return settings;
}

void Planner::PlanSettings() {
  if (view_.topology() == nullptr) return;
  v1::Settings settings = DesiredSettings();
  if (view_.settings() != nullptr && view_.highest_settings() == view_.settings_version() &&
      SameButVersion(settings, *view_.settings())) {
    return;
  }
  settings.set_version(view_.highest_settings() + 1);
  Do(CreateSettings{std::move(settings)});
}

// ---- handing them out
// ---------------------------------------------------------------------------------------------------

void Planner::SpreadTopology() {
  const std::uint64_t version = view_.topology_version();
  if (version == 0) return;
  ApplyTopology apply;
  apply.version = version;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr) continue;
    if (shard.leader != nullptr && shard.leader->topology_version() < version)
      apply.shards.push_back(shard.uid);
    if (shard.leader == nullptr && shard.form != nullptr) {
      WaitFor("leader of " + shard.name, fmt::format("waits for a leader of {}", shard.name), "",
              fmt::format("it learns topology {} and settings {} then", version,
                          view_.settings_version()));
    }
  }
  if (apply.shards.empty()) return;
  std::string who;
  if (!view_.RoutersKnow(version, &who)) {
    return WaitFor("routers",
                   fmt::format("waits for {} before the storages learn topology {}", who, version),
                   fmt::format("{} shards have an older one", apply.shards.size()),
                   "routers first, then storages");
  }
  Do(std::move(apply));
}

void Planner::SpreadSettings() {
  const std::uint64_t version = view_.settings_version();
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || shard.leader == nullptr ||
        shard.leader->settings_version() >= version)
      continue;
    Do(ApplySettings{version, shard.uid});
  }
}

}  // namespace etalon::controller
