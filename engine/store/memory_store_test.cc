#include "engine/store/memory_store.h"

#include <algorithm>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/store/memory_checkpoint.h"
#include "engine/store/testing/model.h"
#include "gmock/gmock.h"
#include "sim/world/world.h"

namespace etalon::store {
namespace {

constexpr char kFile[] = "s/CHECKPOINT";

// Passes everything on and remembers how large the writes were.
class WatchedDisk final : public Disk {
 public:
  explicit WatchedDisk(Disk& disk) : disk_(disk) {}
  void Submit(DiskJob job, Done done) override {
    std::uint64_t bytes = 0;
    for (const DiskOp& op : job) {
      bytes += op.bytes.size();
      largest_op = std::max<std::uint64_t>(largest_op, op.bytes.size());
    }
    if (bytes > 0) ++writing_jobs;
    disk_.Submit(std::move(job), std::move(done));
  }
  Result<std::vector<std::string>> List(std::string_view dir) override { return disk_.List(dir); }
  Result<std::string> Read(std::string_view path, std::uint64_t offset,
                           std::uint64_t size) override {
    return disk_.Read(path, offset, size);
  }
  Result<std::uint64_t> Size(std::string_view path) override { return disk_.Size(path); }
  Result<std::uint64_t> FreeBytes() override { return disk_.FreeBytes(); }

  std::uint64_t largest_op = 0;
  int writing_jobs = 0;

 private:
  Disk& disk_;
};

class MemoryStoreTest : public ::testing::Test {
 protected:
  MemoryStoreTest()
      : world_(1), env_(world_.AddNode("n")), watched_(env_.disk), factory_(watched_) {
    bool made = false;
    env_.disk.Submit({DiskOp::MakeDir("s"), DiskOp::SyncDir("")},
                     [&made](const Status&) { made = true; });
    RunUntil([&made] { return made; });
    store_ = std::move(factory_.Open("s", OpenMode::kFresh)).value();
  }

  void RunUntil(const std::function<bool()>& done) {
    ASSERT_TRUE(world_.RunUntil(done, std::chrono::hours(1)));
  }
  Status Checkpoint() {
    std::optional<Status> result;
    store_->Checkpoint([&result](Status status) { result = std::move(status); });
    RunUntil([&result] { return result.has_value(); });
    return *result;
  }
  void Put(const std::string& key, std::string value) {
    Batch batch;
    batch.Put(key, std::move(value));
    ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  }
  void Crash() {
    store_.reset();
    world_.Crash("n");
    world_.Restart("n");
  }
  Status Reopen() {
    auto opened = factory_.Open("s", OpenMode::kExisting);
    if (opened.ok()) store_ = std::move(opened).value();
    return opened.status();
  }
  sim::SimDisk& disk() { return world_.disk("n"); }

  sim::SimWorld world_;
  Env env_;
  WatchedDisk watched_;
  MemoryStoreFactory factory_;
  std::unique_ptr<Store> store_;
};

TEST_F(MemoryStoreTest, TheFileHasTheDocumentedBytes) {
  Put("k", "val");
  ASSERT_TRUE(Checkpoint().ok());
  std::string want = "ETALCKPT";
  PutLe32(&want, 1);
  PutLe32(&want, Crc32c(want));
  const std::string records("R\x01\0\0\0\x03\0\0\0kval", 13);
  PutLe32(&want, 13);
  PutLe32(&want, Crc32c(records));
  want += records;
  const std::string end("E\x01\0\0\0\0\0\0\0", 9);
  PutLe32(&want, 9);
  PutLe32(&want, Crc32c(records + end));
  want += end;
  EXPECT_EQ(*ReadWhole(disk(), kFile), want);
}

TEST_F(MemoryStoreTest, EveryFlippedBitIsDataLoss) {
  Put("a", "1");
  Put("b", std::string(40, 'x'));
  ASSERT_TRUE(Checkpoint().ok());
  const std::uint64_t size = *disk().Size(kFile);
  for (std::uint64_t at = 0; at < size; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      disk().FlipBit(kFile, at, bit);
      const Status status = factory_.Open("s", OpenMode::kExisting).status();
      EXPECT_EQ(status.code(), Code::kDataLoss) << at << " " << bit;
      EXPECT_THAT(status.message(), ::testing::HasSubstr(kFile));
      EXPECT_EQ(store_->Verify().code(), Code::kDataLoss);
      disk().FlipBit(kFile, at, bit);
    }
  }
  EXPECT_TRUE(store_->Verify().ok());
}

TEST_F(MemoryStoreTest, AFileThatIsTooShortOrTooLongIsDataLoss) {
  Put("a", "1");
  ASSERT_TRUE(Checkpoint().ok());
  const std::string whole = *ReadWhole(disk(), kFile);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    disk().Poke(kFile, whole.substr(0, size));
    EXPECT_EQ(Reopen().code(), Code::kDataLoss) << size;
  }
  disk().Poke(kFile, whole + "x");
  EXPECT_EQ(Reopen().code(), Code::kDataLoss);
  disk().Erase(kFile);
  EXPECT_EQ(Reopen().code(), Code::kDataLoss);
}

