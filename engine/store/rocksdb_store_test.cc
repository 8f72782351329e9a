#include "engine/store/rocksdb_store.h"

#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/store/testing/model.h"
#include "engine/store/testing/rocksdb_harness.h"
#include "gmock/gmock.h"

namespace etalon::store {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

class RocksDbStoreTest : public ::testing::Test {
 protected:
  RocksDbStoreTest() {
    fs::create_directories(dir());
    store_ = std::move(harness_.factory().Open("s", OpenMode::kFresh)).value();
  }
  ~RocksDbStoreTest() override {
    harness_.fs().SetStuck(false);
    if (mounted_) umount2(dir().c_str(), MNT_DETACH);
  }

  std::string dir() const { return harness_.root() + "/s"; }
  Status Checkpoint() {
    std::optional<Status> result;
    store_->Checkpoint([&result](Status status) { result = std::move(status); });
    harness_.RunUntil([&result] { return result.has_value(); });
    return *result;
  }
  static Batch One(const std::string& key, std::string value) {
    Batch batch;
    batch.Put(key, std::move(value));
    return batch;
  }
  Status Put(const std::string& key, std::string value) {
    return store_->Write(One(key, std::move(value)));
  }
  Status Reopen() {
    store_.reset();
    auto opened = harness_.factory().Open("s", OpenMode::kExisting);
    if (opened.ok()) store_ = std::move(opened).value();
    return opened.status();
  }
  std::vector<std::string> FilesWith(const std::string& part) const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(dir())) {
      if (entry.path().filename().string().find(part) != std::string::npos) {
        out.push_back(entry.path().string());
      }
    }
    return out;
  }
  std::uint64_t TableBytes() const {
    std::uint64_t bytes = 0;
    for (const std::string& path : FilesWith(".sst")) {
      std::error_code gone;
      const auto size = fs::file_size(path, gone);
      if (!gone) bytes += size;
    }
    return bytes;
  }
  static void FlipByte(const std::string& path, std::uint64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x40));
    ASSERT_TRUE(file.good());
  }
  // Random bytes: they take their size on the disk.
  static std::string Noise(std::size_t size) {
    static Random random(9);
    std::string out;
    while (out.size() < size) PutBe64(&out, random.Next());
    return out;
  }
  void ExpectDamaged(const Status& status) const {
    EXPECT_EQ(status.code(), Code::kDataLoss) << status.ToString();
    EXPECT_EQ(status.reason(), Reason::kCorrupt);
    EXPECT_THAT(status.message(), HasSubstr(dir()));
    EXPECT_THAT(status.message(), HasSubstr("built anew"));
  }

  RocksDbHarness harness_{1};
  std::unique_ptr<Store> store_;
  bool mounted_ = false;
};

TEST_F(RocksDbStoreTest, ADamagedTableIsDataLoss) {
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(Put("k" + std::to_string(i), Noise(100)).ok());
  ASSERT_TRUE(Checkpoint().ok());
  store_.reset();
  const auto tables = FilesWith(".sst");
  ASSERT_EQ(tables.size(), 1u);
  FlipByte(tables.front(), fs::file_size(tables.front()) / 3);
  ASSERT_TRUE(Reopen().ok());  // the index is whole: only a read finds it
  EXPECT_TRUE(store_->Health().ok());
  int lost = 0;
  for (int i = 0; i < 200; ++i) {
    const auto value = store_->Get("k" + std::to_string(i));
    if (value.ok()) continue;
    ExpectDamaged(value.status());
    ++lost;
  }
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, 200);
  ExpectDamaged(store_->Health());
  ExpectDamaged(store_->Verify());

  // An iterator's finding counts as well.
  ASSERT_TRUE(Reopen().ok());
  EXPECT_TRUE(store_->Health().ok());
  const auto snapshot = store_->NewSnapshot();
  const auto it = snapshot->NewIterator("", "");
  int seen = 0;
  for (; it->Valid(); it->Next()) ++seen;
  EXPECT_LT(seen, 200);
  ExpectDamaged(it->status());
  ExpectDamaged(store_->Health());
}

