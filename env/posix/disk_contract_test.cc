// What every Disk promises, on the real one and on the simulated one.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "env/posix/clock.h"
#include "env/posix/disk.h"
#include "env/posix/loop_executor.h"
#include "env/posix/temp_dir.h"
#include "sim/world/world.h"

namespace etalon {
namespace {

// A disk and whatever makes its completions run.
class Rig {
 public:
  virtual ~Rig() = default;
  virtual Disk& disk() = 0;
  virtual void RunUntil(const std::function<bool()>& done) = 0;
};

class PosixRig final : public Rig {
 public:
  PosixRig()
      : executor_(clock_), disk_(PosixDisk::Open(dir_.path() + "/root", executor_).value()) {}
  Disk& disk() override { return *disk_; }
  void RunUntil(const std::function<bool()>& done) override {
    while (!done()) {
      // One completion at a time: whatever is posted next comes before this stop.
      disk_->Submit({}, [this](const Status&) { executor_.Stop(); });
      executor_.Run();
    }
  }

 private:
  TempDir dir_;
  PosixClock clock_;
  LoopExecutor executor_;
  std::unique_ptr<PosixDisk> disk_;
};

class SimRig final : public Rig {
 public:
  SimRig() { world_.AddNode("n"); }
  Disk& disk() override { return world_.disk("n"); }
  void RunUntil(const std::function<bool()>& done) override {
    ASSERT_TRUE(world_.RunUntil(done, std::chrono::hours(1)));
  }

 private:
  sim::SimWorld world_{1};
};

enum class Kind { kPosix, kSim };

class DiskContract : public testing::TestWithParam<Kind> {
 protected:
  DiskContract() {
    if (GetParam() == Kind::kPosix) {
      rig_ = std::make_unique<PosixRig>();
    } else {
      rig_ = std::make_unique<SimRig>();
    }
  }
  Disk& disk() { return rig_->disk(); }
  Status Do(DiskJob job) {
    std::optional<Status> result;
    disk().Submit(std::move(job), [&](Status status) { result = std::move(status); });
    EXPECT_FALSE(result) << "never from inside Submit";
    rig_->RunUntil([&] { return result.has_value(); });
    return *result;
  }
  std::string Content(std::string_view path) {
    const Result<std::string> read = disk().Read(path, 0, 1 << 20);
    return read.ok() ? *read : read.status().ToString();
  }
  using Names = std::vector<std::string>;

  std::unique_ptr<Rig> rig_;
};

TEST_P(DiskContract, WritesAtOffsetsAndExtends) {
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "hello"), DiskOp::Write("f", 7, "world"),
                  DiskOp::Write("f", 1, "E"), DiskOp::Sync("f"), DiskOp::SyncDir("")})
                  .ok());
  EXPECT_EQ(Content("f"), std::string("hEllo\0\0world", 12));
  EXPECT_EQ(*disk().Size("f"), 12u);
  EXPECT_EQ(*disk().Read("f", 7, 3), "wor");
  EXPECT_EQ(*disk().Read("f", 10, 100), "ld");
  EXPECT_EQ(*disk().Read("f", 12, 5), "");
  EXPECT_EQ(*disk().Read("f", 1000, 5), "");
}

TEST_P(DiskContract, AnEmptyWriteMakesTheFile) {
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "")}).ok());
  EXPECT_EQ(*disk().Size("f"), 0u);
}

TEST_P(DiskContract, WhatIsNotThereIsNotFound) {
  EXPECT_EQ(disk().Read("f", 0, 1).status().code(), Code::kNotFound);
  EXPECT_EQ(disk().Size("f").status().code(), Code::kNotFound);
  EXPECT_EQ(disk().List("d").status().code(), Code::kNotFound);
  EXPECT_EQ(Do({DiskOp::Sync("f")}).code(), Code::kNotFound);
  EXPECT_EQ(Do({DiskOp::Truncate("f", 0)}).code(), Code::kNotFound);
  EXPECT_EQ(Do({DiskOp::Rename("f", "g")}).code(), Code::kNotFound);
  EXPECT_EQ(Do({DiskOp::SyncDir("d")}).code(), Code::kNotFound);
  EXPECT_EQ(Do({DiskOp::Write("d/f", 0, "x")}).code(), Code::kNotFound)
      << "directories are made by MakeDir only";
}

