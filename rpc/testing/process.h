// What tests of streams need: a process with a core, an endpoint and a transport, and a client that
// speaks raw bytes.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/logger.h"
#include "env/posix/clock.h"
#include "env/posix/loop_executor.h"
#include "rpc/endpoint.h"
#include "rpc/server.h"
#include "rpc/transport.h"

namespace etalon::rpc::testing {

inline constexpr std::chrono::seconds kPatience{
    20};  // a condition that is not met by then fails the test

// True when `condition` became so; asks again and again.
bool Eventually(const std::function<bool()>& condition);

// One process of a test. Its node records what comes, and does what `on_message` says (on the
// core).
class Process {
 public:
  struct Message {
    NodeName from;
    Lane lane;
    std::string bytes;
  };

  explicit Process(NodeName name, std::string method = GrpcTransport::kPeerPipe,
                   const Limits& limits = {});
  ~Process();

  // Set before messages come.
  std::function<void(const Message& message)> on_message;

  // On the core, waiting for the result.
  SendResult Send(const NodeName& to, Lane lane, std::string bytes);
  void SetAddress(const NodeName& node, const std::string& address);
  void OnCore(std::function<void()> task);

  // The first `count` messages, or as many as came in time.
  std::vector<Message> Wait(std::size_t count);

  std::shared_ptr<Endpoint> endpoint() const { return endpoint_; }
  GrpcTransport& net() { return *net_; }
  Counters& counters() { return endpoint_->counters(); }

 private:
  PosixClock clock_;
  NullLogger log_;
  LoopExecutor core_;
  std::shared_ptr<Endpoint> endpoint_;
  std::unique_ptr<GrpcTransport> net_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Message> received_;

  std::thread loop_;
};

// A stream of raw messages to any method. Reads only when told to.
class RawClient : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RawClient(const std::string& address, const std::string& method,
            const std::vector<std::pair<std::string, std::string>>& metadata = {});
  ~RawClient();

  // False when the stream broke. Waits for the write before it; `wait_for_it` for this one too.
  bool Write(const std::string& bytes, bool wait_for_it = true);
  void WritesDone();
  // False at the end of the stream.
  bool Read(std::string* bytes);
  // Cancels the stream.
  void Cancel() { context_.TryCancel(); }
  // Reads to the end and returns how the stream ended.
  grpc::Status Finish();

 private:
  void OnWriteDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;
  bool WaitUntil(const std::function<bool()>& condition);

  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::mutex mutex_;
  std::condition_variable changed_;
  grpc::ByteBuffer outgoing_;
  grpc::ByteBuffer incoming_;
  bool writing_ = false;
  bool reading_ = false;
  bool broken_ = false;
  bool ended_ = false;
  bool held_ = true;
  bool done_ = false;
  grpc::Status status_;
};

grpc::ByteBuffer ToBuffer(const std::string& bytes);
std::string FromBuffer(const grpc::ByteBuffer& buffer);

// A unary call of any method in raw bytes.
grpc::Status RawUnary(const std::string& address, const std::string& method,
                      const std::string& request, std::string* response);

}  // namespace etalon::rpc::testing
