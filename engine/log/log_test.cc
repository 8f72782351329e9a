#include "engine/log/log.h"

#include <gtest/gtest.h>

#include "engine/log/testing.h"

namespace etalon::log {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SegmentedLog, ABlankDirectoryIsABlankLog) {
  LogNode n(1);
  n.MustOpen();
  EXPECT_TRUE(n.log->recovered().blank);
  EXPECT_FALSE(n.log->recovered().snapshot);
  EXPECT_EQ(n.log->First(), LogIndex(1));
  EXPECT_EQ(n.log->Last(), LogIndex(0));
  EXPECT_EQ(n.log->TermAt(LogIndex(0)), Term(0));
  EXPECT_EQ(n.log->TermAt(LogIndex(1)), std::nullopt);
  EXPECT_FALSE(n.ready) << "never from inside a call";
  EXPECT_TRUE(n.world.RunUntil([&] { return n.ready; }, kSoon));
  n.Settle();
  n.Restart();
  EXPECT_TRUE(n.log->recovered().blank) << "an empty segment is nothing";
}

TEST(SegmentedLog, OptionsAreChecked) {
  LogNode n(1, {.dir = "", .segment_bytes = 4096});
  EXPECT_EQ(n.Open().reason(), Reason::kInvalidCfg);
  LogNode m(1, {.dir = "log", .segment_bytes = 10});
  EXPECT_EQ(m.Open().reason(), Reason::kInvalidCfg);
}

TEST(SegmentedLog, AppendedIsReadableAtOnceDurableLaterAndRecovered) {
  LogNode n(1, {.dir = "data/log", .segment_bytes = 4096});
  n.MustOpen();
  n.Append(1, 3, 1);
  EXPECT_EQ(n.Describe(), "1..3: 1@1");
  EXPECT_EQ(n.durable, 0u);
  EXPECT_GT(n.log->PendingBytes(), 0u);
  ASSERT_TRUE(n.WaitDurable());
  EXPECT_EQ(n.log->PendingBytes(), 0u);
  n.Append(4, 2, 2);
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1..5: 1@1 4@2");
  const Recovered& r = n.log->recovered();
  EXPECT_FALSE(r.blank);
  EXPECT_EQ(r.hard_state, (HardState{Term(2), MemberId(7), LogIndex(0)}));
  EXPECT_EQ(r.first, LogIndex(1));
  EXPECT_EQ(r.last, LogIndex(5));
  EXPECT_EQ(r.torn_bytes, 0u);
}

TEST(SegmentedLog, EntryKindsAreKept) {
  LogNode n(1);
  n.MustOpen();
  const std::vector<Entry> entries = {{LogIndex(1), Term(1), EntryKind::kMembers, "m"},
                                      {LogIndex(2), Term(1), EntryKind::kCommands, ""}};
  n.log->Append({.number = ++n.number,
                 .sync = true,
                 .hard_state = HardState{Term(1), MemberId(1), LogIndex(0)},
                 .entries = entries});
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  std::vector<Entry> out;
  ASSERT_EQ(n.log->Read(LogIndex(1), LogIndex(3), 100, true, false, &out), Answer::kOk);
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].kind, EntryKind::kMembers);
  EXPECT_EQ(out[0].data, "m");
  EXPECT_EQ(out[1].kind, EntryKind::kCommands);
  EXPECT_EQ(out[1].data, "");
}

TEST(SegmentedLog, WhatIsQueuedMeanwhileIsOneGroup) {
  LogNode n(1, {.dir = "log", .segment_bytes = 1 << 20});
  n.MustOpen();
  n.Append(1, 1, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  const std::uint64_t before = n.world.disk("n").ops();
  const int calls = n.durable_calls;
  n.Append(2, 1, 1);  // goes out at once
  for (std::uint64_t i = 3; i <= 50; ++i) n.Append(i, 1, 1);
  ASSERT_TRUE(n.WaitDurable());
  EXPECT_EQ(n.world.disk("n").ops() - before, 4u) << "twice write and sync";
  EXPECT_EQ(n.durable_calls - calls, 2);
}

TEST(SegmentedLog, ACommitIndexWaitsForTheNextSync) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 3, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  const std::uint64_t ops = n.world.disk("n").ops();
  n.Commit(2);
  n.Settle();
  EXPECT_EQ(n.world.disk("n").ops(), ops) << "nobody waits for it";
  n.Append(4, 1, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.log->recovered().hard_state.commit, LogIndex(2));
}

