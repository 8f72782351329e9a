#include "engine/bucket/rows.h"

namespace etalon::bucket {
namespace {

// The finalizer of splitmix64: every bit of the input reaches every bit of the output.
std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::string_view RowStatusName(RowStatus status) {
  switch (status) {
    case RowStatus::kActive:
      return "ACTIVE";
    case RowStatus::kPinned:
      return "PINNED";
    case RowStatus::kSending:
      return "SENDING";
    case RowStatus::kSent:
      return "SENT";
    case RowStatus::kReceiving:
      return "RECEIVING";
    case RowStatus::kGarbage:
      return "GARBAGE";
    case RowStatus::kQuarantined:
      return "QUARANTINED";
  }
  return "UNKNOWN";
}

std::uint64_t ChainChunk(std::uint64_t hash, std::uint64_t number, std::uint32_t crc) {
  return Mix(Mix(Mix(hash + 0x9e3779b97f4a7c15u) + number) + crc);
}

}  // namespace etalon::bucket
