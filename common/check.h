// Broken invariants end the process: going on would spread the damage, and a crash is the normal
// stop.
#pragma once

#include <string_view>

namespace etalon {

// Writes one line to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, std::string_view what);

}  // namespace etalon

#define ETALON_CHECK(condition, what)                  \
  do {                                                 \
    if (!(condition)) [[unlikely]]                     \
      ::etalon::CheckFailed(__FILE__, __LINE__, what); \
  } while (0)
