#include "router/table/ownership.h"

#include <gtest/gtest.h>

namespace etalon::router {
namespace {

using std::chrono::seconds;

constexpr ShardUid kA{0xa}, kB{0xb}, kC{0xc};
const SteadyTime kStart{seconds(100)};

struct Entry {
  std::uint32_t bucket;
  std::uint64_t epoch;
  bool gone = false;
  ShardUid destination = {};
  bool readable_only = false;
};

v1::FeedMessage Message(bool full, std::uint32_t level, const std::vector<Entry>& entries) {
  v1::FeedMessage m;
  m.set_full(full);
  m.set_level(level);
  for (const Entry& e : entries) {
    v1::FeedBucket& b = *m.add_buckets();
    b.set_bucket(e.bucket);
    b.set_epoch(e.epoch);
    b.set_gone(e.gone);
    b.set_destination(e.destination.value());
    b.set_readable_only(e.readable_only);
  }
  return m;
}

class OwnershipTest : public testing::Test {
 protected:
  Status List(ShardUid shard, const std::vector<Entry>& entries, std::uint32_t level = 0) {
    return Apply(shard, Message(true, level, entries));
  }
  Status Delta(ShardUid shard, const std::vector<Entry>& entries, std::uint32_t level = 0) {
    return Apply(shard, Message(false, level, entries));
  }
  Status Apply(ShardUid shard, const v1::FeedMessage& message) {
    news.clear();
    return ownership.ApplyFeed(shard, message, now, [this](BucketId b, bool writable) {
      news += ToString(b) + (writable ? "w " : "r ");
    });
  }
  std::optional<Owner> At(std::uint32_t n) { return ownership.table().At(n); }