TEST_P(DiskContract, PathsStayBelowTheRoot) {
  for (const char* path : {"/etc/x", "../x", "a/../x", "./x", "a//x", "a/", "."}) {
    EXPECT_EQ(Do({DiskOp::Write(path, 0, "x")}).code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(Do({DiskOp::Rename("f", path)}).code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(disk().Read(path, 0, 1).status().code(), Code::kInvalidArgument) << path;
    EXPECT_EQ(disk().List(path).status().code(), Code::kInvalidArgument) << path;
  }
  EXPECT_EQ(Do({DiskOp::RemoveTree("")}).code(), Code::kInvalidArgument);
}

TEST_P(DiskContract, AllocateReadsAsZerosAndNeverShrinks) {
  EXPECT_TRUE(Do({DiskOp::Allocate("f", 10000)}).ok());
  EXPECT_EQ(Content("f"), std::string(10000, '\0'));
  EXPECT_TRUE(Do({DiskOp::Write("f", 9999, "x"), DiskOp::Allocate("f", 5)}).ok());
  EXPECT_EQ(Content("f"), std::string(9999, '\0') + "x");
}

TEST_P(DiskContract, TruncateCutsAndExtends) {
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "hello"), DiskOp::Truncate("f", 2)}).ok());
  EXPECT_EQ(Content("f"), "he");
  EXPECT_TRUE(Do({DiskOp::Truncate("f", 4)}).ok());
  EXPECT_EQ(Content("f"), std::string("he\0\0", 4));
}

TEST_P(DiskContract, RenameReplacesAndKeepsContentForLaterWrites) {
  EXPECT_TRUE(Do({DiskOp::Write("a", 0, "from"), DiskOp::Write("b", 0, "to be replaced"),
                  DiskOp::Rename("a", "b")})
                  .ok());
  EXPECT_EQ(Content("b"), "from");
  EXPECT_FALSE(disk().Size("a").ok());
  EXPECT_TRUE(
      Do({DiskOp::Write("b", 0, "F"), DiskOp::Write("a", 0, "new"), DiskOp::Sync("b")}).ok());
  EXPECT_EQ(Content("b"), "From");
  EXPECT_EQ(Content("a"), "new") << "a file of its own";
}

TEST_P(DiskContract, DirectoriesMoveWithTheirFiles) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("old/deep"), DiskOp::Write("old/deep/f", 0, "1"),
                  DiskOp::Rename("old", "new"), DiskOp::SyncDir("")})
                  .ok());
  EXPECT_EQ(Content("new/deep/f"), "1");
  EXPECT_EQ(*disk().List(""), Names{"new/"});
  EXPECT_TRUE(Do({DiskOp::Write("new/deep/f", 1, "2"), DiskOp::Sync("new/deep/f")}).ok());
  EXPECT_EQ(Content("new/deep/f"), "12");
}

TEST_P(DiskContract, RemovedIsGoneAndMayComeAgain) {
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "old"), DiskOp::Remove("f"), DiskOp::Remove("f"),
                  DiskOp::Remove("never")})
                  .ok());
  EXPECT_FALSE(disk().Size("f").ok());
  EXPECT_TRUE(Do({DiskOp::Write("f", 1, "x")}).ok());
  EXPECT_EQ(Content("f"), std::string("\0x", 2)) << "nothing of the old file";
}

TEST_P(DiskContract, MakeDirMakesParentsAndIsIdempotent) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("a/b/c"), DiskOp::MakeDir("a/b/c"), DiskOp::MakeDir("a/b"),
                  DiskOp::SyncDir("a/b")})
                  .ok());
  EXPECT_EQ(*disk().List("a/b"), Names{"c/"});
  EXPECT_TRUE(disk().List("a/b/c")->empty());
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "x")}).ok());
  EXPECT_EQ(Do({DiskOp::MakeDir("f")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Do({DiskOp::Remove("a")}).code(), Code::kInvalidArgument);
}

TEST_P(DiskContract, ListIsSortedAndShallow) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("d/sub"), DiskOp::Write("d/b", 0, ""),
                  DiskOp::Write("d/a", 0, ""), DiskOp::Write("d/sub/x", 0, ""),
                  DiskOp::Write("d/sub-", 0, ""), DiskOp::Write("z", 0, "")})
                  .ok());
  EXPECT_EQ(*disk().List("d"), (Names{"a", "b", "sub-", "sub/"}));
  EXPECT_EQ(*disk().List(""), (Names{"d/", "z"}));
}

