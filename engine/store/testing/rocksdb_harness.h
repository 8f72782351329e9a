// The RocksDB store in a temporary directory.
#pragma once

#include <rocksdb/env.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "engine/store/rocksdb_store.h"
#include "engine/store/testing/faulty_fs.h"
#include "engine/store/testing/harness.h"

namespace etalon::store {

// Runs tasks when told to.
class ManualExecutor final : public Executor {
 public:
  void Post(Task task) override;
  TimerId PostAt(SteadyTime when, Task task) override;
  void Cancel(TimerId timer) override;

  // Waits for a task and runs it.
  void RunOne();
  // False when there is none.
  bool TryRunOne();
  void Clear();

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;
};

// A directory of the real file system, one operation per task.
class RealDisk final : public Disk {
 public:
  RealDisk(Executor& core, std::string root) : core_(core), root_(std::move(root)) {}

  void Submit(DiskJob job, Done done) override;
  Result<std::vector<std::string>> List(std::string_view dir) override;
  Result<std::string> Read(std::string_view path, std::uint64_t offset,
                           std::uint64_t size) override;
  Result<std::uint64_t> Size(std::string_view path) override;
  Result<std::uint64_t> FreeBytes() override;

 private:
  struct Job {
    DiskJob ops;
    Done done;
    std::size_t next = 0;
  };

  void Step();
  Status Execute(const DiskOp& op);
  std::string Full(std::string_view path) const { return root_ + '/' + std::string(path); }

  Executor& core_;
  const std::string root_;
  std::deque<Job> jobs_;
};

class RocksDbHarness final : public Harness {
 public:
  explicit RocksDbHarness(std::uint64_t seed);
  ~RocksDbHarness() override;

  // Small limits, so that flushes and compactions of all kinds happen in small tests.
  RocksDbOptions SmallOptions();

  Disk& disk() override { return *disk_; }
  StoreFactory& factory() override { return *factory_; }
  void Step() override { executor_.RunOne(); }
  void Idle(Random& random) override;
  void Crash() override;

  const std::string& root() const { return root_; }
  Executor& executor() { return executor_; }
  FaultyFs& fs() { return *fs_; }
  // Takes the place of the one that the harness made.
  void UseFactory(std::unique_ptr<StoreFactory> factory) { factory_ = std::move(factory); }

 private:
  Random random_;
  std::string root_;
  std::shared_ptr<FaultyFs> fs_;
  std::unique_ptr<rocksdb::Env> env_;
  ManualExecutor executor_;
  std::unique_ptr<RealDisk> disk_;
  std::unique_ptr<StoreFactory> factory_;
};

}  // namespace etalon::store
