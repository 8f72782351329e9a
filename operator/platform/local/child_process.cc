#include "operator/platform/local/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "env/posix/fd.h"

namespace etalon::controller {
namespace {

struct Stat {
  char state = '?';
  std::uint64_t start_time = 0;
};

std::optional<Stat> ReadStat(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  std::string skipped;
  fields >> stat.state;  // field 3
  for (int i = 4; i < 22; ++i) fields >> skipped;
  if (!(fields >> stat.start_time)) return std::nullopt;
  return stat;
}

}  // namespace

Result<ProcessId> Spawn(const SpawnOptions& options) {
  std::vector<char*> argv;
  for (const std::string& argument : options.command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  if (::access(argv[0], X_OK) != 0) {
    return FailedPrecondition(
        Reason::kInvalidCfg,
        fmt::format("{} cannot be run: {}; see --bin-dir", argv[0], std::strerror(errno)));
  }
  const Fd log(::open(options.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!log)
    return Internal(fmt::format("{} cannot be opened: {}", options.log_path, std::strerror(errno)));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Internal(fmt::format("no process could be made: {}", std::strerror(errno)));
  if (pid == 0) {  // only calls that are safe between fork and exec
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::setsid();
    if (options.die_with_parent) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent) ::_exit(127);  // it died before
    }
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::dup2(log.get(), 1);
    ::dup2(log.get(), 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  const auto stat = ReadStat(pid);  // there until it is reaped
  return ProcessId{pid, stat ? stat->start_time : 0};
}

bool IsAlive(const ProcessId& process) {
  if (!process) return false;
  const auto stat = ReadStat(process.pid);
  return stat && stat->start_time == process.start_time && stat->state != 'Z' && stat->state != 'X';
}

void SendSignal(const ProcessId& process, int signal) {
  if (IsAlive(process)) ::kill(process.pid, signal);
}

std::optional<Exit> Reap(const ProcessId& process) {
  if (!process) return std::nullopt;
  int status = 0;
  if (::waitpid(process.pid, &status, WNOHANG) != process.pid) return std::nullopt;
  if (WIFSIGNALED(status)) return Exit{-1, fmt::format("killed by signal {}", WTERMSIG(status))};
  return Exit{WEXITSTATUS(status), fmt::format("exit code {}", WEXITSTATUS(status))};
}

ProcessId FindProcess(const std::vector<std::string>& flags_and_values) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::vector<std::string> argv;
    for (std::string argument; std::getline(in, argument, '\0');) argv.push_back(argument);
    bool all = !argv.empty();
    for (std::size_t i = 0; all && i + 1 < flags_and_values.size(); i += 2) {
      const auto flag = std::find(argv.begin(), argv.end(), flags_and_values[i]);
      all = flag != argv.end() && flag + 1 != argv.end() && *(flag + 1) == flags_and_values[i + 1];
    }
    if (!all) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (const auto stat = ReadStat(pid)) return {pid, stat->start_time};
  }
  return {};
}

std::string LastLine(const std::string& path, std::size_t limit) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - 4096));
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return last.substr(0, limit);
}

}  // namespace etalon::controller
