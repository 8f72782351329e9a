// How the blocking clients call a generated stub.
#pragma once

#include <grpcpp/client_context.h>

#include <chrono>

#include "common/status.h"
#include "common/time.h"
#include "rpc/status_mapping.h"

namespace etalon::rpc {

template <class Stub, class Request, class Response>
Result<Response> CallUnary(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Duration timeout) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (status.ok()) return response;
  Status failure = FromGrpc(status, context);
  // Nobody here cancels: a gRPC server that stops says so to calls that it takes no more.
  if (failure.code() == Code::kCancelled && failure.reason() == Reason::kNone) {
    failure = Unavailable(Reason::kUnreachableReplicaset,
                          "the process that was asked stops, and takes no calls any more");
  }
  return failure;
}

}  // namespace etalon::rpc