  SteadyTime now = kStart;
  Ownership ownership{4, seconds(5)};
  std::string news;
};

TEST_F(OwnershipTest, ListsAndDeltasFillTheTable) {
  ASSERT_TRUE(List(kA, {{0, 1}, {1, 1}}).ok());
  ASSERT_TRUE(List(kB, {{2, 1}, {3, 1}}).ok());
  EXPECT_EQ(ownership.table().unknown(), 0u);
  // The move of bucket 1, told by both.
  ASSERT_TRUE(Delta(kA, {{1, 2, true, kB}}).ok());
  EXPECT_EQ(At(1), (Owner{kB, Epoch(2)}));
  ASSERT_TRUE(Delta(kB, {{1, 2}}).ok());
  EXPECT_EQ(At(1), (Owner{kB, Epoch(2)}));
  EXPECT_TRUE(ownership.claims().empty());
}

TEST_F(OwnershipTest, NewsSaysWhetherWritesAreTaken) {
  ASSERT_TRUE(Delta(kA, {{0, 1}, {1, 1, false, {}, true}, {2, 2, true, kB}, {3, 1, true}}).ok());
  EXPECT_EQ(news, "0w 1r 2w 3r ");
}

TEST_F(OwnershipTest, AnEntryThatTheShardHasNotReachedYetStays) {
  ASSERT_TRUE(Delta(kB, {{0, 5, true, kA}}).ok());
  // The list of A was made before the bucket came; A had it once, at epoch 3.
  ASSERT_TRUE(List(kA, {{1, 1}, {0, 3, true}}).ok());
  EXPECT_EQ(At(0), (Owner{kA, Epoch(5)}));
  // And one that does not mention it at all.
  ASSERT_TRUE(List(kA, {{1, 1}}).ok());
  EXPECT_EQ(At(0), (Owner{kA, Epoch(5)}));
  // This one was made after it had come and gone.
  ASSERT_TRUE(List(kA, {{1, 1}, {0, 5, true}}).ok());
  EXPECT_EQ(At(0), std::nullopt);
}

TEST_F(OwnershipTest, LevelsMeetInTheMiddleOfTheFlight) {
  ASSERT_TRUE(List(kA, {{0, 1}, {1, 1}}).ok());
  ASSERT_TRUE(List(kB, {{2, 1}, {3, 1}}).ok());
  // A doubles its level and sends one half of bucket 1; B is still at level 0.
  ASSERT_TRUE(Delta(kA, {{0, 1}, {4, 1}, {1, 1}, {5, 2, true, kC}}, 1).ok());
  EXPECT_EQ(ownership.table().modulus(), 8u);
  EXPECT_EQ(At(1), (Owner{kA, Epoch(1)}));
  EXPECT_EQ(At(5), (Owner{kC, Epoch(2)}));
  EXPECT_EQ(At(2), (Owner{kB, Epoch(1)}));
  EXPECT_EQ(At(6), (Owner{kB, Epoch(1)}));
  // B speaks of a whole bucket: both halves move.
  ASSERT_TRUE(Delta(kB, {{2, 2, true, kA}}).ok());
  EXPECT_EQ(At(2), (Owner{kA, Epoch(2)}));
  EXPECT_EQ(At(6), (Owner{kA, Epoch(2)}));
  EXPECT_EQ(ownership.table().unknown(), 0u);
}

TEST_F(OwnershipTest, BucketsThatCannotBeAreRefused) {
  EXPECT_EQ(List(kA, {{0, 1}, {4, 1}}).reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(List(kA, {}, 60).reason(), Reason::kModulusCap);
  EXPECT_EQ(List(kA, {}, 1u << 20).reason(), Reason::kModulusCap);
}

TEST_F(OwnershipTest, AnEntryMaySpeakOfManyBuckets) {
  auto list = Message(true, 0, {{0, 1}, {3, 2, true, kB}});
  list.mutable_buckets(0)->set_count(3);
  ASSERT_TRUE(Apply(kA, list).ok());
  EXPECT_EQ(news, "0w 1w 2w 3w ");
  for (std::uint32_t n : {0u, 1u, 2u}) EXPECT_EQ(At(n), (Owner{kA, Epoch(1)}));
  EXPECT_EQ(At(3), (Owner{kB, Epoch(2)}));
  for (std::uint32_t count : {2u, 0xffffffffu}) {
    list.mutable_buckets(1)->set_count(count);
    EXPECT_EQ(Apply(kA, list).reason(), Reason::kBucketOutOfRange) << count;
  }
}

TEST_F(OwnershipTest, AListInPartsIsOneList) {
  ASSERT_TRUE(List(kB, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}).ok());
  // A claims all of them too.
  ASSERT_TRUE(List(kA, {{0, 1}, {1, 1}, {2, 1}, {3, 1}}).ok());
  now += seconds(5);
  ASSERT_EQ(ownership.claims().Doubled(now).size(), 4u);
  auto first = Message(true, 0, {{0, 1}});
  first.set_more(true);
  auto second = Message(true, 0, {{3, 1}});
  second.set_part(1);
  ASSERT_TRUE(Apply(kA, first).ok());
  EXPECT_EQ(ownership.claims().Doubled(now).size(), 4u) << "the rest may still come";
  ASSERT_TRUE(Apply(kA, second).ok());
  EXPECT_EQ(ownership.claims().Doubled(now).size(), 2u) << "claims of both parts stand";
}

TEST_F(OwnershipTest, AHintOfALowerLevelNamesEveryPart) {
  ASSERT_TRUE(List(kA, {{1, 1}}).ok());
  ASSERT_TRUE(ownership.Reach({1, 0}).ok());
  EXPECT_TRUE(ownership.Hint({0, 1}, {kB, Epoch(2)}, now));
  EXPECT_EQ(At(1), (Owner{kB, Epoch(2)}));
  EXPECT_EQ(At(5), (Owner{kB, Epoch(2)}));
  EXPECT_TRUE(ownership.Forget({0, 1}, {kB, Epoch(2)}));
  EXPECT_EQ(At(5), std::nullopt);
}

TEST_F(OwnershipTest, HintsCountWhenTheyAreNewer) {
  ASSERT_TRUE(List(kA, {{0, 4}}).ok());
  EXPECT_FALSE(ownership.Hint({0, 0}, {kB, Epoch(4)}, now));
  EXPECT_TRUE(ownership.Hint({0, 0}, {kB, Epoch(5)}, now));
  EXPECT_EQ(At(0), (Owner{kB, Epoch(5)}));
}

TEST_F(OwnershipTest, AMoveIsNoDoubledBucketWhicheverSideSpeaksFirst) {
  ASSERT_TRUE(List(kA, {{0, 1}}).ok());
  ASSERT_TRUE(Delta(kB, {{0, 2}}).ok());
  EXPECT_FALSE(ownership.claims().empty()) << "A has not spoken yet";
  now += seconds(1);
  ASSERT_TRUE(Delta(kA, {{0, 2, true, kB}}).ok());
  EXPECT_TRUE(ownership.claims().empty());
}

TEST_F(OwnershipTest, ABucketThatTwoShardsClaimIsDoubled) {
  ASSERT_TRUE(List(kA, {{0, 3}}).ok());
  ASSERT_TRUE(List(kB, {{0, 2}}).ok());
  EXPECT_TRUE(ownership.claims().Doubled(now).empty()) << "may be late news";
  now += seconds(5);
  const auto doubled = ownership.claims().Doubled(now);
  ASSERT_EQ(doubled.size(), 1u);
  EXPECT_EQ(doubled[0], (std::pair<std::uint32_t, ShardUid>{0, kB}));
  EXPECT_EQ(At(0), (Owner{kA, Epoch(3)}));
  // A list that does not claim it any more ends the alarm; one that still does keeps it.
  ASSERT_TRUE(List(kB, {{0, 2}, {1, 1}}).ok());
  EXPECT_EQ(ownership.claims().Doubled(now).size(), 1u);
  ASSERT_TRUE(List(kB, {{1, 1}}).ok());
  EXPECT_TRUE(ownership.claims().Doubled(now).empty());
}

TEST_F(OwnershipTest, EqualEpochsAtTwoShardsAreDoubledToo) {
  ASSERT_TRUE(List(kA, {{0, 3}}).ok());
  ASSERT_TRUE(List(kB, {{0, 3}}).ok());
  now += seconds(5);
  EXPECT_EQ(ownership.claims().Doubled(now).size(), 1u);
}

TEST_F(OwnershipTest, ADisplacedOwnerThatKeepsSilentIsAskedAgain) {
  ASSERT_TRUE(List(kA, {{0, 1}}).ok());
  ASSERT_TRUE(Delta(kB, {{0, 2}}).ok());
  EXPECT_TRUE(ownership.TakeStaleClaims(now + seconds(4)).empty());
  now += seconds(5);
  EXPECT_TRUE(ownership.claims().Doubled(now).empty()) << "nobody said so";
  EXPECT_EQ(ownership.TakeStaleClaims(now), std::vector<ShardUid>{kA});
  EXPECT_TRUE(ownership.claims().empty());
  // Its list says that it still claims the bucket.
  ASSERT_TRUE(List(kA, {{0, 1}}).ok());
  now += seconds(5);
  EXPECT_EQ(ownership.claims().Doubled(now).size(), 1u);
}

TEST_F(OwnershipTest, ARemovedShardIsForgotten) {
  ASSERT_TRUE(List(kA, {{0, 3}}).ok());
  ASSERT_TRUE(List(kB, {{0, 2}, {1, 1}}).ok());
  ownership.ForgetShard(kB);
  EXPECT_EQ(At(1), std::nullopt);
  EXPECT_TRUE(ownership.claims().empty());
  EXPECT_EQ(At(0), (Owner{kA, Epoch(3)}));
}

TEST_F(OwnershipTest, ClaimsAreBounded) {
  Ownership many(10000, seconds(5));
  std::vector<Entry> all;
  for (std::uint32_t n = 0; n < 10000; ++n) all.push_back({n, 2});
  const auto ignore = [](BucketId, bool) {};
  ASSERT_TRUE(many.ApplyFeed(kA, Message(true, 0, all), now, ignore).ok());
  for (Entry& e : all) e.epoch = 1;
  ASSERT_TRUE(many.ApplyFeed(kB, Message(true, 0, all), now, ignore).ok());
  EXPECT_EQ(many.claims().Doubled(now + seconds(5)).size(), Claims::kMax);
}

}  // namespace
}  // namespace etalon::router
