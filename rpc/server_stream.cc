#include "rpc/server_stream.h"

#include <grpc/grpc.h>

#include <utility>

#include "rpc/status_mapping.h"

namespace etalon::rpc {

ServerStream::ServerStream(std::shared_ptr<Endpoint> endpoint, grpc::CallbackServerContext* context,
                           NodeName from, Lane lane, Duration patience)
    : FrameStream(endpoint->limits(), endpoint->limits().reply_queue, endpoint->counters()),
      endpoint_(std::move(endpoint)),
      context_(context),
      lane_(lane),
      patience_(patience),
      from_(std::move(from)) {}

ServerStream* ServerStream::Begin() {
  self_ = shared_from_this();
  address_ = endpoint_->Register("pipe", self_);
  if (address_.empty()) {
    return Refuse(endpoint_->Stopping());
  }
  if (from_.empty()) from_ = address_;
  StartSendInitialMetadata();  // tells the peer that the connection is good
  std::lock_guard lock(mutex_);
  ReadLocked();
  return this;
}

ServerStream* ServerStream::Refuse(const Status& why) {
  self_ = shared_from_this();
  std::lock_guard lock(mutex_);
  EndLocked(why);
  return this;
}

SendResult ServerStream::Push(std::string bytes) {
  std::lock_guard lock(mutex_);
  std::optional<std::string> message = TranslateLocked(std::move(bytes));
  if (!message) return SendResult::kUnknown;
  if (message->size() + kFrameOverhead >
      limits_.message) {  // the peer would refuse it and the stream with it
    ++counters_.refused_full;
    endpoint_->Log(LogLevel::kError, "message_too_large",
                   {{"to", address_}, {"bytes", message->size()}});
    return SendResult::kFull;
  }
  const SendResult result = EnqueueLocked(*std::move(message));
  ReadLocked();
  return result;
}

void ServerStream::BeginClose() {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  closing_due_ = true;
  WriteLocked();
}

Status ServerStream::Accept(std::vector<std::string>*) { return OkStatus(); }

std::optional<std::string> ServerStream::TranslateLocked(std::string bytes) { return bytes; }

void ServerStream::Received(Frame frame, std::size_t bytes) {
  if (Status status = Accept(&frame.messages); !status.ok()) {
    std::lock_guard lock(mutex_);
    ++counters_.malformed;
    ++counters_.streams_cut;
    EndLocked(std::move(status));
    return;
  }
  endpoint_->Deliver(from_, lane_, std::move(frame.messages),
                     [self = shared_from_this(), bytes] { self->Handled(bytes); });
}

void ServerStream::MalformedLocked() {
  ++counters_.streams_cut;
  EndLocked(
      InvalidArgument("a message of this stream is no frame: are both sides of one version?"));
}

void ServerStream::FullLocked() {
  // A write is in flight, or the queue would not be full.
  if (std::chrono::steady_clock::now() - write_began_ < patience_) return;
  ++counters_.streams_cut;
  EndLocked(
      ResourceExhausted("the stream was cut: its answers are not read, read them or send less"));
}

void ServerStream::IdleLocked() {
  if (finished_ || writing_) return;
  if (end_) {
    FinishLocked(*end_);
  } else if (reads_ended_ && outbox_.empty() && !closing_due_ && QuietLocked()) {
    FinishLocked(OkStatus());
  }
}

void ServerStream::OnCancel() {
  std::lock_guard lock(mutex_);
  EndLocked(Status(Code::kCancelled, Reason::kNone, "the stream broke"));
}

void ServerStream::OnDone() {
  if (!address_.empty()) endpoint_->Unregister(address_);
  const std::shared_ptr<ServerStream> self = std::move(self_);
}

void ServerStream::EndLocked(Status why) {
  StopWritingLocked();
  reads_ended_ = true;
  if (finished_ || end_) return;
  if (!writing_) {
    FinishLocked(why);
    return;
  }
  // The peer may never read what is being written, and a status in turn would wait for it for ever:
  // it goes past it.
  grpc_call_cancel_with_status(context_->c_call(), static_cast<grpc_status_code>(why.code()),
                               why.message().c_str(), nullptr);
  end_ = std::move(why);
}

void ServerStream::FinishLocked(const Status& why) {
  StopWritingLocked();
  reads_ended_ = true;
  finished_ = true;
  Finish(ToGrpc(why, *context_));
}

}  // namespace etalon::rpc
