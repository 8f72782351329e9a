#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/time.h"
#include "rpc/endpoint.h"
#include "rpc/frame_stream.h"

namespace etalon::rpc {

// A stream of frames that somebody else opened, with a reply address of its own ("pipe-17") for as
// long as it lives.
//
// It ends when the peer half-closed and nothing that it sent waits for an answer; at once when a
// frame is malformed (INVALID_ARGUMENT) or its reply queue is full and stays so
// (RESOURCE_EXHAUSTED: the peer does not read). It belongs to gRPC from Begin on and destroys
// itself. Subclasses translate messages: their hooks run with the mutex held unless said otherwise.
class ServerStream
    : public FrameStream<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public Sink,
      public std::enable_shared_from_this<ServerStream> {
 public:
  // `from`: what the node sees as the sender; empty: the stream's reply address. `patience`: for so
  // long a full reply queue may stand still before the stream is cut; Push says kFull meanwhile.
  ServerStream(std::shared_ptr<Endpoint> endpoint, grpc::CallbackServerContext* context,
               NodeName from, Lane lane, Duration patience = Duration::zero());

  // What a service method returns.
  ServerStream* Begin();
  // The same, for a stream that is refused from the start.
  ServerStream* Refuse(const Status& why);

  SendResult Push(std::string bytes) override;
  void BeginClose() override;

 protected:
  // Without the mutex, on a gRPC thread: turns the messages of a frame into NodeMessages. Not OK:
  // the stream ends so.
  virtual Status Accept(std::vector<std::string>* messages);
  // Turns a NodeMessage from the node into what the stream carries; nothing: nobody waits for it.
  virtual std::optional<std::string> TranslateLocked(std::string bytes);
  // Nothing that was received waits for an answer.
  virtual bool QuietLocked() const { return unhandled_ == 0; }

  const std::shared_ptr<Endpoint> endpoint_;

 private:
  void Received(Frame frame, std::size_t bytes) override;
  void MalformedLocked() override;
  void ReadsEndedLocked() override { IdleLocked(); }
  void FullLocked() override;
  void IdleLocked() override;
  void OnCancel() override;
  void OnDone() override;

  // Ends the stream at once, whatever is queued.
  void EndLocked(Status why);
  void FinishLocked(const Status& why);

  grpc::CallbackServerContext* const context_;
  const Lane lane_;
  const Duration patience_;
  NodeName from_;
  NodeName address_;
  std::shared_ptr<ServerStream> self_;  // until OnDone
  std::optional<Status> end_;           // due when the write in flight is over
  bool finished_ = false;
};

}  // namespace etalon::rpc
