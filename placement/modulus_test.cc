#include "placement/modulus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/random.h"

namespace etalon::placement {
namespace {

using ::testing::ElementsAre;

BucketId B(std::uint32_t number, std::uint8_t level) { return {level, number}; }

TEST(Modulus, BucketIsTheResidueOfItsLevel) {
  EXPECT_EQ(BucketOf(RoutingValue(7001), 3000, 0), B(1001, 0));
  EXPECT_EQ(BucketOf(RoutingValue(7001), 3000, 1), B(1001, 1));
  EXPECT_EQ(BucketOf(RoutingValue(10001), 3000, 1), B(4001, 1));
  // Unsigned and over all 64 bits.
  EXPECT_EQ(BucketOf(RoutingValue(~std::uint64_t{0}), 3000, 0), B(18446744073709551615u % 3000, 0));
}

TEST(Modulus, TheLimitItselfIsLegal) {
  EXPECT_TRUE(CheckLevel(1 << 20, 0).ok());
  EXPECT_TRUE(CheckLevel(1, 20).ok());
  EXPECT_EQ(CheckLevel(1, 21).reason(), Reason::kModulusCap);
  EXPECT_EQ(CheckLevel((1 << 20) + 1, 0).reason(), Reason::kModulusCap);
  EXPECT_EQ(CheckLevel(3, 255).reason(), Reason::kModulusCap);
  EXPECT_EQ(CheckLevel(0, 0).code(), Code::kInvalidArgument);
  EXPECT_TRUE(CheckLevel(4, 1, 8).ok());
  EXPECT_FALSE(CheckLevel(4, 2, 8).ok());
}

TEST(Modulus, CheckBucketKnowsTheLevel) {
  EXPECT_TRUE(CheckBucket(B(2999, 0), 3000).ok());
  EXPECT_EQ(CheckBucket(B(3000, 0), 3000).reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(CheckBucket(B(3000, 0), 3000).code(), Code::kOutOfRange);
  EXPECT_TRUE(CheckBucket(B(3000, 1), 3000).ok());
  EXPECT_EQ(CheckBucket(B(0, 21), 1).reason(), Reason::kModulusCap);
}

TEST(Modulus, ExpandListsTheHalves) {
  EXPECT_THAT(ExpandBucket(B(2, 0), 0, 3), ElementsAre(2u));
  EXPECT_THAT(ExpandBucket(B(2, 0), 1, 3), ElementsAre(2u, 5u));
  EXPECT_THAT(ExpandBucket(B(2, 0), 2, 3), ElementsAre(2u, 5u, 8u, 11u));
  EXPECT_THAT(ExpandBucket(B(5, 1), 2, 3), ElementsAre(5u, 11u));
}

TEST(Modulus, ContainsGoesDownwardsOnly) {
  EXPECT_TRUE(Contains(B(2, 0), B(2, 0), 3));
  EXPECT_TRUE(Contains(B(2, 0), B(11, 2), 3));
  EXPECT_TRUE(Contains(B(5, 1), B(11, 2), 3));
  EXPECT_FALSE(Contains(B(2, 1), B(11, 2), 3));
  EXPECT_FALSE(Contains(B(11, 2), B(2, 0), 3));
  EXPECT_FALSE(Contains(B(1, 1), B(1, 0), 3));
  EXPECT_FALSE(Contains(B(1, 0), B(2, 0), 3));
}

TEST(Modulus, CollapseJoinsHalvesAsOftenAsPossible) {
  EXPECT_TRUE(Collapse({}, 3).empty());
  EXPECT_THAT(Collapse({B(2, 1), B(5, 1)}, 3), ElementsAre(B(2, 0)));
  EXPECT_THAT(Collapse({B(5, 1)}, 3), ElementsAre(B(5, 1)));
  EXPECT_THAT(Collapse({B(2, 2), B(8, 2), B(5, 1)}, 3), ElementsAre(B(2, 0)));
  // A contained bucket says nothing new; without its container it stays.
  EXPECT_THAT(Collapse({B(11, 2), B(2, 0), B(1, 1)}, 3), ElementsAre(B(2, 0), B(1, 1)));
  EXPECT_THAT(Collapse({B(1, 0), B(1, 0)}, 3), ElementsAre(B(1, 0)));
}

TEST(Modulus, CollapseKeepsExactlyTheKeys) {
  Random random(20240611);
  for (int round = 0; round < 300; ++round) {
    const auto bucket_count = static_cast<std::uint32_t>(random.Between(1, 6));
    std::vector<BucketId> buckets;
    for (std::uint64_t n = random.Below(12); n > 0; --n) {
      const auto level = static_cast<std::uint8_t>(random.Below(4));
      buckets.push_back(
          B(static_cast<std::uint32_t>(random.Below(Modulus(bucket_count, level))), level));
    }
    const auto at_finest = [&](const std::vector<BucketId>& list) {
      std::set<std::uint32_t> numbers;
      for (const BucketId& bucket : list) {
        for (const std::uint32_t number : ExpandBucket(bucket, 3, bucket_count))
          numbers.insert(number);
      }
      return numbers;
    };
    const auto collapsed = Collapse(buckets, bucket_count);
    EXPECT_EQ(at_finest(collapsed), at_finest(buckets));
    EXPECT_EQ(Collapse(collapsed, bucket_count), collapsed);
    std::size_t total = 0;
    for (const BucketId& bucket : collapsed) total += ExpandBucket(bucket, 3, bucket_count).size();
    EXPECT_EQ(total, at_finest(collapsed).size()) << "two entries share a key";
    for (const BucketId& bucket : collapsed) {
      if (bucket.level == 0) continue;
      const auto modulus = Modulus(bucket_count, bucket.level);
      const auto sibling = static_cast<std::uint32_t>((bucket.number + modulus / 2) % modulus);
      EXPECT_EQ(std::count(collapsed.begin(), collapsed.end(), B(sibling, bucket.level)), 0);
    }
  }
}

TEST(Modulus, DoublingMovesNoKey) {
  Random random(7);
  for (int i = 0; i < 4096; ++i) {
    const RoutingValue value(random.Next());
    for (std::uint8_t level = 0; level < 8; ++level) {
      const BucketId coarse = BucketOf(value, 3000, level);
      const BucketId fine = BucketOf(value, 3000, static_cast<std::uint8_t>(level + 1));
      EXPECT_TRUE(Contains(coarse, fine, 3000));
    }
  }
}

TEST(MilvusContract, T10_Rebase) {
  EXPECT_THAT(*RebaseResidues({1}, 2, 8), ElementsAre(1u, 3u, 5u, 7u));
  EXPECT_THAT(*RebaseResidues({1, 2}, 4, 16), ElementsAre(1u, 2u, 5u, 6u, 9u, 10u, 13u, 14u));
  EXPECT_THAT(*RebaseResidues({2, 1}, 4, 4), ElementsAre(1u, 2u));
  EXPECT_FALSE(RebaseResidues({0}, 3, 4).ok());
  EXPECT_FALSE(RebaseResidues({0}, 4, 2).ok());
  EXPECT_FALSE(RebaseResidues({0}, 0, 4).ok());
  EXPECT_FALSE(RebaseResidues({4}, 4, 8).ok());
  EXPECT_EQ(RebaseResidues({0}, 32768, 65536, kMilvusMaxModulus).status().reason(),
            Reason::kModulusCap);
  EXPECT_TRUE(RebaseResidues({0}, 16384, 32768, kMilvusMaxModulus).ok());
  const Residues before = {1, 2};
  const Residues after = *RebaseResidues(before, 4, 16);
  for (std::uint64_t hash = 0; hash < 200; ++hash) {
    EXPECT_EQ(std::count(before.begin(), before.end(), hash % 4),
              std::count(after.begin(), after.end(), hash % 16))
        << hash;
  }
}

}  // namespace
}  // namespace etalon::placement
