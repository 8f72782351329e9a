#include "router/testing/cluster.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace etalon::router::testing {

using std::chrono::seconds;

Cluster::Cluster(ClusterOptions opts) : world(opts.seed), options(std::move(opts)) {
  if (options.quiet) {
    world.net().options().reorder = false;
    world.net().options().slow_permille = 0;
  }
  topology.set_version(1);
  topology.set_collection(7);
  topology.set_bucket_count(options.bucket_count);
  topology.mutable_shard_by()->set_field("id");
  topology.mutable_shard_by()->set_type(v1::KEY_TYPE_STRING);
  topology.mutable_shard_by()->set_hash(v1::HASH_CRC32);
  topology.set_complete(true);
  for (std::uint32_t s = 0; s < options.shards; ++s) {
    auto& shard = shards_.emplace_back(std::make_unique<FakeShard>());
    shard->uid = ShardUid(10 + s);
    shard->name = "s" + std::to_string(s);
    shard->bucket_count = options.bucket_count;
    v1::ShardInfo& info = *topology.add_shards();
    info.set_name(shard->name);
    info.set_uid(shard->uid.value());
    info.set_state(v1::SHARD_NORMAL);
    for (std::uint32_t r = 0; r < options.replicas; ++r) {
      v1::ReplicaInfo& replica = *info.add_replicas();
      replica.set_name(shard->name + "-" + std::to_string(r));
      replica.set_address(replica.name() + ":7000");
      replica.set_zone("z" + std::to_string(r));
      shard->leader = replica.name();
    }
    for (const v1::ReplicaInfo& replica : info.replicas()) {
      replicas_.push_back(std::make_unique<FakeReplica>(world, replica.name(), *shard));
    }
    for (std::uint32_t b = s; b < options.bucket_count; b += options.shards) {
      shard->Own(b, 1, true);
    }
  }
  for (std::uint32_t r = 0; r < options.replicas; ++r) {
    v1::ZoneDistance& d = *topology.add_distances();
    d.set_from("z0");
    d.set_to("z" + std::to_string(r));
    d.set_distance(10 * r);
  }
  for (const char* name : {"client", "client2"}) {
    clients_.emplace(name, world.AddNode(name));
    world.SetReceiver(name, [this](const NodeName&, Lane, std::string bytes) {
      v1::NodeMessage message;
      v1::ClientResponse response;
      ASSERT_TRUE(message.ParseFromString(bytes));
      ASSERT_TRUE(response.ParseFromString(message.client_reply()));
      if (!answers.emplace(response.id(), response).second) ++doubled_answers;
      answered_at[response.id()] = world.now();
    });
  }
}

void Cluster::StartRouter() {
  Options router_options = options.router;
  router_options.name = "router";
  router_options.zone = options.router_zone;
  if (!router_options.topology) router_options.topology = topology;
  const Env env = started_ ? world.Restart("router") : world.AddNode("router");
  started_ = true;
  router = std::make_unique<Node>(env, std::move(router_options));
  world.SetReceiver("router", [this](const NodeName& from, Lane lane, std::string bytes) {
    router->OnMessage(from, lane, std::move(bytes));
  });
  world.net().SetEndWatcher("router", [this](const NodeName& peer) { router->OnDisconnect(peer); });
}

void Cluster::Start() {
  StartRouter();
  ASSERT_TRUE(world.RunUntil([this] { return router->ready(); }, seconds(30)));
}

FakeReplica& Cluster::leader(std::uint32_t s) {
  for (FakeReplica* replica : shards_[s]->replicas) {
    if (replica->leads()) return *replica;
  }
  ADD_FAILURE() << "shard " << s << " has no leader";
  return replica(s, 0);
}

std::size_t Cluster::CallsSeen() const {
  std::size_t count = 0;
  for (const auto& replica : replicas_) count += replica->calls().size();
  return count;
}

std::uint64_t Cluster::Send(v1::ClientRequest request, const NodeName& client) {
  request.set_id(++last_id_);
  v1::NodeMessage message;
  message.set_client_request(request.SerializeAsString());
  (void)clients_.at(client).net.Send("router", Lane::kControl, message.SerializeAsString());
  return last_id_;
}

v1::ClientCall Cluster::Make(const std::string& function, std::uint64_t bucket, v1::Mode mode,
                             std::uint32_t timeout_millis) {
  v1::ClientCall call;
  call.set_id(900 + last_id_);
  call.mutable_target()->set_bucket(bucket);
  call.set_mode(mode);
  call.set_function(function);
  call.set_timeout_millis(timeout_millis);
  v1::PutArgs args;  // GetArgs begin alike
  args.set_space("s");
  args.set_key("k");
  if (function == "put") args.set_value("v" + std::to_string(last_id_));
  call.set_args(args.SerializeAsString());
  return call;
}

std::uint64_t Cluster::SendCall(v1::ClientCall call, const NodeName& client) {
  v1::ClientRequest request;
  *request.mutable_call() = std::move(call);
  return Send(std::move(request), client);
}

v1::ClientResponse Cluster::Await(std::uint64_t id) {
  EXPECT_TRUE(world.RunUntil([&] { return Answered(id); }, seconds(60))) << "no answer to " << id;
  return answers[id];
}

v1::RouterInfoResponse Cluster::Info() {
  v1::ClientRequest request;
  request.mutable_info();
  return Ask(std::move(request)).info();
}

std::vector<std::string> Cluster::AlertCodes() {
  std::vector<std::string> out;
  const auto info = Info();
  for (const v1::Alert& alert : info.alerts()) out.push_back(alert.code());
  return out;
}

bool Cluster::HasAlert(const std::string& code) {
  const auto codes = AlertCodes();
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

}  // namespace etalon::router::testing
