#pragma once

#include <initializer_list>
#include <string_view>

#include "common/logger.h"

namespace etalon {

// One JSON line per event, with the wall-clock time:
// {"time":"2026-01-31T12:00:00.000001Z","level":...}. Any thread; lines of several threads do not
// mix.
class StderrLogger final : public Logger {
 public:
  // Events below `level` are dropped. `fd` is where lines go.
  explicit StderrLogger(LogLevel level, int fd = 2) : level_(level), fd_(fd) {}
  void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) override;

 private:
  const LogLevel level_;
  const int fd_;
};

}  // namespace etalon
