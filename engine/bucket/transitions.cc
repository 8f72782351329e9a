#include "engine/bucket/transitions.h"

#include <cstddef>

namespace etalon::bucket {
namespace {

constexpr std::size_t kStates = 8;  // no row, and the seven of RowStatus by their numbers

// kTable[from][to]
constexpr bool kTable[kStates][kStates] = {
    // none A  P  S  St R  G  Q
    {0, 1, 0, 0, 0, 1, 0, 0},  // no row: Form; step 2 of a transfer
    {0, 0, 1, 1, 0, 0, 0, 1},  // ACTIVE
    {0, 1, 0, 0, 0, 0, 0, 1},  // PINNED
    {0, 1, 0, 0, 1, 0, 0, 1},  // SENDING: aborted; the commit point; a newer owner was seen
    {0, 0, 0, 0, 0, 0, 1, 0},  // SENT
    {0, 1, 0, 0, 0, 0, 1, 0},  // RECEIVING
    {1, 0, 0, 0, 0, 0, 0, 0},  // GARBAGE
    {0, 1, 0, 0, 0, 0, 1, 0},  // QUARANTINED: by explicit command only
};

std::size_t Number(std::optional<RowStatus> status) {
  return status ? static_cast<std::size_t>(*status) : 0;
}

}  // namespace

bool MayBecome(std::optional<RowStatus> from, std::optional<RowStatus> to) {
  return kTable[Number(from)][Number(to)];
}

}  // namespace etalon::bucket
