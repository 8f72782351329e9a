// The log on the real disk.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "engine/log/log.h"
#include "engine/log/testing.h"
#include "env/posix/clock.h"
#include "env/posix/disk.h"
#include "env/posix/loop_executor.h"
#include "env/posix/temp_dir.h"

namespace etalon::log {
namespace {

class RealLog : public testing::Test {
 protected:
  void Open() {
    log_.reset();
    disk_.reset();
    disk_ = PosixDisk::Open(dir_.path(), executor_).value();
    log_ = SegmentedLog::Open(*disk_, executor_, clock_, Random(++seed_), logger_,
                              {.dir = "a/log", .segment_bytes = 64 << 10, .cache_bytes = 64 << 10})
               .value();
    log_->SetCallbacks({.ready = [this] { executor_.Stop(); },
                        .durable =
                            [this](std::uint64_t number) {
                              durable_ = number;
                              if (durable_ == number_) executor_.Stop();
                            },
                        .fetched = [] {},
                        .failed = [](const Status& status) { FAIL() << status.ToString(); },
                        .snapshot_provider = {}});
    executor_.Run();
  }
  void Append(std::uint64_t index) {
    const std::string data = LogNode::Data(index, 1, 200);
    const std::vector<Entry> entries = {{LogIndex(index), Term(1), EntryKind::kCommands, data}};
    log_->Append({.number = ++number_,
                  .sync = true,
                  .hard_state = HardState{Term(1), MemberId(1), LogIndex(index - 1)},
                  .entries = entries});
  }
  void ExpectEntries(std::uint64_t first, std::uint64_t last) {
    EXPECT_EQ(log_->First(), LogIndex(first));
    EXPECT_EQ(log_->Last(), LogIndex(last));
    std::vector<Entry> out;
    ASSERT_EQ(log_->Read(log_->First(), log_->Last().Next(), UINT64_MAX, true, false, &out),
              Answer::kOk);
    ASSERT_EQ(out.size(), last - first + 1);
    for (const Entry& entry : out)
      ASSERT_EQ(entry.data, LogNode::Data(entry.index.value(), 1, 200));
  }

  TempDir dir_;
  PosixClock clock_;
  LoopExecutor executor_{clock_};
  NullLogger logger_;
  std::uint64_t seed_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t durable_ = 0;
  std::unique_ptr<PosixDisk> disk_;
  std::unique_ptr<SegmentedLog> log_;
};

TEST_F(RealLog, GrowsIsTrimmedAndComesBack) {
  Open();
  for (std::uint64_t i = 1; i <= 2000; ++i) Append(i);
  executor_.Run();
  EXPECT_EQ(durable_, 2000u);
  ExpectEntries(1, 2000);
  Open();
  EXPECT_EQ(log_->recovered().torn_bytes, 0u);
  ExpectEntries(1, 2000);
  log_->Trim(LogIndex(1500));
  const std::uint64_t first = log_->First().value();
  EXPECT_GT(first, 1000u);
  for (std::uint64_t i = 2001; i <= 2100; ++i) Append(i);
  executor_.Run();
  ExpectEntries(first, 2100);
  Open();
  EXPECT_EQ(log_->recovered().hard_state.commit, LogIndex(2099));
  EXPECT_LE(log_->First().value(), first) << "the last removals may not have run";
  ExpectEntries(log_->First().value(), 2100);
}

}  // namespace
}  // namespace etalon::log
