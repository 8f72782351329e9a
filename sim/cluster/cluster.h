// A whole collection in a simulated world: storages and routers as their real Nodes over simulated
// disks and network.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/store/memory_store.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/router.pb.h"
#include "etalon/v1/topology.pb.h"
#include "router/node/node.h"
#include "sim/world/world.h"
#include "storage/node/node.h"

namespace etalon::sim {

struct ClusterOptions {
  int shards = 3;
  int replicas = 3;
  int routers = 1;
  std::uint32_t bucket_count = 12;
  // Shards from this one on are formed without buckets (they came later).
  int shards_with_buckets = 3;
  v1::RebalancerMode rebalancer = v1::REBALANCER_DISABLED;
  bool fast_checkpoints = false;  // every few kilobytes of log, so that restarts replay little
};

class Cluster {
 public:
  Cluster(SimWorld& world, ClusterOptions options);
  ~Cluster();

  // Starts everything, forms every shard, declares the collection complete. False when `limit`
  // passes before.
  bool Form(Duration limit);

  // ---- nodes ----
  static NodeName StorageName(int shard, int replica);
  static NodeName RouterName(int router) { return "router-" + std::to_string(router); }
  static ShardUid Uid(int shard) { return ShardUid(0x1000u + static_cast<std::uint64_t>(shard)); }
  const std::vector<NodeName>& storages() const { return storage_names_; }
  std::vector<NodeName> StoragesOf(int shard) const;
  storage::Node* storage(const NodeName& name);  // null while it is down
  router::Node* router(const NodeName& name);
  void Crash(const NodeName& name);
  void Restart(const NodeName& name);
  bool IsUp(const NodeName& name) const { return world_.IsUp(name); }
  // The leader that has applied an entry of its term, of the highest term if there are two;
  // nullopt: none.
  std::optional<NodeName> LeaderOf(int shard);
  // A status that ended a storage's process; tests expect none.
  const std::vector<std::string>& fatal() const { return fatal_; }

  // ---- requests from the node "client" ----
  using AdminDone = std::function<void(const v1::AdminResponse&)>;
  // The answer, or nothing when it is lost.
  void Admin(const NodeName& to, const v1::AdminRequest& request, AdminDone done);
  // Asks the leader of the shard again and again until it answers OK.
  bool AdminUntilOk(int shard, const v1::AdminRequest& request, Duration limit,
                    v1::AdminResponse* response = nullptr);
  using ClientDone = std::function<void(const v1::ClientResponse&)>;
  void Client(const NodeName& router, v1::ClientRequest request, ClientDone done);

  const v1::Topology& topology() const { return topology_; }
  v1::Settings& settings() { return settings_; }
  bool ApplySettings(Duration limit);  // with the next version, to every shard
  SimWorld& world() { return world_; }
  const ClusterOptions& options() const { return options_; }

 private:
  void StartStorage(const NodeName& name, Env env);
  void StartRouter(const NodeName& name, Env env);
  int ShardOf(const NodeName& name) const;

  SimWorld& world_;
  const ClusterOptions options_;
  v1::Topology topology_;
  v1::Settings settings_;
  std::vector<NodeName> storage_names_;
  std::map<NodeName, std::unique_ptr<store::MemoryStoreFactory>> factories_;
  std::map<NodeName, std::unique_ptr<storage::Node>> storages_;
  std::map<NodeName, std::unique_ptr<router::Node>> routers_;
  std::vector<std::string> fatal_;

  std::optional<Env> client_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, AdminDone> admin_;
  std::map<std::uint64_t, ClientDone> clients_;
};

}  // namespace etalon::sim
