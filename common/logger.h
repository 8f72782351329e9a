// Structured log lines. An event is a stable identifier; fields are name and value. Never log
// values of records, request arguments or secrets.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace etalon {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string_view name;
  std::string value;

  template <typename T>
  LogField(std::string_view n, const T& v) : name(n), value(fmt::format("{}", v)) {}
};

class Logger {
 public:
  virtual ~Logger() = default;
  virtual void Log(LogLevel level, std::string_view event,
                   std::initializer_list<LogField> fields) = 0;

  void Debug(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kDebug, event, fields);
  }
  void Info(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kInfo, event, fields);
  }
  void Warning(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kWarning, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<LogField> fields = {}) {
    Log(LogLevel::kError, event, fields);
  }
};

// Drops everything.
class NullLogger final : public Logger {
 public:
  void Log(LogLevel, std::string_view, std::initializer_list<LogField>) override {}
};

// {"level":"info","event":"...","name":"value",...} without a time and a line end; values are
// JSON-escaped.
std::string FormatLogLine(LogLevel level, std::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace etalon
