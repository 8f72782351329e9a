// What is special about the real disk; disk_contract_test.cc has the rest.
#include "env/posix/disk.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "env/posix/clock.h"
#include "env/posix/errno_status.h"
#include "env/posix/loop_executor.h"
#include "env/posix/temp_dir.h"

namespace etalon {
namespace {

class PosixDiskTest : public testing::Test {
 protected:
  PosixDiskTest() : disk_(PosixDisk::Open(dir_.path(), executor_).value()) {}
  Status Do(DiskJob job) {
    std::optional<Status> result;
    disk_->Submit(std::move(job), [&](Status status) {
      result = std::move(status);
      executor_.Stop();
    });
    executor_.Run();
    return *result;
  }
  TempDir dir_;
  PosixClock clock_;
  LoopExecutor executor_{clock_};
  std::unique_ptr<PosixDisk> disk_;
};

TEST_F(PosixDiskTest, FilesAreWhereTheRootIs) {
  EXPECT_TRUE(Do({DiskOp::MakeDir("d"), DiskOp::Write("d/f", 0, "x"), DiskOp::Sync("d/f"),
                  DiskOp::SyncDir("d")})
                  .ok());
  std::ifstream file(dir_.path() + "/d/f");
  std::string content;
  file >> content;
  EXPECT_EQ(content, "x");
}

TEST_F(PosixDiskTest, AllocateReservesBlocks) {
  EXPECT_TRUE(Do({DiskOp::Allocate("f", 1 << 20), DiskOp::Sync("f")}).ok());
  struct stat st {};
  ASSERT_EQ(::stat((dir_.path() + "/f").c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 1 << 20);
  EXPECT_GE(st.st_blocks * 512, 1 << 20) << "a hole would meet a full disk later";
}

TEST_F(PosixDiskTest, AFailedSyncPoisons) {
  ASSERT_EQ(::mkfifo((dir_.path() + "/pipe").c_str(), 0600), 0);  // fdatasync of a pipe fails
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "before")}).ok());
  EXPECT_EQ(Do({DiskOp::Sync("pipe"), DiskOp::Write("g", 0, "x")}).code(), Code::kDataLoss);
  EXPECT_EQ(Do({DiskOp::Write("f", 0, "after")}).code(), Code::kDataLoss);
  EXPECT_EQ(Do({DiskOp::Sync("f")}).code(), Code::kDataLoss);
  EXPECT_EQ(Do({}).code(), Code::kDataLoss);
  EXPECT_EQ(*disk_->Read("f", 0, 10), "before");
  EXPECT_FALSE(disk_->Size("g").ok());
}

TEST_F(PosixDiskTest, DestructionDropsWaitingJobsAndIsSafeBeforeCompletions) {
  bool ran = false;
  for (int i = 0; i < 1000; ++i) {
    disk_->Submit(
        {DiskOp::Write("f" + std::to_string(i), 0, "x"), DiskOp::Sync("f" + std::to_string(i))},
        [&](const Status&) { ran = true; });
  }
  disk_.reset();
  EXPECT_FALSE(ran) << "completions are tasks of the executor, which does not run";
  const auto files = std::distance(std::filesystem::directory_iterator(dir_.path()), {});
  EXPECT_LT(files, 1000);
}

TEST_F(PosixDiskTest, ALimitOfTheSystemIsAnAnswer) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 1 << 16;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = Do({DiskOp::Write("f", 0, std::string(1 << 17, 'x'))});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_NE(status.message().find("writing f: File too large"), std::string::npos)
      << status.ToString();
  EXPECT_EQ(*disk_->Size("f"), 1u << 16) << "a short write goes on until it fails";
  EXPECT_TRUE(Do({DiskOp::Write("f", 0, "y")}).ok()) << "only syncs poison";
}

TEST(PosixDiskOpen, ARootThatCannotBeIsRefused) {
  const PosixClock clock;
  LoopExecutor executor(clock);
  const TempDir dir;
  std::ofstream(dir.path() + "/file") << "x";
  EXPECT_EQ(PosixDisk::Open(dir.path() + "/a/b", executor).status().code(), Code::kNotFound);
  EXPECT_EQ(PosixDisk::Open(dir.path() + "/file", executor).status().code(), Code::kNotFound);
  EXPECT_TRUE(PosixDisk::Open(dir.path() + "/made", executor).ok());
}

TEST(ErrnoStatus, SpaceIsToldFromTheRest) {
  EXPECT_EQ(ErrnoStatus(ENOSPC, "w").reason(), Reason::kDiskFull);
  EXPECT_EQ(ErrnoStatus(EDQUOT, "w").reason(), Reason::kDiskFull);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "w").code(), Code::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EIO, "writing f").code(), Code::kInternal);
  EXPECT_EQ(ErrnoStatus(EIO, "writing f").message(), "writing f: Input/output error");
  EXPECT_EQ(ErrnoStatus(ENOENT, "w").code(), Code::kNotFound);
}

}  // namespace
}  // namespace etalon
