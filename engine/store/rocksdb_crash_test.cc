// Processes that die while they write, checkpoint and flush.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/ids.h"
#include "engine/store/testing/model.h"
#include "engine/store/testing/rocksdb_harness.h"
#include "gtest/gtest.h"

namespace etalon::store {
namespace {

constexpr char kRootVariable[] = "ETALON_STORE_CRASH_ROOT";
constexpr char kSeedVariable[] = "ETALON_STORE_CRASH_SEED";
constexpr int kReport = 3;  // the child's descriptor for the indexes that are durable
constexpr int kWrites = 400;

RocksDbOptions Options(const std::string& root) {
  RocksDbOptions options;
  options.root = root;
  options.write_buffer_bytes = 128u << 10;  // flushes of its own, too
  options.range_deletes_per_flush = 20;
  options.reclaim_bytes = 4096;
  return options;
}

// The same in both processes.
Batch NextBatch(Random& random, std::uint64_t index) {
  Batch batch = RandomBatch(random);
  batch.Put(kIndexKey, EncodeIndex(index));
  return batch;
}

// Runs only as a child of the test below: writes, reports each checkpoint, and dies in the middle
// of it.
TEST(RocksDbCrashChild, DISABLED_Life) {
  const char* root = getenv(kRootVariable);
  const char* seed = getenv(kSeedVariable);
  ASSERT_TRUE(root != nullptr && seed != nullptr);
  Random history(FromHex(seed));
  Random chance(FromHex(seed) + 1);
  const std::uint64_t last = chance.Between(1, kWrites);
  ManualExecutor executor;
  const auto factory = NewRocksDbFactory(executor, Options(root));
  const auto store = std::move(factory->Open("s", OpenMode::kFresh)).value();
  for (std::uint64_t index = 1; index <= last; ++index) {
    Batch batch = NextBatch(history, index);
    while (!store->Write(std::move(batch)).ok()) executor.TryRunOne();
    if (chance.Chance(1, 20)) {
      store->Checkpoint([index](const Status& status) {
        const std::string bytes = EncodeIndex(index);
        if (!status.ok() || write(kReport, bytes.data(), bytes.size()) != 8) _exit(2);
      });
    }
    if (chance.Chance(1, 10)) executor.TryRunOne();
    if (chance.Chance(1, 100)) {
      bool done = false;
      store->Checkpoint([&done](const Status&) { done = true; });
      while (!done) executor.RunOne();
    }
  }
  _exit(0);  // no destructor, no flush
}

struct Child {
  pid_t pid;
  int report;
};

Child Spawn(const std::string& root, std::uint64_t seed) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], kReport);
  std::vector<std::string> arguments{"child", "--gtest_filter=RocksDbCrashChild.DISABLED_Life",
                                     "--gtest_also_run_disabled_tests"};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  setenv(kRootVariable, root.c_str(), 1);
  setenv(kSeedVariable, ToHex(seed).c_str(), 1);
  Child child{};
  EXPECT_EQ(posix_spawn(&child.pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  child.report = ends[0];
  return child;
}

TEST(RocksDbCrash, AKilledProcessLeavesAPrefixNotBeforeItsCheckpoint) {
  int went_back = 0;
  int past_checkpoint = 0;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RocksDbHarness harness(seed);  // for its directory
    std::filesystem::create_directories(harness.root() + "/s");
    const Child child = Spawn(harness.root(), seed);
    // Every other child is killed from outside, when it has reported a few checkpoints.
    const int patience = seed % 2 == 0 ? static_cast<int>(seed) / 2 : kWrites;
    std::uint64_t durable = 0;
    char bytes[8];
    for (int reports = 0; reports < patience && read(child.report, bytes, 8) == 8; ++reports) {
      std::string_view in(bytes, 8);
      ASSERT_TRUE(GetBe64(&in, &durable));
    }
    kill(child.pid, SIGKILL);
    int ended = 0;
    ASSERT_EQ(waitpid(child.pid, &ended, 0), child.pid);
    ASSERT_TRUE(WIFSIGNALED(ended) || WEXITSTATUS(ended) == 0) << ended;
    close(child.report);

    const auto factory = NewRocksDbFactory(harness.executor(), Options(harness.root()));
    const auto opened = factory->Open("s", OpenMode::kExisting);
    if (!opened.ok() && durable == 0) continue;  // it did not even get to make the store
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_TRUE((*opened)->Verify().ok());
    const Model found = Dump(**opened);
    const std::uint64_t index = IndexOf(found);
    Random history(seed);
    Model model;
    for (std::uint64_t i = 1; i <= index; ++i) Apply(NextBatch(history, i), &model);
    ASSERT_GE(index, durable);
    ASSERT_EQ(found, model) << "index " << index;
    Random chance(seed + 1);
    const std::uint64_t last = chance.Between(1, kWrites);
    ASSERT_LE(index, last);
    if (index < last) ++went_back;
    if (index > durable) ++past_checkpoint;
  }
  EXPECT_GT(went_back, 4);
  EXPECT_GT(past_checkpoint, 4);
}

}  // namespace
}  // namespace etalon::store
