#include "env/posix/disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "env/posix/errno_status.h"

namespace etalon {

namespace {

constexpr std::size_t kOpenFiles = 32;
constexpr std::uint64_t kZeroChunk = 1u << 20;

// The root itself is ".", for the *at family.
std::string AtPath(std::string_view path) { return path.empty() ? "." : std::string(path); }

bool IsBelow(std::string_view path, std::string_view dir) {
  return path.size() > dir.size() && path.substr(0, dir.size()) == dir && path[dir.size()] == '/';
}

template <typename Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Status WriteAll(int fd, std::string_view bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n =
        Retry([&] { return ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (n < 0) return ErrnoStatus(errno, "writing " + path);
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return OkStatus();
}

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

struct DirEntry {
  std::string name;
  bool is_dir;
};

// Names in an open directory, sorted.
Result<std::vector<DirEntry>> ReadDir(Fd fd, const std::string& path) {
  const Dir dir(::fdopendir(fd.get()), &::closedir);
  if (!dir) return ErrnoStatus(errno, "listing " + path);
  fd.Release();
  std::vector<DirEntry> out;
  errno = 0;
  while (const dirent* entry =
             ::readdir(dir.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of our own
    const std::string name = entry->d_name;
    if (name != "." && name != "..") {
      struct stat st {};
      if (::fstatat(::dirfd(dir.get()), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        out.push_back({name, S_ISDIR(st.st_mode)});
      }
    }
    errno = 0;
  }
  if (errno != 0) return ErrnoStatus(errno, "listing " + path);
  std::sort(out.begin(), out.end(),
            [](const DirEntry& a, const DirEntry& b) { return a.name < b.name; });
  return out;
}

Status RemoveTreeAt(int parent, const std::string& path) {
  if (::unlinkat(parent, path.c_str(), 0) == 0 || errno == ENOENT) return OkStatus();
  if (errno != EISDIR && errno != EPERM) return ErrnoStatus(errno, "removing " + path);
  Fd fd(::openat(parent, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "removing " + path);
  const int self = fd.get();
  Fd for_listing(::fcntl(self, F_DUPFD_CLOEXEC, 0));
  ETALON_ASSIGN_OR_RETURN(const std::vector<DirEntry> entries,
                          ReadDir(std::move(for_listing), path));
  for (const DirEntry& entry : entries) ETALON_RETURN_IF_ERROR(RemoveTreeAt(self, entry.name));
  if (::unlinkat(parent, path.c_str(), AT_REMOVEDIR) != 0)
    return ErrnoStatus(errno, "removing " + path);
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<PosixDisk>> PosixDisk::Open(const std::string& root, Executor& core) {
  if (::mkdir(root.c_str(), 0777) != 0 && errno != EEXIST)
    return ErrnoStatus(errno, "making " + root);
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "opening the data directory " + root);
  return std::unique_ptr<PosixDisk>(new PosixDisk(std::move(fd), core));
}

PosixDisk::PosixDisk(Fd root, Executor& core)
    : root_(std::move(root)), core_(core), committer_([this] { Commit(); }) {}

PosixDisk::~PosixDisk() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  committer_.join();
}

void PosixDisk::Submit(DiskJob job, Done done) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(job), std::move(done)});
  }
  wake_.notify_one();
}

void PosixDisk::Commit() {
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Status status = RunJob(job.ops);
    if (!job.done) continue;
    core_.Post([done = std::move(job.done), status = std::move(status)]() mutable {
      done(std::move(status));
    });
  }
}

Status PosixDisk::RunJob(const DiskJob& ops) {
  for (const DiskOp& op : ops) {
    if (poisoned_) break;
    ETALON_RETURN_IF_ERROR(RunOp(op));
  }
  if (poisoned_)
    return DataLoss("a sync failed earlier: what is on the disk is unknown", Reason::kNone);
  return OkStatus();
}

Status PosixDisk::RunOp(const DiskOp& op) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(op.path));
  ETALON_RETURN_IF_ERROR(CheckDiskPath(op.path2));
  switch (op.kind) {
    case DiskOp::Kind::kWrite:
      return Write(op);
    case DiskOp::Kind::kSync:
      return Sync(op);
    case DiskOp::Kind::kAllocate:
      return Allocate(op);
    case DiskOp::Kind::kTruncate: {
      ETALON_ASSIGN_OR_RETURN(const int fd, OpenForWrite(op.path, false));
      if (Retry([&] { return ::ftruncate(fd, static_cast<off_t>(op.size)); }) != 0) {
        return ErrnoStatus(errno, "truncating " + op.path);
      }
      return OkStatus();
    }
    case DiskOp::Kind::kRename:
      Forget(op.path);
      Forget(op.path2);
      if (::renameat(root_.get(), op.path.c_str(), root_.get(), op.path2.c_str()) != 0) {
        return ErrnoStatus(errno, "renaming " + op.path + " to " + op.path2);
      }
      return OkStatus();
    case DiskOp::Kind::kRemove:
      Forget(op.path);
      if (::unlinkat(root_.get(), op.path.c_str(), 0) != 0 && errno != ENOENT) {
        return ErrnoStatus(errno, "removing " + op.path);
      }
      return OkStatus();
    case DiskOp::Kind::kMakeDir:
      return MakeDir(op.path);
    case DiskOp::Kind::kRemoveTree:
      if (op.path.empty()) return InvalidArgument("the root itself is not removed");
      Forget(op.path);
      return RemoveTreeAt(root_.get(), op.path);
    case DiskOp::Kind::kSyncDir:
      return SyncDir(op.path);
  }
  return Internal("an unknown disk operation");
}

