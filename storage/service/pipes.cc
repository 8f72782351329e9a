#include "storage/service/pipes.h"

#include <algorithm>
#include <optional>
#include <string>

#include "proto/wire.h"
#include "rpc/server_stream.h"
#include "rpc/unary.h"

namespace etalon::storage {
namespace {

// A router whose answers pile up is slow; one that has taken none of them for so long does not
// read. What it asked for is not produced meanwhile (storage/node/replies.h).
constexpr std::chrono::seconds kRouterReads{10};

std::string Metadata(const grpc::CallbackServerContext& context, const char* name) {
  const auto found = context.client_metadata().find(name);
  return found == context.client_metadata().end()
             ? std::string()
             : std::string(found->second.data(), found->second.size());
}

std::optional<Lane> LaneOf(const grpc::CallbackServerContext& context) {
  const std::string name = Metadata(context, "etalon-lane");
  if (name == "bulk") return Lane::kBulk;
  if (name == "control" || name.empty()) return Lane::kControl;
  return std::nullopt;
}

// A sender by such a name would be answered on somebody else's stream.
bool IsReplyAddress(const std::string& name) {
  return name.rfind("pipe-", 0) == 0 || name.rfind("call-", 0) == 0;
}

Status ReadReply(const Result<v1::NodeMessage>& message, v1::CallReply* reply) {
  if (!message.ok()) return message.status();
  v1::ReplyFrame frame;
  if (!frame.ParseFromString(message->reply_frame()) || frame.replies_size() != 1 ||
      !reply->ParseFromString(frame.replies(0))) {
    return Internal("the node's answer to a call is not one reply");
  }
  return OkStatus();
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PeerService::Pipe(
    grpc::CallbackServerContext* context) {
  const std::string node = Metadata(*context, "etalon-node");
  const std::optional<Lane> lane = LaneOf(*context);
  const auto stream =
      std::make_shared<rpc::ServerStream>(endpoint_, context, node, lane.value_or(Lane::kControl));
  if (node.empty() || IsReplyAddress(node) || !lane) {
    return stream->Refuse(InvalidArgument(
        "Peer.Pipe needs the metadata etalon-node (the sender's name) and etalon-lane"
        " (control or bulk)"));
  }
  return stream->Begin();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StorageService::Pipe(
    grpc::CallbackServerContext* context) {
  const std::string router = Metadata(*context, "etalon-node");
  const std::optional<Lane> lane = LaneOf(*context);
  const auto stream = std::make_shared<rpc::ServerStream>(
      endpoint_, context, NodeName(), lane.value_or(Lane::kControl), kRouterReads);
  if (!lane) return stream->Refuse(InvalidArgument("the metadata etalon-lane is control or bulk"));
  endpoint_->Log(LogLevel::kInfo, "router_connected",
                 {{"router", router}, {"peer", context->peer()}});
  return stream->Begin();
}

grpc::ServerUnaryReactor* StorageService::Call(grpc::CallbackServerContext* context,
                                               const v1::Call* call, v1::CallReply* reply) {
  const std::chrono::milliseconds timeout = rpc::TimeLeft(*context, call->timeout_millis());
  v1::Call inner = *call;
  inner.set_timeout_millis(static_cast<std::uint32_t>(std::max<std::int64_t>(timeout.count(), 0)));
  v1::CallFrame frame;
  frame.add_calls(inner.SerializeAsString());
  v1::NodeMessage message;
  message.set_collection(collection_.value());
  message.set_call_frame(frame.SerializeAsString());
  return rpc::UnaryCall::Start(endpoint_, context, message, timeout,
                               [reply, id = call->id()](Result<v1::NodeMessage> answer) {
                                 const Status status = ReadReply(answer, reply);
                                 reply->set_id(id);
                                 if (!status.ok()) *reply->mutable_status() = ToProto(status);
                                 return OkStatus();
                               });
}

}  // namespace etalon::storage