TEST_F(RocksDbStoreTest, WhatIsMissingOrDamagedAtOpenIsDataLoss) {
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(Checkpoint().ok());
  store_.reset();
  const std::string copy = harness_.root() + "/copy";
  fs::copy(dir(), copy);
  const auto again = [&] {
    fs::remove_all(dir());
    fs::copy(copy, dir());
  };
  ASSERT_TRUE(Reopen().ok());
  store_.reset();
  for (const char* part : {".sst", "MANIFEST", "CURRENT"}) {
    SCOPED_TRACE(part);
    again();
    const auto files = FilesWith(part);
    ASSERT_EQ(files.size(), 1u);
    fs::remove(files.front());
    ExpectDamaged(Reopen());
  }
  again();
  const auto manifests = FilesWith("MANIFEST");
  FlipByte(manifests.front(), fs::file_size(manifests.front()) / 2);
  ExpectDamaged(Reopen());
  fs::remove_all(dir());
  ExpectDamaged(Reopen());
}

TEST_F(RocksDbStoreTest, AFullDiskIsReportedAndHealedWithoutARestart) {
  ASSERT_TRUE(Put("before", "1").ok());
  ASSERT_TRUE(Checkpoint().ok());
  ASSERT_TRUE(Put("applied", "2").ok());
  harness_.fs().SetFull(true);
  for (int i = 0; i < 2; ++i) {
    const Status full = Checkpoint();
    EXPECT_EQ(full.code(), Code::kResourceExhausted) << full.ToString();
    EXPECT_EQ(full.reason(), Reason::kDiskFull);
    EXPECT_THAT(full.message(), HasSubstr(dir()));
    EXPECT_EQ(store_->Health().reason(), Reason::kDiskFull);
  }
  // What was applied can be read, and nothing more is taken.
  EXPECT_EQ(*store_->Get("before"), "1");
  EXPECT_EQ(*store_->Get("applied"), "2");
  EXPECT_EQ(Dump(*store_).size(), 2u);
  Batch refused = One("refused", "3");
  EXPECT_EQ(store_->Write(std::move(refused)).reason(), Reason::kDiskFull);
  EXPECT_EQ(refused.ops().size(), 1u);  // NOLINT(bugprone-use-after-move): unchanged on failure
  EXPECT_EQ(*store_->Get("refused"), std::nullopt);

  harness_.fs().SetFull(false);
  const Status healed = Checkpoint();
  EXPECT_TRUE(healed.ok()) << healed.ToString();
  EXPECT_TRUE(store_->Health().ok());
  EXPECT_TRUE(store_->Write(std::move(refused)).ok());
  ASSERT_TRUE(Checkpoint().ok());
  store_.reset();
  harness_.Crash();
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_), Model({{"applied", "2"}, {"before", "1"}, {"refused", "3"}}));
}

