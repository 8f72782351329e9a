#include "engine/bucket/changes.h"

#include <gtest/gtest.h>

namespace etalon::bucket {
namespace {

TEST(ChangesTest, FindsTheLastChangeOfAKey) {
  Changes changes;
  EXPECT_EQ(changes.Find("a"), nullptr);
  changes.batch().Put("a", "1");
  changes.batch().Put("b", "1");
  EXPECT_EQ(changes.Find("a")->value, "1");
  changes.batch().Put("a", "2");
  changes.batch().Delete("b");
  for (int i = 0; i < 100; ++i) changes.batch().Put("k" + std::to_string(i), "v");  // it grows
  EXPECT_EQ(changes.Find("a")->value, "2");
  EXPECT_EQ(changes.Find("b")->kind, store::Batch::Kind::kDelete);
  EXPECT_EQ(changes.Find("k57")->value, "v");
  EXPECT_EQ(changes.Find("c"), nullptr);
}

TEST(ChangesTest, WhatIsWrittenIsForgotten) {
  Changes changes;
  changes.batch().Put("a", "1");
  changes.batch().Put("b", "1");
  ASSERT_NE(changes.Find("a"), nullptr);
  changes.Written();
  EXPECT_TRUE(changes.batch().empty());
  EXPECT_EQ(changes.Find("a"), nullptr);
  changes.batch().Put("c", "1");
  EXPECT_EQ(changes.Find("c")->value, "1");
  EXPECT_EQ(changes.Find("b"), nullptr);
}

}  // namespace
}  // namespace etalon::bucket
