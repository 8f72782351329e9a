#include "env/posix/os.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/check.h"
#include "env/posix/errno_status.h"

namespace etalon {

std::uint64_t OsSeed() {
  std::uint64_t seed = 0;
  ETALON_CHECK(::getrandom(&seed, sizeof(seed), 0) == sizeof(seed),
               "the kernel gives no random numbers");
  return seed;
}

Result<DirLock> DirLock::Acquire(const std::string& dir) {
  const std::string path = dir + "/LOCK";
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) return ErrnoStatus(errno, "opening " + path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "locking " + path);
    char pid[16] = {};
    const ssize_t n = ::pread(fd.get(), pid, sizeof(pid) - 1, 0);
    return FailedPrecondition(
        Reason::kNone,
        fmt::format("the directory {} is in use by process {}: stop that one, or give this one "
                    "a directory of its own",
                    dir, n > 0 ? pid : "(unknown)"));
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoStatus(errno, "writing " + path);
  }
  return DirLock(std::move(fd));
}

}  // namespace etalon
