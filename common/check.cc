#include "common/check.h"

#include <cstdio>
#include <cstdlib>

namespace etalon {

void CheckFailed(const char* file, int line, std::string_view what) {
  std::fprintf(stderr, "%s:%d: broken invariant: %.*s\n", file, line, static_cast<int>(what.size()),
               what.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace etalon
