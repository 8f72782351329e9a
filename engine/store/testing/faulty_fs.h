// A file system under RocksDB that fills up on demand and that loses at a crash what was not
// synced.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "common/random.h"

namespace etalon::store {

// Files live on the real one; only what is not durable yet is remembered here.
class FaultyFs final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFs() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFs"; }

  // While set, nothing can be appended to any file.
  void SetFull(bool full) { full_ = full; }
  bool full() const { return full_; }
  // While set, whoever appends to any file waits.
  void SetStuck(bool stuck);
  void WaitWhileStuck();

  // Cuts every file at a random length not below what was synced, and removes new files whose
  // directory was not synced, or not. No file is open.
  void LoseUnsynced(Random& random);

  void Appended(const std::string& path, std::uint64_t bytes);
  void Synced(const std::string& path);
  void DirectorySynced(const std::string& dir);

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  struct File {
    std::uint64_t size = 0;
    std::uint64_t synced = 0;
    bool named = false;  // the directory was synced since it was made
  };

  std::atomic<bool> full_ = false;
  std::mutex mutex_;
  bool stuck_ = false;
  std::condition_variable unstuck_;
  std::map<std::string, File> files_;
};

}  // namespace etalon::store
