#include "rpc/program.h"

#include <google/protobuf/util/json_util.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <utility>

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
    sigset_t set = Watched();
    int number = 0;
    if (sigwait(&set, &number) != 0 || number == SIGUSR1) return;
    sigdelset(&set, SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // the next one does what signals do
    stop();
  });
}

Signals::~Signals() {
  if (!thread_.joinable()) return;
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
}

bool Await(Executor& core, UniqueFunction<void(UniqueFunction<void()> done)> start,
           Duration limit) {
  const auto finished = std::make_shared<std::promise<void>>();
  std::future<void> future = finished->get_future();
  core.Post([start = std::move(start), finished]() mutable {
    start([finished] { finished->set_value(); });
  });
  return future.wait_for(limit) == std::future_status::ready;
}

Result<v1::Topology> ReadTopologyFile(const std::string& path) {
  v1::Topology topology;
  if (path.empty()) return topology;
  std::ifstream in(path);
  if (!in) return NotFound("the topology " + path + " cannot be read");
  std::stringstream text;
  text << in.rdbuf();
  const auto status = google::protobuf::util::JsonStringToMessage(text.str(), &topology);
  if (!status.ok())
    return InvalidArgument("the topology " + path +
                           " is not one: " + std::string(status.message()));
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
