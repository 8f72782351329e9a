// A full disk, a slow one, and a sync that fails.
#include <gtest/gtest.h>

#include "engine/log/testing.h"

namespace etalon::log {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Fills the log until it says so; returns the last index appended.
std::uint64_t Fill(LogNode& n) {
  std::uint64_t i = n.log->Last().value();
  while (n.log->Health().ok() && i < 1000) {
    n.Append(++i, 1, 1, 300);
    EXPECT_TRUE(n.WaitDurable());
    n.world.RunFor(milliseconds(1));
  }
  return i;
}

TEST(LogSpace, AFullDiskIsToldBeforeAnyAppendFails) {
  LogNode n(1);
  n.world.disk("n").SetCapacity(5 * 4096 + 100);
  n.MustOpen();
  const std::uint64_t full = Fill(n);
  EXPECT_EQ(n.log->Health().code(), Code::kResourceExhausted);
  EXPECT_EQ(n.log->Health().reason(), Reason::kDiskFull);
  EXPECT_EQ(n.durable, full) << "all that was appended is durable: the current segment has room";
  EXPECT_GT(full, 40u);
  EXPECT_LT(full, 55u);
}

TEST(LogSpace, WhatDoesNotFitWaitsAndNothingElseIsClaimed) {
  LogNode n(2);
  n.world.disk("n").SetCapacity(5 * 4096 + 100);
  n.MustOpen();
  const std::uint64_t full = Fill(n);
  for (std::uint64_t i = full + 1; i <= full + 40; ++i) n.Append(i, 1, 1, 300);
  n.Settle();
  EXPECT_LT(n.durable, full + 20);
  EXPECT_GE(n.durable, full);
  EXPECT_GT(n.log->PendingBytes(), 20u * 300);
  EXPECT_EQ(n.Describe(), "1.." + std::to_string(full + 40) + ": 1@1");
  n.world.disk("n").SetCapacity(1 << 20);
  ASSERT_TRUE(n.WaitDurable()) << "it heals by itself";
  n.Settle();
  EXPECT_TRUE(n.log->Health().ok());
  EXPECT_TRUE(n.failed.empty());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1.." + std::to_string(full + 40) + ": 1@1");
}

TEST(LogSpace, ACrashOnAFullDiskKeepsWhatWasDurable) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    LogNode n(seed);
    n.world.disk("n").SetCapacity(5 * 4096 + 100);
    n.MustOpen();
    const std::uint64_t full = Fill(n);
    for (std::uint64_t i = full + 1; i <= full + 40; ++i) n.Append(i, 1, 1, 300);
    n.world.RunFor(milliseconds(seed));
    const std::uint64_t durable = n.durable;
    n.Restart();
    EXPECT_GE(n.log->Last().value(), durable);
    EXPECT_NE(n.Describe().find(": 1@1"), std::string::npos) << n.Describe();
    n.world.RunFor(seconds(1));
    EXPECT_TRUE(n.ready) << "being full does not stop a start";
    n.world.disk("n").SetCapacity(1 << 20);
    n.Append(n.log->Last().value() + 1, 1, 1);
    EXPECT_TRUE(n.WaitDurable());
  }
}

TEST(LogSpace, TrimmingMakesRoom) {
  LogNode n(3);
  n.world.disk("n").SetCapacity(5 * 4096 + 100);
  n.MustOpen();
  const std::uint64_t full = Fill(n);
  for (std::uint64_t i = full + 1; i <= full + 20; ++i) n.Append(i, 1, 1, 300);
  n.Settle();
  ASSERT_FALSE(n.log->Health().ok());
  n.Commit(full);
  n.log->Trim(LogIndex(full - 5));
  --n.number;  // the commit index has no answer
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  EXPECT_TRUE(n.log->Health().ok());
}

TEST(LogSpace, ADiskFullFromTheStart) {
  LogNode n(4);
  n.world.disk("n").SetCapacity(100);
  n.MustOpen();
  n.Append(1, 1, 1);
  n.Settle();
  EXPECT_TRUE(n.ready);
  EXPECT_EQ(n.log->Health().reason(), Reason::kDiskFull);
  EXPECT_EQ(n.durable, 0u);
  n.world.disk("n").SetCapacity(1 << 20);
  EXPECT_TRUE(n.WaitDurable());
}

TEST(LogSpace, AnOversizedRecordThatMeetsAFullDiskWaitsToo) {
  LogNode n(5);
  n.MustOpen();
  n.Append(1, 1, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  n.world.disk("n").SetCapacity(n.world.disk("n").used() + 4096);
  n.Append(2, 1, 1, 20000);
  n.Append(3, 1, 1);
  n.Settle();
  EXPECT_EQ(n.durable, 1u);
  EXPECT_EQ(n.log->Health().reason(), Reason::kDiskFull);
  n.world.disk("n").SetCapacity(1 << 20);
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1..3: 1@1");
}

TEST(LogSpace, AFailedSyncEndsTheLog) {
  LogNode n(6);
  n.MustOpen();
  n.Append(1, 3, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  n.world.disk("n").FailSync();
  n.Append(4, 3, 1);
  n.Settle();
  ASSERT_EQ(n.failed.size(), 1u);
  EXPECT_EQ(n.failed[0].code(), Code::kDataLoss);
  EXPECT_EQ(n.log->Health().code(), Code::kDataLoss);
  const std::uint64_t ops = n.world.disk("n").ops();
  for (std::uint64_t i = 7; i <= 60; ++i) n.Append(i, 1, 1, 300);
  n.Settle();
  EXPECT_EQ(n.durable, 1u);
  EXPECT_EQ(n.failed.size(), 1u) << "once";
  EXPECT_EQ(n.world.disk("n").ops(), ops) << "nothing is written after it";
  n.Restart();
  EXPECT_GE(n.log->Last(), LogIndex(3));
  EXPECT_NE(n.Describe().find(": 1@1"), std::string::npos);
}

TEST(LogSpace, AFailedSyncAtTheStartIsNotReady) {
  LogNode n(7);
  n.MustOpen();
  n.Append(1, 3, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Crash();
  n.world.disk("n").FailSync();
  n.MustOpen();
  n.Settle();
  EXPECT_FALSE(n.ready);
  EXPECT_EQ(n.failed.size(), 1u);
}

TEST(LogSpace, ASlowDiskOnlyDelays) {
  LogNode n(8);
  n.world.disk("n").SetLatency(seconds(1), seconds(2));
  n.MustOpen();
  n.Append(1, 3, 1);
  n.world.RunFor(seconds(5));
  EXPECT_EQ(n.durable, 0u);
  EXPECT_TRUE(n.WaitDurable());
}

}  // namespace
}  // namespace etalon::log
