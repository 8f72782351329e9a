// CRC-32C (Castagnoli, reflected 0x82F63B78), as iSCSI and RocksDB compute it: initial value and
// final xor 0xffffffff.
#pragma once

#include <cstdint>
#include <string_view>

namespace etalon {

std::uint32_t Crc32c(std::string_view data);
// The checksum of a + b from that of a: Crc32cExtend(Crc32c(a), b) == Crc32c(a + b).
// Crc32cExtend(0, x) == Crc32c(x).
std::uint32_t Crc32cExtend(std::uint32_t crc, std::string_view data);

}  // namespace etalon
