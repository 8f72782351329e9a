// What the programs that serve gRPC have in common: signals, and the topology they are started
// with.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "common/logger.h"
#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "env/executor.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::rpc {

// Exit codes of etalon-storage and etalon-router.
inline constexpr int kExitUsage = 2;  // flags, an address that cannot be had
inline constexpr int kExitRefused =
    3;  // the data directory is not this process's, is in use or newer; nothing was wiped
inline constexpr int kExitFailed = 4;    // it cannot go on
inline constexpr int kExitDiskLost = 5;  // what is on the disk is damaged; nothing was wiped

// SIGTERM and SIGINT, taken by a thread of its own: the first calls `stop` there, where it may
// wait; the second ends the process at once. To be made before any other thread, since it blocks
// these signals for all of them.
class Signals {
 public:
  Signals();
  // Once.
  void Watch(std::function<void()> stop);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  std::thread thread_;
};

// Runs `start` on the core and waits until it has called `done`; false when `limit` passed first.
// Not on the core.
bool Await(Executor& core, UniqueFunction<void(UniqueFunction<void()> done)> start, Duration limit);

// A file with the JSON of a v1::Topology; unknown fields are an error. Empty path: an empty
// topology.
Result<v1::Topology> ReadTopologyFile(const std::string& path);

// "info" and so on; INVALID_ARGUMENT with the names there are.
Result<LogLevel> ParseLogLevel(const std::string& name);

}  // namespace etalon::rpc