TEST_P(DiskContract, RemoveTree) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("d/sub/deep"), DiskOp::Write("d/a", 0, "1"),
                  DiskOp::Write("d/sub/deep/x", 0, "2"), DiskOp::Write("dx", 0, "3"),
                  DiskOp::RemoveTree("d"), DiskOp::RemoveTree("d"), DiskOp::RemoveTree("never")})
                  .ok());
  EXPECT_EQ(*disk().List(""), Names{"dx"});
  EXPECT_TRUE(Do({DiskOp::MakeDir("d"), DiskOp::Write("d/a", 1, "y")}).ok());
  EXPECT_EQ(Content("d/a"), std::string("\0y", 2));
  EXPECT_TRUE(Do({DiskOp::RemoveTree("dx")}).ok()) << "a file is a small tree";
  EXPECT_EQ(*disk().List(""), Names{"d/"});
}

TEST_P(DiskContract, AJobStopsAtItsFirstFailureAndTheNextRuns) {
  EXPECT_FALSE(
      Do({DiskOp::Write("a", 0, "1"), DiskOp::Sync("missing"), DiskOp::Write("b", 0, "2")}).ok());
  EXPECT_EQ(Content("a"), "1");
  EXPECT_FALSE(disk().Size("b").ok());
  EXPECT_TRUE(Do({DiskOp::Write("b", 0, "2")}).ok());
}

TEST_P(DiskContract, JobsRunAndCompleteInOrder) {
  std::vector<int> done;
  for (int i = 0; i < 100; ++i) {
    disk().Submit({DiskOp::Write("f", 0, std::to_string(100 + i)), DiskOp::Sync("f")},
                  [&, i](const Status& status) {
                    EXPECT_TRUE(status.ok());
                    done.push_back(i);
                  });
  }
  disk().Submit({DiskOp::Write("g", 0, "x")}, nullptr);  // nobody asks
  rig_->RunUntil([&] { return done.size() == 100; });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
  EXPECT_TRUE(Do({}).ok());
  EXPECT_EQ(Content("f"), "199");
  EXPECT_EQ(Content("g"), "x");
}

TEST_P(DiskContract, CompletionsMaySubmit) {
  int done = 0;
  std::function<void()> again = [&] {
    disk().Submit({DiskOp::Write("f", 0, "x")}, [&](const Status&) {
      if (++done < 20) again();
    });
  };
  again();
  rig_->RunUntil([&] { return done == 20; });
  EXPECT_EQ(done, 20);
}

TEST_P(DiskContract, ManyFiles) {
  DiskJob job;
  for (int i = 0; i < 200; ++i) {
    job.push_back(DiskOp::Write("f" + std::to_string(i), 0, std::to_string(i)));
  }
  for (int i = 0; i < 200; ++i) {
    job.push_back(DiskOp::Write("f" + std::to_string(i), 3, "!"));
    job.push_back(DiskOp::Sync("f" + std::to_string(i)));
  }
  EXPECT_TRUE(Do(std::move(job)).ok());
  EXPECT_EQ(disk().List("")->size(), 200u);
  EXPECT_EQ(Content("f123"), "123!");
}

TEST_P(DiskContract, ReplaceFileAndReadWhole) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("d")}).ok());
  EXPECT_TRUE(Do(ReplaceFile("d/f", "first, longer")).ok());
  EXPECT_TRUE(Do(ReplaceFile("d/f", "second")).ok());
  EXPECT_EQ(*ReadWhole(disk(), "d/f"), "second");
  EXPECT_EQ(*disk().List("d"), Names{"f"});
  EXPECT_EQ(ReadWhole(disk(), "d/f", 5).status().reason(), Reason::kTooLarge);
}

TEST_P(DiskContract, FreeBytes) {
  const Result<std::uint64_t> free = disk().FreeBytes();
  ASSERT_TRUE(free.ok());
  EXPECT_GT(*free, 0u);
}

INSTANTIATE_TEST_SUITE_P(Real, DiskContract, testing::Values(Kind::kPosix));
INSTANTIATE_TEST_SUITE_P(Simulated, DiskContract, testing::Values(Kind::kSim));

}  // namespace
}  // namespace etalon
