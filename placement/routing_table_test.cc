// The test cases T1 to T7, T11 and T12 of the Milvus contract, and properties of derived tables.
#include "placement/routing_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "common/random.h"
#include "placement/hash.h"
#include "placement/split.h"

namespace etalon::placement {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ShardState kNormal = ShardState::kNormal;
constexpr ShardState kCreating = ShardState::kCreating;
constexpr ShardState kSplitting = ShardState::kSplitting;
constexpr ShardState kDropped = ShardState::kDropped;

DescribeAnswer Answer(std::uint64_t modulus, const std::vector<ShardInfo>& infos) {
  DescribeAnswer answer;
  answer.modulus = modulus;
  answer.infos = infos;
  for (const ShardInfo& info : infos) answer.shard_names.push_back(info.name);
  return answer;
}

// The sentence with which the table is refused; refusals are permanent, so the code is never a
// retriable one.
std::string Refusal(const Result<RoutingTable>& table) {
  EXPECT_FALSE(table.ok());
  if (table.ok()) return "";
  EXPECT_EQ(table.status().code(), Code::kInvalidArgument);
  return table.status().message();
}
std::string Refusal(const DescribeAnswer& answer) {
  return Refusal(RoutingTable::Derive(answer, kMilvusMaxModulus));
}

RoutingTable Accepted(const DescribeAnswer& answer) {
  auto table = RoutingTable::Derive(answer, kMilvusMaxModulus);
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  if (!table.ok()) std::abort();
  return std::move(table).value();
}

RoutingValue Int(std::int64_t key) {
  return *HashKey(KeyType::kInt64, HashFunction::kMurmur3, key);
}
RoutingValue Text(std::string_view key) {
  return *HashKey(KeyType::kString, HashFunction::kCrc32, key);
}

TEST(MilvusContract, T1_Gap) {
  EXPECT_THAT(Refusal(Answer(4, {{"a", kNormal, {0, 1}}, {"b", kNormal, {2}}})),
              HasSubstr("no shard owns the residue 3"));
}

TEST(MilvusContract, T2_Overlap) {
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 1}}, {"b", kNormal, {1}}})),
              AllOf(HasSubstr("'a' and 'b' both own"), HasSubstr("residue 1")));
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 0}}, {"b", kNormal, {1}}})),
              AllOf(HasSubstr("'a'"), HasSubstr("residue 0 twice")));
}

TEST(MilvusContract, T3_OutOfRangeAndEmpty) {
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 2}}, {"b", kNormal, {1}}})),
              HasSubstr("lists the residue 2"));
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 1}}, {"b", kNormal, {}}})),
              HasSubstr("'b' owns nothing"));
  const auto capped = RoutingTable::Derive(Answer(32769, {{"a", kNormal, {0}}}), kMilvusMaxModulus);
  EXPECT_THAT(Refusal(capped), HasSubstr("32769 is over the limit"));
  EXPECT_EQ(capped.status().reason(), Reason::kModulusCap);
  // Nothing is allocated for a modulus over the cap: this one would need 2^66 bytes.
  EXPECT_THAT(Refusal(Answer(~std::uint64_t{0}, {{"a", kNormal, {0}}})),
              HasSubstr("over the limit"));
  EXPECT_THAT(Refusal(Answer(0, {{"a", kNormal, {0}}})), HasSubstr("without the modulus"));
}

TEST(MilvusContract, T4_ModulusWithoutResidues) {
  EXPECT_THAT(Refusal(Answer(4, {{"a", kNormal, {}}, {"b", kNormal, {}}, {"c", kNormal, {}}})),
              HasSubstr("no shard lists a residue"));
  DescribeAnswer bare;
  bare.shard_names = {"a", "b", "c"};
  bare.modulus = 4;
  EXPECT_THAT(Refusal(bare), HasSubstr("no shard lists a residue"));
}

