#include "placement/etalon.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/check.h"

namespace etalon::placement {

namespace {

__extension__ using Wide = unsigned __int128;  // total * weight of two 64-bit numbers

bool ByName(const ShardLoad& a, const ShardLoad& b) { return a.name < b.name; }

// Shares of `total` for the shards at `members`, written into `share` at the same positions.
// Positions ascend by name, so a stable order of the remainders breaks ties by name. Requires a
// weight above 0 among the members.
void LargestRemainder(const std::vector<ShardLoad>& shards, const std::vector<std::size_t>& members,
                      std::uint64_t total, std::vector<std::uint64_t>* share) {
  Wide sum = 0;
  for (const std::size_t i : members) sum += shards[i].weight;
  ETALON_CHECK(sum > 0, "shares of no weight");
  std::vector<std::pair<Wide, std::size_t>> remainders;
  std::uint64_t left = total;
  for (const std::size_t i : members) {
    const Wide product = Wide{shards[i].weight} * total;
    (*share)[i] = static_cast<std::uint64_t>(product / sum);
    left -= (*share)[i];
    remainders.emplace_back(product % sum, i);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // The remainders sum up to left * sum and each is below sum: more than `left` of them are not 0.
  for (std::size_t n = 0; left > 0; ++n, --left) ++(*share)[remainders[n].second];
}

// Etalons by position; shards sorted by name.
EtalonState Shares(const std::vector<ShardLoad>& shards, std::uint64_t total,
                   std::vector<std::uint64_t>* share) {
  std::vector<std::size_t> members;
  bool any_weight = false;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].locked) continue;
    members.push_back(i);
    any_weight = any_weight || shards[i].weight > 0;
  }
  if (members.empty()) return EtalonState::kAllLocked;
  if (!any_weight) return EtalonState::kAllWeightsZero;
  // Pins never exceed what is shared, so the weighty shards cannot all be pinned above their
  // shares: one always remains.
  while (true) {
    LargestRemainder(shards, members, total, share);
    std::vector<std::size_t> rest;
    for (const std::size_t i : members) {
      if (shards[i].pinned > (*share)[i]) {
        (*share)[i] = shards[i].pinned;
        total -= shards[i].pinned;
      } else {
        rest.push_back(i);
      }
    }
    if (rest.size() == members.size()) return EtalonState::kOk;
    members = std::move(rest);
  }
}

}  // namespace

double DisbalancePercent(std::uint64_t buckets, std::uint64_t etalon) {
  if (buckets == etalon) return 0;
  if (etalon == 0) return std::numeric_limits<double>::infinity();
  const std::uint64_t difference = std::max(buckets, etalon) - std::min(buckets, etalon);
  return static_cast<double>(difference) * 100 / static_cast<double>(etalon);
}

EtalonResult ComputeEtalon(std::vector<ShardLoad> shards) {
  std::sort(shards.begin(), shards.end(), ByName);
  std::uint64_t total = 0;
  std::vector<std::uint64_t> share;
  for (ShardLoad& shard : shards) {
    shard.pinned = std::min(shard.pinned, shard.buckets);
    share.push_back(shard.buckets);
    if (!shard.locked) total += shard.buckets;
  }
  EtalonResult result;
  result.state = Shares(shards, total, &share);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const double disbalance = DisbalancePercent(shards[i].buckets, share[i]);
    result.shards.push_back(
        {shards[i].name, shards[i].uid, shards[i].buckets, share[i], disbalance});
    result.max_disbalance_percent = std::max(result.max_disbalance_percent, disbalance);
  }
  return result;
}

Result<std::vector<BucketRange>> PlanBootstrap(const std::vector<ShardLoad>& shards,
                                               std::uint32_t bucket_count) {
  if (bucket_count == 0) return InvalidArgument("a collection needs at least one bucket");
  std::vector<std::size_t> order(shards.size());  // positions in the input, by name
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return ByName(shards[a], shards[b]); });
  std::vector<ShardLoad> sorted;
  for (const std::size_t i : order) {
    sorted.push_back(shards[i]);
    sorted.back().pinned = 0;
  }
  std::vector<std::uint64_t> share(shards.size(), 0);
  switch (Shares(sorted, bucket_count, &share)) {
    case EtalonState::kOk:
      break;
    case EtalonState::kAllWeightsZero:
      return FailedPrecondition(
          Reason::kInvalidCfg,
          "no unlocked shard has a weight above 0: give one a weight to place the buckets");
    case EtalonState::kAllLocked:
      return FailedPrecondition(Reason::kInvalidCfg,
                                "every shard is locked: unlock one to place the buckets");
  }
  std::vector<std::uint64_t> counts(shards.size(), 0);  // by position in the input
  for (std::size_t k = 0; k < order.size(); ++k) counts[order[k]] = share[k];
  std::vector<BucketRange> ranges;
  std::uint32_t first = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto count = static_cast<std::uint32_t>(counts[i]);
    if (count == 0) continue;
    ranges.push_back({shards[i].name, shards[i].uid, first, count});
    first += count;
  }
  return ranges;
}

}  // namespace etalon::placement
