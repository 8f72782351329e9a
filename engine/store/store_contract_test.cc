// What every kind of store promises (store.h). Compiled into the tests of each kind.
#include <deque>
#include <string>
#include <vector>

#include "engine/store/store.h"
#include "engine/store/store_set.h"
#include "engine/store/testing/harness.h"
#include "engine/store/testing/model.h"
#include "gmock/gmock.h"

namespace etalon::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kDir[] = "store";

// A set with an activated, empty generation.
std::unique_ptr<StoreSet> OpenSet(Harness& harness) {
  auto set = std::make_unique<StoreSet>(harness.disk(), harness.factory(), kDir);
  EXPECT_TRUE(set->Open().ok());
  if (set->Current() != nullptr) return set;
  bool active = false;
  set->CreateFresh("g-1", [&](Result<Store*> fresh) {
    EXPECT_TRUE(fresh.ok()) << fresh.status().ToString();
    set->Activate("g-1", [&](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      active = true;
    });
  });
  harness.RunUntil([&active] { return active; });
  return set;
}

class StoreContract : public ::testing::Test {
 protected:
  void Write(Batch batch) { MustWrite(*harness_, store(), std::move(batch)); }
  void Put(const std::string& key, const std::string& value) {
    Batch batch;
    batch.Put(key, value);
    Write(std::move(batch));
  }
  std::optional<std::string> Get(const std::string& key) {
    const auto value = store().Get(key);
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return *value;
  }
  Status Checkpoint() {
    std::optional<Status> result;
    store().Checkpoint([&result](Status status) { result = std::move(status); });
    EXPECT_FALSE(result.has_value()) << "answered from within";
    harness_->RunUntil([&result] { return result.has_value(); });
    return *result;
  }
  void CrashAndOpen() {
    set_.reset();
    harness_->Crash();
    set_ = OpenSet(*harness_);
  }
  Store& store() { return *set_->Current(); }

  std::unique_ptr<Harness> harness_ = NewHarness(1);
  std::unique_ptr<StoreSet> set_ = OpenSet(*harness_);
};

TEST_F(StoreContract, PutGetDelete) {
  EXPECT_EQ(Get("a"), std::nullopt);
  Put("a", "1");
  EXPECT_EQ(Get("a"), "1");
  Put("a", "2");
  EXPECT_EQ(Get("a"), "2");
  Batch batch;
  batch.Delete("a");
  batch.Delete("never there");
  Write(std::move(batch));
  EXPECT_EQ(Get("a"), std::nullopt);
}

TEST_F(StoreContract, AnyBytesMakeAKeyAndAValue) {
  const std::string zeros("\0\0", 2);
  Put("", "empty key");
  Put("empty value", "");
  Put(zeros, zeros);
  Put("\xff\xff", "\xff");
  EXPECT_EQ(Get(""), "empty key");
  EXPECT_EQ(Get("empty value"), "");
  EXPECT_EQ(Get(zeros), zeros);
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("", "empty key"), Pair(zeros, zeros),
                                         Pair("empty value", ""), Pair("\xff\xff", "\xff")));
}

TEST_F(StoreContract, AWrittenBatchIsEmpty) {
  Batch batch;
  batch.Put("a", "1");
  ASSERT_TRUE(store().Write(std::move(batch)).ok());
  EXPECT_TRUE(batch.empty());  // NOLINT(bugprone-use-after-move): promised by Write
  EXPECT_EQ(batch.bytes(), 0u);
  EXPECT_TRUE(store().Write(Batch()).ok());
}

TEST_F(StoreContract, ChangesOfABatchActInTheirOrder) {
  Batch batch;
  batch.Put("a", "1");
  batch.Put("b", "1");
  batch.Put("c", "1");
  batch.Put("a", "2");
  batch.DeleteRange("b", "c");
  batch.Put("b", "after the range");
  batch.Delete("c");
  batch.Put("d", "1");
  batch.Put("d", "2");
  batch.DeleteRange("d", "e");
  Write(std::move(batch));
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("a", "2"), Pair("b", "after the range")));
}

TEST_F(StoreContract, ARangeDeleteTakesItsBeginAndLeavesItsEnd) {
  for (const char* key : {"a", "b", "ba", "bb", "c", "d"}) Put(key, "x");
  Batch batch;
  batch.DeleteRange("b", "c");
  batch.DeleteRange("d", "d");  // empty
  batch.DeleteRange("z", "a");  // upside down
  EXPECT_EQ(batch.ops().size(), 1u);
  Write(std::move(batch));
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("a", "x"), Pair("c", "x"), Pair("d", "x")));
  Put("ba", "again");
  EXPECT_EQ(Get("ba"), "again");
}

