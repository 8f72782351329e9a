#include "bench/show/package_index.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace etalon::show {
namespace {

Result<std::map<std::string, std::vector<Package>>> Parse(const std::string& text) {
  std::istringstream in(text);
  return ParsePackages(in);
}

TEST(PackageIndex, GroupsBinariesBySource) {
  auto index = Parse(
      "Package: libfoo1\nSource: foo (1.0-1)\nVersion: 1.0-1+b1\nArchitecture: amd64\nDescription: "
      "a library\n long text\n .\n more\n\n"
      "Package: foo\nVersion: 1.0-1\nArchitecture: all\n\n"
      "Package: bar\nVersion: 2\nArchitecture: amd64\n");
  ASSERT_TRUE(index.ok()) << index.status().ToString();
  ASSERT_EQ(index->size(), 2u);
  const auto& foo = index->at("foo");
  ASSERT_EQ(foo.size(), 2u);
  EXPECT_EQ(foo[0].key, "libfoo1 1.0-1+b1 amd64");
  const auto json = nlohmann::json::parse(foo[0].json);
  EXPECT_EQ(json["Description"], "a library\nlong text\n.\nmore");
  EXPECT_EQ(index->at("bar")[0].source, "bar");
}

TEST(PackageIndex, DropsRepeatedStanzas) {
  const std::string stanza = "Package: a\nVersion: 1\nArchitecture: all\n\n";
  auto index = Parse(stanza + stanza);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->at("a").size(), 1u);
}

TEST(PackageIndex, SaysWhereItIsWrong) {
  EXPECT_NE(Parse("Package: a\nnonsense\n").status().message().find("line 2"), std::string::npos);
  EXPECT_NE(Parse(" continued\n").status().message().find("line 1"), std::string::npos);
  EXPECT_FALSE(Parse("Version: 1\n\n").ok());
  ASSERT_TRUE(Parse("").ok());
}

}  // namespace
}  // namespace etalon::show
