// A collection of real processes in a directory of its own, started by etalon-operator, as somebody
// who runs one sees it: addresses, conditions, logs, etalonctl, signals.
//
// Every wait is for a condition and has a limit; one that is not met fails the test with what was
// waited for and what the operator said last.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "env/posix/temp_dir.h"
#include "etalon/v1/admin.pb.h"
#include "operator/platform/local/child_process.h"
#include "rpc/client/router_client.h"
#include "rpc/client/storage_client.h"

namespace etalon::e2e {

// For a condition that is met in seconds on an idle machine.
inline constexpr std::chrono::seconds kPatience{60};
// Of one call, as applications have it.
inline constexpr std::chrono::seconds kCallDeadline{10};

struct Settings {
  int shards = 1;
  int replicas = 3;
  int routers = 2;
  int buckets = 16;
  bool rebalance = false;  // tests that move buckets want them to stay where they were moved to
  bool paused = false;
  std::string store = "rocksdb";

  std::string Manifest() const;
};

struct Process {
  std::string name;
  std::string shard;  // empty: a router
  std::string address;
  pid_t pid = 0;
};

struct Condition {
  std::string status;  // True, False, Unknown
  std::string reason;
  std::string message;
};

class Collection {
 public:
  explicit Collection(Settings settings = {});
  // Everything ends; a process that was stopped by a signal too. Shows logs if the test has failed.
  ~Collection();

  // The operator runs and says Ready.
  void Start();
  // The same programs, started from another directory, e.g. one with a wrapper around them.
  void SetBinDir(const std::string& dir) { bin_dir_ = dir; }
  // The operator follows the manifest.
  void Change(const std::function<void(Settings*)>& edit);

  // As endpoints.json says now.
  std::vector<Process> storages() const;
  std::vector<Process> routers() const;
  // Fails the test when there is none.
  Process Find(const std::string& name) const;
  std::string Shard(int number) const { return "shard-" + std::to_string(number); }
  // Asks the process itself.
  std::optional<v1::InfoResponse> Info(const std::string& storage) const;
  // Waits for one.
  Process Leader(const std::string& shard);
  std::vector<Process> Followers(const std::string& shard);
  // The shard that holds the bucket of this sharding key, as the first router knows.
  std::string ShardOf(const std::string& key);

  std::map<std::string, Condition> Conditions() const;
  // Ready, and every replica is a voter that is level with its leader.
  void AwaitWhole();
  // Replicas at one index with one checksum; nobody may write meanwhile.
  void ExpectReplicasEqual();

  void Signal(const Process& process, int number);
  // Its disk is gone, and so is the process; the next one finds nothing.
  void LoseDisk(const Process& storage);
  bool IsAlive(const Process& process) const;

  std::string dir() const { return dir_.path() + "/data"; }
  std::string DiskOf(const std::string& storage) const { return dir() + "/storage/" + storage; }
  std::string LogOf(const std::string& process) const;
  std::string OperatorLog() const;

  struct Output {
    int code = -1;
    std::string text;  // standard output and error
  };
  Output Ctl(const std::vector<std::string>& arguments) const;

  rpc::StorageClient& storage(const std::string& name);
  rpc::RouterClient& router(std::size_t number = 0);

  // True when it is met in time; else the test has failed.
  bool Await(const std::string& what, const std::function<bool()>& condition,
             Duration limit = kPatience) const;

 private:
  std::vector<Process> Endpoints(const char* kind) const;
  void WriteManifest() const;
  void ShowLogs() const;

  TempDir dir_;
  Settings settings_;
  std::string bin_dir_;
  controller::ProcessId operator_;
  std::map<std::string, std::unique_ptr<rpc::StorageClient>> storage_clients_;
  std::map<std::string, std::unique_ptr<rpc::RouterClient>> router_clients_;
};

// Text of a file; empty if there is none.
std::string ReadText(const std::string& path);
// How often `what` stands in the text.
int Times(const std::string& text, const std::string& what);

}  // namespace etalon::e2e
