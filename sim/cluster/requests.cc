// Cluster: what the node "client" asks of storages and routers.

#include <utility>

#include "proto/wire.h"
#include "sim/cluster/cluster.h"

namespace etalon::sim {

namespace {

// After its deadline a call is answered by the router, if that still lives.
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr Duration kDefaultTimeout = std::chrono::seconds(10);
constexpr Duration kAskAgain = std::chrono::milliseconds(500);

// Who does not lead (any more) decides nothing.
bool IsDecision(const v1::AdminResponse& answer) {
  const Reason reason = FromProto(answer.status()).reason();
  return reason != Reason::kNonMaster && reason != Reason::kOutcomeUnknown &&
         reason != Reason::kUnformed;
}

}  // namespace

void Cluster::Receive(const v1::NodeMessage& message) {
  if (message.has_admin_reply()) {
    if (auto node = admin_.extract(message.admin_reply().id()))
      node.mapped()(message.admin_reply().response());
  } else if (message.body_case() == v1::NodeMessage::kClientReply) {
    v1::ClientResponse response;
    if (!response.ParseFromString(message.client_reply())) return;
    if (world_.random().Chance(1, 2000)) return;
    if (auto node = clients_.extract(response.id())) node.mapped()(response);
  } else if (message.body_case() == v1::NodeMessage::kReplyFrame) {
    v1::ReplyFrame frame;
    if (!frame.ParseFromString(message.reply_frame())) return;
    for (const std::string& bytes : frame.replies()) {
      v1::CallReply reply;
      if (!reply.ParseFromString(bytes)) continue;
      if (auto node = calls_.extract(reply.id())) node.mapped()(reply);
    }
  }
}

void Cluster::Admin(const NodeName& to, const v1::AdminRequest& request, AdminDone done) {
  const std::uint64_t id = next_id_++;
  admin_[id] = std::move(done);
  v1::NodeMessage message;
  message.set_collection(kCollection.value());
  message.mutable_admin_call()->set_id(id);
  *message.mutable_admin_call()->mutable_request() = request;
  (void)client_->net.Send(to, Lane::kControl, message.SerializeAsString());
}

std::optional<v1::AdminResponse> Cluster::AskReplica(const NodeName& name,
                                                     const v1::AdminRequest& request,
                                                     Duration limit) {
  auto answer = std::make_shared<std::optional<v1::AdminResponse>>();
  const SteadyTime end = world_.now() + limit;
  while (!*answer && world_.now() < end) {
    Admin(name, request, [answer](const v1::AdminResponse& a) { *answer = a; });
    world_.RunUntil([&] { return answer->has_value(); }, kAskAgain);
  }
  return *answer;
}

std::optional<v1::AdminResponse> Cluster::AskShard(int shard, const v1::AdminRequest& request,
                                                   Duration limit) {
  auto answer = std::make_shared<std::optional<v1::AdminResponse>>();
  const SteadyTime end = world_.now() + limit;
  while (!*answer && world_.now() < end) {
    if (const auto leader = LeaderOf(shard)) {
      Admin(*leader, request, [answer](const v1::AdminResponse& a) {
        if (!*answer && IsDecision(a)) *answer = a;
      });
    }
    world_.RunUntil([&] { return answer->has_value(); }, kAskAgain);
  }
  return *answer;
}

bool Cluster::AdminUntilOk(int shard, const v1::AdminRequest& request, Duration limit,
                           v1::AdminResponse* response) {
  const SteadyTime end = world_.now() + limit;
  while (world_.now() < end) {
    const auto answer = AskShard(shard, request, end - world_.now());
    if (!answer) return false;
    if (answer->status().code() == 0) {
      if (response != nullptr) *response = *answer;
      return true;
    }
    world_.RunFor(kAskAgain);
  }
  return false;
}

bool Cluster::ApplySettings(Duration limit) {
  settings_.set_version(settings_.version() + 1);
  v1::AdminRequest request;
  *request.mutable_apply_settings()->mutable_settings() = settings_;
  for (int s : shards_) {
    if (!AdminUntilOk(s, request, limit)) return false;
  }
  return true;
}

bool Cluster::ApplyTopology(Duration limit) {
  topology_.set_version(topology_.version() + 1);
  v1::ClientRequest push;
  *push.mutable_apply_topology() = topology_;
  for (int r = 0; r < options_.routers; ++r) {
    const auto answer = AskRouter(RouterName(r), push, limit);
    if (!answer || answer->status().code() != 0) return false;
  }
  v1::AdminRequest apply;
  *apply.mutable_apply_topology()->mutable_topology() = topology_;
  for (int s : shards_) {
    if (!AdminUntilOk(s, apply, limit)) return false;
  }
  return true;
}

NodeName Cluster::AnyRouter() {
  const auto n = static_cast<std::uint64_t>(options_.routers);
  return RouterName(static_cast<int>(world_.random().Below(n)));
}

void Cluster::Client(const NodeName& router, v1::ClientRequest request, ClientDone done) {
  const std::uint64_t id = next_id_++;
  clients_[id] = std::move(done);
  request.set_id(id);
  const Duration timeout =
      request.call().timeout_millis() == 0
          ? kDefaultTimeout
          : Duration(std::chrono::milliseconds(request.call().timeout_millis()));
  world_.After(timeout + kPatience, [this, id] {
    auto node = clients_.extract(id);
    if (!node) return;
    v1::ClientResponse silence;
    *silence.mutable_status() =
        ToProto(Unavailable(Reason::kOutcomeUnknown, "the router does not answer"));
    node.mapped()(silence);
  });
  // Now and then a stream breaks before the request, or the answer, is through.
  if (world_.random().Chance(1, 2000)) return;
  v1::NodeMessage message;
  message.set_collection(kCollection.value());
  request.SerializeToString(message.mutable_client_request());
  (void)client_->net.Send(router, Lane::kControl, message.SerializeAsString());
}

std::optional<v1::ClientResponse> Cluster::AskRouter(const NodeName& router,
                                                     v1::ClientRequest request, Duration limit) {
  auto answer = std::make_shared<std::optional<v1::ClientResponse>>();
  const SteadyTime end = world_.now() + limit;
  while (!*answer && world_.now() < end) {
    Client(router, request, [answer](const v1::ClientResponse& a) { *answer = a; });
    world_.RunUntil([&] { return answer->has_value(); }, std::chrono::seconds(2));
  }
  return *answer;
}

std::optional<v1::CallReply> Cluster::CallStorage(const NodeName& storage, v1::Call call,
                                                  Duration limit) {
  auto answer = std::make_shared<std::optional<v1::CallReply>>();
  call.set_id(next_id_++);
  calls_[call.id()] = [answer](const v1::CallReply& a) { *answer = a; };
  v1::CallFrame frame;
  frame.set_topology_version(topology_.version());
  call.SerializeToString(frame.add_calls());
  v1::NodeMessage message;
  message.set_collection(kCollection.value());
  frame.SerializeToString(message.mutable_call_frame());
  (void)client_->net.Send(storage, Lane::kControl, message.SerializeAsString());
  world_.RunUntil([&] { return answer->has_value(); }, limit);
  return *answer;
}

}  // namespace etalon::sim
