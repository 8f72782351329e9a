#include "placement/shard_by.h"

namespace etalon::placement {

namespace {
constexpr std::string_view kPrefix = "hash(";
constexpr std::string_view kForbidden = "() \t\n\v\f\r";
}  // namespace

Result<std::string> ParseShardBy(std::string_view text) {
  const bool framed = text.size() > kPrefix.size() + 1 &&
                      text.substr(0, kPrefix.size()) == kPrefix && text.back() == ')';
  const std::string_view field =
      framed ? text.substr(kPrefix.size(), text.size() - kPrefix.size() - 1) : std::string_view();
  if (field.empty() || field.find_first_of(kForbidden) != std::string_view::npos) {
    return InvalidArgument(
        "'" + std::string(text.substr(0, 80)) +
        "' does not say how the collection is sharded: write hash(FIELD), without blanks");
  }
  return std::string(field);
}

std::string FormatShardBy(std::string_view field) {
  return std::string(kPrefix) + std::string(field) + ")";
}

}  // namespace etalon::placement
