// A router among scripted storages in a simulated world, with one client.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "router/node/node.h"
#include "router/testing/fake_storage.h"
#include "sim/world/world.h"

namespace etalon::router::testing {

struct ClusterOptions {
  std::uint64_t seed = 1;
  std::uint32_t shards = 2;
  std::uint32_t replicas = 3;
  std::uint32_t bucket_count = 8;
  bool quiet = true;  // messages in order, none slow
  std::string router_zone = "z0";
  Options router = {};
};

// Shards s0, s1, ... with UIDs 10, 11, ...; bucket b belongs to shard b mod shards at epoch 1.
// Replicas s0-0, s0-1, ... in the zones z0, z1, ...; the last one leads.
class Cluster {
 public:
  explicit Cluster(ClusterOptions options = {});

  // Makes the router and waits until it is ready.
  void Start();
  void StartRouter();  // without waiting
  void StopRouter() {
    router.reset();
    world.Crash("router");
  }

  FakeShard& shard(std::uint32_t i) { return *shards_[i]; }
  FakeReplica& replica(std::uint32_t shard, std::uint32_t i) {
    return *shards_[shard]->replicas[i];
  }
  FakeReplica& leader(std::uint32_t shard);
  std::size_t CallsSeen() const;  // by all replicas
  v1::Topology topology;

  // Requests get their number as ID.
  std::uint64_t Send(v1::ClientRequest request, const NodeName& client = "client");
  v1::ClientCall Make(const std::string& function, std::uint64_t bucket,
                      v1::Mode mode = v1::MODE_RW, std::uint32_t timeout_millis = 0);
  std::uint64_t SendCall(v1::ClientCall call, const NodeName& client = "client");
  bool Answered(std::uint64_t id) const { return answers.contains(id); }
  // Waits for the answer; fails the test when none comes within a minute.
  v1::ClientResponse Await(std::uint64_t id);
  v1::ClientReply Call(v1::ClientCall call) { return Await(SendCall(std::move(call))).call(); }
  v1::ClientResponse Ask(v1::ClientRequest request) { return Await(Send(std::move(request))); }
  v1::RouterInfoResponse Info();
  std::vector<std::string> AlertCodes();
  bool HasAlert(const std::string& code);

  sim::SimWorld world;
  const ClusterOptions options;
  std::unique_ptr<Node> router;
  std::map<std::uint64_t, v1::ClientResponse> answers;
  std::map<std::uint64_t, SteadyTime> answered_at;  // world time
  std::size_t doubled_answers = 0;

 private:
  std::vector<std::unique_ptr<FakeShard>> shards_;
  std::vector<std::unique_ptr<FakeReplica>> replicas_;
  std::map<NodeName, Env> clients_;
  std::uint64_t last_id_ = 0;
  bool started_ = false;
};

}  // namespace etalon::router::testing
