#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/time.h"
#include "rpc/limits.h"

namespace etalon::rpc {

// The gRPC server of a process: its services, health and reflection on one port; health alone on a
// second, plaintext one for probes. Health answers for the empty service name: NOT_SERVING until
// SetServing(true).
class Server {
 public:
  struct Options {
    std::string listen;         // "host:port"; port 0: any
    std::string health_listen;  // the same; empty: none
    Limits limits;
  };

  // UNAVAILABLE when an address cannot be had (in use, or not of this machine). The services must
  // outlive the server.
  static Result<std::unique_ptr<Server>> Start(const Options& options,
                                               const std::vector<grpc::Service*>& services);

  int port() const { return port_; }
  int health_port() const { return health_port_; }  // 0: none

  void SetServing(bool serving);

  // No new connections; waits for the calls and streams in progress, and cuts them when `limit` has
  // passed. Streams end by themselves only if their endpoint was told to (Endpoint::BeginClose).
  // Must be called before the destructor.
  void Stop(Duration limit);

 private:
  Server() = default;

  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::Server> health_server_;
  int port_ = 0;
  int health_port_ = 0;
};

}  // namespace etalon::rpc