TEST_F(StoreContract, ASnapshotStaysAsItWas) {
  for (const char* key : {"a", "b", "c", "d"}) Put(key, "old");
  const auto snapshot = store().NewSnapshot();
  const auto early = snapshot->NewIterator("", "");
  Batch batch;
  batch.Put("a", "new");
  batch.Delete("b");
  batch.DeleteRange("c", "e");
  batch.Put("e", "new");
  Write(std::move(batch));
  const Model old{{"a", "old"}, {"b", "old"}, {"c", "old"}, {"d", "old"}};
  EXPECT_EQ(Dump(*snapshot), old);
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("a", "new"), Pair("e", "new")));

  // Not even a checkpoint changes it.
  ASSERT_TRUE(Checkpoint().ok());
  EXPECT_EQ(Dump(*snapshot), old);
  EXPECT_EQ(*snapshot->Get("c"), "old");
  EXPECT_EQ(*snapshot->Get("e"), std::nullopt);
  Model seen;
  for (; early->Valid(); early->Next()) seen.emplace(early->key(), early->value());
  EXPECT_EQ(seen, old);
}

TEST_F(StoreContract, ASnapshotAndItsIteratorOutliveTheStore) {
  Put("a", "1");
  Put("b", "2");
  auto snapshot = store().NewSnapshot();
  auto iterator = snapshot->NewIterator("", "");
  set_.reset();
  EXPECT_EQ(*snapshot->Get("a"), "1");
  snapshot.reset();
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "2");
}

TEST_F(StoreContract, AnIteratorKeepsToItsBounds) {
  for (const char* key : {"a", "b", "c", "d", "e"}) Put(key, key);
  const auto snapshot = store().NewSnapshot();
  EXPECT_THAT(Dump(*snapshot, "b", "d"), ElementsAre(Pair("b", "b"), Pair("c", "c")));
  EXPECT_THAT(Dump(*snapshot, "bb", ""),
              ElementsAre(Pair("c", "c"), Pair("d", "d"), Pair("e", "e")));
  EXPECT_THAT(Dump(*snapshot, "", "b"), ElementsAre(Pair("a", "a")));
  EXPECT_THAT(Dump(*snapshot, "f", ""), IsEmpty());
  EXPECT_THAT(Dump(*snapshot, "ba", "bb"), IsEmpty());

  const auto it = snapshot->NewIterator("b", "d");
  it->Seek("c");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "c");
  it->Seek("a");  // before the range
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "b");
  it->Seek("d");  // after it
  EXPECT_FALSE(it->Valid());
  EXPECT_TRUE(it->status().ok());
  it->Seek("bz");
  ASSERT_TRUE(it->Valid());
  EXPECT_EQ(it->key(), "c");
  it->Next();
  EXPECT_FALSE(it->Valid());
}

TEST_F(StoreContract, BytesOfARangeAreAboutRight) {
  constexpr std::uint64_t kValue = 1000;
  Random random(7);
  Batch batch;
  for (int i = 1000; i < 3000; ++i) {
    std::string value;  // that cannot be compressed
    while (value.size() < kValue) PutBe64(&value, random.Next());
    batch.Put("k" + std::to_string(i), value);
  }
  Write(std::move(batch));
  ASSERT_TRUE(Checkpoint().ok());
  const auto near = [](std::uint64_t got, std::uint64_t want) {
    return got > want * 8 / 10 && got < want * 12 / 10;
  };
  EXPECT_PRED2(near, store().ApproximateBytes("", ""), 2000 * kValue);
  EXPECT_PRED2(near, store().ApproximateBytes("k1500", "k2000"), 500 * kValue);
  EXPECT_PRED2(near, store().ApproximateBytes("k2500", ""), 500 * kValue);
  EXPECT_EQ(store().ApproximateBytes("x", ""), 0u);
  EXPECT_EQ(store().ApproximateBytes("k2", "k1"), 0u);
}

TEST_F(StoreContract, ACheckpointSurvivesACrash) {
  Put("a", "1");
  ASSERT_TRUE(Checkpoint().ok());
  EXPECT_TRUE(store().Verify().ok());
  EXPECT_TRUE(store().Health().ok());
  CrashAndOpen();
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("a", "1")));
  EXPECT_TRUE(store().Verify().ok());
}

TEST_F(StoreContract, ARangeDeleteSurvivesACrash) {
  for (const char* key : {"a", "b", "c"}) Put(key, "x");
  ASSERT_TRUE(Checkpoint().ok());
  Batch batch;
  batch.DeleteRange("a", "c");
  batch.Put("b", "later");
  Write(std::move(batch));
  ASSERT_TRUE(Checkpoint().ok());
  CrashAndOpen();
  EXPECT_THAT(Dump(store()), ElementsAre(Pair("b", "later"), Pair("c", "x")));
}

