#include "router/table/bucket_table.h"

#include <gtest/gtest.h>

namespace etalon::router {
namespace {

constexpr ShardUid kA{0xa}, kB{0xb};

TEST(BucketTable, StartsUnknownAndKeepsTheHigherEpoch) {
  BucketTable table(4);
  EXPECT_EQ(table.unknown(), 4u);
  EXPECT_EQ(table.At(1), std::nullopt);
  EXPECT_TRUE(table.Offer(1, {kA, Epoch(3)}));
  EXPECT_FALSE(table.Offer(1, {kA, Epoch(3)}));
  EXPECT_FALSE(table.Offer(1, {kB, Epoch(3)})) << "an equal epoch does not win";
  EXPECT_FALSE(table.Offer(1, {kB, Epoch(2)}));
  EXPECT_EQ(table.At(1), (Owner{kA, Epoch(3)}));
  EXPECT_TRUE(table.Offer(1, {kB, Epoch(4)}));
  EXPECT_EQ(table.At(1), (Owner{kB, Epoch(4)}));
  EXPECT_EQ(table.CountOf(kA), 0u);
  EXPECT_EQ(table.CountOf(kB), 1u);
  EXPECT_EQ(table.known(), 1u);
}

TEST(BucketTable, RefusesWhatDoesNotFitASlot) {
  BucketTable table(4);
  EXPECT_FALSE(table.Offer(0, {kA, Epoch(0)}));
  EXPECT_FALSE(table.Offer(0, {ShardUid(), Epoch(1)}));
  EXPECT_FALSE(table.Offer(0, {kA, Epoch(BucketTable::kMaxEpoch + 1)}));
  EXPECT_EQ(table.known(), 0u);
  EXPECT_TRUE(table.Offer(0, {kA, Epoch(BucketTable::kMaxEpoch)}));
  EXPECT_EQ(table.At(0), (Owner{kA, Epoch(BucketTable::kMaxEpoch)}));
}

TEST(BucketTable, AHigherLevelCopiesEntriesToBothHalves) {
  BucketTable table(3);
  ASSERT_TRUE(table.Offer(2, {kA, Epoch(5)}));
  ASSERT_TRUE(table.Reach({2, 11}).ok());
  EXPECT_EQ(table.modulus(), 12u);
  for (std::uint32_t n : {2u, 5u, 8u, 11u}) EXPECT_EQ(table.At(n), (Owner{kA, Epoch(5)})) << n;
  EXPECT_EQ(table.known(), 4u);
  EXPECT_EQ(table.CountOf(kA), 4u);
  EXPECT_EQ(table.epoch_sum(), 20u);
  EXPECT_EQ(table.At(3), std::nullopt);
  // A caller's routing value finds the same shard as before.
  EXPECT_EQ(table.Find(RoutingValue(2 + 3 * 1000)), (Owner{kA, Epoch(5)}));
}

TEST(BucketTable, ALowerLevelNamesEveryPart) {
  BucketTable table(3);
  ASSERT_TRUE(table.Reach({2, 0}).ok());
  std::vector<std::uint32_t> parts;
  table.ForEachPart({1, 4}, [&](std::uint32_t n) { parts.push_back(n); });
  EXPECT_EQ(parts, (std::vector<std::uint32_t>{4, 10}));
  parts.clear();
  table.ForEachPart({0, 1}, [&](std::uint32_t n) { parts.push_back(n); });
  EXPECT_EQ(parts, (std::vector<std::uint32_t>{1, 4, 7, 10}));
}

TEST(BucketTable, ReachRefusesWhatIsOverTheCapOrOutOfRange) {
  BucketTable table(4, 16);
  EXPECT_EQ(table.Reach({3, 0}).reason(), Reason::kModulusCap);
  EXPECT_EQ(table.Reach({200, 0}).reason(), Reason::kModulusCap);
  EXPECT_EQ(table.Reach({1, 8}).reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(table.level(), 0) << "nothing grows for a refused bucket";
  EXPECT_TRUE(table.Reach({2, 15}).ok());
}

TEST(BucketTable, WithdrawKeepsWhatTheShardHasNotReachedYet) {
  BucketTable table(2);
  table.Offer(0, {kA, Epoch(4)});
  EXPECT_FALSE(table.Withdraw(0, kA, Epoch(3))) << "it is still to come to this shard";
  EXPECT_FALSE(table.Withdraw(0, kB, Epoch(9))) << "another shard's word";
  EXPECT_TRUE(table.Withdraw(0, kA, Epoch(4)));
  EXPECT_EQ(table.At(0), std::nullopt);
  EXPECT_EQ(table.epoch_sum(), 0u);
}

TEST(BucketTable, ForgetsOnlyTheEntryThatIsMeant) {
  BucketTable table(2);
  table.Offer(0, {kA, Epoch(4)});
  EXPECT_FALSE(table.Forget(0, {kA, Epoch(3)}));
  EXPECT_FALSE(table.Forget(0, {kB, Epoch(4)}));
  EXPECT_TRUE(table.Forget(0, {kA, Epoch(4)}));
  EXPECT_EQ(table.unknown(), 2u);
}

TEST(BucketTable, ForgetsARemovedShard) {
  BucketTable table(4);
  table.Offer(0, {kA, Epoch(1)});
  table.Offer(1, {kB, Epoch(1)});
  table.Offer(3, {kA, Epoch(1)});
  table.ForgetShard(kA);
  EXPECT_EQ(table.known(), 1u);
  EXPECT_EQ(table.CountOf(kA), 0u);
  EXPECT_EQ(table.At(1), (Owner{kB, Epoch(1)}));
}

TEST(BucketTable, NumbersOfShardsWithoutBucketsAreUsedAgain) {
  BucketTable table(2);
  ASSERT_TRUE(table.Offer(0, {kA, Epoch(1)}));
  for (std::uint64_t i = 1; i <= 70000; ++i) {
    ASSERT_TRUE(table.Offer(1, {ShardUid(1000 + i), Epoch(i)})) << i;
  }
  EXPECT_EQ(table.At(1), (Owner{ShardUid(71000), Epoch(70000)}));
  EXPECT_EQ(table.At(0), (Owner{kA, Epoch(1)}));
}

TEST(BucketTable, OneMillionBucketsCostEightBytesEach) {
  BucketTable table(1u << 19);
  ASSERT_TRUE(table.Reach({1, 0}).ok());
  EXPECT_EQ(table.modulus(), 1u << 20);
  EXPECT_LE(table.slot_bytes(), std::size_t{8} << 20);
  BucketTable flat(1'000'000);
  EXPECT_LE(flat.slot_bytes(), std::size_t{8'000'000});
}

}  // namespace
}  // namespace etalon::router
