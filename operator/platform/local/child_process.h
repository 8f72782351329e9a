// Processes of this machine that outlive the operator: named by process ID and start time, so that
// a number that was given to another process is not mistaken for them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"

namespace etalon::controller {

struct ProcessId {
  pid_t pid = 0;
  std::uint64_t start_time = 0;  // field 22 of /proc/<pid>/stat

  explicit operator bool() const { return pid != 0; }
  bool operator==(const ProcessId&) const = default;
};

struct SpawnOptions {
  std::vector<std::string> command;  // the program's path, then its arguments
  std::string log_path;              // standard output and error are appended here
  bool die_with_parent = false;      // SIGTERM when the thread that spawned it ends
};

// Starts it in a session of its own: signals of the operator's terminal do not reach it.
Result<ProcessId> Spawn(const SpawnOptions& options);

// Whether exactly that process runs; one that has ended and was not reaped does not.
bool IsAlive(const ProcessId& process);

// Does nothing when that process is gone.
void SendSignal(const ProcessId& process, int signal);

// Reaps a child that has ended: "exit code 3", "killed by signal 9". nullopt: it runs, or is no
// child of this process.
struct Exit {
  int code = 0;  // -1: killed
  std::string words;
};
std::optional<Exit> Reap(const ProcessId& process);

// A process whose command line holds these arguments (each flag with its value beside it); 0 when
// there is none.
ProcessId FindProcess(const std::vector<std::string>& flags_and_values);

// The last line of a file that is not empty, at most `limit` bytes of it.
std::string LastLine(const std::string& path, std::size_t limit = 400);

}  // namespace etalon::controller
