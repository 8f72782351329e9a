// etalon-operator: makes what a ShardedCollection asks for, and keeps it so.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "env/posix/clock.h"
#include "env/posix/logger.h"
#include "env/posix/loop_executor.h"
#include "env/posix/os.h"
#include "operator/admin/grpc_admin_port.h"
#include "operator/node/node.h"
#include "operator/platform/local/files.h"
#include "operator/platform/local/local_platform.h"
#include "operator/platform/local/manifest_file.h"
#include "operator/platform/local/status_file.h"
#include "rpc/program.h"

namespace {

using namespace etalon;              // NOLINT: the program's own namespace
using namespace etalon::controller;  // NOLINT

constexpr std::size_t kAdminThreads = 16;
constexpr Duration kManifestPoll = std::chrono::milliseconds(200);

struct Flags {
  std::string platform = "local", manifest, log_level = "info";
  LocalOptions local;
};

int Refuse(const Status& status, int code) {
  std::fprintf(stderr, "etalon-operator: %s\n", status.message().c_str());
  return code;
}

std::string Absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

int Serve(Flags flags, LogLevel level, rpc::Signals* signals) {
  if (Status status = MakeDirs(flags.local.data_dir); !status.ok())
    return Refuse(status, rpc::kExitUsage);
  auto lock = DirLock::Acquire(flags.local.data_dir);
  if (!lock.ok()) return Refuse(lock.status(), rpc::kExitRefused);
  auto records = Records::Open(flags.local.data_dir, OsSeed());
  if (!records.ok()) return Refuse(records.status(), rpc::kExitRefused);
  PosixClock clock;
  LoopExecutor loop(clock);
  StderrLogger log(level);
  LocalPlatform platform(flags.local, *std::move(records), Random(OsSeed()), log);
  GrpcAdminPort admin(loop, kAdminThreads);
  ManifestFile manifest(flags.manifest, flags.local.data_dir);

  StatusContext context;
  context.manifest = flags.manifest;
  Report shown;
  std::string endpoints;
  const auto write = [&](const char* name, const std::string& text) {
    if (Status s = ReplaceFile(flags.local.data_dir + "/" + name, text, Durable::kNo); !s.ok()) {
      log.Warning("write_failed", {{"why", s.message()}});
    }
  };
  const auto show = [&] {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    context.unix_millis_of_zero =
        std::chrono::duration_cast<std::chrono::milliseconds>(wall - clock.Now().time_since_epoch())
            .count();
    context.collection = platform.collection();
    write("status.json", StatusJson(shown, context));
  };
  Node node(clock, loop, Random(OsSeed()), log, platform, admin, {}, [&](const Report& report) {
    std::string now =
        EndpointsJson(context.collection_name, platform.collection(), platform.Endpoints());
    if (now != endpoints) write("endpoints.json", endpoints = std::move(now));
    if (report == shown) return;
    shown = report;
    show();
  });
  std::function<void()> follow = [&] {
    if (manifest.Poll()) {
      context.manifest_errors = manifest.errors();
      for (const std::string& error : manifest.errors())
        log.Error("manifest_refused", {{"why", error}});
      if (manifest.spec()) {
        context.collection_name = manifest.spec()->name;
        platform.SetZones(manifest.spec()->zones);
        node.SetSpec(*manifest.spec());
      }
      show();
    }
    loop.PostAt(clock.Now() + kManifestPoll, [&] { follow(); });
  };
  follow();
  signals->Watch([&] { loop.Post([&] { loop.Stop(); }); });
  log.Info("started", {{"manifest", flags.manifest}, {"data", flags.local.data_dir}});
  loop.Run();
  if (flags.local.stop_children_on_exit) platform.StopAll();
  log.Info("stopped");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Makes what a ShardedCollection asks for, and keeps it so.");
  app.add_option("--platform", flags.platform, "Where processes run")
      ->check(CLI::IsMember({"local"}));
  app.add_option("--manifest", flags.manifest,
                 "YAML file with the ShardedCollection; followed as it is edited")
      ->required();
  app.add_option("--data", flags.local.data_dir,
                 "Directory of the collection: records, disks, logs")
      ->required();
  app.add_option("--bin-dir", flags.local.bin_dir,
                 "Where etalon-storage and etalon-router are; else beside this program");
  app.add_option("--base-port", flags.local.base_port, "Ports are chosen from this one on")
      ->check(CLI::Range(1, 65535));
  app.add_option("--store", flags.local.store, "--store of the storages")
      ->check(CLI::IsMember({"rocksdb", "memory"}));
  app.add_flag("--stop-children-on-exit", flags.local.stop_children_on_exit,
               "Storages and routers end with the operator");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : rpc::kExitUsage;
  }
  const auto level = rpc::ParseLogLevel(flags.log_level);
  if (!level.ok()) return Refuse(level.status(), rpc::kExitUsage);
  // Processes outlive this one, and its working directory.
  flags.manifest = Absolute(flags.manifest);
  flags.local.data_dir = Absolute(flags.local.data_dir);
  if (flags.local.bin_dir.empty()) {
    flags.local.bin_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  }
  flags.local.bin_dir = Absolute(flags.local.bin_dir);
  rpc::Signals signals;
  return Serve(std::move(flags), *level, &signals);
}
