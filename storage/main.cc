// etalon-storage: one replica of one shard.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "engine/store/memory_store.h"
#include "engine/store/rocksdb_store.h"
#include "env/posix/clock.h"
#include "env/posix/disk.h"
#include "env/posix/logger.h"
#include "env/posix/loop_executor.h"
#include "env/posix/os.h"
#include "rpc/program.h"
#include "rpc/server.h"
#include "rpc/transport.h"
#include "storage/node/node.h"
#include "storage/service/admin_service.h"
#include "storage/service/pipes.h"

namespace {

using namespace etalon;  // NOLINT: the program's own namespace

constexpr Duration kCutStreams = std::chrono::seconds(2);  // those that do not end by themselves

struct Flags {
  storage::NodeOptions node;
  std::string collection, shard, data, store = "rocksdb", topology, log_level = "info";
  rpc::Server::Options server{"127.0.0.1:0", "", {}};
  double grace_seconds = 20;
};

int Refuse(const Status& status, int code) {
  std::fprintf(stderr, "etalon-storage: %s\n", status.message().c_str());
  return code;
}

// What the node said of its disk. Whoever supervises this process tells by the code that the disk
// is to be replaced; people, by the sentence.
int RefuseDisk(Status status, int code) {
  if (status.reason() != Reason::kCorrupt) return Refuse(status, code);
  const char* const verdict = "counts as lost";
  if (status.message().find(verdict) == std::string::npos)
    status = DataLoss(status.message() + "; this disk " + verdict);
  return Refuse(status, rpc::kExitDiskLost);
}

Status Check(Flags* flags) {
  flags->node.collection = CollectionId(FromHex(flags->collection));
  flags->node.shard = ShardUid(FromHex(flags->shard));
  if (!flags->node.collection)
    return InvalidArgument("--collection is the collection's ID, up to 16 hexadecimal digits");
  if (!flags->node.shard)
    return InvalidArgument("--shard-uid is the shard's UID, up to 16 hexadecimal digits");
  ETALON_ASSIGN_OR_RETURN(flags->node.seed_topology, rpc::ReadTopologyFile(flags->topology));
  return OkStatus();
}

int Serve(Flags flags, LogLevel level, rpc::Signals* signals) {
  std::error_code error;
  std::filesystem::create_directories(flags.data, error);
  if (error)
    return Refuse(
        Internal("the data directory " + flags.data + " cannot be made: " + error.message()),
        rpc::kExitRefused);
  auto lock = DirLock::Acquire(flags.data);
  if (!lock.ok()) return Refuse(lock.status(), rpc::kExitRefused);
  PosixClock clock;
  LoopExecutor loop(clock);
  StderrLogger log(level);
  auto disk = PosixDisk::Open(flags.data, loop);
  if (!disk.ok()) return Refuse(disk.status(), rpc::kExitRefused);
  const auto stores = flags.store == "memory"
                          ? std::unique_ptr<store::StoreFactory>(
                                std::make_unique<store::MemoryStoreFactory>(**disk))
                          : store::NewRocksDbFactory(loop, {.root = flags.data});
  const auto endpoint = std::make_shared<rpc::Endpoint>(loop, log);
  rpc::GrpcTransport transport(endpoint, clock, Random(OsSeed()),
                               {flags.node.replica, rpc::GrpcTransport::kPeerPipe});
  int code = 0;
  auto node =
      std::make_unique<storage::Node>(Env{clock, loop, transport, **disk, Random(OsSeed()), log},
                                      flags.node, *stores, [&](const Status& status) {
                                        code = RefuseDisk(status, rpc::kExitFailed);
                                        loop.Stop();
                                      });
  endpoint->SetReceiver([&node](const NodeName& from, Lane lane, const std::string& bytes) {
    node->OnMessage(from, lane, bytes);
  });
  if (Status status = node->Start(); !status.ok()) return RefuseDisk(status, rpc::kExitRefused);

  storage::AdminService admin(endpoint, flags.node.collection);
  storage::PeerService peer(endpoint);
  storage::StorageService pipes(endpoint, flags.node.collection);
  auto server = rpc::Server::Start(flags.server, {&admin, &peer, &pipes});
  if (!server.ok()) return Refuse(server.status(), rpc::kExitUsage);
  log.Info("started", {{"replica", flags.node.replica}, {"port", (*server)->port()}});

  bool stopping = false;
  std::function<void()> show_health = [&] {
    (*server)->SetServing(node->Serving() && !stopping);
    loop.PostAt(clock.Now() + std::chrono::milliseconds(100), [&] { show_health(); });
  };
  show_health();
  const auto grace =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(flags.grace_seconds));
  signals->Watch([&] {
    log.Info("stopping");
    const auto shutdown = [&](UniqueFunction<void()> done) {
      stopping = true;
      (*server)->SetServing(false);
      node->Shutdown(Deadline::After(clock.Now(), grace), std::move(done));
    };
    if (!rpc::Await(loop, shutdown, grace + kCutStreams))
      log.Warning("the node did not finish in time");
    // The loop still runs: what routers sent before they knew is told where the leader is.
    endpoint->BeginClose();
    (*server)->Stop(kCutStreams);
    loop.Stop();
  });
  loop.Run();

  (*server)->Stop(Duration::zero());
  (void)transport.Stop(kCutStreams);
  endpoint->Close();
  node.reset();
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("One replica of one shard of an Etalon collection.");
  app.add_option("--name", flags.node.replica, "Name of the replica, e.g. orders-shard-0-1")
      ->required();
  app.add_option("--shard-uid", flags.shard, "UID of the shard, hexadecimal")->required();
  app.add_option("--collection", flags.collection, "ID of the collection, hexadecimal")->required();
  app.add_option("--data", flags.data, "Data directory; made if absent")->required();
  app.add_option("--listen", flags.server.listen, "host:port of the gRPC services");
  app.add_option("--health-listen", flags.server.health_listen,
                 "host:port of a plaintext health service of its own");
  app.add_option("--store", flags.store, "rocksdb, or memory for small collections")
      ->check(CLI::IsMember({"rocksdb", "memory"}));
  app.add_option("--topology", flags.topology,
                 "JSON of a topology: where peers are before the first one is applied");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  app.add_option("--reserve-bytes", flags.node.reserve_bytes,
                 "Writes are refused while the disk has less than this");
  app.add_option("--grace-seconds", flags.grace_seconds,
                 "For handing over and finishing what is in flight after SIGTERM");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : rpc::kExitUsage;
  }
  const auto level = rpc::ParseLogLevel(flags.log_level);
  if (!level.ok()) return Refuse(level.status(), rpc::kExitUsage);
  if (Status status = Check(&flags); !status.ok()) return Refuse(status, rpc::kExitUsage);
  rpc::Signals signals;
  return Serve(std::move(flags), *level, &signals);
}
