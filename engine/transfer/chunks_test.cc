#include "engine/transfer/chunks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "engine/bucket/request_ids.h"
#include "engine/store/memory_store.h"
#include "etalon/v1/log.pb.h"
#include "sim/world/disk.h"
#include "sim/world/events.h"

namespace etalon::transfer {
namespace {

constexpr std::uint32_t kBuckets = 4;
constexpr SpaceId kSpace{1};

class Chunks : public ::testing::Test {
 protected:
  Chunks() : disk_(events_, 1, Random(1)), factory_(disk_) {
    store_ = std::move(factory_.Open("store", store::OpenMode::kFresh)).value();
  }
  void Put(std::uint64_t bucket, const std::string& key, const std::string& value,
           SpaceId space = kSpace) {
    store::Batch batch;
    batch.Put(store::DataKey(RoutingValue(bucket), kBuckets, space, key), value);
    ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  }
  // All chunks of a reader; the last one says that it is.
  std::vector<v1::ChunkPayload> Read(ChunkReader& reader) {
    std::vector<v1::ChunkPayload> all;
    while (true) {
      auto piece = reader.Next();
      EXPECT_TRUE(piece.ok());
      if (!*piece) break;
      EXPECT_TRUE(all.emplace_back().ParseFromString((*piece)->payload));
      EXPECT_EQ((*piece)->records, static_cast<std::uint64_t>(all.back().records_size()));
    }
    EXPECT_TRUE(reader.exhausted());
    return all;
  }

  sim::Events events_;
  sim::SimDisk disk_;
  store::MemoryStoreFactory factory_;
  std::unique_ptr<store::Store> store_;
};

TEST_F(Chunks, TheSnapshotOfExactlyTheBucketsOfTheSet) {
  for (std::uint64_t b = 0; b < 4; ++b) Put(b, "k", "of " + std::to_string(b));
  ChunkReader reader(store_->NewSnapshot(), RangesOf(0, {1, 3}, kBuckets), LogTime(0));
  Put(1, "later", "x");
  const auto chunks = Read(reader);
  ASSERT_EQ(chunks.size(), 1u);
  ASSERT_EQ(chunks[0].records_size(), 2);
  EXPECT_EQ(chunks[0].records(0).value(), "of 1");
  EXPECT_EQ(chunks[0].records(1).value(), "of 3");
}

TEST_F(Chunks, AreBoundedAndALargeRecordIsOneOfItsOwn) {
  for (int i = 0; i < 10; ++i) Put(1, "a" + std::to_string(i), std::string(100 << 10, 'a'));
  Put(1, "b", std::string(1 << 20, 'b'));
  Put(1, "c", "small");
  ChunkReader reader(store_->NewSnapshot(), RangesOf(0, {1}, kBuckets), LogTime(0));
  const auto chunks = Read(reader);
  ASSERT_EQ(chunks.size(), 7u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(chunks[i].records_size(), 2);
  EXPECT_EQ(chunks[5].records_size(), 1);
  EXPECT_EQ(chunks[5].records(0).value().size(), 1u << 20);
  EXPECT_EQ(chunks[6].records(0).value(), "small");
}

TEST_F(Chunks, ARoundCarriesPresentValuesAndTombstones) {
  Put(1, "kept", "new");
  const std::string kept = store::DataKey(RoutingValue(1), kBuckets, kSpace, "kept");
  const std::string gone = store::DataKey(RoutingValue(1), kBuckets, kSpace, "gone");
  ChunkReader reader(store_->NewSnapshot(), std::set<std::string, std::less<>>{kept, gone},
                     LogTime(0));
  const auto chunks = Read(reader);
  ASSERT_EQ(chunks.size(), 1u);
  std::map<std::string, v1::ChunkRecord> records;
  for (const auto& r : chunks[0].records()) records[r.key()] = r;
  EXPECT_EQ(records[kept].value(), "new");
  EXPECT_FALSE(records[kept].tombstone());
  EXPECT_TRUE(records[gone].tombstone());
}

TEST_F(Chunks, ResultsOfRequestIdsCarryWhatIsLeftOfTheirLife) {
  for (const std::uint64_t end : {400u, 1000u, 2500u}) {
    const std::string key = bucket::StoreKey({1, 7, end});
    store::Batch batch;
    batch.Put(key, bucket::EncodeRequestValue(LogTime(end), "result"));
    ASSERT_TRUE(store_->Write(std::move(batch)).ok());
  }
  const store::KeyRange all = store::DataRange();
  ChunkReader reader(store_->NewSnapshot(), std::vector<store::KeyRange>{all}, LogTime(1000));
  const auto chunks = Read(reader);
  ASSERT_EQ(chunks.size(), 1u);
  ASSERT_EQ(chunks[0].records_size(), 3);
  EXPECT_TRUE(chunks[0].records(0).tombstone()) << "its life is over";
  EXPECT_TRUE(chunks[0].records(1).tombstone());
  EXPECT_EQ(chunks[0].records(2).life_millis(), 1500u);
}

TEST_F(Chunks, NothingIsNoChunk) {
  ChunkReader reader(store_->NewSnapshot(), RangesOf(0, {1}, kBuckets), LogTime(0));
  EXPECT_TRUE(Read(reader).empty());
}

TEST(RangesOf, NeighboursAreJoined) {
  EXPECT_EQ(RangesOf(0, {0, 1, 2, 3}, kBuckets).size(), 1u);
  EXPECT_EQ(RangesOf(0, {0, 2}, kBuckets).size(), 2u);
  // At level 1 the halves of bucket 1 are 1 and 5.
  EXPECT_EQ(RangesOf(1, {1, 5}, kBuckets), RangesOf(0, {1}, kBuckets));
}

}  // namespace
}  // namespace etalon::transfer
