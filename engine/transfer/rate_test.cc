#include "engine/transfer/rate.h"

#include <gtest/gtest.h>

namespace etalon::transfer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SteadyTime At(int millis) { return SteadyTime(milliseconds(millis)); }

TEST(ByteBudget, NoLimitNeverWaits) {
  ByteBudget budget;
  budget.Spend(1 << 30);
  EXPECT_TRUE(budget.MaySend(At(0)));
  EXPECT_EQ(budget.NextAt(At(5)), At(5));
}

TEST(ByteBudget, AChunkOfAnySizePassesAndIsPaidForLater) {
  ByteBudget budget;
  budget.SetRate(1000, At(0));
  EXPECT_TRUE(budget.MaySend(At(0)));
  budget.Spend(5000);
  EXPECT_FALSE(budget.MaySend(At(1)));
  EXPECT_GT(budget.NextAt(At(1)), At(4900));
  EXPECT_FALSE(budget.MaySend(At(4900)));
  EXPECT_TRUE(budget.MaySend(budget.NextAt(At(4900)))) << "the timer it asked for is enough";
}

TEST(ByteBudget, IdleTimeIsSavedForATenthOfASecondOnly) {
  ByteBudget budget;
  budget.SetRate(1000, At(0));
  EXPECT_TRUE(budget.MaySend(At(60'000)));
  budget.Spend(100);
  EXPECT_TRUE(budget.MaySend(At(60'000)));
  budget.Spend(1);
  EXPECT_FALSE(budget.MaySend(At(60'000)));
}

TEST(RateMeter, ABurstOfAcknowledgementsIsNotTakenForSpeed) {
  RateMeter meter(1e6);
  // Four chunks of 256 KiB leave at once and come back after 100 ms, 1 ms apart: 10 MiB a second,
  // not 256.
  RateMeter::Mark marks[4];
  for (auto& mark : marks) mark = meter.OnSent(At(0));
  for (int i = 0; i < 4; ++i) meter.OnAcknowledged(256 << 10, marks[i], At(100 + i));
  EXPECT_GT(meter.bytes_per_second(), 9e6);
  EXPECT_LT(meter.bytes_per_second(), 11e6);
  EXPECT_GT(meter.TimeFor(1 << 20), milliseconds(90));
}

TEST(RateMeter, LittleDataTellsNothing) {
  RateMeter meter(16 << 20);
  const RateMeter::Mark mark = meter.OnSent(At(0));
  meter.OnAcknowledged(1000, mark, At(50));
  EXPECT_EQ(meter.bytes_per_second(), 16 << 20);
}

TEST(RateMeter, FollowsALinkThatSlowsDown) {
  RateMeter meter(1e6);
  int now = 0;
  const auto send = [&](int millis) {
    const RateMeter::Mark mark = meter.OnSent(At(now));
    now += millis;
    meter.OnAcknowledged(1'000'000, mark, At(now));
  };
  for (int i = 0; i < 5; ++i) send(10);
  EXPECT_NEAR(meter.bytes_per_second(), 1e8, 1e6);
  for (int i = 0; i < 20; ++i) send(1000);
  EXPECT_LT(meter.bytes_per_second(), 2e6);
}

}  // namespace
}  // namespace etalon::transfer
