#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_function.h"
#include "rpc/frame_stream.h"

namespace etalon::rpc {

// A stream of frames that this side opened. It lives until gRPC is done with it, whoever else holds
// it; an ended stream is never reused.
class OutgoingStream final
    : public FrameStream<grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>>,
      public std::enable_shared_from_this<OutgoingStream> {
 public:
  struct Options {
    std::shared_ptr<grpc::Channel> channel;
    std::string method;                           // "/etalon.v1.Peer/Pipe"
    std::map<std::string, std::string> metadata;  // of the call
    std::size_t queue_bound = 0;
    Limits limits;
    std::shared_ptr<Counters> counters;
    // Messages of one frame, on a gRPC thread; `handled` is to be called when they are done with,
    // from any thread.
    UniqueFunction<void(std::vector<std::string> messages, UniqueFunction<void()> handled)>
        on_messages;
    // Last of all, on a gRPC thread.
    UniqueFunction<void(const std::shared_ptr<OutgoingStream>& stream, const Status& why)> on_end;
  };

  static std::shared_ptr<OutgoingStream> Open(Options options);
  explicit OutgoingStream(Options options);  // for Open

  // kFull over the bound; kUnknown when the stream ended or the peer closes it. Any thread.
  SendResult Push(std::string bytes) { return Enqueue(std::move(bytes)); }
  // Ends the stream at once. Any thread.
  void Cancel();

  // False: a new stream is needed. Any thread.
  bool usable();
  // The peer stops: it takes no new messages here. Any thread.
  bool peer_closes();
  // The peer answered: it was a good connection. Any thread.
  bool established();

 private:
  void Received(Frame frame, std::size_t bytes) override;
  void MalformedLocked() override;
  void ReadsEndedLocked() override;
  void IdleLocked() override;
  void OnReadInitialMetadataDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  Options options_;
  grpc::ClientContext context_;
  std::shared_ptr<OutgoingStream> self_;  // until OnDone
  bool established_ = false;
  bool peer_closes_ = false;
  bool half_closed_ = false;
  bool malformed_ = false;
};

}  // namespace etalon::rpc
