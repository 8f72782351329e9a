#include "common/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace etalon {

namespace {

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82F63B78u : 0u);
    table[i] = crc;
  }
  return table;
}
constexpr auto kTable = MakeTable();

std::uint32_t ExtendPortable(std::uint32_t crc, std::string_view data) {
  for (char c : data) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t ExtendSse(std::uint32_t crc,
                                                          std::string_view data) {
  std::uint64_t wide = crc;
  while (data.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, data.data(), 8);
    wide = _mm_crc32_u64(wide, word);
    data.remove_prefix(8);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (char c : data) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(c));
  return crc;
}
#endif

}  // namespace

std::uint32_t Crc32cExtend(std::uint32_t crc, std::string_view data) {
  crc = ~crc;
#if defined(__x86_64__)
  static const bool kHasSse = __builtin_cpu_supports("sse4.2");
  crc = kHasSse ? ExtendSse(crc, data) : ExtendPortable(crc, data);
#else
  crc = ExtendPortable(crc, data);
#endif
  return ~crc;
}

std::uint32_t Crc32c(std::string_view data) { return Crc32cExtend(0, data); }

}  // namespace etalon
