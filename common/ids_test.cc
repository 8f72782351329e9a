#include "common/ids.h"

#include <gtest/gtest.h>

namespace etalon {
namespace {

TEST(Ids, Hex) {
  EXPECT_EQ(ToHex(0x1234abcd), "000000001234abcd");
  EXPECT_EQ(FromHex("000000001234abcd"), 0x1234abcdu);
  EXPECT_EQ(FromHex("ffffffffffffffff"), ~0ull);
  for (const char* bad : {"", "xyz", "12 ", "-1", "00000000000000000"})
    EXPECT_EQ(FromHex(bad), 0u) << bad;
}

TEST(Ids, OrderAndNext) {
  EXPECT_LT(Term(1), Term(2));
  EXPECT_EQ(Term(1).Next(), Term(2));
  EXPECT_FALSE(ShardUid());
  EXPECT_TRUE(ShardUid(5));
  EXPECT_LT((TransferId{ShardUid(1), Term(2), LogIndex(9)}),
            (TransferId{ShardUid(1), Term(3), LogIndex(1)}));
}

TEST(Ids, Text) {
  EXPECT_EQ(ToString(BucketId{0, 17}), "17");
  EXPECT_EQ(ToString(BucketId{2, 17}), "17/2");
  EXPECT_EQ(ToString(TransferId{ShardUid(10), Term(2), LogIndex(3)}), "000000000000000a.2.3");
}

}  // namespace
}  // namespace etalon
