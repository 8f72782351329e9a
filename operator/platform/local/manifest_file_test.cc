#include "operator/platform/local/manifest_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "env/posix/temp_dir.h"
#include "operator/platform/local/files.h"

namespace etalon::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Text(int shards, int buckets) {
  return "apiVersion: sharding.etalon.dev/v1alpha1\nkind: ShardedCollection\nmetadata: {name: "
         "orders}\nspec:\n"
         "  version: 0.1.0\n  shardBy: {field: f, type: Int64, hash: Murmur3}\n  shardNum: " +
         std::to_string(shards) + "\n  bucketCount: " + std::to_string(buckets) + "\n";
}

class ManifestFileTest : public ::testing::Test {
 protected:
  void Edit(const std::string& text) { ASSERT_TRUE(ReplaceFile(path_, text).ok()); }
  TempDir dir_;
  const std::string path_ = dir_.path() + "/m.yaml";
  ManifestFile file_{path_, dir_.path()};
};

TEST_F(ManifestFileTest, IsFollowed) {
  EXPECT_TRUE(file_.Poll());
  EXPECT_THAT(file_.errors(), ElementsAre(HasSubstr("is not there")));
  EXPECT_FALSE(file_.Poll());
  Edit(Text(2, 64));
  EXPECT_TRUE(file_.Poll());
  EXPECT_EQ(file_.spec()->shard_num, 2u);
  EXPECT_THAT(file_.errors(), IsEmpty());
  EXPECT_FALSE(file_.Poll());
  Edit(Text(3, 64));
  EXPECT_TRUE(file_.Poll());
  EXPECT_EQ(file_.spec()->shard_num, 3u);
}

TEST_F(ManifestFileTest, ABadOneLeavesTheOldOneInForce) {
  Edit(Text(2, 64));
  file_.Poll();
  Edit(Text(0, 64));
  EXPECT_TRUE(file_.Poll());
  EXPECT_EQ(file_.spec()->shard_num, 2u);
  EXPECT_THAT(file_.errors(), ElementsAre(HasSubstr("spec.shardNum")));
  Edit(Text(3, 128));
  EXPECT_TRUE(file_.Poll());
  EXPECT_EQ(file_.spec()->shard_num, 2u);
  EXPECT_THAT(file_.errors(), ElementsAre(HasSubstr("spec.bucketCount: is fixed")));
}

TEST_F(ManifestFileTest, WhatIsFixedIsRememberedOverARestart) {
  Edit(Text(2, 64));
  file_.Poll();
  Edit(Text(2, 128));
  ManifestFile again(path_, dir_.path());
  EXPECT_TRUE(again.Poll());
  EXPECT_EQ(again.spec()->bucket_count, 64u);
  EXPECT_THAT(again.errors(), ElementsAre(HasSubstr("spec.bucketCount: is fixed")));
}

TEST_F(ManifestFileTest, MoreShardsThanBucketsOnlyAfterCreation) {
  Edit(Text(5, 4));
  file_.Poll();
  EXPECT_FALSE(file_.spec().has_value());
  Edit(Text(4, 4));
  file_.Poll();
  Edit(Text(8, 4));
  file_.Poll();
  EXPECT_EQ(file_.spec()->shard_num, 8u);
}

}  // namespace
}  // namespace etalon::controller
