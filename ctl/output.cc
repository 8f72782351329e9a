#include "ctl/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace etalon::ctl {

std::string Table::Text() const {
  std::vector<std::size_t> width(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? width[i] + 2 : 0);
    out += line + "\n";
  }
  return out;
}

nlohmann::json Table::Json() const {
  auto out = nlohmann::json::array();
  for (std::size_t r = 1; r < rows_.size(); ++r) {
    nlohmann::json object;
    for (std::size_t i = 0; i < rows_[r].size(); ++i) {
      std::string key = rows_[0][i];
      std::transform(key.begin(), key.end(), key.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      object[key] = rows_[r][i];
    }
    out.push_back(std::move(object));
  }
  return out;
}

void Table::Print(Format format) const {
  const std::string text = format == Format::kJson ? Json().dump(2) + "\n" : Text();
  std::fputs(text.c_str(), stdout);
}

std::string HumanBytes(std::uint64_t n) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(n);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} B", n) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string HumanMillis(std::uint64_t millis) {
  if (millis < 10'000) return fmt::format("{} ms", millis);
  if (millis < 600'000) return fmt::format("{} s", millis / 1000);
  return fmt::format("{} min", millis / 60'000);
}

int ExitCode(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
    case Code::kOutOfRange:
    case Code::kUnimplemented:
      return 2;
    case Code::kNotFound:
      return 3;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kResourceExhausted:
      return 4;
    case Code::kFailedPrecondition:
    case Code::kAborted:
    case Code::kAlreadyExists:
      return 5;
    case Code::kCancelled:
    case Code::kUnknown:
    case Code::kPermissionDenied:
    case Code::kInternal:
    case Code::kDataLoss:
    case Code::kUnauthenticated:
      return 1;
  }
  return 1;
}

}  // namespace etalon::ctl
