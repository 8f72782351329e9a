#include "rpc/unary.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "rpc/status_mapping.h"

namespace etalon::rpc {

std::chrono::milliseconds TimeLeft(const grpc::CallbackServerContext& context,
                                   std::uint32_t named_millis) {
  const std::chrono::milliseconds named(named_millis);
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return named_millis == 0 ? kDefaultCallTimeout : named;
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::system_clock::now());
  return named_millis == 0 ? left : std::min(left, named);
}

UnaryCall::UnaryCall(std::shared_ptr<Endpoint> endpoint, grpc::CallbackServerContext* context,
                     Fill fill)
    : endpoint_(std::move(endpoint)), context_(context), fill_(std::move(fill)) {}

grpc::ServerUnaryReactor* UnaryCall::Start(std::shared_ptr<Endpoint> endpoint,
                                           grpc::CallbackServerContext* context,
                                           const v1::NodeMessage& message,
                                           std::chrono::milliseconds timeout, Fill fill) {
  auto call = std::make_shared<UnaryCall>(std::move(endpoint), context, std::move(fill));
  call->self_ = call;
  call->Post(message, timeout);
  return call.get();
}

void UnaryCall::Post(const v1::NodeMessage& message, std::chrono::milliseconds timeout) {
  if (timeout <= timeout.zero()) {
    Answer(DeadlineExceeded("the deadline had passed when the call arrived"));
    return;
  }
  admitted_ = endpoint_->AdmitUnary();
  if (!admitted_) {
    Answer(ResourceExhausted("too many calls are in progress: try again later"));
    return;
  }
  address_ = endpoint_->Register("call", self_);
  if (address_.empty()) {
    Answer(endpoint_->Stopping());
    return;
  }
  // An alarm of gRPC rather than a timer of the core: the caller is answered even when the core
  // hangs. (An alarm keeps its function for as long as it lives: a strong reference would be a
  // cycle.)
  alarm_.Set(std::chrono::system_clock::now() + timeout, [weak = weak_from_this()](bool expired) {
    const std::shared_ptr<UnaryCall> self = weak.lock();
    if (expired && self)
      self->Answer(DeadlineExceeded("no answer in time: the call may still take effect"));
  });
  std::vector<std::string> messages;
  messages.push_back(message.SerializeAsString());
  endpoint_->Deliver(address_, Lane::kControl, std::move(messages), [] {});
}

SendResult UnaryCall::Push(std::string bytes) {
  v1::NodeMessage reply;
  const bool good = reply.ParseFromString(bytes);
  const bool first =
      good ? Answer(std::move(reply)) : Answer(Internal("the node's answer cannot be understood"));
  return first ? SendResult::kQueued : SendResult::kUnknown;
}

bool UnaryCall::Answer(Result<v1::NodeMessage> reply) {
  Fill fill;
  {
    std::lock_guard lock(mutex_);
    std::swap(fill, fill_);
  }
  if (!fill) return false;
  const std::shared_ptr<UnaryCall> alive = self_;  // Finish may end it
  alarm_.Cancel();
  if (admitted_) endpoint_->ReleaseUnary();  // before the caller can know and ask again
  Finish(ToGrpc(fill(std::move(reply)), *context_));
  return true;
}

void UnaryCall::OnCancel() {
  Answer(Status(Code::kCancelled, Reason::kNone, "the caller gave up"));
}

void UnaryCall::OnDone() {
  if (!address_.empty()) endpoint_->Unregister(address_);
  const std::shared_ptr<UnaryCall> self = std::move(self_);
}

}  // namespace etalon::rpc
