#include "placement/split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/random.h"

namespace etalon::placement {
namespace {

using ::testing::ElementsAre;

Halves Halve(const Residues& owned, std::uint64_t modulus) {
  auto halves = HalveResidues(owned, {}, modulus, kMilvusMaxModulus);
  EXPECT_TRUE(halves.ok()) << halves.status().ToString();
  return halves.ok() ? *halves : Halves{};
}

TEST(MilvusContract, T8_PlanWithoutDoubling) {
  const Halves even = Halve({6, 0, 4, 2}, 8);
  EXPECT_EQ(even.modulus, 8u);
  EXPECT_THAT(even.stay, ElementsAre(0u, 2u));
  EXPECT_THAT(even.move, ElementsAre(4u, 6u));
  const Halves odd = Halve({1, 3, 5}, 8);
  EXPECT_EQ(odd.modulus, 8u);
  EXPECT_THAT(odd.stay, ElementsAre(1u, 3u));
  EXPECT_THAT(odd.move, ElementsAre(5u));
  // The order in which the residues are given decides nothing.
  const Halves again = Halve({2, 4, 0, 6}, 8);
  EXPECT_EQ(again.stay, even.stay);
  EXPECT_EQ(again.move, even.move);
}

TEST(MilvusContract, T9_PlanWithDoubling) {
  const auto expect = [](std::uint64_t modulus, std::uint64_t residue, std::uint64_t other) {
    const Halves halves = Halve({residue}, modulus);
    EXPECT_EQ(halves.modulus, 2 * modulus);
    EXPECT_THAT(halves.stay, ElementsAre(residue));
    EXPECT_THAT(halves.move, ElementsAre(other));
  };
  expect(2, 1, 3);
  expect(1, 0, 1);
  expect(16384, 5, 16389);
  EXPECT_EQ(HalveResidues({5}, {}, 32768, kMilvusMaxModulus).status().reason(),
            Reason::kModulusCap);
  const Halves at_the_limit = Halve({5, 6}, 32768);
  EXPECT_EQ(at_the_limit.modulus, 32768u);
  EXPECT_THAT(at_the_limit.stay, ElementsAre(5u));
  EXPECT_THAT(at_the_limit.move, ElementsAre(6u));
}

TEST(Split, OurOwnLimitIsHigher) {
  const auto plan = PlanSplit({5}, {}, 0, 1 << 19);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->level, 1);
  EXPECT_THAT(plan->stay, ElementsAre(5u));
  EXPECT_THAT(plan->move, ElementsAre(5u + (1u << 19)));
  EXPECT_EQ(PlanSplit({5}, {}, 1, 1 << 19).status().reason(), Reason::kModulusCap);
  EXPECT_TRUE(PlanSplit({5, 6}, {}, 1, 1 << 19).ok());
}

TEST(Split, LevelStaysWhileTwoBucketsAreOwned) {
  const auto plan = PlanSplit({9, 7, 8}, {}, 2, 3);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->level, 2);
  EXPECT_THAT(plan->stay, ElementsAre(7u, 8u));
  EXPECT_THAT(plan->move, ElementsAre(9u));
}

TEST(Split, PinnedBucketsStayAndCount) {
  // Half is three: the two pinned ones and the first other.
  auto plan = PlanSplit({0, 1, 2, 3, 4}, {3, 4}, 0, 10);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->stay, ElementsAre(0u, 3u, 4u));
  EXPECT_THAT(plan->move, ElementsAre(1u, 2u));
  // More pinned than half: only what is not pinned moves.
  plan = PlanSplit({0, 1, 2, 3, 4}, {1, 2, 3, 4}, 0, 10);
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(plan->stay, ElementsAre(1u, 2u, 3u, 4u));
  EXPECT_THAT(plan->move, ElementsAre(0u));
}

TEST(Split, RefusesWhenEverythingIsPinned) {
  EXPECT_EQ(PlanSplit({5}, {5}, 0, 10).status().reason(), Reason::kBucketIsPinned);
  EXPECT_EQ(PlanSplit({5, 6}, {6, 5}, 0, 10).status().reason(), Reason::kBucketIsPinned);
}

TEST(Split, RefusesMalformedLists) {
  EXPECT_EQ(PlanSplit({}, {}, 0, 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PlanSplit({1, 1}, {}, 0, 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PlanSplit({1, 10}, {}, 0, 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PlanSplit({1, 2}, {3}, 0, 10).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(PlanSplit({0}, {}, 0, 0).status().code(), Code::kInvalidArgument);
}

TEST(Split, RandomPlansKeepEveryBucketAndEveryPin) {
  Random random(99);
  for (int round = 0; round < 500; ++round) {
    const auto count = static_cast<std::uint32_t>(random.Between(2, 40));
    std::vector<std::uint32_t> buckets, pinned;
    for (std::uint32_t b = 0; b < count; ++b) {
      if (!random.Chance(1, 2)) continue;
      buckets.push_back(b);
      if (random.Chance(1, 3)) pinned.push_back(b);
    }
    const auto plan = PlanSplit(buckets, pinned, 0, count);
    if (pinned.size() == buckets.size()) {
      EXPECT_FALSE(plan.ok());
      continue;
    }
    ASSERT_TRUE(plan.ok());
    for (const std::uint32_t b : pinned) {
      EXPECT_TRUE(std::binary_search(plan->stay.begin(), plan->stay.end(), b));
    }
    if (buckets.size() == 1) continue;
    EXPECT_EQ(plan->stay.size(), std::max((buckets.size() + 1) / 2, pinned.size()));
    std::vector<std::uint32_t> all = plan->stay;
    all.insert(all.end(), plan->move.begin(), plan->move.end());
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, buckets);
  }
}

}  // namespace
}  // namespace etalon::placement
