// etalon::Status as gRPC carries it: the code and the message are gRPC's own, the whole (reason and
// hint included) is a serialized v1::Status in the trailer "etalon-status-bin".
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>

#include "common/status.h"

namespace etalon::rpc {

inline constexpr char kStatusTrailer[] = "etalon-status-bin";

// Puts the trailer into `context` and returns what the call finishes with. Long texts are cut:
// trailers are limited to 8 KiB by most clients, and a call whose trailers are larger fails without
// saying why.
grpc::Status ToGrpc(const Status& status, grpc::ServerContextBase& context);

// What the caller of a finished call learns. Without the trailer (the answer comes from gRPC
// itself, or from a proxy): UNAVAILABLE is UNREACHABLE_REPLICASET, DEADLINE_EXCEEDED is
// DEADLINE_PASSED, RESOURCE_EXHAUSTED is OVERLOADED.
Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context);

}  // namespace etalon::rpc
