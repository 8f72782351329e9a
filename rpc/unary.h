#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/status.h"
#include "etalon/v1/peer.pb.h"
#include "rpc/endpoint.h"

namespace etalon::rpc {

inline constexpr std::chrono::milliseconds kDefaultCallTimeout{10000};

// Time that a call has: until the deadline of its caller, but no longer than `named` in the request
// (0: not named); kDefaultCallTimeout when there is neither. Zero or less: passed.
std::chrono::milliseconds TimeLeft(const grpc::CallbackServerContext& context,
                                   std::uint32_t named_millis = 0);

// A unary call on its way through the node: posted as one NodeMessage from a reply address of its
// own ("call-99"), answered by the first message to that address, or by DEADLINE_EXCEEDED when
// `timeout` has passed.
class UnaryCall final : public grpc::ServerUnaryReactor,
                        public Sink,
                        public std::enable_shared_from_this<UnaryCall> {
 public:
  // Fills the response from the node's reply, or learns why there is none; returns what the call
  // finishes with (a method whose response has a status of its own puts failures there and returns
  // success). Called once.
  using Fill = UniqueFunction<Status(Result<v1::NodeMessage> reply)>;

  // What a service method returns.
  static grpc::ServerUnaryReactor* Start(std::shared_ptr<Endpoint> endpoint,
                                         grpc::CallbackServerContext* context,
                                         const v1::NodeMessage& message,
                                         std::chrono::milliseconds timeout, Fill fill);

  UnaryCall(std::shared_ptr<Endpoint> endpoint, grpc::CallbackServerContext* context,
            Fill fill);  // for Start

  SendResult Push(std::string bytes) override;
  void BeginClose() override {}  // it is answered soon anyway

 private:
  void Post(const v1::NodeMessage& message, std::chrono::milliseconds timeout);
  // False when it was answered before.
  bool Answer(Result<v1::NodeMessage> reply);
  void OnCancel() override;
  void OnDone() override;

  const std::shared_ptr<Endpoint> endpoint_;
  grpc::CallbackServerContext* const context_;
  NodeName address_;
  bool admitted_ = false;
  std::shared_ptr<UnaryCall> self_;  // until OnDone

  std::mutex mutex_;
  Fill fill_;  // empty once answered
  grpc::Alarm alarm_;
};

}  // namespace etalon::rpc
