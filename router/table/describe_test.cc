#include "router/table/describe.h"

#include <gtest/gtest.h>

#include "placement/routing_table.h"

namespace etalon::router {
namespace {

constexpr ShardUid kA{10}, kB{11}, kC{12};

v1::Topology Topology() {
  v1::Topology t;
  t.set_version(3);
  t.set_collection(7);
  t.set_bucket_count(4);
  t.mutable_shard_by()->set_field("id");
  const std::pair<const char*, v1::ShardLifecycle> shards[] = {
      {"beta", v1::SHARD_NORMAL}, {"alpha", v1::SHARD_DRAINING}, {"gamma", v1::SHARD_CREATING}};
  std::uint64_t uid = 10;
  for (const auto& [name, state] : shards) {
    v1::ShardInfo& shard = *t.add_shards();
    shard.set_name(name);
    shard.set_uid(uid++);
    shard.set_state(state);
    shard.add_replicas()->set_name(std::string(name) + "-0");
  }
  return t;
}

std::shared_ptr<const Directory> Make(const v1::Topology& t) {
  return Directory::Make(t, "").value();
}

// What any client does with the answer.
Result<placement::RoutingTable> Derive(const v1::DescribeCollectionResponse& r) {
  placement::DescribeAnswer answer;
  answer.shard_names.assign(r.shard_names().begin(), r.shard_names().end());
  for (const v1::ShardRoutingInfo& info : r.shard_infos()) {
    placement::ShardInfo one;
    one.name = info.name();
    one.state = static_cast<placement::ShardState>(info.state());
    one.residues.assign(info.hash_routing().buckets().begin(), info.hash_routing().buckets().end());
    answer.infos.push_back(std::move(one));
  }
  answer.modulus = r.routing_modulus();
  answer.shard_by = r.shard_by();
  answer.shards_num = r.shards_num();
  return placement::RoutingTable::Derive(answer);
}

TEST(Describe, TheAnswerDerivesToTheTable) {
  BucketTable table(4);
  for (std::uint32_t n = 0; n < 4; ++n) table.Offer(n, {n < 2 ? kA : kB, Epoch(1)});
  ASSERT_TRUE(table.Reach({1, 0}).ok());
  table.Offer(5, {kC, Epoch(2)});
  const auto answer = Describe(table, *Make(Topology()));
  ASSERT_EQ(answer.status().code(), 0u);
  EXPECT_EQ(std::vector<std::string>(answer.shard_names().begin(), answer.shard_names().end()),
            (std::vector<std::string>{"alpha", "beta", "gamma"}));
  EXPECT_EQ(answer.shard_infos(0).state(), v1::ShardRoutingInfo::NORMAL) << "draining, but owns";
  EXPECT_EQ(answer.shard_infos(2).state(), v1::ShardRoutingInfo::CREATING);
  EXPECT_EQ(answer.shards_num(), 3u);
  EXPECT_EQ(answer.shard_by(), "hash(id)");
  EXPECT_EQ(answer.routing_modulus(), 8u);
  const auto derived = Derive(answer);
  ASSERT_TRUE(derived.ok()) << derived.status().ToString();
  for (std::uint64_t v = 0; v < 100; ++v) {
    const ShardUid owner = table.Find(RoutingValue(v))->shard;
    EXPECT_EQ(derived->Owner(RoutingValue(v)), owner == kA   ? "beta"
                                               : owner == kB ? "alpha"
                                                             : "gamma");
  }
}

TEST(Describe, ShardsThatOwnNothingAreNotListed) {
  BucketTable table(4);
  for (std::uint32_t n = 0; n < 4; ++n) table.Offer(n, {kA, Epoch(1)});
  const auto answer = Describe(table, *Make(Topology()));
  ASSERT_EQ(answer.shard_names_size(), 1);
  EXPECT_EQ(answer.shard_names(0), "beta");
  EXPECT_EQ(answer.shards_num(), 1u);
  EXPECT_TRUE(Derive(answer).ok());
}

TEST(Describe, AHoleIsNoAnswer) {
  BucketTable table(4);
  table.Offer(0, {kA, Epoch(1)});
  const auto answer = Describe(table, *Make(Topology()));
  EXPECT_EQ(answer.status().code(), 14u);
  EXPECT_EQ(answer.status().reason(), v1::REASON_UNKNOWN_BUCKETS);
  EXPECT_EQ(answer.status().hint().number(), 3u);
  EXPECT_EQ(answer.shard_names_size(), 0);
}

TEST(Describe, AnUnknownShardIsNoAnswer) {
  BucketTable table(4);
  for (std::uint32_t n = 0; n < 4; ++n) table.Offer(n, {ShardUid(99), Epoch(1)});
  const auto answer = Describe(table, *Make(Topology()));
  EXPECT_EQ(answer.status().code(), 14u);
  EXPECT_EQ(answer.status().reason(), v1::REASON_STALE_TOPOLOGY);
  EXPECT_EQ(answer.shard_infos_size(), 0);
}

TEST(Describe, EveryChangeMakesANewerVersion) {
  BucketTable table(4);
  for (std::uint32_t n = 0; n < 4; ++n) table.Offer(n, {kA, Epoch(1)});
  auto t = Topology();
  std::uint64_t version = Describe(table, *Make(t)).version();
  const auto newer = [&](const char* what) {
    const std::uint64_t next = Describe(table, *Make(t)).version();
    EXPECT_GT(next, version) << what;
    version = next;
  };
  table.Offer(1, {kB, Epoch(2)});
  newer("move");
  ASSERT_TRUE(table.Reach({1, 0}).ok());
  newer("doubling");
  t.set_version(4);
  t.mutable_shards(2)->set_state(v1::SHARD_NORMAL);
  newer("topology");
}

}  // namespace
}  // namespace etalon::router
