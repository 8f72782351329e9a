// etalon-router: a stateless proxy in front of the shards.

#include <CLI/CLI.hpp>
#include <cstdio>

#include "env/posix/clock.h"
#include "env/posix/logger.h"
#include "env/posix/loop_executor.h"
#include "env/posix/no_disk.h"
#include "env/posix/os.h"
#include "router/node/node.h"
#include "router/service/router_service.h"
#include "rpc/program.h"
#include "rpc/server.h"
#include "rpc/transport.h"

namespace {

using namespace etalon;  // NOLINT: the program's own namespace

constexpr Duration kCutStreams = std::chrono::seconds(1);  // those that do not end by themselves

struct Flags {
  router::Options node;
  std::string collection, topology, log_level = "info";
  rpc::Server::Options server{"127.0.0.1:0", "", {}};
  double grace_seconds = 20;
};

int Refuse(const Status& status, int code) {
  std::fprintf(stderr, "etalon-router: %s\n", status.message().c_str());
  return code;
}

int Serve(const Flags& flags, LogLevel level, rpc::Signals* signals) {
  PosixClock clock;
  LoopExecutor loop(clock);
  StderrLogger log(level);
  NoDisk disk;
  const auto endpoint =
      std::make_shared<rpc::Endpoint>(loop, log, rpc::Limits(), Reason::kRouterIsDisabled);
  rpc::GrpcTransport transport(endpoint, clock, Random(OsSeed()),
                               {flags.node.name, rpc::GrpcTransport::kStoragePipe});
  auto node = std::make_unique<router::Node>(
      Env{clock, loop, transport, disk, Random(OsSeed()), log}, flags.node);
  endpoint->SetReceiver([&node](const NodeName& from, Lane lane, std::string bytes) {
    node->OnMessage(from, lane, std::move(bytes));
  });
  endpoint->SetEndWatcher([&node](const NodeName& peer, Lane lane) {
    if (lane == Lane::kControl) node->OnDisconnect(peer);
  });

  router::RouterService service(endpoint, flags.node.collection);
  auto server = rpc::Server::Start(flags.server, {&service});
  if (!server.ok()) return Refuse(server.status(), rpc::kExitUsage);
  log.Info("started", {{"router", flags.node.name}, {"port", (*server)->port()}});

  bool stopping = false;
  std::function<void()> show_health = [&] {
    (*server)->SetServing(node->ready() && !stopping);
    loop.PostAt(clock.Now() + std::chrono::milliseconds(100), [&] { show_health(); });
  };
  show_health();
  const auto grace =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.grace_seconds));
  signals->Watch([&] {
    log.Info("stopping");
    rpc::Await(
        loop,
        [&](UniqueFunction<void()> done) {
          stopping = true;
          (*server)->SetServing(false);
          done();
        },
        grace);
    // Clients' streams end as soon as what they sent is answered; then nothing is in flight.
    endpoint->BeginClose();
    (*server)->Stop(grace);
    rpc::Await(
        loop, [&](UniqueFunction<void()> done) { node->Stop(kCutStreams, std::move(done)); },
        2 * kCutStreams);
    loop.Stop();
  });
  loop.Run();

  (*server)->Stop(Duration::zero());
  (void)transport.Stop(kCutStreams);
  endpoint->Close();
  node.reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("A router of an Etalon collection.");
  app.add_option("--name", flags.node.name, "Name of the router")->required();
  app.add_option("--collection", flags.collection,
                 "ID of the collection, hexadecimal; else the first topology's");
  app.add_option("--zone", flags.node.zone, "Zone it runs in: nearer replicas are read first");
  app.add_option("--listen", flags.server.listen, "host:port of the gRPC services");
  app.add_option("--health-listen", flags.server.health_listen,
                 "host:port of a plaintext health service of its own");
  app.add_option("--topology", flags.topology,
                 "JSON of the topology to start with; else it waits for one to be pushed");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  app.add_option("--grace-seconds", flags.grace_seconds, "For calls in flight after SIGTERM");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : rpc::kExitUsage;
  }
  const auto level = rpc::ParseLogLevel(flags.log_level);
  if (!level.ok()) return Refuse(level.status(), rpc::kExitUsage);
  auto topology = rpc::ReadTopologyFile(flags.topology);
  if (!topology.ok()) return Refuse(topology.status(), rpc::kExitUsage);
  if (topology->version() != 0) flags.node.topology = *std::move(topology);
  flags.node.collection = CollectionId(FromHex(flags.collection));
  if (!flags.collection.empty() && !flags.node.collection) {
    return Refuse(
        InvalidArgument("--collection is the collection's ID, up to 16 hexadecimal digits"),
        rpc::kExitUsage);
  }
  flags.node.version = ETALON_VERSION;
  rpc::Signals signals;
  return Serve(flags, *level, &signals);
}
