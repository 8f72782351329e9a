#include "rpc/program.h"

#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace etalon::rpc {

namespace {

// SIGUSR1 ends the watching thread.
sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

Signals::Signals() {
  signal(SIGPIPE, SIG_IGN);
  const sigset_t set = Watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void Signals::Watch(std::function<void()> stop) {
  thread_ = std::thread([stop = std::move(stop)] {
    const sigset_t set = Watched();
    bool stopping = false;
    for (int number = 0; sigwait(&set, &number) == 0 && number != SIGUSR1; stopping = true) {
      if (stopping) _exit(128 + number);
      stop();
    }
  });
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

Result<v1::Topology> ReadTopologyFile(const std::string& path) {
  v1::Topology topology;
  if (path.empty()) return topology;
  std::ifstream in(path);
  if (!in) return NotFound("the topology " + path + " cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  const auto status = google::protobuf::util::JsonStringToMessage(text.str(), &topology);
  if (!status.ok()) return InvalidArgument("the topology " + path + " is not one: " + std::string(status.message()));
  return topology;
}

Result<LogLevel> ParseLogLevel(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return InvalidArgument("--log-level is debug, info, warning or error, not '" + name + "'");
}

}  // namespace etalon::rpc
