// A full disk for one process, without a file system of its own: preloaded into it (LD_PRELOAD), it
// makes writes to files below $ETALON_FULL_DISK fail with ENOSPC for as long as the file
// $ETALON_FULL_DISK.full exists. As on a real disk, space that a file has reserved can be written.
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

const std::string& Disk() {
  static const std::string disk = [] {
    const char* value = getenv("ETALON_FULL_DISK");
    return std::string(value == nullptr ? "" : value);
  }();
  return disk;
}

// Full, and the file is on it.
bool Full(int fd) {
  static const std::string flag = Disk() + ".full";
  if (Disk().empty() || access(flag.c_str(), F_OK) != 0) return false;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = readlink(link.c_str(), path, sizeof(path));
  return n > 0 && std::string(path, static_cast<std::size_t>(n)).rfind(Disk(), 0) == 0;
}

bool HasRoom(int fd, off_t offset, size_t size) {
  struct stat st {};
  return fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
         offset + static_cast<off_t>(size) <= st.st_blocks * 512;
}

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <class Statvfs>
int AskSpace(const char* name, int fd, Statvfs* out) {
  static auto* const next = Next<int(int, Statvfs*)>(name);
  const int result = next(fd, out);
  if (result == 0 && Full(fd)) out->f_bavail = out->f_bfree = 0;
  return result;
}

int Reserve(const char* name, int fd, int mode, off_t offset, off_t size) {
  static auto* const next = Next<int(int, int, off_t, off_t)>(name);
  if (Full(fd)) return errno = ENOSPC, -1;
  return next(fd, mode, offset, size);
}

ssize_t WriteAt(const char* name, int fd, const void* bytes, size_t size, off_t offset) {
  static auto* const next = Next<ssize_t(int, const void*, size_t, off_t)>(name);
  if (Full(fd) && !HasRoom(fd, offset, size)) return errno = ENOSPC, -1;
  return next(fd, bytes, size, offset);
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  static auto* const next = Next<ssize_t(int, const void*, size_t)>("write");
  if (Full(fd) && !HasRoom(fd, lseek(fd, 0, SEEK_CUR), size)) return errno = ENOSPC, -1;
  return next(fd, bytes, size);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  return WriteAt("pwrite", fd, bytes, size, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  return WriteAt("pwrite64", fd, bytes, size, offset);
}
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return Reserve("fallocate", fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  return Reserve("fallocate64", fd, mode, offset, size);
}
int fstatvfs(int fd, struct statvfs* out) { return AskSpace("fstatvfs", fd, out); }
int fstatvfs64(int fd, struct statvfs64* out) { return AskSpace("fstatvfs64", fd, out); }
}