TEST_F(StoreContract, CheckpointsShareRunsAndAreAllAnswered) {
  int answers = 0;
  for (int i = 0; i < 5; ++i) {
    Put("k" + std::to_string(i), "v");
    store().Checkpoint([&answers](const Status& status) {
      EXPECT_TRUE(status.ok());
      ++answers;
    });
  }
  harness_->RunUntil([&answers] { return answers == 5; });
  CrashAndOpen();
  EXPECT_EQ(Dump(store()).size(), 5u);
}

TEST_F(StoreContract, ACheckpointMayBeAskedForInTheAnswerToOne) {
  int left = 3;
  std::function<void(const Status&)> again = [&](const Status& status) {
    EXPECT_TRUE(status.ok());
    if (--left == 0) return;
    Put("left", std::to_string(left));
    store().Checkpoint([&again](const Status& s) { again(s); });
  };
  store().Checkpoint([&again](const Status& s) { again(s); });
  harness_->RunUntil([&left] { return left == 0; });
  CrashAndOpen();
  EXPECT_EQ(Get("left"), "1");
}

TEST_F(StoreContract, TheEndOfTheStoreDropsItsAnswers) {
  Put("a", "1");
  bool answered = false;
  store().Checkpoint([&answered](const Status&) { answered = true; });
  set_.reset();
  Random random(1);
  harness_->Idle(random);
  EXPECT_FALSE(answered);
  CrashAndOpen();
  const Model found = Dump(store());
  EXPECT_TRUE(found == Model() || found == Model({{"a", "1"}}));
}

// Random operations against a map; reads, bounded walks and old snapshots are compared all along.
TEST(StoreContractRandom, EqualsAMap) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto harness = NewHarness(seed);
    const auto set = OpenSet(*harness);
    Store& store = *set->Current();
    Model model;
    std::deque<std::pair<std::unique_ptr<Snapshot>, Model>> snapshots;
    for (int step = 0; step < 300; ++step) {
      Batch batch = RandomBatch(random);
      Apply(batch, &model);
      MustWrite(*harness, store, std::move(batch));
      const std::string key = RandomKey(random);
      const auto found = model.find(key);
      const auto value = store.Get(key);
      ASSERT_TRUE(value.ok());
      ASSERT_EQ(*value, found == model.end() ? std::nullopt : std::optional(found->second));
      if (random.Chance(1, 10)) {
        const std::string end = RandomKey(random);
        if (key < end) {
          ASSERT_EQ(Dump(*store.NewSnapshot(), key, end),
                    Model(model.lower_bound(key), model.lower_bound(end)));
        }
      }
      if (random.Chance(1, 20)) {
        if (snapshots.size() == 3) {
          ASSERT_EQ(Dump(*snapshots.front().first), snapshots.front().second);
          snapshots.pop_front();
        }
        snapshots.emplace_back(store.NewSnapshot(), model);
      }
      if (random.Chance(1, 30)) {
        store.Checkpoint([](const Status& status) { EXPECT_TRUE(status.ok()); });
      }
      if (random.Chance(1, 10)) harness->Idle(random);
    }
    ASSERT_EQ(Dump(store), model);
    for (const auto& [snapshot, then] : snapshots) ASSERT_EQ(Dump(*snapshot), then);
  }
}

// Lives of one store with crashes between them: each begins with a whole prefix of the writes that
// came before, not shorter than what the last successful checkpoint covered.
TEST(StoreContractRandom, ACrashReturnsToAPrefixNotBeforeTheCheckpoint) {
  int went_back = 0;
  int kept_all = 0;
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const auto harness = NewHarness(seed);
    std::vector<Model> after{{}};  // after[i]: the store when index i was written
    std::uint64_t durable = 0;
    for (int life = 0; life < 8; ++life) {
      auto set = OpenSet(*harness);
      Store& store = *set->Current();
      const Model found = Dump(store);
      const std::uint64_t index = IndexOf(found);
      ASSERT_GE(index, durable);
      ASSERT_LT(index, after.size());
      ASSERT_EQ(found, after[index]) << "index " << index;
      ++(index + 1 < after.size() ? went_back : kept_all);
      after.resize(index + 1);
      for (std::uint64_t left = random.Below(60); left > 0; --left) {
        Batch batch = RandomBatch(random);
        batch.Put(kIndexKey, EncodeIndex(after.size()));
        Model next = after.back();
        Apply(batch, &next);
        after.push_back(std::move(next));
        MustWrite(*harness, store, std::move(batch));
        if (random.Chance(1, 8)) {
          store.Checkpoint([&durable, covers = after.size() - 1](const Status& status) {
            ASSERT_TRUE(status.ok());
            ASSERT_GE(covers, durable);
            durable = covers;
          });
        }
        if (random.Chance(1, 4)) harness->Idle(random);
      }
      set.reset();
      harness->Crash();
    }
  }
  // Both happen, or the test proves little.
  EXPECT_GT(went_back, 10);
  EXPECT_GT(kept_all, 10);
}

}  // namespace
}  // namespace etalon::store