// Frames that are right by themselves: only the structure tells.
TEST_F(MemoryStoreTest, AWrongStructureIsDataLoss) {
  std::string header = "ETALCKPT";
  PutLe32(&header, 1);
  PutLe32(&header, Crc32c(header));
  const auto open = [&](const std::vector<std::string>& payloads) {
    std::string file = header;
    std::uint32_t crc = 0;
    for (const std::string& payload : payloads) {
      crc = Crc32cExtend(crc, payload);
      PutLe32(&file, static_cast<std::uint32_t>(payload.size()));
      PutLe32(&file, crc);
      file += payload;
    }
    disk().Poke(kFile, file);
    return Reopen().code();
  };
  const std::string a("R\x01\0\0\0\0\0\0\0a", 10);
  const std::string b("R\x01\0\0\0\0\0\0\0b", 10);
  const std::string end0("E\0\0\0\0\0\0\0\0", 9);
  const std::string end2("E\x02\0\0\0\0\0\0\0", 9);
  EXPECT_EQ(open({a, b, end2}), Code::kOk);
  EXPECT_EQ(open({end0}), Code::kOk);
  EXPECT_EQ(open({a, end2}), Code::kDataLoss);         // a record is missing
  EXPECT_EQ(open({b, a, end2}), Code::kDataLoss);      // out of order
  EXPECT_EQ(open({a, a, end2}), Code::kDataLoss);      // twice
  EXPECT_EQ(open({a, b}), Code::kDataLoss);            // no end
  EXPECT_EQ(open({a, b, end2, ""}), Code::kDataLoss);  // goes on after the end
  EXPECT_EQ(open({"", a, b, end2}), Code::kDataLoss);  // a frame without a kind
  EXPECT_EQ(open({a, b, "E"}), Code::kDataLoss);       // an end without a count
  EXPECT_EQ(open({"X" + a.substr(1), b, end2}), Code::kDataLoss);
  EXPECT_EQ(open({a.substr(0, 9), b, end2}), Code::kDataLoss);  // a record that is cut
  EXPECT_EQ(open({a.substr(0, 4), b, end2}), Code::kDataLoss);
}

TEST_F(MemoryStoreTest, ANewerVersionIsRefusedAsSuch) {
  std::string file = "ETALCKPT";
  PutLe32(&file, 2);
  PutLe32(&file, Crc32c(file));
  disk().Poke(kFile, file);
  const Status status = Reopen();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.reason(), Reason::kNewerFormat);
}

TEST_F(MemoryStoreTest, ALargeCheckpointIsWrittenInPiecesWhileWritesGoOn) {
  Model model;
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const std::string key = std::to_string(random.Next());
    model[key] = std::string(random.Below(2000), 'v');
    Put(key, model[key]);
  }
  for (const char* key : {"large", "large too"}) {
    model[key] = std::string(3'500'000, 'L');
    Put(key, model[key]);
  }
  bool done = false;
  store_->Checkpoint([&done](const Status& status) {
    EXPECT_TRUE(status.ok());
    done = true;
  });
  int later = 0;
  while (!done) {
    world_.RunFor(std::chrono::microseconds(300));
    Put("later" + std::to_string(later++), "x");
    Batch batch;
    batch.DeleteRange("5", "6");
    ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  }
  EXPECT_GT(later, 5);
  EXPECT_LE(watched_.largest_op, 1u << 20);
  EXPECT_GT(watched_.writing_jobs, 4);
  Crash();
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_), model);  // as at the call, without what came later
}

TEST_F(MemoryStoreTest, AFullDiskIsReportedAndHealed) {
  Put("a", "old");
  ASSERT_TRUE(Checkpoint().ok());
  Put("b", std::string(100'000, 'x'));
  const std::uint64_t before = disk().used();
  disk().SetCapacity(before + 50'000);
  const Status full = Checkpoint();
  EXPECT_EQ(full.code(), Code::kResourceExhausted);
  EXPECT_EQ(full.reason(), Reason::kDiskFull);
  EXPECT_EQ(store_->Health().reason(), Reason::kDiskFull);
  EXPECT_EQ(store_->Get("b").value()->size(), 100'000u);
  EXPECT_EQ(Checkpoint().reason(), Reason::kDiskFull);
  world_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(disk().used(), before) << "what was written of it is given back";

  disk().SetCapacity(std::uint64_t{1} << 30);
  Put("c", "new");
  ASSERT_TRUE(Checkpoint().ok());
  EXPECT_TRUE(store_->Health().ok());
  Crash();
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_).size(), 3u);
}

TEST_F(MemoryStoreTest, AFullDiskLeavesTheLastCheckpoint) {
  Put("a", "old");
  ASSERT_TRUE(Checkpoint().ok());
  Put("a", std::string(100'000, 'x'));
  disk().SetCapacity(disk().used() + 50'000);
  ASSERT_FALSE(Checkpoint().ok());
  Crash();
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_), Model({{"a", "old"}}));
}

TEST_F(MemoryStoreTest, AFailedSyncIsDataLoss) {
  Put("a", "1");
  disk().FailSync();
  EXPECT_EQ(Checkpoint().code(), Code::kDataLoss);
  EXPECT_EQ(store_->Health().code(), Code::kDataLoss);
  Put("b", "2");
  EXPECT_EQ(Checkpoint().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace etalon::store
