#include "common/ids.h"

#include <charconv>

namespace etalon {

std::string ToHex(std::uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (int i = 15; i >= 0; --i, value >>= 4) out[static_cast<std::size_t>(i)] = kDigits[value & 15];
  return out;
}

std::uint64_t FromHex(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > 16) return 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

std::string ToString(const BucketId& bucket) {
  std::string out = std::to_string(bucket.number);
  if (bucket.level != 0) out += "/" + std::to_string(bucket.level);
  return out;
}

std::string ToString(const TransferId& id) {
  return ToHex(id.source.value()) + "." + std::to_string(id.term.value()) + "." +
         std::to_string(id.index.value());
}

}  // namespace etalon
