#include "rpc/server.h"

#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <mutex>

#include "rpc/channel.h"

namespace etalon::rpc {
namespace {

// Settings of the whole process in gRPC. What it would log comes back as a status as well, in one
// line instead of many.
void SetUpGrpc() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  });
}

Result<std::unique_ptr<grpc::Server>> Listen(const std::string& address, const Limits& limits,
                                             const std::vector<grpc::Service*>& services,
                                             int* port) {
  grpc::ServerBuilder builder;
  ConfigureServer(builder, limits);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), port);
  for (grpc::Service* service : services) builder.RegisterService(service);
  gpr_set_log_function([](gpr_log_func_args*) {});  // our sentence says it, in one line
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  gpr_set_log_function(nullptr);
  if (!server || *port == 0) {
    return Unavailable(
        Reason::kNone,
        "cannot listen on " + address +
            ": is the port in use, or the host not of this machine? Choose another address");
  }
  server->GetHealthCheckService()->SetServingStatus(false);
  return server;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const Options& options,
                                              const std::vector<grpc::Service*>& services) {
  SetUpGrpc();
  std::unique_ptr<Server> server(new Server());
  ETALON_ASSIGN_OR_RETURN(server->server_,
                          Listen(options.listen, options.limits, services, &server->port_));
  if (!options.health_listen.empty()) {
    Result<std::unique_ptr<grpc::Server>> health =
        Listen(options.health_listen, options.limits, {}, &server->health_port_);
    if (!health.ok()) {
      server->Stop(Duration::zero());
      return health.status();
    }
    server->health_server_ = std::move(health).value();
  }
  return server;
}

void Server::SetServing(bool serving) {
  for (grpc::Server* server : {server_.get(), health_server_.get()}) {
    if (server) server->GetHealthCheckService()->SetServingStatus(serving);
  }
}

void Server::Stop(Duration limit) {
  const auto deadline = std::chrono::system_clock::now() + limit;
  for (grpc::Server* server : {server_.get(), health_server_.get()}) {
    if (server) server->Shutdown(deadline);
  }
}

}  // namespace etalon::rpc
