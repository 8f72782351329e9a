#include "storage/node/identity.h"

#include <gtest/gtest.h>

#include "sim/world/world.h"

namespace etalon::storage {
namespace {

const Identity kOurs{CollectionId(0x11), ShardUid(0x22), "orders-shard-0-1", MemberId(0x33)};

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() : world_(1), env_(world_.AddNode("a")) {}
  void Run(DiskJob job) {
    Status status = Internal("not done");
    env_.disk.Submit(std::move(job), [&](Status s) { status = std::move(s); });
    ASSERT_TRUE(world_.RunUntil([&] { return status.ok(); }, std::chrono::seconds(10)))
        << status.ToString();
  }
  sim::SimWorld world_;
  Env env_;
};

TEST_F(IdentityTest, BlankThenWritten) {
  EXPECT_EQ(ReadIdentity(env_.disk).status().code(), Code::kNotFound);
  Run(WriteIdentity(kOurs));
  auto found = ReadIdentity(env_.disk);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(*found, kOurs);
  EXPECT_TRUE(CheckIdentity(*found, kOurs).ok());
}

TEST_F(IdentityTest, EveryDamagedByteIsNoticed) {
  Run(WriteIdentity(kOurs));
  const std::string whole = *ReadWhole(env_.disk, kIdentityFile);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    Run(ReplaceFile(kIdentityFile, bad));
    EXPECT_FALSE(ReadIdentity(env_.disk).ok()) << i;
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Run(ReplaceFile(kIdentityFile, whole.substr(0, size)));
    EXPECT_EQ(ReadIdentity(env_.disk).status().code(), Code::kDataLoss) << size;
  }
}

TEST_F(IdentityTest, NewerFormatIsRefusedAndKept) {
  Run(WriteIdentity(kOurs));
  std::string newer = *ReadWhole(env_.disk, kIdentityFile);
  newer[4] = 9;
  Run(ReplaceFile(kIdentityFile, newer));
  EXPECT_EQ(ReadIdentity(env_.disk).status().reason(), Reason::kNewerFormat);
  EXPECT_EQ(*ReadWhole(env_.disk, kIdentityFile), newer);
}

TEST_F(IdentityTest, ForeignDisksAreNamed) {
  for (Identity other : {Identity{CollectionId(9), kOurs.shard, kOurs.replica, {}},
                         Identity{kOurs.collection, ShardUid(9), kOurs.replica, {}},
                         Identity{kOurs.collection, kOurs.shard, "orders-shard-0-2", {}}}) {
    const Status s = CheckIdentity(kOurs, other);
    EXPECT_EQ(s.reason(), Reason::kForeignDisk);
    EXPECT_NE(s.message().find(kOurs.replica), std::string::npos);
  }
}

}  // namespace
}  // namespace etalon::storage
