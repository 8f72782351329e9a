#include "operator/platform/local/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/posix/temp_dir.h"
#include "operator/platform/local/files.h"

namespace etalon::controller {
namespace {

using ::testing::HasSubstr;

SpawnOptions Shell(const TempDir& dir, const std::string& script) {
  SpawnOptions options;
  options.command = {"/bin/sh", "-c", script, "--name", dir.path()};
  options.log_path = dir.path() + "/log";
  return options;
}

Exit WaitFor(const ProcessId& process) {
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(process.pid), &info, WEXITED | WNOWAIT);
  return Reap(process).value_or(Exit{99, "not reaped"});
}

TEST(ChildProcess, RunsAndEnds) {
  TempDir dir;
  const auto process = Spawn(Shell(dir, "echo first; echo last >&2; exit 3"));
  ASSERT_TRUE(process.ok());
  const Exit exit = WaitFor(*process);
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.words, "exit code 3");
  EXPECT_FALSE(IsAlive(*process));
  EXPECT_EQ(LastLine(dir.path() + "/log"), "last");
  EXPECT_EQ(LastLine(dir.path() + "/none"), "");
}

TEST(ChildProcess, IsKnownByItsStartTime) {
  TempDir dir;
  const auto process = Spawn(Shell(dir, "exec sleep 1000"));
  ASSERT_TRUE(process.ok());
  EXPECT_TRUE(IsAlive(*process));
  ProcessId other = *process;
  ++other.start_time;  // the number was given to another one
  EXPECT_FALSE(IsAlive(other));
  SendSignal(other, SIGKILL);
  EXPECT_TRUE(IsAlive(*process));
  EXPECT_FALSE(Reap(*process).has_value());
  SendSignal(*process, SIGKILL);
  EXPECT_EQ(WaitFor(*process).words, "killed by signal 9");
  EXPECT_FALSE(IsAlive(*process));
}

TEST(ChildProcess, IsFoundByItsFlags) {
  TempDir dir;
  const auto process = Spawn(Shell(dir, "mkfifo \"$1/fifo\"; read x < \"$1/fifo\""));
  ASSERT_TRUE(process.ok());
  // Between fork and exec it still has our own command line.
  ProcessId found;
  for (int i = 0; i < 100000 && !found; ++i) found = FindProcess({"--name", dir.path()});
  EXPECT_EQ(found, *process);
  EXPECT_FALSE(FindProcess({"--name", dir.path() + "x"}));
  SendSignal(*process, SIGKILL);
  EXPECT_EQ(WaitFor(*process).code, -1);
}

TEST(ChildProcess, WhatCannotRunSaysWhy) {
  TempDir dir;
  SpawnOptions options = Shell(dir, "");
  options.command = {dir.path() + "/none"};
  EXPECT_THAT(Spawn(options).status().message(), HasSubstr("cannot be run: No such file"));
}

}  // namespace
}  // namespace etalon::controller
