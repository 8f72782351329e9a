#include "operator/plan/testing/fixture.h"

#include "operator/plan/names.h"

namespace etalon::controller::testing {
namespace {

constexpr std::uint64_t kCollection = 0xc0;

std::uint64_t MemberOf(std::uint32_t shard, std::uint32_t ordinal) {
  return 1000 + shard * 10 + ordinal;
}

void DeclareReplica(const Fixture& f, std::uint32_t shard, std::uint32_t ordinal,
                    v1::ShardInfo* info) {
  v1::ReplicaInfo* r = info->add_replicas();
  r->set_name(f.Replica(shard, ordinal));
  r->set_address("127.0.0.1:" + std::to_string(7000 + shard * 10 + ordinal));
  r->set_node("local");
}

v1::ShardInfo Declare(const Fixture& f, std::uint32_t shard) {
  v1::ShardInfo info;
  info.set_name(ShardName(shard));
  info.set_uid(f.Uid(shard).value());
  info.set_state(v1::SHARD_NORMAL);
  for (std::uint32_t i = 0; i < f.spec.replicas_per_shard; ++i) DeclareReplica(f, shard, i, &info);
  return info;
}

}  // namespace

Fixture Fixture::Blank(std::uint32_t shards, std::uint32_t replicas, std::uint32_t routers) {
  Fixture f;
  f.spec.name = "orders";
  f.spec.version = "0.1.0";
  f.spec.shard_num = shards;
  f.spec.bucket_count = 3000;
  f.spec.replicas_per_shard = replicas;
  f.spec.routers = routers;
  f.spec.shard_by_field = "id";
  f.spec.spaces = {"orders"};
  f.seen.collection = CollectionId(kCollection);
  f.seen.topologies = Topologies();
  f.seen.settings = SettingsByVersion();
  f.seen.forms = Forms();
  f.seen.doomed = std::set<ShardUid>();
  f.seen.storages = std::map<std::string, StorageSeen>();
  f.seen.routers = std::map<std::string, RouterSeen>();
  return f;
}

Fixture Fixture::AtRest(std::uint32_t shards, std::uint32_t replicas, std::uint32_t routers) {
  Fixture f = Blank(shards, replicas, routers);
  v1::Topology topology;
  topology.set_version(2);
  topology.set_collection(kCollection);
  topology.set_collection_name("orders");
  topology.set_bucket_count(f.spec.bucket_count);
  topology.mutable_shard_by()->set_field("id");
  topology.set_complete(true);
  v1::Space* space = topology.add_spaces();
  space->set_name("orders");
  space->set_number(1);
  v1::Settings settings;
  settings.set_version(1);
  settings.set_rebalancer(f.Uid(0).value());
  settings.set_max_sending(4);
  settings.set_max_receiving(16);
  settings.set_disbalance_threshold_percent(1);
  settings.set_max_freeze_millis(5);
  settings.set_max_transfer_bytes_per_second(200u << 20);
  for (std::uint32_t s = 0; s < shards; ++s) {
    *topology.add_shards() = Declare(f, s);
    v1::ShardSettings* weight = settings.add_shards();
    weight->set_uid(f.Uid(s).value());
    weight->set_weight(100);
    for (std::uint32_t i = 0; i < replicas; ++i) {
      f.AddBlank(s, i);
      f.Storage(s, i).info = InfoOf(f, s, i);
    }
    f.seen.led[f.Uid(s)] = f.now;
  }
  f.seen.topologies.get()->emplace(2, topology);
  f.seen.settings.get()->emplace(1, settings);
  for (std::uint32_t s = 0; s < shards; ++s) {
    v1::FormRequest form;
    form.set_shard(f.Uid(s).value());
    *form.mutable_topology() = topology;
    form.mutable_topology()->set_version(1);
    *form.mutable_settings() = settings;
    *form.mutable_members() = f.Info(s).members();
    f.seen.forms.get()->emplace(f.Uid(s), form);
  }
  for (std::uint32_t i = 0; i < routers; ++i) {
    RouterSeen router;
    router.process.state = ProcessState::kUp;
    v1::RouterInfoResponse info;
    info.set_ready(true);
    info.set_topology_version(2);
    router.info = info;
    f.seen.routers.get()->emplace(RouterName("orders", i), router);
  }
  v1::RebalancerStateResponse rebalancer;
  rebalancer.set_runs_here(true);
  rebalancer.set_state("BALANCED");
  f.seen.rebalancer = rebalancer;
  return f;
}

v1::InfoResponse InfoOf(const Fixture& f, std::uint32_t shard, std::uint32_t ordinal) {
  v1::InfoResponse info;
  info.set_replica(f.Replica(shard, ordinal));
  info.set_member(MemberOf(shard, ordinal));
  info.set_collection(kCollection);
  info.set_shard(f.Uid(shard).value());
  info.set_formed(true);
  info.set_leader(ordinal == 0);
  info.set_lease(ordinal == 0);
  info.set_term(2);
  info.set_last_index(1000);
  info.set_topology_version(2);
  info.set_settings_version(1);
  info.mutable_buckets()->set_active(f.spec.bucket_count / f.spec.shard_num);
  info.set_store_bytes(100 << 20);
  info.set_free_bytes(1000 << 20);
  for (std::uint32_t i = 0; i < f.spec.replicas_per_shard; ++i) {
    v1::MemberInfo* member = info.add_members();
    member->set_member(MemberOf(shard, i));
    member->set_name(f.Replica(shard, i));
    if (ordinal != 0) continue;
    v1::MemberProgress* progress = info.add_progress();
    progress->set_member(MemberOf(shard, i));
    progress->set_name(f.Replica(shard, i));
    progress->set_match_index(1000);
    progress->set_recent(true);
  }
  return info;
}

std::string Fixture::Replica(std::uint32_t shard, std::uint32_t ordinal) const {
  return ReplicaName("orders", ShardName(shard), ordinal);
}

ShardUid Fixture::Uid(std::uint32_t shard) const { return UidOf(CollectionId(kCollection), shard); }

StorageSeen& Fixture::Storage(std::uint32_t shard, std::uint32_t ordinal) {
  return seen.storages.get()->at(Replica(shard, ordinal));
}

v1::InfoResponse& Fixture::Info(std::uint32_t shard, std::uint32_t ordinal) {
  return *Storage(shard, ordinal).info.get();
}

RouterSeen& Fixture::Router(std::uint32_t ordinal) {
  return seen.routers.get()->at(RouterName("orders", ordinal));
}

v1::RouterInfoResponse& Fixture::RouterInfo(std::uint32_t ordinal) {
  return *Router(ordinal).info.get();
}

v1::Topology& Fixture::Topology() { return seen.topologies.get()->rbegin()->second; }

v1::Settings& Fixture::Settings() { return seen.settings.get()->rbegin()->second; }

void Fixture::AddBlank(std::uint32_t shard, std::uint32_t ordinal) {
  StorageSeen storage;
  storage.uid = Uid(shard);
  storage.shard = ShardName(shard);
  storage.process.state = ProcessState::kUp;
  storage.process.address = "127.0.0.1:" + std::to_string(7000 + shard * 10 + ordinal);
  storage.process.node = "local";
  v1::InfoResponse info;
  info.set_replica(Replica(shard, ordinal));
  info.set_member(MemberOf(shard, ordinal));
  info.set_collection(kCollection);
  info.set_shard(Uid(shard).value());
  storage.info = info;
  (*seen.storages.get())[Replica(shard, ordinal)] = storage;
}

void Fixture::AddCreating(std::uint32_t shard) {
  v1::ShardInfo info = Declare(*this, shard);
  info.set_state(v1::SHARD_CREATING);
  *Topology().add_shards() = info;
  Settings().add_shards()->set_uid(Uid(shard).value());
  for (std::uint32_t i = 0; i < spec.replicas_per_shard; ++i) {
    AddBlank(shard, i);
    Storage(shard, i).info = InfoOf(*this, shard, i);
    Info(shard, i).clear_buckets();
    Info(shard, i).set_topology_version(Topology().version());
    Info(shard, i).set_settings_version(Settings().version());
  }
  v1::FormRequest form;
  form.set_shard(Uid(shard).value());
  *form.mutable_topology() = Topology();
  *form.mutable_members() = Info(shard).members();
  seen.forms.get()->emplace(Uid(shard), form);
  seen.led[Uid(shard)] = now;
}

v1::Topology& Fixture::NextTopology() {
  v1::Topology next = Topology();
  next.set_version(next.version() + 1);
  return seen.topologies.get()->emplace(next.version(), next).first->second;
}

v1::Settings& Fixture::NextSettings() {
  v1::Settings next = Settings();
  next.set_version(next.version() + 1);
  return seen.settings.get()->emplace(next.version(), next).first->second;
}

void Fixture::Silence(std::uint32_t shard, std::uint32_t ordinal) {
  Storage(shard, ordinal).info = Seen<v1::InfoResponse>::Unknown("no answer within 1 s");
}

void Fixture::Kill(std::uint32_t shard, std::uint32_t ordinal) {
  Silence(shard, ordinal);
  Storage(shard, ordinal).process.state = ProcessState::kDown;
  Storage(shard, ordinal).process.restart_at = now;
  Storage(shard, ordinal).process.last_words = "killed by signal 9";
}

void Fixture::Drain(std::uint32_t from, std::uint32_t to) {
  auto* counts = Info(to).mutable_buckets();
  counts->set_active(counts->active() + Info(from).buckets().active());
  Info(from).clear_buckets();
}

std::vector<std::string> Fixture::Keys() const {
  std::vector<std::string> keys;
  for (const Action& action : Plan().actions) keys.push_back(Key(action));
  return keys;
}

}  // namespace etalon::controller::testing
