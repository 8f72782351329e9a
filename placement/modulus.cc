#include "placement/modulus.h"

#include <algorithm>
#include <set>
#include <string>

#include "common/check.h"

namespace etalon::placement {

namespace {

constexpr std::uint64_t kNumberSpace = std::uint64_t{1} << 32;  // a bucket's number is 32 bits

// The bucket of level `level` (not above the bucket's own) that holds it.
BucketId Ancestor(BucketId bucket, std::uint8_t level, std::uint32_t bucket_count) {
  return {level, static_cast<std::uint32_t>(bucket.number % Modulus(bucket_count, level))};
}

void RequireValid(BucketId bucket, std::uint32_t bucket_count) {
  ETALON_CHECK(bucket.number < Modulus(bucket_count, bucket.level), "a bucket outside its modulus");
}

}  // namespace

std::uint64_t Modulus(std::uint32_t bucket_count, std::uint8_t level) {
  ETALON_CHECK(bucket_count > 0 && level <= 32, "a modulus of no buckets or an absurd level");
  const std::uint64_t modulus = std::uint64_t{bucket_count} << level;
  ETALON_CHECK(modulus <= kNumberSpace, "a modulus over 32 bits");
  return modulus;
}

Status CheckLevel(std::uint32_t bucket_count, std::uint8_t level, std::uint64_t max_modulus) {
  if (bucket_count == 0) return InvalidArgument("a collection needs at least one bucket");
  if (level > 32 || (std::uint64_t{bucket_count} << level) > max_modulus) {
    return FailedPrecondition(Reason::kModulusCap,
                              std::to_string(bucket_count) + " buckets at level " +
                                  std::to_string(level) + " are more than the limit of " +
                                  std::to_string(max_modulus) +
                                  ": spread the load by weights instead of splitting further");
  }
  return OkStatus();
}

Status CheckBucket(BucketId bucket, std::uint32_t bucket_count, std::uint64_t max_modulus) {
  ETALON_RETURN_IF_ERROR(CheckLevel(bucket_count, bucket.level, max_modulus));
  const std::uint64_t modulus = Modulus(bucket_count, bucket.level);
  if (bucket.number >= modulus) {
    return Status(Code::kOutOfRange, Reason::kBucketOutOfRange,
                  "there is no bucket " + ToString(bucket) + ": numbers of its level are 0 to " +
                      std::to_string(modulus - 1));
  }
  return OkStatus();
}

BucketId BucketOf(RoutingValue value, std::uint32_t bucket_count, std::uint8_t level) {
  return {level, static_cast<std::uint32_t>(value.value() % Modulus(bucket_count, level))};
}

std::vector<std::uint32_t> ExpandBucket(BucketId bucket, std::uint8_t to_level,
                                        std::uint32_t bucket_count) {
  RequireValid(bucket, bucket_count);
  ETALON_CHECK(to_level >= bucket.level, "a bucket cannot be expanded to a lower level");
  const std::uint64_t step = Modulus(bucket_count, bucket.level);
  const std::uint64_t end = Modulus(bucket_count, to_level);
  std::vector<std::uint32_t> numbers;
  numbers.reserve(end / step);
  for (std::uint64_t r = bucket.number; r < end; r += step)
    numbers.push_back(static_cast<std::uint32_t>(r));
  return numbers;
}

bool Contains(BucketId coarse, BucketId fine, std::uint32_t bucket_count) {
  RequireValid(coarse, bucket_count);
  RequireValid(fine, bucket_count);
  return coarse.level <= fine.level && Ancestor(fine, coarse.level, bucket_count) == coarse;
}

std::vector<BucketId> Collapse(const std::vector<BucketId>& buckets, std::uint32_t bucket_count) {
  // Ordered by level, so every possible container of an entry stands before it.
  std::set<BucketId> kept;
  for (const BucketId& bucket : std::set<BucketId>(buckets.begin(), buckets.end())) {
    RequireValid(bucket, bucket_count);
    bool contained = false;
    for (std::uint8_t level = 0; level < bucket.level && !contained; ++level) {
      contained = kept.contains(Ancestor(bucket, level, bucket_count));
    }
    if (!contained) kept.insert(bucket);
  }
  // From the finest level down: a parent made here may be a half of the next round.
  const std::uint8_t finest = kept.empty() ? std::uint8_t{0} : kept.rbegin()->level;
  for (std::uint8_t level = finest; level > 0; --level) {
    const auto half = static_cast<std::uint32_t>(Modulus(bucket_count, level) / 2);
    const auto parent_level = static_cast<std::uint8_t>(level - 1);
    for (auto it = kept.lower_bound({level, 0});
         it != kept.end() && it->level == level && it->number < half;) {
      const auto sibling = kept.find({level, it->number + half});
      if (sibling == kept.end()) {
        ++it;
        continue;
      }
      kept.insert({parent_level, it->number});
      kept.erase(sibling);
      it = kept.erase(it);
    }
  }
  return {kept.begin(), kept.end()};
}

Result<Residues> RebaseResidues(const Residues& residues, std::uint64_t from, std::uint64_t to,
                                std::uint64_t max_modulus) {
  if (from == 0 || to < from || to % from != 0) {
    return InvalidArgument("residues modulo " + std::to_string(from) + " cannot be listed modulo " +
                           std::to_string(to) +
                           ": the new modulus must be a multiple of the old one");
  }
  if (to > max_modulus) {
    return FailedPrecondition(Reason::kModulusCap, "the modulus " + std::to_string(to) +
                                                       " is over the limit of " +
                                                       std::to_string(max_modulus));
  }
  Residues rebased;
  rebased.reserve(residues.size() * (to / from));
  for (const std::uint64_t residue : residues) {
    if (residue >= from) {
      return InvalidArgument("the residue " + std::to_string(residue) +
                             " is not below its modulus " + std::to_string(from));
    }
    for (std::uint64_t r = residue; r < to; r += from) rebased.push_back(r);
  }
  std::sort(rebased.begin(), rebased.end());
  return rebased;
}

}  // namespace etalon::placement
