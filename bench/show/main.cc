// etalon-show: starts a collection on this machine from a manifest and shows it at work (see
// README.md).

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "bench/show/story.h"

namespace {

volatile sig_atomic_t g_stop = 0;
void OnSignal(int) { g_stop = 1; }

// The operator ends with the show, and takes its processes with it.
pid_t StartOperator(const std::string& bin_dir, const std::string& data_dir) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);  // Ctrl-C is for the show, which stops the operator itself
  const std::string log = data_dir + "/operator.log";
  const int fd = open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0644);
  if (fd >= 0) {
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
  }
  const std::string program = bin_dir + "/etalon-operator";
  const std::string manifest = data_dir + "/collection.yaml";
  execl(program.c_str(), program.c_str(), "--platform", "local", "--manifest", manifest.c_str(),
        "--data", data_dir.c_str(), "--bin-dir", bin_dir.c_str(), "--stop-children-on-exit",
        static_cast<char*>(nullptr));
  _exit(127);
}

bool StopOperator(pid_t pid) {
  kill(pid, SIGTERM);
  for (int i = 0; i < 300; ++i) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return false;
}

void WhatNext(const std::string& bin_dir, const std::string& data_dir) {
  const std::string ctl = bin_dir + "/etalonctl --data " + data_dir;
  std::printf(
      "\nThe collection goes on running. Try, in another terminal:\n"
      "  %s status\n"
      "  %s route gcc-12\n"
      "  %s scan packages gcc-12\n"
      "  %s plan --shard-num 5\n"
      "  %s scale 5\n"
      "or edit %s/collection.yaml. Ctrl-C ends it.\n",
      ctl.c_str(), ctl.c_str(), ctl.c_str(), ctl.c_str(), ctl.c_str(), data_dir.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string data_dir,
      bin_dir = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  bool once = false;
  etalon::show::StoryOptions options;
  CLI::App app("Shows a sharded collection with real data growing and shrinking under load.");
  app.add_option("--data", data_dir, "An empty directory for the collection's data")->required();
  app.add_option("--bin-dir", bin_dir, "Where the programs are");
  app.add_option("--calls-per-second", options.calls_per_second, "Rate of the load");
  app.add_flag("--once", once, "End after the verdict");
  CLI11_PARSE(app, argc, argv);

  std::error_code error;
  std::filesystem::create_directories(data_dir, error);
  if (error || !std::filesystem::is_empty(data_dir, error)) {
    std::fprintf(stderr, "etalon-show: %s must be an empty directory\n", data_dir.c_str());
    return 2;
  }
  options.data_dir = data_dir;
  auto index = etalon::show::ReadMachineIndex();
  if (!index.ok() || index->empty()) {
    std::fprintf(stderr, "etalon-show: no package index (%s): run 'apt-get update' first\n",
                 index.ok() ? "it is empty" : index.status().message().c_str());
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  etalon::show::WriteManifest(data_dir + "/collection.yaml", 2, options.bucket_count);
  const pid_t op = StartOperator(bin_dir, data_dir);
  bool good = false;
  std::thread story([&] {
    etalon::show::Story tale(options, *index);
    good = tale.Run();
    if (once || g_stop != 0) {
      g_stop = 1;
    } else {
      WhatNext(bin_dir, data_dir);
    }
  });
  bool alive = true;
  while (g_stop == 0 && alive) {
    alive = waitpid(op, nullptr, WNOHANG) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!alive) {
    std::fprintf(
        stderr,
        "etalon-show: the operator ended by itself; its last words are in %s/operator.log\n",
        data_dir.c_str());
    std::_Exit(1);  // the story waits for a collection that will not come
  }
  if (!once && !good) std::_Exit(StopOperator(op) ? 130 : 1);
  story.join();
  const bool stopped = StopOperator(op);
  if (!stopped) std::fprintf(stderr, "etalon-show: the operator did not stop within 30 s\n");
  return good && stopped ? 0 : 1;
}
