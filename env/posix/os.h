// Small things that only the operating system can give.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "env/posix/fd.h"

namespace etalon {

// A seed for Random from the kernel's generator.
std::uint64_t OsSeed();

// Holds a directory for one process: the file LOCK in it, locked until the object goes (or the
// process dies). A second holder is refused with FAILED_PRECONDITION, which names the process that
// has it.
class DirLock {
 public:
  static Result<DirLock> Acquire(const std::string& dir);

 private:
  explicit DirLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace etalon
