#include "placement/hash.h"

#include <array>
#include <charconv>
#include <string>

#include "common/bytes.h"
#include "common/check.h"
#include "common/crc32c.h"

namespace etalon::placement {

namespace {

constexpr std::size_t kCrc32Prefix = 100;
constexpr std::uint32_t kMurmurMask = 0x7fffffff;

constexpr std::array<std::uint32_t, 256> MakeIeeeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xEDB88320u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr auto kIeeeTable = MakeIeeeTable();

constexpr std::uint32_t Rotate(std::uint32_t x, int k) { return (x << k) | (x >> (32 - k)); }

// Spreads one 32-bit block before it is mixed into the state.
constexpr std::uint32_t Scramble(std::uint32_t block) {
  return Rotate(block * 0xCC9E2D51u, 15) * 0x1B873593u;
}

RoutingValue HashBytes(HashFunction function, std::string_view bytes) {
  switch (function) {
    case HashFunction::kMurmur3:
      return RoutingValue(Murmur3X86(bytes) & kMurmurMask);
    case HashFunction::kCrc32:
      return RoutingValue(Crc32Ieee(bytes.substr(0, kCrc32Prefix)));
    case HashFunction::kVshardCrc32c:
      return RoutingValue(VshardCrc32c(bytes));
  }
  CheckFailed(__FILE__, __LINE__, "a hash function outside its enum");
}

}  // namespace

std::string_view HashFunctionName(HashFunction function) {
  switch (function) {
    case HashFunction::kMurmur3:
      return "Murmur3";
    case HashFunction::kCrc32:
      return "Crc32";
    case HashFunction::kVshardCrc32c:
      return "VshardCrc32c";
  }
  CheckFailed(__FILE__, __LINE__, "a hash function outside its enum");
}

std::optional<HashFunction> ParseHashFunction(std::string_view name) {
  for (auto f : {HashFunction::kMurmur3, HashFunction::kCrc32, HashFunction::kVshardCrc32c}) {
    if (HashFunctionName(f) == name) return f;
  }
  return std::nullopt;
}

std::string_view KeyTypeName(KeyType type) {
  switch (type) {
    case KeyType::kInt64:
      return "Int64";
    case KeyType::kString:
      return "String";
  }
  CheckFailed(__FILE__, __LINE__, "a key type outside its enum");
}

std::optional<KeyType> ParseKeyType(std::string_view name) {
  for (auto t : {KeyType::kInt64, KeyType::kString}) {
    if (KeyTypeName(t) == name) return t;
  }
  return std::nullopt;
}

Status CheckHash(KeyType type, HashFunction function) {
  if (type == KeyType::kInt64 && function == HashFunction::kVshardCrc32c) {
    return InvalidArgument(
        "VshardCrc32c hashes text only: declare the sharding key as String and pass a number as "
        "its "
        "decimal text, or choose Murmur3 or Crc32");
  }
  return OkStatus();
}

Result<RoutingValue> HashKey(KeyType type, HashFunction function, std::string_view key) {
  ETALON_RETURN_IF_ERROR(CheckHash(type, function));
  if (type == KeyType::kString) return HashBytes(function, key);
  std::int64_t number = 0;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, number);
  if (error != std::errc() || stop != end) {
    return InvalidArgument("the sharding key '" + std::string(key.substr(0, 40)) +
                           "' is not a 64-bit integer: write it in decimal digits, without spaces");
  }
  return HashKey(type, function, number);
}

Result<RoutingValue> HashKey(KeyType type, HashFunction function, std::int64_t key) {
  ETALON_RETURN_IF_ERROR(CheckHash(type, function));
  if (type == KeyType::kString) {
    return InvalidArgument("this collection is sharded by a String key: pass the key as text");
  }
  std::string bytes;
  PutLe64(&bytes, static_cast<std::uint64_t>(key));
  return HashBytes(function, bytes);
}

std::uint32_t Murmur3X86(std::string_view bytes) {
  std::uint32_t h = 0;
  std::string_view rest = bytes;
  std::uint32_t block = 0;
  while (GetLe32(&rest, &block)) h = Rotate(h ^ Scramble(block), 13) * 5 + 0xE6546B64u;
  std::uint32_t tail = 0;
  for (std::size_t i = rest.size(); i > 0; --i) {
    tail = (tail << 8) | static_cast<unsigned char>(rest[i - 1]);
  }
  h ^= Scramble(tail);  // an empty tail scrambles to 0
  h ^= static_cast<std::uint32_t>(bytes.size());
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}

std::uint32_t Crc32Ieee(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (char c : bytes) crc = (crc >> 8) ^ kIeeeTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

// Crc32c() inverts at the end; inverting again takes that step back.
std::uint32_t VshardCrc32c(std::string_view bytes) { return ~Crc32c(bytes); }

}  // namespace etalon::placement
