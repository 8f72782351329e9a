// What the simulated disk does beyond the contract of Disk (which env/posix/contract_test.cc
// checks): faults.
#include "sim/world/disk.h"

#include <gtest/gtest.h>

#include <set>

#include "sim/world/world.h"

namespace etalon::sim {
namespace {

using std::chrono::seconds;

struct Fixture {
  explicit Fixture(std::uint64_t seed) : world(seed) { world.AddNode("a"); }
  SimDisk& disk() { return world.disk("a"); }
  Status Do(DiskJob job) {
    std::optional<Status> result;
    disk().Submit(std::move(job), [&](Status s) { result = std::move(s); });
    EXPECT_TRUE(world.RunUntil([&] { return result.has_value(); }, seconds(10)));
    return result.value_or(Internal("no answer"));
  }
  void Crash() {
    world.Crash("a");
    world.Restart("a");
  }
  std::string Content(const std::string& path) { return disk().Read(path, 0, 1 << 20).value(); }
  bool Exists(const std::string& path) { return disk().Size(path).ok(); }
  SimWorld world;
};

TEST(SimDisk, WhatWasSyncedIsKeptBySeeds) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do({DiskOp::MakeDir("d"), DiskOp::SyncDir(""), DiskOp::Write("d/f", 0, "hello"),
                      DiskOp::Sync("d/f"), DiskOp::SyncDir("d")})
                    .ok());
    f.Crash();
    EXPECT_EQ(f.Content("d/f"), "hello");
  }
}

TEST(SimDisk, UnsyncedWritesAreLostKeptOrTorn) {
  const std::string fresh(4000, 'n');
  std::set<std::string> kinds;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Fixture f(seed);
    const std::string old(4000, 'o');
    ASSERT_TRUE(f.Do({DiskOp::Write("f", 0, old), DiskOp::Sync("f"), DiskOp::SyncDir("")}).ok());
    ASSERT_TRUE(f.Do({DiskOp::Write("f", 0, fresh)}).ok());
    EXPECT_EQ(f.Content("f"), fresh) << "until the crash it is there";
    f.Crash();
    const std::string now = f.Content("f");
    ASSERT_EQ(now.size(), 4000u);
    if (now == old) {
      kinds.insert("lost");
    } else if (now == fresh) {
      kinds.insert("kept");
    } else {
      EXPECT_GT(f.disk().torn(), 0u);
      const std::size_t cut = now.find_last_not_of('n') == 3999 ? now.find('o') : 0;
      const bool prefix = cut > 0 && now == std::string(cut, 'n') + std::string(4000 - cut, 'o');
      kinds.insert(prefix && cut % 512 != 0 ? "torn inside a sector" : "torn by sectors");
    }
  }
  EXPECT_EQ(kinds,
            (std::set<std::string>{"lost", "kept", "torn inside a sector", "torn by sectors"}));
}

TEST(SimDisk, TheDeathOfAProcessLosesNothingThatWasWritten) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do({DiskOp::Write("f", 0, "written")}).ok());
    const std::uint64_t ops = f.disk().ops();
    f.disk().Submit({DiskOp::Write("f", 0, "WR"), DiskOp::Write("f", 2, "ITTEN")}, nullptr);
    ASSERT_TRUE(f.world.RunUntil([&] { return f.disk().ops() == ops + 1; }, seconds(1)));
    f.world.Crash("a", CrashKind::kProcess);
    f.world.Restart("a");
    EXPECT_EQ(f.Content("f"), "WRitten") << "the job in flight goes no further";
    f.world.RunFor(seconds(1));
    EXPECT_EQ(f.Content("f"), "WRitten");
  }
}

TEST(SimDisk, LaterUnsyncedWritesMaySurviveEarlierOnes) {
  bool only_second = false;
  bool only_first = false;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do({DiskOp::Allocate("f", 4), DiskOp::Sync("f"), DiskOp::SyncDir("")}).ok());
    ASSERT_TRUE(f.Do({DiskOp::Write("f", 0, "1"), DiskOp::Write("f", 1, "2")}).ok());
    f.Crash();
    const std::string now = f.Content("f");
    only_first |= now == std::string("1\0\0\0", 4);
    only_second |= now == std::string(
                              "\0"
                              "2\0\0",
                              4);
  }
  EXPECT_TRUE(only_first);
  EXPECT_TRUE(only_second);
}

TEST(SimDisk, UnsyncedNamesMayBeUndone) {
  std::set<std::string> outcomes;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do({DiskOp::Write("old", 0, "o"), DiskOp::Sync("old"),
                      DiskOp::Write("gone", 0, "g"), DiskOp::Sync("gone"), DiskOp::SyncDir("")})
                    .ok());
    ASSERT_TRUE(f.Do({DiskOp::Write("made", 0, "m"), DiskOp::Sync("made"),
                      DiskOp::Rename("old", "new"), DiskOp::Remove("gone")})
                    .ok());
    f.Crash();
    std::string outcome;
    if (f.Exists("made")) {
      outcome += "made ";
      EXPECT_EQ(f.Content("made"), "m");
    }
    EXPECT_NE(f.Exists("old"), f.Exists("new")) << "a rename is atomic";
    if (f.Exists("new")) outcome += "renamed ";
    if (!f.Exists("gone")) outcome += "removed";
    outcomes.insert(outcome);
  }
  EXPECT_EQ(outcomes,
            (std::set<std::string>{"", "made ", "made renamed ", "made renamed removed"}));
}

