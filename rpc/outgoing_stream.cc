#include "rpc/outgoing_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include "rpc/status_mapping.h"

namespace etalon::rpc {

OutgoingStream::OutgoingStream(Options options)
    : FrameStream(options.limits, options.queue_bound, *options.counters),
      options_(std::move(options)) {}

std::shared_ptr<OutgoingStream> OutgoingStream::Open(Options options) {
  auto stream = std::make_shared<OutgoingStream>(std::move(options));
  stream->self_ = stream;
  for (const auto& [name, value] : stream->options_.metadata) {
    stream->context_.AddMetadata(name, value);
  }
  grpc::GenericStub stub(stream->options_.channel);
  stub.PrepareBidiStreamingCall(&stream->context_, stream->options_.method, {}, stream.get());
  stream->AddHold();  // writes start outside the reactions; released when reads end
  {
    std::lock_guard lock(stream->mutex_);
    stream->ReadLocked();
  }
  stream->StartCall();
  return stream;
}

void OutgoingStream::Cancel() {
  {
    std::lock_guard lock(mutex_);
    AbandonLocked();
  }
  context_.TryCancel();
}

bool OutgoingStream::usable() {
  std::lock_guard lock(mutex_);
  return !closed_ && !peer_closes_;
}

bool OutgoingStream::peer_closes() {
  std::lock_guard lock(mutex_);
  return peer_closes_;
}

bool OutgoingStream::established() {
  std::lock_guard lock(mutex_);
  return established_;
}

void OutgoingStream::Received(Frame frame, std::size_t bytes) {
  if (frame.closing) {
    std::lock_guard lock(mutex_);
    peer_closes_ = true;
    IdleLocked();
  }
  options_.on_messages(std::move(frame.messages),
                       [self = shared_from_this(), bytes] { self->Handled(bytes); });
}

void OutgoingStream::MalformedLocked() {
  malformed_ = true;
  ++counters_.streams_cut;
  context_.TryCancel();
}

void OutgoingStream::ReadsEndedLocked() {
  StopWritingLocked();
  RemoveHold();
}

void OutgoingStream::IdleLocked() {
  if (!peer_closes_ || half_closed_ || writing_ || !outbox_.empty() || reads_ended_) return;
  half_closed_ = true;
  closed_ = true;
  StartWritesDone();
}

void OutgoingStream::OnReadInitialMetadataDone(bool ok) {
  std::lock_guard lock(mutex_);
  established_ = established_ || ok;
}

void OutgoingStream::OnDone(const grpc::Status& status) {
  ++counters_.streams_broken;
  const std::shared_ptr<OutgoingStream> self = std::move(self_);
  options_.on_end(
      self, malformed_
                ? InvalidArgument("the peer sent bytes that are no frame: are both of one version?")
                : FromGrpc(status, context_));
}

}  // namespace etalon::rpc
