#include "engine/store/persistent_map.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace etalon::store {
namespace {

using Model = std::map<std::string, std::string>;

Model Dump(const PersistentMap& map) {
  Model out;
  PersistentMap::Cursor cursor(map);
  for (cursor.Seek(""); cursor.Valid(); cursor.Next()) out.emplace(cursor.key(), cursor.value());
  return out;
}

std::uint64_t Bytes(const Model& model, const std::string& begin, const std::string& end) {
  std::uint64_t bytes = 0;
  for (const auto& [key, value] : model) {
    if (key >= begin && (end.empty() || key < end)) bytes += key.size() + value.size();
  }
  return bytes;
}

std::string Key(Random& random) { return std::to_string(random.Below(300)); }

TEST(PersistentMap, BehavesAsAMapAndCopiesStay) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    PersistentMap map;
    Model model;
    std::vector<std::pair<PersistentMap, Model>> copies;
    for (int step = 0; step < 600; ++step) {
      const std::string key = Key(random);
      const std::string end = Key(random);
      const std::uint64_t dice = random.Below(20);
      if (dice < 12) {
        const std::string value(random.Below(30), 'v');
        map.Put(key, value);
        model[key] = value;
      } else if (dice < 16) {
        map.Erase(key);
        model.erase(key);
      } else if (dice < 17 && key < end) {
        map.EraseRange(key, end);
        model.erase(model.lower_bound(key), model.lower_bound(end));
      } else if (dice < 18 && copies.size() < 8) {
        copies.emplace_back(map, model);
      } else if (dice < 19 && !copies.empty()) {
        copies.erase(copies.begin() + static_cast<long>(random.Below(copies.size())));
      }
      const std::string* found = map.Find(key);
      ASSERT_EQ(found != nullptr, model.count(key) == 1);
      if (found != nullptr) {
        ASSERT_EQ(*found, model.at(key));
      }
      if (key < end) {
        ASSERT_EQ(map.Bytes(key, end), Bytes(model, key, end));
      }
      ASSERT_EQ(map.Bytes(key, ""), Bytes(model, key, ""));
    }
    EXPECT_EQ(Dump(map), model) << "seed " << seed;
    for (const auto& [copy, then] : copies) EXPECT_EQ(Dump(copy), then) << "seed " << seed;
  }
}

TEST(PersistentMap, CursorStandsAtTheFirstKeyNotBelow) {
  PersistentMap map;
  for (const char* key : {"b", "d", "f"}) map.Put(key, "");
  PersistentMap::Cursor cursor(map);
  EXPECT_FALSE(cursor.Valid());
  cursor.Seek("c");
  ASSERT_TRUE(cursor.Valid());
  EXPECT_EQ(cursor.key(), "d");
  cursor.Seek("d");
  EXPECT_EQ(cursor.key(), "d");
  cursor.Seek("g");
  EXPECT_FALSE(cursor.Valid());
}

TEST(PersistentMap, ACursorKeepsWhatItWalks) {
  PersistentMap map;
  for (int i = 0; i < 1000; ++i) map.Put(std::to_string(i), "x");
  PersistentMap::Cursor cursor(map);
  map.EraseRange("", ":");
  cursor.Seek("");
  int count = 0;
  for (; cursor.Valid(); cursor.Next()) ++count;
  EXPECT_EQ(count, 1000);
  EXPECT_TRUE(Dump(map).empty());
}

// A plain search tree would be a list of 200,000 nodes: quadratic, and too deep for the stack.
TEST(PersistentMap, AscendingKeysStayCheap) {
  PersistentMap map;
  for (int i = 100000; i < 300000; ++i) map.Put(std::to_string(i), "");
  EXPECT_EQ(map.Bytes("", ""), 200000u * 6);
  map.EraseRange("150000", "250000");
  EXPECT_EQ(map.Bytes("", ""), 100000u * 6);
}

}  // namespace
}  // namespace etalon::store
