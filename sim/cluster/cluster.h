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
  int routers = 2;
  std::uint32_t bucket_count = 12;
  // Shards from this one on are formed without buckets (they came later).
  int shards_with_buckets = 3;
  v1::RebalancerMode rebalancer = v1::REBALANCER_DISABLED;
  bool fast_checkpoints = false;  // every few kilobytes of log, so that restarts replay little
  std::int64_t drift_ppm = 100;   // clocks run fast or slow by up to this
};

inline constexpr CollectionId kCollection{0xc0ffee};

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
  const std::vector<int>& shards() const { return shards_; }                // without deleted ones
  const std::vector<NodeName>& storages() const { return storage_names_; }  // of shards()
  std::vector<NodeName> StoragesOf(int shard) const;
  int ShardOf(const NodeName& storage) const;
  storage::Node* storage(const NodeName& name);  // null while it is down
  storage::Node* storage(int shard, int replica) { return nodes_[Slot(shard, replica)]; }
  router::Node* router(const NodeName& name);
  void Crash(const NodeName& name, CrashKind kind = CrashKind::kPower);
  void Restart(const NodeName& name);
  bool IsUp(const NodeName& name) const { return world_.IsUp(name); }
  // Its disk is lost, with everything on it; it comes back on a blank one.
  void ReplaceDisk(const NodeName& storage);
  // As the operator deletes a shard: its nodes are gone for good.
  void DeleteShard(int shard);
  // The leader that has applied an entry of its term, of the highest term if there are two;
  // nullopt: none.
  std::optional<NodeName> LeaderOf(int shard);
  // The state of LeaderOf(shard); null: none.
  const bucket::StateMachine* LeaderState(int shard);

  // Statuses that ended processes, without those that were expected: tests expect none.
  const std::vector<std::string>& fatal() const { return fatal_; }
  // Asked first about each: true if it was expected. The process is as good as dead then.
  void OnFatal(std::function<bool(const NodeName&, const Status&)> expected) {
    expected_ = std::move(expected);
  }

  // ---- requests from the node "client" (requests.cc) ----
  using AdminDone = std::function<void(const v1::AdminResponse&)>;
  // The answer, or nothing when it is lost.
  void Admin(const NodeName& to, const v1::AdminRequest& request, AdminDone done);
  // Asks the leader of the shard again and again until it answers OK.
  bool AdminUntilOk(int shard, const v1::AdminRequest& request, Duration limit,
                    v1::AdminResponse* response = nullptr);
  // The same until the shard decides: any answer but that of a replica that does not lead (any
  // more). nullopt when `limit` passes before.
  std::optional<v1::AdminResponse> AskShard(int shard, const v1::AdminRequest& request,
                                            Duration limit);
  std::optional<v1::AdminResponse> AskReplica(const NodeName& name, const v1::AdminRequest& request,
                                              Duration limit);
  using ClientDone = std::function<void(const v1::ClientResponse&)>;
  // Answered once, by silence too.
  void Client(const NodeName& router, v1::ClientRequest request, ClientDone done);
  std::optional<v1::ClientResponse> AskRouter(const NodeName& router, v1::ClientRequest request,
                                              Duration limit);
  // A call that no router corrects; nullopt when no answer comes.
  std::optional<v1::CallReply> CallStorage(const NodeName& storage, v1::Call call, Duration limit);
  NodeName AnyRouter();

  const v1::Topology& topology() const { return topology_; }
  v1::Topology& mutable_topology() { return topology_; }
  v1::Settings& settings() { return settings_; }
  bool ApplySettings(Duration limit);  // with the next version, to every shard
  bool ApplyTopology(Duration limit);  // the same, routers first
  SimWorld& world() { return world_; }
  const ClusterOptions& options() const { return options_; }

 private:
  std::size_t Slot(int shard, int replica) const {
    return static_cast<std::size_t>(shard * options_.replicas + replica);
  }
  std::size_t SlotOf(const NodeName& storage) const;
  void StartStorage(const NodeName& name, Env env);
  void StartRouter(const NodeName& name, Env env);
  void Receive(const v1::NodeMessage& message);
  void Died(const NodeName& name, const Status& status);
  Env AddNode(const NodeName& name);

  SimWorld& world_;
  const ClusterOptions options_;
  v1::Topology topology_;
  v1::Settings settings_;
  std::vector<int> shards_;
  std::vector<NodeName> storage_names_;
  std::map<NodeName, std::unique_ptr<store::MemoryStoreFactory>> factories_;
  std::map<NodeName, std::unique_ptr<storage::Node>> storages_;
  std::vector<storage::Node*> nodes_;  // the same by slot; null while down
  std::map<NodeName, std::unique_ptr<router::Node>> routers_;
  std::function<bool(const NodeName&, const Status&)> expected_;
  std::vector<std::string> fatal_;

  std::optional<Env> client_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, AdminDone> admin_;
  std::map<std::uint64_t, ClientDone> clients_;
  std::map<std::uint64_t, std::function<void(const v1::CallReply&)>> calls_;
};

}  // namespace etalon::sim
