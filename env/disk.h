#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/unique_function.h"

namespace etalon {

// One step of a DiskJob. Paths are relative to the disk's root, with '/' and without "..".
struct DiskOp {
  enum class Kind : unsigned char {
    kWrite,       // bytes at offset; the file is made if absent; extends it if need be
    kSync,        // fdatasync of the file: its data and its size are durable
    kAllocate,    // makes the file if absent and reserves `size` bytes for it, reading as zeros
    kTruncate,    // to `size` bytes
    kRename,      // path -> path2, atomically, replacing path2
    kRemove,      // the file, if present
    kMakeDir,     // with its parents; present is success
    kRemoveTree,  // a directory and all below it; absent is success
    kSyncDir,     // makes, renames and removals directly below path are durable
  };
  Kind kind;
  std::string path;
  std::string path2 = {};
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string bytes = {};

  static DiskOp Write(std::string path, std::uint64_t offset, std::string bytes);
  static DiskOp Sync(std::string path);
  static DiskOp Allocate(std::string path, std::uint64_t size);
  static DiskOp Truncate(std::string path, std::uint64_t size);
  static DiskOp Rename(std::string from, std::string to);
  static DiskOp Remove(std::string path);
  static DiskOp MakeDir(std::string path);
  static DiskOp RemoveTree(std::string path);
  static DiskOp SyncDir(std::string path);
};

using DiskJob = std::vector<DiskOp>;

// The files of one node.
//
// Writing is asynchronous: jobs run in the order of Submit, one after the other, on the disk's own
// thread; the ops of a job in their order, up to the first that fails. `done` runs on the node's
// core executor, in the order of the jobs. Without kSync (file) and kSyncDir (its name) a crash may
// keep, lose or tear what was written.
//
// Failures: RESOURCE_EXHAUSTED/DISK_FULL is an answer one can live with (free space and try again).
// A failed kSync is not: what is on the disk is unknown from then on, every later job fails too
// (DATA_LOSS), and the owner must end.
//
// Reading is synchronous and may block; it belongs to start-up and to rare slow paths. It sees what
// jobs that were already reported done have written. Threads: core executor only.
class Disk {
 public:
  using Done = UniqueFunction<void(Status)>;

  virtual ~Disk() = default;
  virtual void Submit(DiskJob job, Done done) = 0;

  // Names directly below `dir`, sorted; directories end with '/'. NOT_FOUND when there is no such
  // directory.
  virtual Result<std::vector<std::string>> List(std::string_view dir) = 0;
  // Up to `size` bytes; fewer only at the end of the file. NOT_FOUND when there is no such file.
  virtual Result<std::string> Read(std::string_view path, std::uint64_t offset,
                                   std::uint64_t size) = 0;
  virtual Result<std::uint64_t> Size(std::string_view path) = 0;
  virtual Result<std::uint64_t> FreeBytes() = 0;
};

// Whether a Disk takes `path`: relative, '/' between names, no empty name, no ".", no "..". "" is
// the root.
Status CheckDiskPath(std::string_view path);
// "a/b" of "a/b/c", "" of "a".
std::string_view ParentOf(std::string_view path);

// Reads a whole file; RESOURCE_EXHAUSTED/TOO_LARGE above `limit` bytes.
Result<std::string> ReadWhole(Disk& disk, std::string_view path, std::uint64_t limit = 64u << 20);
// Ops that replace `path` by `bytes` so that after a crash the old or the new content is there,
// whole.
DiskJob ReplaceFile(std::string_view path, std::string bytes);

}  // namespace etalon
