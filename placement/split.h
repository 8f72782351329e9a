// Which buckets leave a shard that is split in two. The cut is deterministic, so that a plan made
// again equals the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "common/status.h"
#include "placement/modulus.h"

namespace etalon::placement {

struct Halves {
  std::uint64_t modulus = 0;  // the old one, or twice the old one
  Residues stay;              // sorted
  Residues move;              // sorted, never empty
};

// Halves what one shard owns. With two residues or more the modulus stays: of the sorted residues
// the first ceil(n/2) stay; pinned ones stay wherever they stand and count there (more than
// ceil(n/2) pinned: those stay, all others move). A single residue r doubles the modulus and
// becomes r, which stays, and r + M, which moves; the caller rebases everybody else. Refused,
// permanently: nothing owned or malformed lists (INVALID_ARGUMENT); nothing may move because all is
// pinned (BUCKET_IS_PINNED); doubling passes `max_modulus` (MODULUS_CAP). The limit itself is
// legal.
Result<Halves> HalveResidues(Residues owned, Residues pinned, std::uint64_t modulus,
                             std::uint64_t max_modulus = kMaxModulus);

// The same in terms of levels: numbers in `stay` and `move` are of `level`, which is the given
// level or one more.
struct SplitPlan {
  std::uint8_t level = 0;
  std::vector<std::uint32_t> stay;
  std::vector<std::uint32_t> move;
};
Result<SplitPlan> PlanSplit(const std::vector<std::uint32_t>& buckets,
                            const std::vector<std::uint32_t>& pinned, std::uint8_t level,
                            std::uint32_t bucket_count, std::uint64_t max_modulus = kMaxModulus);

}  // namespace etalon::placement
