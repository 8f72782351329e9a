#include "sim/cluster/cluster.h"

#include <utility>

#include "common/check.h"
#include "proto/wire.h"

namespace etalon::sim {

namespace {

v1::Topology MakeTopology(const ClusterOptions& options) {
  v1::Topology t;
  t.set_version(1);
  t.set_collection(kCollection.value());
  t.set_collection_name("sim");
  t.set_bucket_count(options.bucket_count);
  t.mutable_shard_by()->set_field("id");
  t.mutable_shard_by()->set_type(v1::KEY_TYPE_STRING);
  t.mutable_shard_by()->set_hash(v1::HASH_CRC32);
  int number = 1;
  for (const char* name : {"rows", "other", "customers", "accounts"}) {
    v1::Space& space = *t.add_spaces();
    space.set_name(name);
    space.set_number(static_cast<std::uint32_t>(number++));
  }
  const auto owners = static_cast<std::uint32_t>(options.shards_with_buckets);
  for (int s = 0; s < options.shards; ++s) {
    v1::ShardInfo& shard = *t.add_shards();
    shard.set_name("shard-" + std::to_string(s));
    shard.set_uid(Cluster::Uid(s).value());
    shard.set_state(v1::SHARD_NORMAL);
    for (int r = 0; r < options.replicas; ++r) {
      v1::ReplicaInfo& replica = *shard.add_replicas();
      replica.set_name(Cluster::StorageName(s, r));
      replica.set_address(replica.name());
    }
    const auto i = static_cast<std::uint32_t>(s);
    if (i < owners) {
      v1::BucketRange& range = *shard.add_initial();
      range.set_first(options.bucket_count * i / owners);
      range.set_last(options.bucket_count * (i + 1) / owners - 1);
    }
  }
  return t;
}

}  // namespace

NodeName Cluster::StorageName(int shard, int replica) {
  return "shard-" + std::to_string(shard) + "-" + std::to_string(replica);
}

Cluster::Cluster(SimWorld& world, ClusterOptions options)
    : world_(world), options_(options), topology_(MakeTopology(options)) {
  settings_.set_version(1);
  for (const auto& shard : topology_.shards()) {
    v1::ShardSettings& s = *settings_.add_shards();
    s.set_uid(shard.uid());
    s.set_weight(100);
  }
  settings_.set_mode(options.rebalancer);
  settings_.set_rebalancer(options.rebalancer == v1::REBALANCER_DISABLED ? 0 : Uid(0).value());
  settings_.set_max_sending(4);
  settings_.set_max_receiving(16);
  settings_.set_disbalance_threshold_percent(1);
  settings_.set_max_freeze_millis(5);
  for (int s = 0; s < options_.shards; ++s) {
    shards_.push_back(s);
    for (const NodeName& name : StoragesOf(s)) storage_names_.push_back(name);
  }
  nodes_.resize(storage_names_.size(), nullptr);
  client_.emplace(world_.AddNode("client"));
  world_.net().SetReliable("client");
  world_.SetReceiver("client", [this](const NodeName&, Lane, const std::string& bytes) {
    v1::NodeMessage message;
    if (message.ParseFromString(bytes)) Receive(message);
  });
}

Cluster::~Cluster() {
  for (const NodeName& name : storage_names_) {
    if (storages_.contains(name)) Crash(name);
  }
  for (int r = 0; r < options_.routers; ++r) {
    if (routers_.contains(RouterName(r))) Crash(RouterName(r));
  }
}

std::vector<NodeName> Cluster::StoragesOf(int shard) const {
  std::vector<NodeName> out;
  for (int r = 0; r < options_.replicas; ++r) out.push_back(StorageName(shard, r));
  return out;
}

std::size_t Cluster::SlotOf(const NodeName& name) const {
  for (int s = 0; s < options_.shards; ++s) {
    for (int r = 0; r < options_.replicas; ++r) {
      if (name == StorageName(s, r)) return Slot(s, r);
    }
  }
  ETALON_CHECK(false, "not a storage");
}

int Cluster::ShardOf(const NodeName& name) const {
  return static_cast<int>(SlotOf(name)) / options_.replicas;
}

Env Cluster::AddNode(const NodeName& name) {
  Random& random = world_.random();
  const auto span = static_cast<std::uint64_t>(options_.drift_ppm);
  return world_.AddNode(name, {.skew = random.Between(Duration::zero(), std::chrono::hours(1)),
                               .drift_ppm = static_cast<std::int64_t>(random.Below(2 * span + 1)) -
                                            options_.drift_ppm});
}

storage::Node* Cluster::storage(const NodeName& name) {
  auto it = storages_.find(name);
  return it == storages_.end() ? nullptr : it->second.get();
}
router::Node* Cluster::router(const NodeName& name) {
  auto it = routers_.find(name);
  return it == routers_.end() ? nullptr : it->second.get();
}

void Cluster::StartStorage(const NodeName& name, Env env) {
  storage::NodeOptions options;
  options.collection = kCollection;
  options.shard = Uid(ShardOf(name));
  options.replica = name;
  options.seed_topology = topology_;
  options.log_segment_bytes = 256u << 10;
  options.reserve_bytes = 1u << 20;
  if (options_.fast_checkpoints) {
    options.checkpoint_bytes = 4u << 10;
    options.checkpoint_every = std::chrono::seconds(2);
    options.raft.log_bytes = 64u << 10;
    options.raft.log_entries = 200;
  }
  auto& factory = factories_[name];
  factory = std::make_unique<store::MemoryStoreFactory>(env.disk);
  auto node = std::make_unique<storage::Node>(
      env, options, *factory, [this, name](const Status& status) { Died(name, status); });
  storage::Node* raw = node.get();
  storages_[name] = std::move(node);
  nodes_[SlotOf(name)] = raw;
  world_.SetReceiver(name, [raw](const NodeName& from, Lane lane, const std::string& bytes) {
    raw->OnMessage(from, lane, bytes);
  });
  if (Status status = raw->Start(); !status.ok()) Died(name, status);
}

void Cluster::Died(const NodeName& name, const Status& status) {
  if (!expected_ || !expected_(name, status)) fatal_.push_back(name + ": " + status.ToString());
}

void Cluster::StartRouter(const NodeName& name, Env env) {
  router::Options options;
  options.name = name;
  options.collection = kCollection;
  options.topology = topology_;
  auto node = std::make_unique<router::Node>(env, options);
  router::Node* raw = node.get();
  routers_[name] = std::move(node);
  world_.SetReceiver(name, [raw](const NodeName& from, Lane lane, std::string bytes) {
    raw->OnMessage(from, lane, std::move(bytes));
  });
  world_.net().SetEndWatcher(name, [raw](const NodeName& peer) { raw->OnDisconnect(peer); });
}

void Cluster::Crash(const NodeName& name, CrashKind kind) {
  if (storages_.erase(name) > 0) {
    factories_.erase(name);
    nodes_[SlotOf(name)] = nullptr;
  }
  routers_.erase(name);
  world_.Crash(name, kind);
}

void Cluster::Restart(const NodeName& name) {
  Env env = world_.Restart(name);
  name.rfind("router", 0) == 0 ? StartRouter(name, env) : StartStorage(name, env);
}

void Cluster::ReplaceDisk(const NodeName& storage) {
  if (IsUp(storage)) Crash(storage);
  world_.disk(storage).Wipe();
  Restart(storage);
}

void Cluster::DeleteShard(int shard) {
  for (const NodeName& name : StoragesOf(shard)) {
    if (IsUp(name)) Crash(name);
    std::erase(storage_names_, name);
  }
  std::erase(shards_, shard);
}

bool Cluster::Form(Duration limit) {
  for (const NodeName& name : storage_names_) StartStorage(name, AddNode(name));
  const auto all = [&](auto&& predicate) {
    for (auto& [name, node] : storages_) {
      if (!predicate(*node)) return false;
    }
    return true;
  };
  if (!world_.RunUntil([&] { return all([](storage::Node& n) { return n.Serving(); }); }, limit))
    return false;
  for (int s = 0; s < options_.shards; ++s) {
    v1::AdminRequest request;
    v1::FormRequest& form = *request.mutable_form();
    form.set_collection(kCollection.value());
    form.set_shard(Uid(s).value());
    *form.mutable_topology() = topology_;
    *form.mutable_settings() = settings_;
    *form.mutable_ranges() = topology_.shards(s).initial();
    for (const NodeName& name : StoragesOf(s)) {
      v1::MemberInfo& member = *form.add_members();
      member.set_name(name);
      member.set_member(storage(name)->identity().member.value());
    }
    for (const NodeName& name : StoragesOf(s))
      Admin(name, request, [](const v1::AdminResponse&) {});
  }
  const auto formed = [](storage::Node& n) { return n.shard() != nullptr && n.shard()->formed(); };
  if (!world_.RunUntil([&] { return all(formed); }, limit)) return false;
  topology_.set_version(2);
  topology_.set_complete(true);
  v1::AdminRequest apply;
  *apply.mutable_apply_topology()->mutable_topology() = topology_;
  for (int s = 0; s < options_.shards; ++s) {
    if (!AdminUntilOk(s, apply, limit)) return false;
  }
  for (int r = 0; r < options_.routers; ++r) StartRouter(RouterName(r), AddNode(RouterName(r)));
  return world_.RunUntil(
      [&] {
        for (auto& [name, node] : routers_) {
          if (!node->ready()) return false;
        }
        return true;
      },
      limit);
}

std::optional<NodeName> Cluster::LeaderOf(int shard) {
  std::optional<int> best;
  Term term;
  for (int r = 0; r < options_.replicas; ++r) {
    const storage::Node* node = storage(shard, r);
    if (node == nullptr || node->shard() == nullptr || !node->shard()->is_leader()) continue;
    const Term t = node->shard()->replica().status().term;
    if (!best || t > term) best = r, term = t;
  }
  if (!best) return std::nullopt;
  return StorageName(shard, *best);
}

const bucket::StateMachine* Cluster::LeaderState(int shard) {
  const auto leader = LeaderOf(shard);
  return leader ? &storage(*leader)->shard()->state() : nullptr;
}

}  // namespace etalon::sim
