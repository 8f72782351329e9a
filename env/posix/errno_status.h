#pragma once

#include <string_view>

#include "common/status.h"

namespace etalon {

// The failure that the operating system reported by `error`. ENOSPC and EDQUOT are
// RESOURCE_EXHAUSTED/DISK_FULL, ENOENT and ENOTDIR NOT_FOUND, what a wrong path causes
// INVALID_ARGUMENT, the rest INTERNAL.
Status ErrnoStatus(int error, std::string_view what);

}  // namespace etalon
