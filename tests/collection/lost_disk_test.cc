// Damaged and lost disks: nothing is wiped, the collection goes on serving, the replica comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Changes bytes in the middle of a file, and leaves the rest.
void Damage(const std::string& path, std::uint64_t offset, std::size_t size) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (std::size_t i = 0; i < size; ++i) {
    file.seekg(static_cast<std::streamoff>(offset + i));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(offset + i));
    file.put(static_cast<char>(byte ^ 0x5a));
  }
  file.flush();
  ASSERT_TRUE(file.good()) << path;
}

std::vector<std::string> FilesBelow(const std::string& dir, const std::string& suffix) {
  std::vector<std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix))
      out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class LostDiskTest : public ::testing::Test {
 protected:
  std::uint64_t DiskNumber(const std::string& storage) {
    const auto info = collection_.Info(storage);
    return info ? info->member() : 0;
  }

  // The replica with the damaged file said so and ended; its disk was put aside as it was, and a
  // blank one has taken its place.
  void ExpectReplaced(const Process& replica, std::uint64_t old_disk, const std::string& file,
                      const std::string& bytes) {
    collection_.Await(replica.name + " has another disk", [&] {
      const std::uint64_t now = DiskNumber(replica.name);
      return now != 0 && now != old_disk;
    });
    collection_.AwaitWhole();
    const std::string log = collection_.LogOf(replica.name);
    const std::string name = fs::path(file).filename();
    const std::size_t sentence = log.find("etalon-storage: ");
    ASSERT_NE(sentence, log.npos) << log;
    EXPECT_THAT(log.substr(sentence), HasSubstr(name));
    EXPECT_THAT(log.substr(sentence), HasSubstr("counts as lost"));
    const auto kept = FilesBelow(collection_.dir() + "/retired", name);
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(ReadText(kept.front()).substr(0, bytes.size()), bytes);
  }

  Collection collection_{Settings{.buckets = 4}};
};

TEST_F(LostDiskTest, DamagedLogSegment) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  Load load(collection_);
  load.Start();
  load.AwaitProgress(10);
  const Process replica = collection_.Followers("shard-0").front();
  const std::uint64_t disk = DiskNumber(replica.name);
  // In the segment that is being written to, before records that were durable later.
  const auto segments = FilesBelow(collection_.DiskOf(replica.name) + "/log", ".seg");
  ASSERT_GE(segments.size(), 2u);
  const std::string file = segments[segments.size() - 2];
  Damage(file, 200, 1);
  const std::string bytes = ReadText(file).substr(0, 300);
  collection_.Signal(replica, SIGKILL);
  ExpectReplaced(replica, disk, file, bytes);
  load.AwaitProgress(5);
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  collection_.ExpectReplicasEqual();
}

// Found when somebody reads the damaged records; the call itself is answered by another replica.
TEST_F(LostDiskTest, DamagedTable) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  Load load(collection_);
  load.Start();
  load.AwaitProgress(50);
  load.Stop();
  const Process replica = collection_.Leader("shard-0");
  const std::uint64_t disk = DiskNumber(replica.name);
  ASSERT_TRUE(collection_.storage(replica.name).Checkpoint(kCallDeadline).ok());
  collection_.Signal(replica, SIGSTOP);  // what it has read before is not read again
  const auto tables = FilesBelow(collection_.DiskOf(replica.name) + "/store", ".sst");
  ASSERT_FALSE(tables.empty());
  const std::string file = *std::max_element(
      tables.begin(), tables.end(),
      [](const auto& a, const auto& b) { return fs::file_size(a) < fs::file_size(b); });
  Damage(file, fs::file_size(file) * 3 / 5, 1);
  const std::string bytes = ReadText(file);
  collection_.Signal(replica, SIGKILL);
  // What it reads at its start is whole.
  collection_.Await(replica.name + " is started again",
                    [&] { return Times(collection_.LogOf(replica.name), "\"started\"") == 2; });
  EXPECT_EQ(DiskNumber(replica.name), disk);
  // All records are read, by turns on every replica: none of the reads fails.
  const auto read_all = [&] {
    for (std::size_t writer = 0; writer < load.writers(); ++writer) {
      for (std::uint64_t n = 1; n <= load.acknowledged(writer); ++n) {
        const auto value = ReadGet(collection_.router().Call(
            GetCall(load.Customer(writer), "accounts", Load::RecordKey(n), v1::MODE_BRO),
            kCallDeadline));
        EXPECT_TRUE(value.ok()) << value.status().ToString();
        if (value.ok()) {
          EXPECT_EQ(*value, load.Customer(writer)) << n;
        }
      }
    }
  };
  collection_.Await("a read meets the damage", [&] {
    read_all();
    return Times(collection_.LogOf(replica.name), "counts as lost") > 0;
  });
  ExpectReplaced(replica, disk, file, bytes);
  load.ExpectAllStored();
  collection_.ExpectReplicasEqual();
}

}  // namespace
}  // namespace etalon::e2e