TEST(MilvusContract, T5_Legacy) {
  DescribeAnswer bare;
  bare.shard_names = {"c0", "c1", "c2"};
  DescribeAnswer described = bare;
  described.infos.resize(3);
  for (const DescribeAnswer& answer : {bare, described}) {
    const RoutingTable table = Accepted(answer);
    EXPECT_TRUE(table.never_split());
    EXPECT_EQ(table.modulus(), 3u);
    EXPECT_EQ(table.Owner(RoutingValue(0)), "c0");
    EXPECT_EQ(table.Owner(RoutingValue(1)), "c1");
    EXPECT_EQ(table.Owner(RoutingValue(2)), "c2");
    EXPECT_EQ(table.Owner(Int(42)), "c2");
    EXPECT_EQ(table.Owner(Int(7)), "c0");
    EXPECT_EQ(table.Owner(Int(100)), "c1");
    EXPECT_EQ(table.Owner(Int(-1)), "c1");
    EXPECT_EQ(table.Owner(Text("milvus")), "c2");
    EXPECT_EQ(table.Owner(Text("a")), "c0");
    EXPECT_EQ(table.Owner(Text("key-1")), "c2");
    EXPECT_EQ(CountShards(answer), 3u);
  }
  described.infos[1].state = kSplitting;
  EXPECT_THAT(Refusal(described), HasSubstr("only 2 of 3"));
  EXPECT_THAT(Refusal(RoutingTable::Build({"v0", "v1"}, 0, {{"v0", {}}, {"v0", {}}})),
              HasSubstr("described twice"));
  EXPECT_THAT(Refusal(RoutingTable::Build({"v0", "v1"}, 0, {{"v0", {}}})),
              HasSubstr("only 1 of 2"));
  EXPECT_THAT(Refusal(RoutingTable::Build({"v0", "v1"}, 0, {{"v0", {}}, {"v2", {}}})),
              HasSubstr("not in the list"));
  // The list decides who owns what, not the order in which the shards are described.
  const auto reordered = RoutingTable::Build({"z", "a"}, 0, {{"a", {}}, {"z", {}}});
  ASSERT_TRUE(reordered.ok());
  EXPECT_EQ(reordered->Owner(RoutingValue(0)), "z");
}

TEST(MilvusContract, T6_MidSplit) {
  const DescribeAnswer answer = Answer(2, {{"src", kSplitting, {0, 1}},
                                           {"tA", kCreating, {0}},
                                           {"tB", kNormal, {1}},
                                           {"old", kDropped, {}}});
  const RoutingTable table = Accepted(answer);
  ASSERT_EQ(table.shards().size(), 2u);
  EXPECT_FALSE(table.never_split());
  EXPECT_EQ(table.Owner(RoutingValue(0)), "tA");
  EXPECT_EQ(table.Owner(RoutingValue(1)), "tB");
  EXPECT_EQ(CountShards(answer), 2u);
}

TEST(MilvusContract, T6_MidSplitOfTwoShards) {
  const DescribeAnswer answer = Answer(4, {{"s0", kSplitting, {}},
                                           {"s1", kNormal, {1, 3}},
                                           {"t0", kCreating, {0}},
                                           {"t1", kCreating, {2}}});
  const RoutingTable table = Accepted(answer);
  std::vector<std::string> owners;
  for (std::uint64_t v = 0; v < 4; ++v) owners.push_back(table.Owner(RoutingValue(v)));
  EXPECT_THAT(owners, ElementsAre("t0", "s1", "t1", "s1"));
  EXPECT_EQ(CountShards(answer), 3u);
}

TEST(MilvusContract, T7_Names) {
  DescribeAnswer permuted = Answer(2, {{"b", kNormal, {0}}, {"a", kNormal, {1}}});
  permuted.shard_names = {"a", "b"};
  EXPECT_THAT(Refusal(permuted), HasSubstr("lists the shard 'a' but describes 'b'"));

  DescribeAnswer shorter = Answer(2, {{"a", kNormal, {0, 1}}});
  shorter.shard_names = {"a", "b"};
  EXPECT_THAT(Refusal(shorter), HasSubstr("lists 2 shards but describes 1"));

  DescribeAnswer unnamed = Answer(2, {{"", kNormal, {1}}, {"", kNormal, {0}}});
  unnamed.shard_names = {"a", "b"};
  EXPECT_EQ(Accepted(unnamed).Owner(RoutingValue(0)), "b");

  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 1}}, {"b", static_cast<ShardState>(999), {}}})),
              AllOf(HasSubstr("'b'"), HasSubstr("unknown state 999")));
}

TEST(RoutingTable, RefusesBrokenLists) {
  EXPECT_THAT(Refusal(DescribeAnswer{}), HasSubstr("no shard"));
  EXPECT_THAT(Refusal(Answer(2, {{"a", kSplitting, {0, 1}}})), HasSubstr("no shard"));
  EXPECT_THAT(Refusal(Answer(0, {{"a", kSplitting, {}}})), HasSubstr("no shard"));
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0}}, {"a", kNormal, {1}}})),
              HasSubstr("'a' is listed twice"));
  EXPECT_THAT(Refusal(Answer(2, {{"a", kNormal, {0, 1}}, {"a", kSplitting, {}}})),
              HasSubstr("'a' is listed twice"));
  EXPECT_THAT(Refusal(Answer(1, {{"", kNormal, {0}}})), HasSubstr("has no name"));
}

