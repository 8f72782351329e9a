#include "rpc/frames.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include "common/check.h"
#include "etalon/v1/services.pb.h"

namespace etalon::rpc {
namespace {

constexpr std::size_t kOverhead = sizeof(std::string);

}  // namespace

grpc::ByteBuffer EncodeFrame(Frame frame) {
  v1::Frame message;
  message.mutable_messages()->Reserve(static_cast<int>(frame.messages.size()));
  for (std::string& bytes : frame.messages) message.add_messages(std::move(bytes));
  message.set_closing(frame.closing);
  grpc::ByteBuffer out;
  bool own = false;
  const grpc::Status status = grpc::SerializationTraits<v1::Frame>::Serialize(message, &out, &own);
  ETALON_CHECK(status.ok(), "a frame below 2 GiB can be serialized");
  return out;
}

bool DecodeFrame(grpc::ByteBuffer* buffer, Frame* frame) {
  v1::Frame message;
  if (!grpc::SerializationTraits<v1::Frame>::Deserialize(buffer, &message).ok()) return false;
  frame->messages.clear();
  frame->messages.reserve(static_cast<std::size_t>(message.messages_size()));
  for (std::string& bytes : *message.mutable_messages())
    frame->messages.push_back(std::move(bytes));
  frame->closing = message.closing();
  return true;
}

bool Outbox::Push(std::string message) {
  const std::size_t size = message.size() + kOverhead;
  if (!messages_.empty() && bytes_ + size > bound_) return false;
  bytes_ += size;
  messages_.push_back(std::move(message));
  return true;
}

std::vector<std::string> Outbox::Take(std::size_t cap) {
  std::vector<std::string> frame;
  std::size_t taken = 0;
  while (!messages_.empty()) {
    const std::size_t size = messages_.front().size() + kOverhead;
    if (!frame.empty() && taken + size > cap) break;
    taken += size;
    frame.push_back(std::move(messages_.front()));
    messages_.pop_front();
  }
  bytes_ -= taken;
  return frame;
}

void Outbox::Clear() {
  messages_.clear();
  bytes_ = 0;
}

}  // namespace etalon::rpc
