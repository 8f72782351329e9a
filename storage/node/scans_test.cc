#include "storage/node/scans.h"

#include <gtest/gtest.h>

#include "engine/bucket/testing.h"

namespace etalon::storage {
namespace {

using bucket::testing::PutCall;

constexpr RoutingValue kValue{7};

struct ScansTest : ::testing::Test {
  ScansTest() {
    for (const char* key : {"a", "b", "c", "d", "e"}) Put(key, "1");
  }
  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(shard.Do(PutCall(kValue.value(), key, value)).status.ok());
  }
  Result<v1::ScanResult> Page(const std::string& cursor, std::uint32_t limit = 2) {
    v1::ScanArgs args;
    args.set_space("orders");
    args.set_limit(limit);
    args.set_cursor(cursor);
    return scans.Page(kValue, args, *shard.sm, shard.store, now);
  }
  static std::string Keys(const v1::ScanResult& page) {
    std::string keys;
    for (const v1::Record& record : page.records()) keys += record.key();
    return keys;
  }

  bucket::testing::Shard shard;
  Scans scans{Random(1)};
  SteadyTime now{};
};

TEST_F(ScansTest, PagesFollowEachOtherOnOneSnapshot) {
  auto page = Page("");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Keys(*page), "ab");
  EXPECT_EQ(scans.refs(), 1u);
  Put("bb", "2");
  page = Page(page->cursor());
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Keys(*page), "cd") << "what was written later is not there";
  page = Page(page->cursor());
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(Keys(*page), "e");
  EXPECT_EQ(page->cursor(), "");
  EXPECT_EQ(scans.refs(), 0u);
}

// The answer was lost, or the network doubled the question: no record may be left out.
TEST_F(ScansTest, APageThatIsAskedForAgainIsTheSamePage) {
  const auto first = Page("");
  ASSERT_TRUE(first.ok());
  const auto second = Page(first->cursor());
  const auto again = Page(first->cursor());
  ASSERT_TRUE(second.ok());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->SerializeAsString(), second->SerializeAsString());
  const auto last = Page(second->cursor());
  ASSERT_TRUE(last.ok());
  EXPECT_EQ(Keys(*last), "e");
  EXPECT_EQ(Page(second->cursor()).status().reason(), Reason::kScanRestarted)
      << "the scan has ended";
}

TEST_F(ScansTest, ACursorIsGoodForItsOwnScanOnly) {
  const auto first = Page("");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Page("x").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Page(first->cursor().substr(0, 8)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Page(first->cursor().substr(0, 8) + "beyond").status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Page(std::string(8, 'x') + first->cursor().substr(8)).status().reason(),
            Reason::kScanRestarted);
  now += Scans::kLease;
  scans.Expire(now);
  EXPECT_EQ(Page(first->cursor()).status().reason(), Reason::kScanRestarted);
}

}  // namespace
}  // namespace etalon::storage