TEST(SegmentedLog, AnEmptySyncAnswersForWhatIsBeforeIt) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 1, 1, 40, false);
  n.log->Append({.number = ++n.number, .sync = true});
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1..1: 1@1");
}

TEST(SegmentedLog, ASuffixIsReplaced) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 10, 1);
  n.Append(6, 2, 3);
  EXPECT_EQ(n.Describe(), "1..7: 1@1 6@3");
  EXPECT_EQ(n.log->TermAt(LogIndex(8)), std::nullopt);
  ASSERT_TRUE(n.WaitDurable());
  n.Append(1, 3, 4);
  EXPECT_EQ(n.Describe(), "1..3: 1@4");
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1..3: 1@4");
}

TEST(SegmentedLog, ReadAnswersByBounds) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 10, 1, 100);
  std::vector<Entry> out;
  EXPECT_EQ(n.log->Read(LogIndex(0), LogIndex(2), 100, true, false, &out), Answer::kCompacted);
  EXPECT_EQ(n.log->Read(LogIndex(5), LogIndex(12), 100, true, false, &out), Answer::kAbsent);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(n.log->Read(LogIndex(5), LogIndex(11), 350, true, false, &out), Answer::kOk);
  EXPECT_EQ(out.size(), 3u);
  EXPECT_EQ(n.log->Read(LogIndex(5), LogIndex(11), 0, true, false, &out), Answer::kOk);
  EXPECT_EQ(out.size(), 4u) << "at least one, added";
}

TEST(SegmentedLog, GrowsOverManySegmentsWithABoundedCache) {
  LogNode n(1, {.dir = "log", .segment_bytes = 4096, .cache_bytes = 10000});
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 500; ++i) {
    n.Append(i, 1, 1 + i / 100, 300);
    if (i % 7 == 0) {
      ASSERT_TRUE(n.WaitDurable());
      EXPECT_LE(n.log->CachedBytes(), 10000u);
    }
  }
  ASSERT_TRUE(n.WaitDurable());
  EXPECT_GT(n.Segments().size(), 40u);
  EXPECT_EQ(n.Describe(), "1..500: 1@1 100@2 200@3 300@4 400@5 500@6");
  EXPECT_GT(n.log->SizeBytes(), 500u * 300);
  n.Restart();
  EXPECT_LE(n.log->CachedBytes(), 10000u);
  EXPECT_EQ(n.Describe(), "1..500: 1@1 100@2 200@3 300@4 400@5 500@6");
}

TEST(SegmentedLog, TheCacheKeepsAllThatIsNotOnTheDisk) {
  LogNode n(1, {.dir = "log", .segment_bytes = 4096, .cache_bytes = 1000});
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 100; ++i) n.Append(i, 1, 1, 300);
  EXPECT_GT(n.log->CachedBytes(), 30000u);
  std::vector<Entry> out;
  ASSERT_EQ(n.log->Read(LogIndex(1), LogIndex(101), 1 << 20, true, true, &out), Answer::kOk);
  EXPECT_EQ(out.size(), 100u);
  ASSERT_TRUE(n.WaitDurable());
  EXPECT_LE(n.log->CachedBytes(), 1000u);
}

TEST(SegmentedLog, ARecordLargerThanASegment) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 2, 1);
  n.Append(3, 1, 1, 20000);
  n.Append(4, 2, 1);
  ASSERT_TRUE(n.WaitDurable());
  EXPECT_EQ(n.Describe(), "1..5: 1@1");
  n.Restart();
  EXPECT_EQ(n.Describe(), "1..5: 1@1");
}