TEST(RoutingTable, TheCapIsAParameter) {
  Residues all(32769);
  for (std::uint64_t r = 0; r < all.size(); ++r) all[r] = r;
  const DescribeAnswer answer = Answer(32769, {{"a", kNormal, all}});
  EXPECT_FALSE(RoutingTable::Derive(answer, kMilvusMaxModulus).ok());
  EXPECT_TRUE(RoutingTable::Derive(answer).ok());
  all.resize(32768);
  EXPECT_TRUE(RoutingTable::Derive(Answer(32768, {{"a", kNormal, all}}), kMilvusMaxModulus).ok());
}

// A table that is split as in Milvus: the source leaves, its halves go to two new shards, all
// others are rebased.
class SplitTable {
 public:
  explicit SplitTable(std::uint64_t shards) {
    for (std::uint64_t i = 0; i < shards; ++i) owned_["s" + std::to_string(i)] = {i};
    modulus_ = shards;
    next_ = shards;
  }

  // Names of the two new shards.
  std::pair<std::string, std::string> Split(const std::string& source) {
    const auto halves = HalveResidues(owned_.at(source), {}, modulus_, kMilvusMaxModulus);
    EXPECT_TRUE(halves.ok());
    owned_.erase(source);
    for (auto& [name, residues] : owned_)
      residues = *RebaseResidues(residues, modulus_, halves->modulus);
    modulus_ = halves->modulus;
    const std::string left = "s" + std::to_string(next_++), right = "s" + std::to_string(next_++);
    owned_[left] = halves->stay;
    owned_[right] = halves->move;
    Table();  // must tile
    return {left, right};
  }

  RoutingTable Table() const {
    std::vector<ShardInfo> infos;
    for (const auto& [name, residues] : owned_) infos.push_back({name, kNormal, residues});
    return Accepted(Answer(modulus_, infos));
  }

  std::uint64_t modulus() const { return modulus_; }
  const std::map<std::string, Residues>& owned() const { return owned_; }

 private:
  std::map<std::string, Residues> owned_;
  std::uint64_t modulus_;
  std::uint64_t next_;
};

TEST(MilvusContract, T11_GrowthOfFourShardsOnceEach) {
  SplitTable table(4);
  for (const char* source : {"s0", "s1", "s2", "s3"}) {
    table.Split(source);
    EXPECT_EQ(table.modulus(), 8u);
  }
  EXPECT_EQ(table.owned().size(), 8u);
  for (const auto& [name, residues] : table.owned()) EXPECT_EQ(residues.size(), 1u) << name;
}

TEST(MilvusContract, T11_GrowthOfOneLineage) {
  for (const bool left : {true, false}) {
    SplitTable table(4);
    std::string source = "s0";
    for (const std::uint64_t modulus : {8u, 16u, 32u, 64u}) {
      const auto halves = table.Split(source);
      source = left ? halves.first : halves.second;
      EXPECT_EQ(table.modulus(), modulus);
    }
    EXPECT_EQ(table.owned().size(), 8u);
  }
}

TEST(MilvusContract, T11_GrowthMixed) {
  SplitTable table(4);
  const auto halves = table.Split("s0");
  EXPECT_EQ(table.modulus(), 8u);
  for (const std::string& source : {halves.first, std::string("s1"), std::string("s2")}) {
    table.Split(source);
    EXPECT_EQ(table.modulus(), 16u);
  }
}