// The disk fills up under a flush that nobody asked for.
TEST_F(RocksDbStoreTest, AFullDiskIsMetByWritesToo) {
  harness_.fs().SetFull(true);
  int written = 0;
  Status status;
  while ((status = Put("k" + std::to_string(written), Noise(10'000))).ok() ||
         status.reason() == Reason::kOverloaded) {
    if (status.ok()) ++written;
  }
  EXPECT_EQ(status.reason(), Reason::kDiskFull) << status.ToString();
  EXPECT_EQ(store_->Health().reason(), Reason::kDiskFull);
  EXPECT_EQ(Dump(*store_).size(), static_cast<std::size_t>(written));
  harness_.fs().SetFull(false);
  ASSERT_TRUE(Checkpoint().ok());
  store_.reset();
  harness_.Crash();
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_).size(), static_cast<std::size_t>(written));
}

TEST_F(RocksDbStoreTest, AStuckDiskRefusesWritesAndDoesNotStopTheExecutor) {
  harness_.fs().SetStuck(true);
  int written = 0;
  Batch batch;
  Status status;
  while (status.ok()) {
    batch = One("k" + std::to_string(written), Noise(10'000));
    status = store_->Write(std::move(batch));
    if (status.ok()) ++written;
    ASSERT_LT(written, 1000) << "the memory is bounded";
  }
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.reason(), Reason::kOverloaded) << status.ToString();
  EXPECT_EQ(Dump(*store_).size(), static_cast<std::size_t>(written));
  harness_.fs().SetStuck(false);
  ASSERT_TRUE(Checkpoint().ok());
  EXPECT_TRUE(store_->Write(std::move(batch)).ok());
  EXPECT_EQ(Dump(*store_).size(), static_cast<std::size_t>(written) + 1);
}

// A real file system that is full, where the machine allows to make one.
TEST_F(RocksDbStoreTest, AFullFileSystem) {
  store_.reset();
  fs::remove_all(dir());
  fs::create_directories(dir());
  if (mount("tmpfs", dir().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  }
  mounted_ = true;
  RocksDbOptions options = harness_.SmallOptions();
  options.env = nullptr;
  auto factory = NewRocksDbFactory(harness_.executor(), options);
  store_ = std::move(factory->Open("s", OpenMode::kFresh)).value();
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(Checkpoint().ok());
  const std::string ballast = dir() + "/ballast";
  {
    std::ofstream file(ballast, std::ios::binary);
    const std::string block(4096, 'b');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  ASSERT_TRUE(Put("b", Noise(100'000)).ok());
  const Status full = Checkpoint();
  EXPECT_EQ(full.reason(), Reason::kDiskFull) << full.ToString();
  EXPECT_EQ(store_->Get("b")->value().size(), 100'000u);
  fs::remove(ballast);
  const Status healed = Checkpoint();
  EXPECT_TRUE(healed.ok()) << healed.ToString();
  store_.reset();
  auto opened = factory->Open("s", OpenMode::kExisting);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_EQ(Dump(**opened).size(), 2u);
}

TEST_F(RocksDbStoreTest, ManyRangeDeletesAreFlushedWithoutACheckpoint) {
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(FilesWith(".sst").empty());
    Batch batch;
    batch.DeleteRange("a" + std::to_string(i), "b");
    ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  }
  while (FilesWith(".sst").empty()) std::this_thread::yield();
}

TEST_F(RocksDbStoreTest, TheSpaceOfADroppedRangeIsGivenBack) {
  for (int i = 100; i < 200; ++i) ASSERT_TRUE(Put("k" + std::to_string(i), Noise(1000)).ok());
  ASSERT_TRUE(Checkpoint().ok());
  EXPECT_GT(TableBytes(), 90'000u);
  Batch batch;
  batch.DeleteRange("k100", "k190");
  ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  while (TableBytes() > 20'000 || FilesWith(".sst").empty()) std::this_thread::yield();
  EXPECT_EQ(Dump(*store_).size(), 10u);
}

// What a snapshot sees is not given back, and comes out whole after a compaction.
TEST_F(RocksDbStoreTest, ADroppedRangeStaysForASnapshot) {
  for (int i = 100; i < 200; ++i) ASSERT_TRUE(Put("k" + std::to_string(i), Noise(1000)).ok());
  ASSERT_TRUE(Checkpoint().ok());
  auto snapshot = store_->NewSnapshot();
  const Model before = Dump(*snapshot);
  const auto old_files = FilesWith(".sst");
  Batch batch;
  batch.DeleteRange("k", "l");
  batch.Put("k150", "back again");
  ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  while (std::any_of(old_files.begin(), old_files.end(),
                     [](const std::string& path) { return fs::exists(path); })) {
    std::this_thread::yield();
  }
  EXPECT_EQ(Dump(*snapshot), before);
  EXPECT_EQ(Dump(*store_), Model({{"k150", "back again"}}));
}

TEST_F(RocksDbStoreTest, TheEndOfAStoreWritesNothing) {
  ASSERT_TRUE(Put("a", "1").ok());
  ASSERT_TRUE(Checkpoint().ok());
  ASSERT_TRUE(Put("b", "2").ok());
  ASSERT_TRUE(Reopen().ok());
  EXPECT_EQ(Dump(*store_), Model({{"a", "1"}}));
}

TEST_F(RocksDbStoreTest, AFreshStoreTakesNoUsedDirectory) {
  ASSERT_TRUE(Put("a", "1").ok());
  store_.reset();
  EXPECT_FALSE(harness_.factory().Open("s", OpenMode::kFresh).ok());
}

}  // namespace
}  // namespace etalon::store
