#include "engine/store/testing/faulty_fs.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace etalon::store {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class FaultyFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFs& fs, std::string path)
      : FSWritableFileOwnerWrapper(std::move(file)), fs_(fs), path_(std::move(path)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* debug) override {
    fs_.WaitWhileStuck();
    if (fs_.full()) return IOStatus::NoSpace("the test wants a full disk");
    const IOStatus status = target()->Append(data, options, debug);
    if (status.ok()) fs_.Appended(path_, data.size());
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = target()->Sync(options, debug);
    if (status.ok()) fs_.Synced(path_);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = target()->Fsync(options, debug);
    if (status.ok()) fs_.Synced(path_);
    return status;
  }

 private:
  FaultyFs& fs_;
  const std::string path_;
};

class FaultyDirectory final : public rocksdb::FSDirectory {
 public:
  FaultyDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, FaultyFs& fs, std::string path)
      : directory_(std::move(directory)), fs_(fs), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    const IOStatus status = directory_->Fsync(options, debug);
    if (status.ok()) fs_.DirectorySynced(path_);
    return status;
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return directory_->Close(options, debug);
  }

 private:
  const std::unique_ptr<rocksdb::FSDirectory> directory_;
  FaultyFs& fs_;
  const std::string path_;
};

}  // namespace

void FaultyFs::SetStuck(bool stuck) {
  const std::lock_guard lock(mutex_);
  stuck_ = stuck;
  unstuck_.notify_all();
}

void FaultyFs::WaitWhileStuck() {
  std::unique_lock lock(mutex_);
  unstuck_.wait(lock, [this] { return !stuck_; });
}

void FaultyFs::LoseUnsynced(Random& random) {
  const std::lock_guard lock(mutex_);
  std::error_code error;
  for (const auto& [path, file] : files_) {
    if (!std::filesystem::exists(path, error)) continue;
    if (!file.named && random.Chance(1, 2)) {
      std::filesystem::remove(path, error);
    } else {
      std::filesystem::resize_file(path, random.Between(file.synced, file.size), error);
    }
  }
  files_.clear();
}

void FaultyFs::Appended(const std::string& path, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  files_[path].size += bytes;
}

void FaultyFs::Synced(const std::string& path) {
  const std::lock_guard lock(mutex_);
  files_[path].synced = files_[path].size;
}

void FaultyFs::DirectorySynced(const std::string& dir) {
  const std::lock_guard lock(mutex_);
  for (auto& [path, file] : files_) {
    if (std::filesystem::path(path).parent_path() == dir) file.named = true;
  }
}

IOStatus FaultyFs::NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                   std::unique_ptr<rocksdb::FSWritableFile>* result,
                                   IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const IOStatus status = target()->NewWritableFile(path, options, &file, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  files_[path] = {};
  *result = std::make_unique<FaultyFile>(std::move(file), *this, path);
  return status;
}

IOStatus FaultyFs::NewDirectory(const std::string& path, const IOOptions& options,
                                std::unique_ptr<rocksdb::FSDirectory>* result,
                                IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  const IOStatus status = target()->NewDirectory(path, options, &directory, debug);
  if (!status.ok()) return status;
  *result = std::make_unique<FaultyDirectory>(std::move(directory), *this, path);
  return status;
}

IOStatus FaultyFs::RenameFile(const std::string& from, const std::string& to,
                              const IOOptions& options, IODebugContext* debug) {
  const IOStatus status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  const auto it = files_.find(from);
  if (it == files_.end()) return status;
  File file = it->second;
  file.named = true;  // either name would do; the new one is what a crash leaves here
  files_.erase(it);
  files_[to] = file;
  return status;
}

IOStatus FaultyFs::DeleteFile(const std::string& path, const IOOptions& options,
                              IODebugContext* debug) {
  const IOStatus status = target()->DeleteFile(path, options, debug);
  if (!status.ok()) return status;
  const std::lock_guard lock(mutex_);
  files_.erase(path);
  return status;
}

}  // namespace etalon::store
