#include "router/call/target.h"

#include <gtest/gtest.h>

namespace etalon::router {
namespace {

std::shared_ptr<const Directory> Make(v1::KeyType type, v1::HashFunction hash) {
  v1::Topology t;
  t.set_version(1);
  t.set_collection(7);
  t.set_bucket_count(3000);
  t.mutable_shard_by()->set_type(type);
  t.mutable_shard_by()->set_hash(hash);
  return Directory::Make(t, "").value();
}

TEST(Target, KeysAreHashedAsDeclared) {
  const auto numbers = Make(v1::KEY_TYPE_INT64, v1::HASH_MURMUR3);
  v1::Target target;
  target.set_int_key(1);
  EXPECT_EQ(*RoutingValueOf(target, *numbers, 3000), RoutingValue(1392991556));
  target.set_string_key("1");
  EXPECT_EQ(RoutingValueOf(target, *numbers, 3000).status().code(), Code::kInvalidArgument)
      << "a number's text is not guessed to be the number";

  const auto strings = Make(v1::KEY_TYPE_STRING, v1::HASH_VSHARD_CRC32C);
  EXPECT_EQ(RoutingValueOf(target, *strings, 3000)->value() % 3000, 476u);
  target.set_int_key(1);
  EXPECT_EQ(RoutingValueOf(target, *strings, 3000).status().code(), Code::kInvalidArgument);
}

TEST(Target, ABucketIsItsOwnRoutingValue) {
  const auto directory = Make(v1::KEY_TYPE_INT64, v1::HASH_MURMUR3);
  v1::Target target;
  target.set_bucket(2999);
  EXPECT_EQ(*RoutingValueOf(target, *directory, 3000), RoutingValue(2999));
  target.set_bucket(3000);
  EXPECT_EQ(RoutingValueOf(target, *directory, 3000).status().reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(*RoutingValueOf(target, *directory, 6000), RoutingValue(3000));
  EXPECT_EQ(RoutingValueOf({}, *directory, 3000).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace etalon::router
