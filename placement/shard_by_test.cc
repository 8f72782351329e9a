#include "placement/shard_by.h"

#include <gtest/gtest.h>

namespace etalon::placement {
namespace {

TEST(ShardBy, AcceptsTheFieldAsItStands) {
  for (const char* field : {"pk", "$namespace_id", "'pk'", "customer_id", "\xc3\xa9"}) {
    const auto parsed = ParseShardBy(FormatShardBy(field));
    ASSERT_TRUE(parsed.ok()) << field;
    EXPECT_EQ(*parsed, field);
  }
  EXPECT_EQ(FormatShardBy("pk"), "hash(pk)");
}

TEST(ShardBy, RejectsTheRestWhole) {
  for (const char* text : {"", "hash(", "hash()", "hash(pk", "hash", "pk", "HASH(pk)", "hash (pk)",
                           "hash( a )", "hash(a b)", "hash(a)b)", "murmur(pk)", "hash(pk) ",
                           " hash(pk)", "hash(a\tb)", "hash((a)", ")", "hash)"}) {
    const auto parsed = ParseShardBy(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.status().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace etalon::placement