TEST(SegmentedLog, OldEntriesAreFetchedWhenTheReaderMayWait) {
  LogNode n(1, {.dir = "log", .segment_bytes = 4096, .cache_bytes = 1000});
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 100; ++i) n.Append(i, 1, 1, 300);
  ASSERT_TRUE(n.WaitDurable());
  std::vector<Entry> out;
  EXPECT_EQ(n.log->Read(LogIndex(1), LogIndex(50), 1000, true, true, &out), Answer::kNotNow);
  EXPECT_EQ(n.log->Read(LogIndex(60), LogIndex(70), 1 << 20, true, true, &out), Answer::kNotNow);
  EXPECT_EQ(n.log->Read(LogIndex(1), LogIndex(50), 1000, true, true, &out), Answer::kNotNow)
      << "asked again";
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(n.fetched, 0);
  // Kinds and terms are always there.
  EXPECT_EQ(n.log->Read(LogIndex(1), LogIndex(101), UINT64_MAX, false, true, &out), Answer::kOk);
  EXPECT_EQ(out.size(), 100u);
  std::vector<Entry> first;
  std::vector<Entry> second;
  n.on_fetched = [&] {
    EXPECT_EQ(n.log->Read(LogIndex(1), LogIndex(50), 1000, true, true, &first), Answer::kOk);
    ASSERT_EQ(first.size(), 3u);
    EXPECT_EQ(first[2].data, n.Data(3, 1, 300));
    EXPECT_EQ(n.log->Read(LogIndex(60), LogIndex(70), 1 << 20, true, true, &second), Answer::kOk);
    ASSERT_EQ(second.size(), 10u);
    EXPECT_EQ(second[9].data, n.Data(69, 1, 300));
  };
  ASSERT_TRUE(n.world.RunUntil([&] { return n.fetched == 1; }, kSoon));
  EXPECT_EQ(n.log->Read(LogIndex(20), LogIndex(30), 1000, true, true, &out), Answer::kNotNow);
}

TEST(SegmentedLog, AReaderThatMayNotWaitReadsInPlace) {
  LogNode n(1, {.dir = "log", .segment_bytes = 4096, .cache_bytes = 1000});
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 100; ++i) n.Append(i, 1, 1, 300);
  ASSERT_TRUE(n.WaitDurable());
  std::vector<Entry> out;
  ASSERT_EQ(n.log->Read(LogIndex(2), LogIndex(101), UINT64_MAX, true, false, &out), Answer::kOk);
  ASSERT_EQ(out.size(), 99u);
  for (const Entry& e : out) EXPECT_EQ(e.data, n.Data(e.index.value(), 1, 300));
}

TEST(SegmentedLog, DamageMetWhileReadingEndsTheLog) {
  for (const bool may_wait : {false, true}) {
    LogNode n(1, {.dir = "log", .segment_bytes = 4096, .cache_bytes = 1000});
    n.MustOpen();
    for (std::uint64_t i = 1; i <= 100; ++i) n.Append(i, 1, 1, 300);
    ASSERT_TRUE(n.WaitDurable());
    n.world.disk("n").FlipBit("log/0000000001.seg", 300, 3);
    std::vector<Entry> out;
    EXPECT_EQ(n.log->Read(LogIndex(1), LogIndex(2), 1, true, may_wait, &out),
              may_wait ? Answer::kNotNow : Answer::kAbsent);
    EXPECT_TRUE(n.failed.empty());
    n.Settle();
    ASSERT_EQ(n.failed.size(), 1u);
    EXPECT_EQ(n.failed[0].code(), Code::kDataLoss);
    EXPECT_NE(n.failed[0].message().find("log/0000000001.seg at offset 48"), std::string::npos)
        << n.failed[0].ToString();
  }
}

