#include "env/disk.h"

#include <utility>

namespace etalon {

DiskOp DiskOp::Write(std::string path, std::uint64_t offset, std::string bytes) {
  return {
      .kind = Kind::kWrite, .path = std::move(path), .offset = offset, .bytes = std::move(bytes)};
}
DiskOp DiskOp::Sync(std::string path) { return {.kind = Kind::kSync, .path = std::move(path)}; }
DiskOp DiskOp::Allocate(std::string path, std::uint64_t size) {
  return {.kind = Kind::kAllocate, .path = std::move(path), .size = size};
}
DiskOp DiskOp::Truncate(std::string path, std::uint64_t size) {
  return {.kind = Kind::kTruncate, .path = std::move(path), .size = size};
}
DiskOp DiskOp::Rename(std::string from, std::string to) {
  return {.kind = Kind::kRename, .path = std::move(from), .path2 = std::move(to)};
}
DiskOp DiskOp::Remove(std::string path) { return {.kind = Kind::kRemove, .path = std::move(path)}; }
DiskOp DiskOp::MakeDir(std::string path) {
  return {.kind = Kind::kMakeDir, .path = std::move(path)};
}
DiskOp DiskOp::RemoveTree(std::string path) {
  return {.kind = Kind::kRemoveTree, .path = std::move(path)};
}
DiskOp DiskOp::SyncDir(std::string path) {
  return {.kind = Kind::kSyncDir, .path = std::move(path)};
}

Status CheckDiskPath(std::string_view path) {
  std::string_view rest = path;
  while (!path.empty()) {
    const auto slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (name.empty() || name == "." || name == "..") {
      return InvalidArgument("\"" + std::string(path) + "\" is not a path below the disk's root");
    }
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  return OkStatus();
}

std::string_view ParentOf(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

Result<std::string> ReadWhole(Disk& disk, std::string_view path, std::uint64_t limit) {
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t size, disk.Size(path));
  if (size > limit) {
    return ResourceExhausted(std::string(path) + " has " + std::to_string(size) +
                                 " bytes, at most " + std::to_string(limit) + " are read",
                             Reason::kTooLarge);
  }
  return disk.Read(path, 0, size);
}

DiskJob ReplaceFile(std::string_view path, std::string bytes) {
  const std::string target(path);
  const std::string temporary = target + ".new";
  const std::uint64_t size = bytes.size();
  DiskJob job;
  job.push_back(DiskOp::Remove(temporary));
  job.push_back(DiskOp::Write(temporary, 0, std::move(bytes)));
  job.push_back(DiskOp::Truncate(temporary, size));
  job.push_back(DiskOp::Sync(temporary));
  job.push_back(DiskOp::Rename(temporary, target));
  job.push_back(DiskOp::SyncDir(std::string(ParentOf(path))));
  return job;
}

}  // namespace etalon