TEST(MilvusContract, T12_Chain) {
  SplitTable table(3);
  struct Step {
    const char* source;
    std::uint64_t modulus;
    std::map<std::string, Residues> owned;
  };
  const std::vector<Step> steps = {
      {"s2", 6, {{"s0", {0, 3}}, {"s1", {1, 4}}, {"s3", {2}}, {"s4", {5}}}},
      {"s0", 6, {{"s1", {1, 4}}, {"s3", {2}}, {"s4", {5}}, {"s5", {0}}, {"s6", {3}}}},
      {"s3",
       12,
       {{"s1", {1, 4, 7, 10}},
        {"s4", {5, 11}},
        {"s5", {0, 6}},
        {"s6", {3, 9}},
        {"s7", {2}},
        {"s8", {8}}}},
  };
  const std::map<std::string, RoutingValue> keys = {{"42", Int(42)},
                                                    {"7", Int(7)},
                                                    {"100", Int(100)},
                                                    {"-1", Int(-1)},
                                                    {"3000", Int(3000)},
                                                    {"milvus", Text("milvus")},
                                                    {"tenant-a", Text("tenant-a")}};
  std::map<std::string, std::vector<std::string>> path;
  for (const auto& [key, value] : keys) path[key].push_back(table.Table().Owner(value));
  for (const Step& step : steps) {
    table.Split(step.source);
    EXPECT_EQ(table.modulus(), step.modulus);
    EXPECT_EQ(table.owned(), step.owned);
    for (const auto& [key, value] : keys) {
      const std::string before = path[key].back(), after = table.Table().Owner(value);
      EXPECT_TRUE(after == before || before == step.source) << key;
      path[key].push_back(after);
    }
  }
  EXPECT_THAT(path["42"], ElementsAre("s2", "s3", "s3", "s7"));
  EXPECT_THAT(path["7"], ElementsAre("s0", "s0", "s6", "s6"));
  EXPECT_THAT(path["100"], ElementsAre("s1", "s1", "s1", "s1"));
  EXPECT_THAT(path["-1"], ElementsAre("s1", "s1", "s1", "s1"));
  EXPECT_THAT(path["3000"], ElementsAre("s2", "s4", "s4", "s4"));
  EXPECT_THAT(path["milvus"], ElementsAre("s2", "s4", "s4", "s4"));
  EXPECT_THAT(path["tenant-a"], ElementsAre("s0", "s0", "s6", "s6"));
  EXPECT_EQ(keys.at("milvus").value() % 12, 11u);
}

TEST(RoutingTableProperty, LegacyIsTheClassicRule) {
  Random random(300);
  for (const std::uint64_t n : {1u, 2u, 3u, 5u, 16u, 100u}) {
    DescribeAnswer answer;
    for (std::uint64_t i = 0; i < n; ++i) answer.shard_names.push_back("v" + std::to_string(n - i));
    const RoutingTable table = Accepted(answer);
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t hash = random.Next();
      EXPECT_EQ(table.Owner(RoutingValue(hash)), answer.shard_names[hash % n]);
    }
  }
}

TEST(RoutingTableProperty, RandomKeysFollowTheClassicRule) {
  Random random(10000);
  for (const std::uint64_t n : {1u, 2u, 3u, 16u}) {
    DescribeAnswer answer;
    for (std::uint64_t i = 0; i < n; ++i) answer.shard_names.push_back("v" + std::to_string(i));
    const RoutingTable table = Accepted(answer);
    std::vector<int> seen(n, 0);
    for (int i = 0; i < 10000; ++i) {
      const RoutingValue number = Int(static_cast<std::int64_t>(random.Next()));
      EXPECT_LT(number.value(), std::uint64_t{1} << 31);
      EXPECT_EQ(table.OwnerIndex(number), number.value() % n);
      std::string key(random.Below(160), '\0');
      for (char& c : key) c = static_cast<char>(random.Below(256));
      const RoutingValue text = Text(key);
      EXPECT_LT(text.value(), std::uint64_t{1} << 32);
      EXPECT_EQ(table.OwnerIndex(text), text.value() % n);
      ++seen[table.OwnerIndex(number)];
    }
    for (const int count : seen)
      EXPECT_GT(count, 5000 / static_cast<int>(n)) << "keys are not spread";
  }
}

TEST(RoutingTableProperty, RandomSplitsMoveOnlyKeysOfTheSource) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    SplitTable table(random.Between(1, 4));
    std::vector<RoutingValue> hashes;
    for (int i = 0; i < 4096; ++i) hashes.emplace_back(random.Next());
    RoutingTable before = table.Table();
    for (int round = 0; round < 12; ++round) {
      auto it = table.owned().begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random.Below(table.owned().size())));
      const std::string source = it->first;
      const auto [left, right] = table.Split(source);
      RoutingTable after = table.Table();
      for (const RoutingValue hash : hashes) {
        const std::string& was = before.Owner(hash);
        const std::string& is = after.Owner(hash);
        if (was == source) {
          EXPECT_TRUE(is == left || is == right);
        } else {
          EXPECT_EQ(is, was);
        }
      }
      before = std::move(after);
    }
  }
}

}  // namespace
}  // namespace etalon::placement