TEST(SegmentedLog, TrimDropsWholeSegments) {
  LogNode n(1);
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 100; ++i) n.Append(i, 1, 1, 300);
  n.Commit(80);
  ASSERT_TRUE(n.WaitDurable() || n.durable == 100);
  n.Settle();
  const std::size_t before = n.Segments().size();
  n.log->Trim(LogIndex(70));
  const LogIndex first = n.log->First();
  EXPECT_GT(first, LogIndex(55));
  EXPECT_LE(first, LogIndex(71));
  EXPECT_EQ(n.log->TermAt(LogIndex(first.value() - 1)), Term(1));
  EXPECT_EQ(n.log->TermAt(LogIndex(first.value() - 2)), std::nullopt);
  n.Settle();
  EXPECT_LT(n.Segments().size(), before - 4);
  n.Append(101, 1, 2);
  n.number = 102;
  n.Settle();
  n.Restart();
  EXPECT_EQ(n.log->First(), first);
  EXPECT_EQ(n.Describe(),
            std::to_string(first.value()) + "..101: " + std::to_string(first.value()) + "@1 101@2");
  EXPECT_EQ(n.log->recovered().hard_state.commit, LogIndex(80));
  n.log->Trim(LogIndex(101));
  n.Settle();
  EXPECT_LE(n.log->Last().value() - n.log->First().value() + 1, 12u) << "the last segment stays";
}

TEST(SegmentedLog, TrimKeepsTheVote) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 1, 9);
  for (std::uint64_t i = 2; i <= 100; ++i) n.Append(i, 1, 9, 300);
  ASSERT_TRUE(n.WaitDurable());
  n.log->Trim(LogIndex(95));
  n.Settle();
  n.Restart();
  EXPECT_EQ(n.log->recovered().hard_state.term, Term(9));
  EXPECT_EQ(n.log->recovered().hard_state.vote, MemberId(7));
  EXPECT_EQ(n.log->recovered().hard_state.commit.value(), n.log->First().value() - 1)
      << "what is trimmed was committed";
}

// The entries that are kept overwrote ones that are trimmed: the start of the first kept segment
// speaks of more.
TEST(SegmentedLog, TrimBelowAReplacedSuffix) {
  LogNode n(1);
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 60; ++i) n.Append(i, 1, 1, 300);
  n.Append(31, 1, 2, 300);  // overwrites 31..60
  const std::size_t segments = 8;
  ASSERT_TRUE(n.WaitDurable());
  ASSERT_GE(n.Segments().size(), segments);
  n.log->Trim(LogIndex(30));
  n.Settle();
  EXPECT_EQ(n.log->First(), LogIndex(31));
  EXPECT_LE(n.Segments().size(), 3u);
  n.Restart();
  EXPECT_EQ(n.Describe(), "31..31: 31@2");
  EXPECT_EQ(n.log->TermAt(LogIndex(30)), Term(1));
}

TEST(SegmentedLog, ASnapshotEmptiesTheLog) {
  LogNode n(1);
  n.MustOpen();
  for (std::uint64_t i = 1; i <= 60; ++i) n.Append(i, 1, 1, 300);
  const Snapshot snapshot{
      LogIndex(1000), Term(5), {{MemberId(1), MemberId(2)}, {MemberId(4)}}, "gen-1"};
  n.Reset(snapshot);
  EXPECT_EQ(n.log->First(), LogIndex(1001));
  EXPECT_EQ(n.log->Last(), LogIndex(1000));
  EXPECT_EQ(n.log->TermAt(LogIndex(1000)), Term(5));
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  EXPECT_LE(n.Segments().size(), 2u);
  n.Restart();
  ASSERT_TRUE(n.log->recovered().snapshot);
  EXPECT_EQ(n.log->recovered().snapshot->index, snapshot.index);
  EXPECT_EQ(n.log->recovered().snapshot->term, snapshot.term);
  EXPECT_EQ(n.log->recovered().snapshot->members, snapshot.members);
  EXPECT_EQ(n.log->recovered().snapshot->name, "gen-1");
  EXPECT_EQ(n.log->recovered().hard_state, (HardState{Term(5), MemberId(3), LogIndex(1000)}));
  n.Append(1001, 3, 5);
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "1001..1003: 1001@5");
  EXPECT_TRUE(n.log->recovered().snapshot);
  for (std::uint64_t i = 1004; i <= 1050; ++i) n.Append(i, 1, 5, 300);
  ASSERT_TRUE(n.WaitDurable());
  n.log->Trim(LogIndex(1040));
  n.Settle();
  n.Restart();
  EXPECT_FALSE(n.log->recovered().snapshot) << "trimmed away with its segment";
}

