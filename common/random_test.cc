#include "common/random.h"

#include <gtest/gtest.h>

#include <array>

namespace etalon {
namespace {

TEST(Random, SameSeedSameNumbers) {
  Random a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto x = a.Next();
    EXPECT_EQ(x, b.Next());
    differs |= x != c.Next();
  }
  EXPECT_TRUE(differs);
}

TEST(Random, BelowIsEvenAndBounded) {
  Random random(1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70000; ++i) ++seen[random.Below(7)];
  for (int n : seen) EXPECT_NEAR(n, 10000, 500);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Random, BackoffGrowsToItsCapAndResets) {
  Random random(3);
  Backoff backoff(std::chrono::milliseconds(10), std::chrono::milliseconds(100));
  Duration longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = backoff.Next(random);
    EXPECT_GE(wait, std::chrono::milliseconds(5));
    EXPECT_LE(wait, std::chrono::milliseconds(100));
    longest = std::max(longest, wait);
  }
  EXPECT_GT(longest, std::chrono::milliseconds(90));
  backoff.Reset();
  EXPECT_LE(backoff.Next(random), std::chrono::milliseconds(10));
}

}  // namespace
}  // namespace etalon
