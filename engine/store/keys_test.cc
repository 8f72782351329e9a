#include "engine/store/keys.h"

#include <algorithm>
#include <vector>

#include "common/random.h"
#include "gtest/gtest.h"

namespace etalon::store {
namespace {

constexpr std::uint32_t kBucketCounts[] = {1, 2, 3, 7, 16, 1000, 30000, 1u << 20};

BucketId BucketOf(RoutingValue v, std::uint32_t bucket_count, std::uint8_t level) {
  return {level, static_cast<std::uint32_t>(v.value() % (std::uint64_t{bucket_count} << level))};
}

// Of all sizes, not only huge ones.
RoutingValue RandomValue(Random& random) { return RoutingValue(random.Next() >> random.Below(64)); }

std::uint8_t RandomLevel(Random& random, std::uint32_t bucket_count) {
  std::uint8_t highest = 0;
  while (highest < 20 && std::uint64_t{bucket_count} << (highest + 1) <= UINT32_MAX) ++highest;
  return static_cast<std::uint8_t>(random.Between(0, highest));
}

TEST(Keys, BytesAreTheDocumentedOnes) {
  // 13 mod 4 = 1; 13 div 4 = 3 = 0b11, reversed 0xc0000000.
  EXPECT_EQ(DataKey(RoutingValue(13), 4, SpaceId(0x0203), "key"),
            std::string("\x01\x00\x00\x00\x01\xc0\x00\x00\x00\x02\x03key", 14));
  EXPECT_EQ(MetaKey("x"), std::string("\x00x", 2));
  const KeyRange range = BucketRange({1, 5}, 4);  // 5 mod 4 = 1, 5 div 4 = 1
  EXPECT_EQ(range.begin, std::string("\x01\x00\x00\x00\x01\x80\x00\x00\x00", 9));
  EXPECT_EQ(range.end, std::string("\x01\x00\x00\x00\x02\x00\x00\x00\x00", 9));
}

TEST(Keys, ParseGivesBackWhatWasPutIn) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t n = kBucketCounts[random.Below(std::size(kBucketCounts))];
    const RoutingValue v = RandomValue(random);
    const SpaceId space(static_cast<std::uint16_t>(random.Next()));
    const std::string key(random.Below(5), static_cast<char>(random.Next()));
    const std::string data_key = DataKey(v, n, space, key);
    const auto parsed = ParseDataKey(data_key, n);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed->value.value() % (std::uint64_t{n} << 32), parsed->value.value());
    if (v.value() / n <= UINT32_MAX) {
      EXPECT_EQ(parsed->value, v);
    }
    const std::uint8_t level = RandomLevel(random, n);
    EXPECT_EQ(BucketOf(parsed->value, n, level), BucketOf(v, n, level));
    EXPECT_EQ(parsed->space, space);
    EXPECT_EQ(parsed->key, key);
  }
}

TEST(Keys, ParseRefusesWhatIsNoDataKey) {
  const std::string good = DataKey(RoutingValue(5), 4, SpaceId(1), "");
  ASSERT_TRUE(ParseDataKey(good, 4).ok());
  EXPECT_EQ(ParseDataKey(good, 1).status().code(), Code::kDataLoss);  // bucket 1 of 1
  EXPECT_EQ(ParseDataKey(MetaKey("0123456789"), 4).status().code(), Code::kDataLoss);
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(ParseDataKey(good.substr(0, size), 4).status().code(), Code::kDataLoss) << size;
  }
  EXPECT_EQ(BucketOfDataKey("", 4, 0).status().code(), Code::kDataLoss);
}