Status PosixDisk::Write(const DiskOp& op) {
  ETALON_ASSIGN_OR_RETURN(const int fd, OpenForWrite(op.path, true));
  return WriteAll(fd, op.bytes, op.offset, op.path);
}

Status PosixDisk::Allocate(const DiskOp& op) {
  ETALON_ASSIGN_OR_RETURN(const int fd, OpenForWrite(op.path, true));
  if (op.size == 0) return OkStatus();
  if (Retry([&] { return ::fallocate(fd, 0, 0, static_cast<off_t>(op.size)); }) == 0)
    return OkStatus();
  if (errno != EOPNOTSUPP) return ErrnoStatus(errno, "reserving space for " + op.path);
  // A file system that cannot reserve: writing zeros takes the space.
  struct stat st {};
  if (::fstat(fd, &st) != 0) return ErrnoStatus(errno, "reserving space for " + op.path);
  for (auto at = static_cast<std::uint64_t>(st.st_size); at < op.size; at += kZeroChunk) {
    const std::string zeros(std::min(kZeroChunk, op.size - at), '\0');
    ETALON_RETURN_IF_ERROR(WriteAll(fd, zeros, at, op.path));
  }
  return OkStatus();
}

Status PosixDisk::Sync(const DiskOp& op) {
  // Any descriptor will do: it is the file's pages that are written, and a write-back error that
  // nobody has seen yet is reported to a descriptor opened after it, too.
  ETALON_ASSIGN_OR_RETURN(const int fd, OpenForWrite(op.path, false));
  if (::fdatasync(fd) == 0) return OkStatus();
  poisoned_ =
      true;  // the kernel may have dropped the pages: trying again would succeed and prove nothing
  return DataLoss(ErrnoStatus(errno, "syncing " + op.path).message(), Reason::kNone);
}

Status PosixDisk::MakeDir(const std::string& path) {
  if (path.empty()) return OkStatus();
  ETALON_RETURN_IF_ERROR(MakeDir(std::string(ParentOf(path))));
  if (::mkdirat(root_.get(), path.c_str(), 0777) == 0) return OkStatus();
  const int error = errno;
  struct stat st {};
  if (error == EEXIST && ::fstatat(root_.get(), path.c_str(), &st, 0) == 0 && S_ISDIR(st.st_mode))
    return OkStatus();
  return ErrnoStatus(error, "making the directory " + path);
}

Status PosixDisk::SyncDir(const std::string& path) {
  ETALON_ASSIGN_OR_RETURN(const Fd fd, OpenAt(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) == 0) return OkStatus();
  poisoned_ = true;
  return DataLoss(ErrnoStatus(errno, "syncing the directory " + path).message(), Reason::kNone);
}

Result<int> PosixDisk::OpenForWrite(const std::string& path, bool make) {
  const auto it = std::find_if(open_.begin(), open_.end(),
                               [&](const auto& open) { return open.first == path; });
  if (it != open_.end()) {
    open_.splice(open_.begin(), open_, it);
    return open_.front().second.get();
  }
  ETALON_ASSIGN_OR_RETURN(Fd fd, OpenAt(path, O_RDWR | (make ? O_CREAT : 0)));
  if (open_.size() == kOpenFiles) open_.pop_back();
  open_.emplace_front(path, std::move(fd));
  return open_.front().second.get();
}

void PosixDisk::Forget(std::string_view path) {
  open_.remove_if(
      [&](const auto& open) { return open.first == path || IsBelow(open.first, path); });
}

Result<Fd> PosixDisk::OpenAt(std::string_view path, int flags) const {
  const std::string name = AtPath(path);
  Fd fd(Retry(
      [&] { return ::openat(root_.get(), name.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0666); }));
  if (!fd) return ErrnoStatus(errno, "opening " + name);
  return fd;
}

Result<std::vector<std::string>> PosixDisk::List(std::string_view dir) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(dir));
  ETALON_ASSIGN_OR_RETURN(Fd fd, OpenAt(dir, O_RDONLY | O_DIRECTORY));
  ETALON_ASSIGN_OR_RETURN(const std::vector<DirEntry> entries, ReadDir(std::move(fd), AtPath(dir)));
  std::vector<std::string> out;
  for (const DirEntry& entry : entries) out.push_back(entry.name + (entry.is_dir ? "/" : ""));
  std::sort(out.begin(), out.end());  // with their '/'
  return out;
}

Result<std::string> PosixDisk::Read(std::string_view path, std::uint64_t offset,
                                    std::uint64_t size) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(path));
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t file_size, Size(path));
  std::string out;
  if (offset >= file_size) return out;
  ETALON_ASSIGN_OR_RETURN(const Fd fd, OpenAt(path, O_RDONLY));
  out.resize(std::min(size, file_size - offset));
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = Retry([&] {
      return ::pread(fd.get(), out.data() + done, out.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (n < 0) return ErrnoStatus(errno, "reading " + std::string(path));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  out.resize(done);
  return out;
}

Result<std::uint64_t> PosixDisk::Size(std::string_view path) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(path));
  const std::string name = AtPath(path);
  struct stat st {};
  if (::fstatat(root_.get(), name.c_str(), &st, 0) != 0) return ErrnoStatus(errno, name);
  if (S_ISDIR(st.st_mode)) return InvalidArgument(name + " is a directory");
  return static_cast<std::uint64_t>(st.st_size);
}

Result<std::uint64_t> PosixDisk::FreeBytes() {
  struct statvfs st {};
  if (::fstatvfs(root_.get(), &st) != 0) return ErrnoStatus(errno, "asking for free space");
  return static_cast<std::uint64_t>(st.f_bavail) * st.f_frsize;
}

}  // namespace etalon
