#include "placement/split.h"

#include <algorithm>
#include <string>

namespace etalon::placement {

namespace {

// Sorts; refuses a residue listed twice.
Status SortUnique(Residues* residues) {
  std::sort(residues->begin(), residues->end());
  const auto twice = std::adjacent_find(residues->begin(), residues->end());
  if (twice != residues->end()) {
    return InvalidArgument("the bucket " + std::to_string(*twice) + " is listed twice");
  }
  return OkStatus();
}

}  // namespace

Result<Halves> HalveResidues(Residues owned, Residues pinned, std::uint64_t modulus,
                             std::uint64_t max_modulus) {
  ETALON_RETURN_IF_ERROR(SortUnique(&owned));
  ETALON_RETURN_IF_ERROR(SortUnique(&pinned));
  if (owned.empty()) return InvalidArgument("a shard that owns no bucket cannot be split");
  if (modulus > max_modulus) {
    return FailedPrecondition(Reason::kModulusCap, "the modulus " + std::to_string(modulus) +
                                                       " is over the limit of " +
                                                       std::to_string(max_modulus));
  }
  if (owned.back() >= modulus) {
    return InvalidArgument("the bucket " + std::to_string(owned.back()) +
                           " is not below the modulus " + std::to_string(modulus));
  }
  if (!std::includes(owned.begin(), owned.end(), pinned.begin(), pinned.end())) {
    return InvalidArgument("a bucket is named as pinned that the shard does not own");
  }
  if (pinned.size() == owned.size()) {
    return FailedPrecondition(
        Reason::kBucketIsPinned,
        "every bucket of the shard is pinned: unpin at least one, then split");
  }
  Halves halves{modulus, {}, {}};
  if (owned.size() == 1) {
    if (modulus > max_modulus / 2) {
      return FailedPrecondition(Reason::kModulusCap,
                                "splitting a single bucket doubles the modulus " +
                                    std::to_string(modulus) + ", and the limit is " +
                                    std::to_string(max_modulus));
    }
    return Halves{modulus * 2, {owned[0]}, {owned[0] + modulus}};
  }
  const std::size_t half = (owned.size() + 1) / 2;
  std::size_t room = half - std::min(half, pinned.size());  // how many that are not pinned stay
  for (const std::uint64_t residue : owned) {
    const bool is_pinned = std::binary_search(pinned.begin(), pinned.end(), residue);
    const bool stays = is_pinned || room > 0;
    if (!is_pinned && stays) --room;
    (stays ? halves.stay : halves.move).push_back(residue);
  }
  return halves;
}

Result<SplitPlan> PlanSplit(const std::vector<std::uint32_t>& buckets,
                            const std::vector<std::uint32_t>& pinned, std::uint8_t level,
                            std::uint32_t bucket_count, std::uint64_t max_modulus) {
  ETALON_RETURN_IF_ERROR(CheckLevel(bucket_count, level, max_modulus));
  const std::uint64_t modulus = Modulus(bucket_count, level);
  ETALON_ASSIGN_OR_RETURN(const Halves halves,
                          HalveResidues({buckets.begin(), buckets.end()},
                                        {pinned.begin(), pinned.end()}, modulus, max_modulus));
  SplitPlan plan;
  plan.level = static_cast<std::uint8_t>(halves.modulus == modulus ? level : level + 1);
  for (const std::uint64_t r : halves.stay) plan.stay.push_back(static_cast<std::uint32_t>(r));
  for (const std::uint64_t r : halves.move) plan.move.push_back(static_cast<std::uint32_t>(r));
  return plan;
}

}  // namespace etalon::placement
