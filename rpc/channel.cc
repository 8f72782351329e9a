#include "rpc/channel.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>

namespace etalon::rpc {
namespace {

constexpr int kKeepaliveMillis = 5000;
constexpr int kKeepaliveTimeoutMillis = 3000;

// gRPC's callback threads end with the last channel or server that uses them, and the last one to
// go joins them: on one of these threads itself, where streams and their channels are let go of,
// that is a join of itself and undefined. So one channel that is never let go of keeps the threads
// for the life of the process.
void KeepCallbackThreads() {
  static const std::shared_ptr<grpc::Channel>& anchor = *new std::shared_ptr<grpc::Channel>([] {
    auto channel = grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials());
    struct Call {
      grpc::ClientContext context;
      grpc::Slice nothing;
      grpc::ByteBuffer request{&nothing, 1};
      grpc::ByteBuffer response;
    };
    const auto call =
        std::make_shared<Call>();  // a channel takes hold of the threads with its first callback
    call->context.TryCancel();
    grpc::GenericStub(channel).UnaryCall(&call->context, "/none", {}, &call->request,
                                         &call->response, [call](const grpc::Status&) {});
    return channel;
  }());
  static_cast<void>(anchor);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Limits& limits) {
  KeepCallbackThreads();
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(static_cast<int>(limits.message));
  args.SetMaxSendMessageSize(static_cast<int>(limits.message));
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // retrying is the caller's decision
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), args);
}

void ConfigureServer(grpc::ServerBuilder& builder, const Limits& limits) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(limits.message));
  builder.SetMaxSendMessageSize(static_cast<int>(limits.message));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
}

}  // namespace etalon::rpc
