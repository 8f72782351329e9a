#include "env/posix/logger.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string>

namespace etalon {

void StderrLogger::Log(LogLevel level, std::string_view event,
                       std::initializer_list<LogField> fields) {
  if (level < level_) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  gmtime_r(&now.tv_sec, &utc);
  std::string line = fmt::format(R"({{"time":"{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",)",
                                 utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                                 utc.tm_min, utc.tm_sec, now.tv_nsec / 1000);
  line += FormatLogLine(level, event, fields).substr(1);
  line += '\n';
  // One write per line keeps lines whole; what cannot be written is nobody's loss but the reader's.
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace etalon
