#include "placement/hash.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace etalon::placement {
namespace {

std::string FromHexBytes(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

// What VShard calls the bucket ID of 3000.
std::uint64_t VshardId(std::string_view key) {
  const auto value = HashKey(KeyType::kString, HashFunction::kVshardCrc32c, key);
  EXPECT_TRUE(value.ok());
  return value->value() % 3000 + 1;
}

TEST(Hash, EveryVectorOfTheFile) {
  std::ifstream file(ETALON_SOURCE_DIR "/placement/testdata/hash-vectors.tsv");
  ASSERT_TRUE(file.is_open());
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> field;
    std::istringstream columns(line);
    for (std::string text; std::getline(columns, text, '\t');) field.push_back(text);
    ASSERT_EQ(field.size(), 6u) << line;
    const bool is_number = field[0] == "int64";
    const auto value =
        is_number ? HashKey(KeyType::kInt64, HashFunction::kMurmur3, field[1])
                  : HashKey(KeyType::kString, HashFunction::kCrc32, FromHexBytes(field[1]));
    ASSERT_TRUE(value.ok()) << line;
    EXPECT_EQ(std::to_string(value->value()), field[2]) << line;
    EXPECT_EQ(std::to_string(value->value() % 3), field[3]) << line;
    EXPECT_EQ(std::to_string(value->value() % 16), field[4]) << line;
    EXPECT_EQ(std::to_string(value->value() % 3000), field[5]) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 40);
}

TEST(Hash, PublishedVectorsOfTheFunctions) {
  EXPECT_EQ(Murmur3X86(""), 0u);
  EXPECT_EQ(Murmur3X86("test"), 0xba6bd213u);           // whole blocks only
  EXPECT_EQ(Murmur3X86("Hello, world!"), 0xc0363e43u);  // a tail of one byte
  EXPECT_EQ(Murmur3X86("a"), 1009084850u);              // a tail alone
  EXPECT_EQ(Crc32Ieee("123456789"), 0xcbf43926u);
}

TEST(Hash, VshardVectors) {
  EXPECT_EQ(VshardId("1"), 477u);
  EXPECT_EQ(VshardId("1LL"), 730u);
  EXPECT_EQ(VshardId("1ULL"), 982u);
  // mpcrc32 of what is not a string is the hash of its MessagePack bytes.
  EXPECT_EQ(VshardId("\x01"), 1614u);                                      // 1
  EXPECT_EQ(VshardId(std::string("\xcb\x3f\xf0\0\0\0\0\0\0", 9)), 1411u);  // double 1.0
  EXPECT_EQ(VshardId(std::string("\xca\x3f\x80\0\0", 5)), 193u);           // float 1.0
  EXPECT_EQ(VshardId(std::string("\xd5\x01\x00\x1c", 4)), 1696u);          // decimal 1
}

TEST(Hash, NumberAndItsTextAreTheSameInt64Key) {
  for (const std::int64_t key :
       {std::int64_t{0}, std::int64_t{-3000}, std::int64_t{42},
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    for (const auto function : {HashFunction::kMurmur3, HashFunction::kCrc32}) {
      const auto number = HashKey(KeyType::kInt64, function, key);
      const auto text = HashKey(KeyType::kInt64, function, std::to_string(key));
      ASSERT_TRUE(number.ok() && text.ok());
      EXPECT_EQ(*number, *text);
    }
  }
}

TEST(Hash, Int64WithCrc32HashesLittleEndianBytes) {
  const auto value =
      HashKey(KeyType::kInt64, HashFunction::kCrc32, std::int64_t{0x3837363534333231});
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->value(), Crc32Ieee("12345678"));
}

TEST(Hash, OnlyMurmurIsMaskedAndOnlyCrc32IsCut) {
  const auto murmur = HashKey(KeyType::kString, HashFunction::kMurmur3, "test");
  ASSERT_TRUE(murmur.ok());
  EXPECT_EQ(murmur->value(), 0x3a6bd213u);
  const std::string x100(100, 'x'), x101(101, 'x');
  const auto differs = [&](HashFunction function) {
    return *HashKey(KeyType::kString, function, x100) != *HashKey(KeyType::kString, function, x101);
  };
  EXPECT_TRUE(differs(HashFunction::kMurmur3));
  EXPECT_FALSE(differs(HashFunction::kCrc32));
  EXPECT_TRUE(differs(HashFunction::kVshardCrc32c));
}

TEST(Hash, RefusesWhatIsNotAnInt64) {
  for (const char* key :
       {"", " 1", "1 ", "+1", "1.0", "0x10", "abc", "9223372036854775808", "1,000"}) {
    const auto value = HashKey(KeyType::kInt64, HashFunction::kMurmur3, key);
    ASSERT_FALSE(value.ok()) << key;
    EXPECT_EQ(value.status().code(), Code::kInvalidArgument);
  }
}

TEST(Hash, RefusesPairsThatAreNotDefined) {
  EXPECT_FALSE(CheckHash(KeyType::kInt64, HashFunction::kVshardCrc32c).ok());
  EXPECT_FALSE(HashKey(KeyType::kInt64, HashFunction::kVshardCrc32c, "1").ok());
  EXPECT_FALSE(HashKey(KeyType::kInt64, HashFunction::kVshardCrc32c, std::int64_t{1}).ok());
  EXPECT_FALSE(HashKey(KeyType::kString, HashFunction::kCrc32, std::int64_t{1}).ok());
  for (const auto function :
       {HashFunction::kMurmur3, HashFunction::kCrc32, HashFunction::kVshardCrc32c}) {
    EXPECT_TRUE(CheckHash(KeyType::kString, function).ok());
  }
}

TEST(Hash, NamesAreThoseOfTheSpec) {
  for (const char* name : {"Murmur3", "Crc32", "VshardCrc32c"}) {
    ASSERT_TRUE(ParseHashFunction(name).has_value()) << name;
    EXPECT_EQ(HashFunctionName(*ParseHashFunction(name)), name);
  }
  for (const char* name : {"Int64", "String"}) {
    ASSERT_TRUE(ParseKeyType(name).has_value()) << name;
    EXPECT_EQ(KeyTypeName(*ParseKeyType(name)), name);
  }
  EXPECT_FALSE(ParseHashFunction("murmur3").has_value());
  EXPECT_FALSE(ParseKeyType("int64").has_value());
}

}  // namespace
}  // namespace etalon::placement
