#include "operator/plan/names.h"

#include <gtest/gtest.h>

#include <set>

namespace etalon::controller {
namespace {

TEST(Names, ThereAndBack) {
  EXPECT_EQ(ShardName(12), "shard-12");
  EXPECT_EQ(ShardNumber("shard-12"), 12u);
  EXPECT_EQ(ShardNumber("shard-012"), std::nullopt);
  EXPECT_EQ(ShardNumber("shard-"), std::nullopt);
  EXPECT_EQ(ShardNumber("other-1"), std::nullopt);
  EXPECT_EQ(ReplicaName("orders", "shard-1", 2), "orders-shard-1-2");
  EXPECT_EQ(ReplicaOrdinal("orders", "shard-1", "orders-shard-1-2"), 2u);
  EXPECT_EQ(ReplicaOrdinal("orders", "shard-1", "orders-shard-11-2"), std::nullopt);
  EXPECT_EQ(ReplicaOrdinal("orders", "shard-1", "orders-shard-1-x"), std::nullopt);
}

TEST(Names, UidsAreFoundAgainAndNeverShared) {
  std::set<ShardUid> seen;
  for (std::uint64_t collection = 1; collection <= 50; ++collection) {
    for (std::uint32_t number = 0; number < 50; ++number) {
      const ShardUid uid = UidOf(CollectionId(collection), number);
      EXPECT_TRUE(uid);
      EXPECT_EQ(uid, UidOf(CollectionId(collection), number));
      seen.insert(uid);
    }
  }
  EXPECT_EQ(seen.size(), 2500u);
}

}  // namespace
}  // namespace etalon::controller
