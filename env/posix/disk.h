#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "env/disk.h"
#include "env/executor.h"
#include "env/posix/fd.h"

namespace etalon {

// The files below one directory of this machine. A thread of its own, the committer, runs the jobs.
// A failed sync of a file or directory ends it: every later job fails with DATA_LOSS, nothing more
// is written.
class PosixDisk final : public Disk {
 public:
  // `root` is made if its parent exists. `core` outlives the disk.
  static Result<std::unique_ptr<PosixDisk>> Open(const std::string& root, Executor& core);
  // Waits for the job that runs; those behind it are dropped, as in a crash.
  ~PosixDisk() override;

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
  };

  PosixDisk(Fd root, Executor& core);

  // Committer only.
  void Commit();
  Status RunJob(const DiskJob& ops);
  Status RunOp(const DiskOp& op);
  Status Write(const DiskOp& op);
  Status Allocate(const DiskOp& op);
  Status Sync(const DiskOp& op);
  Status MakeDir(const std::string& path);
  Status SyncDir(const std::string& path);
  // A descriptor for writing, from the cache; valid until the next call.
  Result<int> OpenForWrite(const std::string& path, bool make);
  // Forgets descriptors of the path and of all below it.
  void Forget(std::string_view path);

  Result<Fd> OpenAt(std::string_view path, int flags) const;

  const Fd root_;
  Executor& core_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;  // guarded by mutex_
  bool stop_ = false;     // guarded by mutex_

  std::list<std::pair<std::string, Fd>> open_;  // committer only; most recently used first
  bool poisoned_ = false;                       // committer only
  std::thread committer_;                       // last: it uses all of the above
};

}  // namespace etalon
