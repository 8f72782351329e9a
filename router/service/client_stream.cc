#include "router/service/client_stream.h"

#include <utility>

#include "etalon/v1/router.pb.h"
#include "proto/wire.h"
#include "router/service/envelope.h"

namespace etalon::router {
namespace {

std::string Failure(std::uint64_t id, const v1::Status& status) {
  v1::ClientReply reply;
  reply.set_id(id);
  *reply.mutable_status() = status;
  return reply.SerializeAsString();
}

}  // namespace

ClientStream::ClientStream(std::shared_ptr<rpc::Endpoint> endpoint,
                           grpc::CallbackServerContext* context, CollectionId collection)
    : ServerStream(std::move(endpoint), context, NodeName(), Lane::kControl),
      collection_(collection) {}

Status ClientStream::Accept(std::vector<std::string>* messages) {
  std::vector<std::uint64_t> ids;
  ids.reserve(messages->size());
  v1::ClientCall call;
  for (const std::string& bytes : *messages) {
    if (!call.ParseFromString(bytes))
      return InvalidArgument("a call of this stream is no ClientCall");
    ids.push_back(call.id());
  }
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::string& bytes = (*messages)[i];
    const std::uint64_t number = next_number_++;
    pending_.emplace(number, Pending{.id = ids[i], .bytes = bytes.size()});
    pending_bytes_ += bytes.size();
    bytes = WrapClientCall(collection_, number, bytes);
  }
  return OkStatus();
}

std::optional<std::string> ClientStream::TranslateLocked(std::string bytes) {
  ClientAnswer answer;
  if (!ReadClientAnswer(bytes, &answer)) return std::nullopt;
  const auto found = pending_.find(answer.number);
  if (found == pending_.end()) return std::nullopt;
  const Pending pending = found->second;
  pending_bytes_ -= pending.bytes;
  pending_.erase(found);
  if (answer.reply.size() + rpc::kFrameOverhead > limits_.message) {
    return Failure(pending.id, ToProto(ResourceExhausted(
                                   "the result is larger than a message may be: ask for less",
                                   Reason::kTooLarge)));
  }
  if (!answer.reply.empty()) return std::string(answer.reply);
  v1::Status status;
  if (!status.ParseFromArray(answer.status.data(), static_cast<int>(answer.status.size())) ||
      status.code() == 0) {
    status = ToProto(Internal("the router's answer holds neither a reply nor a failure"));
  }
  return Failure(pending.id, status);
}

bool ClientStream::BusyLocked() const {
  return pending_.size() >= limits_.client_calls || pending_bytes_ >= limits_.client_bytes ||
         outbox_.bytes() >= limits_.reply_queue / 2;
}

}  // namespace etalon::router