TEST(Keys, AKeyIsInTheRangeOfItsBucketAndInNoOther) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t n = kBucketCounts[random.Below(std::size(kBucketCounts))];
    const std::uint8_t level = RandomLevel(random, n);
    const RoutingValue v = RandomValue(random);
    const std::string key = DataKey(v, n, SpaceId(static_cast<std::uint16_t>(random.Next())),
                                    std::string(random.Below(3), '\xff'));
    const BucketId bucket = BucketOf(v, n, level);
    EXPECT_TRUE(DataRange().Contains(key));
    EXPECT_TRUE(BucketRange(bucket, n).Contains(key)) << ToString(bucket) << " of " << n;
    const auto found = BucketOfDataKey(key, n, level);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, bucket);
    const BucketId other{level,
                         static_cast<std::uint32_t>(random.Below(std::uint64_t{n} << level))};
    EXPECT_EQ(BucketRange(other, n).Contains(key), other == bucket);
  }
}

TEST(Keys, RangesOfALevelAreDisjointAndCoverAll) {
  for (const std::uint32_t n : {1u, 3u, 16u, 1000u}) {
    for (std::uint8_t level = 0; level <= 6; ++level) {
      std::vector<KeyRange> ranges;
      for (std::uint32_t number = 0; number < n << level; ++number) {
        ranges.push_back(BucketRange({level, number}, n));
      }
      std::sort(ranges.begin(), ranges.end(),
                [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
      EXPECT_EQ(ranges.front().begin, std::string("\x01\0\0\0\0\0\0\0\0", 9));
      for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
        ASSERT_LT(ranges[i].begin, ranges[i].end);
        ASSERT_EQ(ranges[i].end, ranges[i + 1].begin);
      }
      // No key has a residue of n or more, so this is the end.
      EXPECT_EQ(ranges.back().end, BucketRange({0, n - 1}, n).end);
      EXPECT_GT(ranges.back().end, DataKey(RoutingValue(std::uint64_t{n} * 0xffffffff + n - 1), n,
                                           SpaceId(0xffff), "\xff\xff"));
    }
  }
}

TEST(Keys, ABucketIsItsTwoHalves) {
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t n = kBucketCounts[random.Below(std::size(kBucketCounts))];
    const std::uint8_t level = RandomLevel(random, n);
    const std::uint64_t modulus = std::uint64_t{n} << level;
    if (modulus * 2 > UINT32_MAX) continue;
    const auto number = static_cast<std::uint32_t>(random.Below(modulus));
    const auto next = static_cast<std::uint8_t>(level + 1);
    const KeyRange whole = BucketRange({level, number}, n);
    const KeyRange low = BucketRange({next, number}, n);
    const KeyRange high = BucketRange({next, static_cast<std::uint32_t>(number + modulus)}, n);
    EXPECT_EQ(low.begin, whole.begin);
    EXPECT_EQ(low.end, high.begin);
    EXPECT_EQ(high.end, whole.end);
  }
}

TEST(Keys, TheLastRangeOfTheLargestModulusEndsWithTheData) {
  EXPECT_EQ(BucketRange({0, UINT32_MAX - 1}, UINT32_MAX).end,
            std::string("\x01\xff\xff\xff\xff\0\0\0\0", 9));
  EXPECT_EQ(BucketRange({32, UINT32_MAX}, 1).end, std::string("\x01\0\0\0\x01\0\0\0\0", 9));
}

TEST(Keys, OrderWithinOneValueIsThatOfSpaceAndKey) {
  Random random(4);
  for (int i = 0; i < 20000; ++i) {
    const RoutingValue v = RandomValue(random);
    const auto draw = [&random] {
      return std::pair(SpaceId(static_cast<std::uint16_t>(random.Below(4) * 255)),
                       std::string(random.Below(4), "\x00\x7f\x80\xff"[random.Below(4)]));
    };
    const auto a = draw();
    const auto b = draw();
    EXPECT_EQ(DataKey(v, 30, a.first, a.second) < DataKey(v, 30, b.first, b.second), a < b);
  }
}

TEST(KeysDeathTest, ABucketBeyondTheModulusIsABrokenInvariant) {
  EXPECT_DEATH(static_cast<void>(BucketRange({1, 8}, 4)), "bucket_count");
}

}  // namespace
}  // namespace etalon::store