TEST(SimDisk, ARenameIsDurableAfterSyncDir) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do(ReplaceFile("f", "one")).ok());
    f.Crash();
    EXPECT_EQ(f.Content("f"), "one");
    ASSERT_TRUE(f.Do(ReplaceFile("f", "three")).ok());
    f.Crash();
    EXPECT_EQ(f.Content("f"), "three");
  }
}

TEST(SimDisk, ReplaceFileIsOldOrNewWhereverTheCrash) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (std::uint64_t ops = 0; ops <= 6; ++ops) {
      Fixture f(seed);
      ASSERT_TRUE(f.Do(ReplaceFile("f", "old content")).ok());
      const std::uint64_t before = f.disk().ops();
      f.disk().Submit(ReplaceFile("f", "new"), nullptr);
      ASSERT_TRUE(f.world.RunUntil([&] { return f.disk().ops() == before + ops; }, seconds(1)));
      f.Crash();
      const std::string now = f.Content("f");
      EXPECT_TRUE(now == "old content" || now == "new") << now;
      seen.insert(now);
      if (ops == 6) {
        EXPECT_EQ(now, "new");
      }
    }
  }
  EXPECT_EQ(seen.size(), 2u);
}

TEST(SimDisk, AFileInADirectoryThatWasLostIsLost) {
  bool lost = false;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Fixture f(seed);
    ASSERT_TRUE(f.Do({DiskOp::MakeDir("d"), DiskOp::Write("d/f", 0, "x"), DiskOp::Sync("d/f"),
                      DiskOp::SyncDir("d")})
                    .ok());
    f.Crash();
    if (!f.disk().List("d").ok()) {
      lost = true;
      EXPECT_FALSE(f.Exists("d/f"));
    }
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, AFailedSyncPoisonsUntilTheNextLife) {
  Fixture f(1);
  f.disk().FailSync(2);
  EXPECT_TRUE(f.Do({DiskOp::Write("f", 0, "x"), DiskOp::Sync("f")}).ok());
  EXPECT_EQ(f.Do({DiskOp::Write("f", 0, "y"), DiskOp::Sync("f")}).code(), Code::kDataLoss);
  EXPECT_EQ(f.Do({DiskOp::Write("g", 0, "z")}).code(), Code::kDataLoss);
  EXPECT_FALSE(f.Exists("g"));
  f.Crash();
  EXPECT_TRUE(f.Do({DiskOp::Write("g", 0, "z"), DiskOp::Sync("g")}).ok());
}

TEST(SimDisk, AFullDiskRefusesAndHeals) {
  Fixture f(1);
  f.disk().SetCapacity(1000);
  EXPECT_TRUE(f.Do({DiskOp::Allocate("a", 600)}).ok());
  EXPECT_EQ(f.Do({DiskOp::Allocate("b", 600)}).reason(), Reason::kDiskFull);
  EXPECT_EQ(f.disk().FreeBytes().value(), 400u);
  EXPECT_EQ(f.Do({DiskOp::Write("b", 0, std::string(500, 'x'))}).reason(), Reason::kDiskFull);
  EXPECT_EQ(f.disk().Size("b").value(), 400u) << "what fits is written";
  EXPECT_TRUE(f.Do({DiskOp::Write("a", 100, std::string(500, 'x'))}).ok())
      << "its space is reserved";
  EXPECT_TRUE(f.Do({DiskOp::Remove("a")}).ok());
  EXPECT_TRUE(f.Do({DiskOp::Write("b", 0, std::string(500, 'x'))}).ok());
  f.disk().SetCapacity(2000);
  EXPECT_EQ(f.disk().FreeBytes().value(), 1500u);
}

TEST(SimDisk, ASlowDiskIsSlow) {
  Fixture f(1);
  f.disk().SetLatency(seconds(2), seconds(3));
  const SteadyTime before = f.world.now();
  EXPECT_TRUE(f.Do({DiskOp::Write("a", 0, "x"), DiskOp::Sync("a")}).ok());
  EXPECT_GE(f.world.now() - before, seconds(4));
  EXPECT_LE(f.world.now() - before, seconds(6));
}

TEST(SimDisk, FlipsABitForGood) {
  Fixture f(1);
  ASSERT_TRUE(f.Do({DiskOp::Write("f", 0, "abc"), DiskOp::Sync("f"), DiskOp::SyncDir("")}).ok());
  f.disk().FlipBit("f", 1, 0);
  EXPECT_EQ(f.Content("f"), "acc");
  f.Crash();
  EXPECT_EQ(f.Content("f"), "acc");
}

TEST(SimDisk, PokeEraseAndWipe) {
  Fixture f(1);
  f.disk().Poke("x", "1");
  f.disk().Poke("y", "2");
  f.Crash();
  EXPECT_EQ(f.disk().Files(), (std::vector<std::string>{"x", "y"}));
  f.disk().Erase("x");
  f.Crash();
  EXPECT_EQ(f.disk().Files(), (std::vector<std::string>{"y"}));
  f.world.Crash("a");
  f.disk().Wipe();
  f.world.Restart("a");
  EXPECT_TRUE(f.disk().Files().empty());
}

}  // namespace
}  // namespace etalon::sim
