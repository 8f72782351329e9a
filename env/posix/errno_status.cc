#include "env/posix/errno_status.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace etalon {

Status ErrnoStatus(int error, std::string_view what) {
  const std::string text = fmt::format("{}: {}", what, std::generic_category().message(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ResourceExhausted(text + "; free some space or enlarge the disk", Reason::kDiskFull);
    case ENOENT:
    case ENOTDIR:
      return NotFound(text);
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ENAMETOOLONG:
      return InvalidArgument(text);
    default:
      return Internal(text);
  }
}

}  // namespace etalon