TEST(SegmentedLog, ASnapshotWithEntriesIsOne) {
  LogNode n(1);
  n.MustOpen();
  const std::string data = n.Data(2, 1);
  const std::vector<Entry> entries = {{LogIndex(2), Term(1), EntryKind::kCommands, data}};
  n.log->Append({.number = ++n.number,
                 .sync = true,
                 .hard_state = HardState{Term(1), MemberId(), LogIndex(1)},
                 .snapshot = Snapshot{LogIndex(1), Term(1), {{MemberId(7)}, {}}, ""},
                 .entries = entries});
  ASSERT_TRUE(n.WaitDurable());
  n.Restart();
  EXPECT_EQ(n.Describe(), "2..2: 2@1");
  EXPECT_TRUE(n.log->recovered().snapshot);
}

TEST(SegmentedLog, EveryLifeBeginsANewSegmentAndGivesTheOldOnesRestBack) {
  LogNode n(1, {.dir = "log", .segment_bytes = 1 << 16});
  n.MustOpen();
  for (std::uint64_t life = 1; life <= 10; ++life) {
    n.Append(life, 1, life);
    ASSERT_TRUE(n.WaitDurable());
    n.Settle();
    n.Restart();
  }
  EXPECT_EQ(n.Describe(), "1..10: 1@1 2@2 3@3 4@4 5@5 6@6 7@7 8@8 9@9 10@10");
  EXPECT_LT(n.world.disk("n").used(), 3u << 16);
  for (int i = 0; i < 10; ++i) {
    n.Settle();
    n.Restart();  // lives that append nothing leave nothing
  }
  EXPECT_LE(n.Segments().size(), 12u);
}

TEST(SegmentedLog, UnfinishedAndForeignFilesAreNotSegments) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 3, 1);
  ASSERT_TRUE(n.WaitDurable());
  n.Settle();
  n.Crash();
  n.world.disk("n").Poke("log/0000000002.seg.new", "half");
  n.world.disk("n").Poke("log/0000000009.seg.new", "half");
  n.world.disk("n").Poke("log/notes", "mine");
  n.MustOpen();
  EXPECT_EQ(n.Describe(), "1..3: 1@1");
  n.Settle();
  EXPECT_EQ(n.Segments(),
            (std::vector<std::string>{"log/0000000001.seg", "log/0000000002.seg", "log/notes"}));
}

TEST(SegmentedLog, MayBeDestroyedWithAJobInFlight) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 3, 1);
  std::vector<Entry> out;
  n.world.RunFor(std::chrono::microseconds(300));
  n.log.reset();
  n.Settle();
  EXPECT_EQ(n.durable, 0u);
  EXPECT_TRUE(n.failed.empty());
}

TEST(SegmentedLog, SnapshotsComeFromTheOwner) {
  LogNode n(1);
  Result<std::unique_ptr<SegmentedLog>> log = SegmentedLog::Open(
      n.env->disk, n.env->core, n.env->clock, n.env->random, n.env->log, n.options);
  ASSERT_TRUE(log.ok());
  (*log)->SetCallbacks(
      {.ready = [] {},
       .durable = [](std::uint64_t) {},
       .fetched = [] {},
       .failed = [](const Status&) {},
       .snapshot_provider = [](MemberId to, LogIndex at_least) -> std::optional<Snapshot> {
         if (at_least > LogIndex(9)) return std::nullopt;
         return Snapshot{LogIndex(9), Term(1), {}, "for " + std::to_string(to.value())};
       }});
  EXPECT_EQ((*log)->SnapshotFor(MemberId(4), LogIndex(8))->name, "for 4");
  EXPECT_FALSE((*log)->SnapshotFor(MemberId(4), LogIndex(10)));
}

TEST(SegmentedLogDeathTest, HolesAreBugs) {
  LogNode n(1);
  n.MustOpen();
  n.Append(1, 3, 1);
  EXPECT_DEATH(n.Append(5, 1, 1), "do not follow");
  EXPECT_DEATH(n.log->Trim(LogIndex(4)), "beyond the end");
}

}  // namespace
}  // namespace etalon::log
