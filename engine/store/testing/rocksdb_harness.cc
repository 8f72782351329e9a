#include "engine/store/testing/rocksdb_harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/check.h"
#include "gtest/gtest.h"

namespace etalon::store {
namespace {

namespace fs = std::filesystem;

constexpr auto kStuck = std::chrono::minutes(2);

std::string NewDirectory() {
  std::string path = ::testing::TempDir() + "etalon-store-XXXXXX";
  ETALON_CHECK(mkdtemp(path.data()) != nullptr, "no temporary directory");
  return path;
}

Status FromCode(const std::error_code& error, std::string_view what) {
  return error ? Internal(std::string(what) + ": " + error.message()) : OkStatus();
}

Status WriteAt(const std::string& path, std::uint64_t offset, const std::string& bytes) {
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return Internal("cannot open " + path);
  const ssize_t written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  close(file);
  return written == static_cast<ssize_t>(bytes.size()) ? OkStatus()
                                                       : Internal("cannot write " + path);
}

}  // namespace

void ManualExecutor::Post(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  posted_.notify_one();
}

Executor::TimerId ManualExecutor::PostAt(SteadyTime, Task) {
  ETALON_CHECK(false, "a store needs no timers");
}

void ManualExecutor::Cancel(TimerId) {}

void ManualExecutor::RunOne() {
  {
    std::unique_lock lock(mutex_);
    const bool some = posted_.wait_for(lock, kStuck, [this] { return !tasks_.empty(); });
    ETALON_CHECK(some, "nothing is under way");
  }
  TryRunOne();
}

bool ManualExecutor::TryRunOne() {
  Task task;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

void ManualExecutor::Clear() {
  const std::lock_guard lock(mutex_);
  tasks_.clear();
}

void RealDisk::Submit(DiskJob job, Done done) {
  jobs_.push_back({std::move(job), std::move(done)});
  if (jobs_.size() == 1) core_.Post([this] { Step(); });
}

void RealDisk::Step() {
  Job& job = jobs_.front();
  Status status;
  if (job.next < job.ops.size()) status = Execute(job.ops[job.next++]);
  if (status.ok() && job.next < job.ops.size()) {
    core_.Post([this] { Step(); });
    return;
  }
  Done done = std::move(job.done);
  jobs_.pop_front();
  if (!jobs_.empty()) core_.Post([this] { Step(); });
  done(std::move(status));
}

Status RealDisk::Execute(const DiskOp& op) {
  const std::string path = Full(op.path);
  std::error_code error;
  switch (op.kind) {
    case DiskOp::Kind::kWrite:
      return WriteAt(path, op.offset, op.bytes);
    case DiskOp::Kind::kAllocate:
    case DiskOp::Kind::kTruncate:
      fs::resize_file(path, op.size, error);
      return FromCode(error, path);
    case DiskOp::Kind::kRename:
      fs::rename(path, Full(op.path2), error);
      return FromCode(error, path);
    case DiskOp::Kind::kRemove:
      fs::remove(path, error);
      return FromCode(error, path);
    case DiskOp::Kind::kMakeDir:
      fs::create_directories(path, error);
      return FromCode(error, path);
    case DiskOp::Kind::kRemoveTree:
      fs::remove_all(path, error);
      return FromCode(error, path);
    case DiskOp::Kind::kSync:
    case DiskOp::Kind::kSyncDir:
      return OkStatus();  // what this disk has done stays done
  }
  return Internal("an unknown operation");
}

Result<std::vector<std::string>> RealDisk::List(std::string_view dir) {
  std::error_code error;
  std::vector<std::string> out;
  for (fs::directory_iterator it(Full(dir), error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path().filename().string() + (it->is_directory() ? "/" : ""));
  }
  if (error) return NotFound("no directory " + std::string(dir));
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> RealDisk::Read(std::string_view path, std::uint64_t offset,
                                   std::uint64_t size) {
  const int file = open(Full(path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return NotFound("no file " + std::string(path));
  std::string out(size, '\0');
  const ssize_t got = pread(file, out.data(), size, static_cast<off_t>(offset));
  close(file);
  if (got < 0) return Internal("cannot read " + std::string(path));
  out.resize(static_cast<std::size_t>(got));
  return out;
}

Result<std::uint64_t> RealDisk::Size(std::string_view path) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(Full(path), error);
  if (error) return NotFound("no file " + std::string(path));
  return size;
}

Result<std::uint64_t> RealDisk::FreeBytes() {
  std::error_code error;
  const auto space = fs::space(root_, error);
  if (error) return Internal("cannot ask for the space of " + root_);
  return static_cast<std::uint64_t>(space.available);
}

RocksDbHarness::RocksDbHarness(std::uint64_t seed)
    : random_(seed),
      root_(NewDirectory()),
      fs_(std::make_shared<FaultyFs>()),
      env_(rocksdb::NewCompositeEnv(fs_)),
      disk_(std::make_unique<RealDisk>(executor_, root_)),
      factory_(NewRocksDbFactory(executor_, SmallOptions())) {}

RocksDbHarness::~RocksDbHarness() {
  std::error_code error;
  fs::remove_all(root_, error);
}

RocksDbOptions RocksDbHarness::SmallOptions() {
  RocksDbOptions options;
  options.root = root_;
  options.write_buffer_bytes = 256u << 10;
  options.block_cache_bytes = 1u << 20;
  options.range_deletes_per_flush = 8;
  options.reclaim_bytes = 16u << 10;
  options.env = env_.get();
  return options;
}

void RocksDbHarness::Idle(Random& random) {
  const std::uint64_t most = random.Below(20);
  for (std::uint64_t i = 0; i < most && executor_.TryRunOne(); ++i) {
  }
}

void RocksDbHarness::Crash() {
  executor_.Clear();
  disk_ = std::make_unique<RealDisk>(executor_, root_);
  fs_->LoseUnsynced(random_);
}

std::unique_ptr<Harness> NewHarness(std::uint64_t seed) {
  return std::make_unique<RocksDbHarness>(seed);
}

}  // namespace etalon::store
