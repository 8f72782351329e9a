// One router, without gRPC: the composition of table, feeds, calls and health on one serial
// executor.
//
// Speaks etalon.v1.NodeMessage with everybody: clients (client_request -> client_reply to the
// address the request came from), storages (call_frame, subscribe, ping, map_run, fetch_topology
// and their answers) and the operator (client_request.apply_topology).
//
// Owns no durable state: a crash loses calls under way, whose clients see their streams end.
// Threads: everything runs on env.core; nothing blocks. The node may be destroyed at any time; what
// it posted then does nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_function.h"
#include "env/env.h"
#include "etalon/v1/peer.pb.h"
#include "etalon/v1/router.pb.h"
#include "router/feed/feed.h"
#include "router/node/alarms.h"
#include "router/node/alerts.h"
#include "router/node/calls.h"
#include "router/node/counters.h"
#include "router/node/health.h"
#include "router/node/maps.h"
#include "router/node/syncs.h"
#include "router/node/troubles.h"
#include "router/table/directory.h"
#include "router/table/ownership.h"

namespace etalon::router {

struct Options {
  NodeName name;
  std::string zone;                      // empty: leaders are read first
  CollectionId collection;               // 0: the first topology's
  std::optional<v1::Topology> topology;  // else the operator pushes one
  std::string version;                   // of the program, for Info
  FeedOptions feed;
  HealthOptions health;
  CallsOptions calls;
  MapsOptions maps;
  AlertBounds alerts;
  Duration ready_bound = std::chrono::seconds(5);  // for dials and first lists, after the topology
  Duration doubled_after = std::chrono::seconds(5);
  Duration stuck_after = std::chrono::seconds(5);
};

class Node final : private Host {
 public:
  // A topology in the options that cannot be used leaves the node without one, with an alert.
  Node(Env env, Options options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void OnMessage(const NodeName& from, Lane lane, std::string bytes);
  // The connection over which this node speaks to `peer` has ended, and everything that came over
  // it was given to OnMessage: what it has not answered it will not.
  void OnDisconnect(const NodeName& peer);

  // Refuses new calls with ROUTER_IS_DISABLED; `done` runs once those under way have finished, at
  // the latest after `grace`. Once only.
  void Stop(Duration grace, UniqueFunction<void()> done);

  // A topology is loaded, every replica was dialled (it answered or was found to be down), and
  // every shard's list of buckets has come, or ready_bound has passed since. Stays true.
  bool ready() const { return ready_; }
  TopologyVersion topology_version() const;
  v1::RouterInfoResponse Info() const;
  // What the table holds; null before the first topology.
  const BucketTable* table() const { return ownership_ ? &ownership_->table() : nullptr; }

 private:
  // Routing and Host: what calls ask for.
  std::optional<Owner> Find(RoutingValue value) const override;
  bool Knows(ShardUid shard) const override;
  std::optional<NodeName> Leader(ShardUid shard) const override;
  std::optional<NodeName> Reader(ShardUid shard, v1::Mode mode,
                                 const std::vector<NodeName>& tried) override;
  void Reply(const NodeName& client, const v1::ClientResponse& response) override;
  void TakeHints(const CallMachine& call, const Status& status) override;
  bool TakeOwnerHint(BucketId bucket, const Owner& asked, const Status& status) override;
  void TakeReplicaHints(const NodeName& replica, const Status& status) override;
  Status ReachLevel(std::uint32_t level) override;
  void AskOwners(ShardUid contradicted) override;
  void AskReplicas(ShardUid shard) override;
  void AskTopology() override;
  void NoteSilence(const NodeName& replica) override;
  void NoteUnreachable(const NodeName& replica) override;
  void ScheduleFlush() override;
  SendResult SendMapRun(const NodeName& replica, const v1::MapRun& run) override;
  Random& random() override { return env_.random; }

  // node.cc: messages, news, time.
  SteadyTime now() const { return env_.clock.Now(); }
  SendResult Send(const NodeName& to, v1::NodeMessage message);
  void Dispatch(const NodeName& from, v1::NodeMessage message);
  void Flush();
  void Settle();
  void Arm();
  void LosePeer(const NodeName& peer, Loss why);
  void OnTimer();
  void Housekeep();
  void TellDoubled();
  void CheckReady();
  void CheckStopped();
  void TakeHealth(Health::Output output);
  void TakeFeed(ShardUid shard, Feed& feed, Feed::Output output);
  void OnFeed(const NodeName& from, v1::FeedMessage message);
  void OnPong(const NodeName& from, const v1::Pong& pong);
  void NoteTopologyVersion(const NodeName& from, std::uint64_t version);
  void FetchFrom(const NodeName& replica);
  // topology.cc
  Status ApplyTopology(const v1::Topology& topology);
  Status CheckTopology(const v1::Topology& topology) const;
  void UpdateFeeds();
  // requests.cc
  void OnClient(const NodeName& client, const std::string& bytes);
  void OnRequest(const NodeName& client, v1::ClientRequest request);
  Status StartMap(const NodeName& client, std::uint64_t id, v1::MapCallRequest call);
  Status Serve(const v1::ClientRequest& request, v1::ClientResponse* response);
  Status RouteOf(const v1::Target& target, v1::RouteResponse* out) const;
  Status BucketIdOf(const v1::Target& target, v1::BucketIdResponse* out) const;
  void ListBuckets(const v1::RouterBucketsRequest& request, v1::RouterBucketsResponse* out) const;
  void FillShards(google::protobuf::RepeatedPtrField<v1::ShardRoute>* out) const;
  enum class Availability : std::uint8_t { kRw, kRo, kUnreachable };
  Availability AvailabilityOf(ShardUid shard) const;
  RouterFacts Facts() const;

  Env env_;
  const Options options_;
  std::shared_ptr<const Directory> directory_;  // null before the first topology
  std::optional<Ownership> ownership_;          // with it
  std::map<ShardUid, Feed> feeds_;
  Alarms<ShardUid> feed_alarms_;
  Health health_;
  Counters counters_;
  Calls calls_;
  Maps maps_;
  Syncs syncs_;
  Troubles troubles_;
  std::uint64_t turn_ = 0;  // of balanced reads

  // News that Settle hands out; collected so that no part is called while it calls.
  struct BucketNews {
    BucketId bucket;
    bool writable;
  };
  std::vector<BucketNews> bucket_news_;
  std::vector<NodeName> down_;
  std::vector<ShardUid> replica_news_;
  bool topology_news_ = false;

  std::map<ShardUid, std::string> invalid_feeds_;
  std::string invalid_topology_;
  std::uint64_t newer_topology_ = 0;  // highest version that a storage named
  SteadyTime newer_since_;
  SteadyTime next_fetch_ = SteadyTime::min();
  std::size_t fetch_turn_ = 0;
  SteadyTime next_ask_owners_ = SteadyTime::min();
  std::optional<SteadyTime> lost_since_;
  SteadyTime housekeeping_;
  SteadyTime ready_by_ = SteadyTime::max();
  bool ready_ = false;
  std::optional<SteadyTime> stop_by_;
  UniqueFunction<void()> stopped_;

  Executor::TimerId timer_ = 0;
  SteadyTime armed_ = SteadyTime::max();
  bool flush_posted_ = false;
  std::shared_ptr<Node*> self_;  // tasks that outlive the node find it empty
};

}  // namespace etalon::router
