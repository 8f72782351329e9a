#include "router/table/directory.h"

#include <gtest/gtest.h>

#include <functional>

namespace etalon::router {
namespace {

v1::Topology Valid() {
  v1::Topology t;
  t.set_version(3);
  t.set_collection(7);
  t.set_bucket_count(16);
  t.mutable_shard_by()->set_field("id");
  t.mutable_shard_by()->set_type(v1::KEY_TYPE_INT64);
  t.mutable_shard_by()->set_hash(v1::HASH_MURMUR3);
  for (int s = 0; s < 2; ++s) {
    v1::ShardInfo& shard = *t.add_shards();
    shard.set_name("s" + std::to_string(s));
    shard.set_uid(10 + s);
    for (const char* zone : {"a", "b", "c"}) {
      v1::ReplicaInfo& r = *shard.add_replicas();
      r.set_name(shard.name() + zone);
      r.set_address(r.name() + ":1");
      r.set_zone(zone);
    }
  }
  return t;
}

void Distance(v1::Topology& t, const char* from, const char* to, std::uint32_t distance) {
  v1::ZoneDistance& d = *t.add_distances();
  d.set_from(from);
  d.set_to(to);
  d.set_distance(distance);
}

std::vector<std::uint32_t> Distances(const v1::Topology& t, const std::string& zone) {
  std::vector<std::uint32_t> out;
  const auto directory = Directory::Make(t, zone);
  for (const Replica& r : (*directory)->Find(ShardUid(10))->replicas) out.push_back(r.distance);
  return out;
}

TEST(Directory, KnowsShardsAndReplicas) {
  const auto made = Directory::Make(Valid(), "a");
  ASSERT_TRUE(made.ok());
  const Directory& d = **made;
  EXPECT_EQ(d.version(), TopologyVersion(3));
  EXPECT_EQ(d.collection(), CollectionId(7));
  ASSERT_NE(d.Find(ShardUid(11)), nullptr);
  EXPECT_EQ(d.Find(ShardUid(11))->name, "s1");
  EXPECT_EQ(d.Find(ShardUid(12)), nullptr);
  EXPECT_EQ(d.ShardOf("s1b"), d.Find(ShardUid(11)));
  EXPECT_EQ(d.ShardOf("nobody"), nullptr);
}

TEST(Directory, DistancesAreThoseOfTheRoutersZone) {
  auto t = Valid();
  EXPECT_EQ(Distances(t, "b"),
            (std::vector<std::uint32_t>{kInfiniteDistance, 0, kInfiniteDistance}));
  Distance(t, "b", "a", 10);
  Distance(t, "a", "b", 99);  // the other direction
  EXPECT_EQ(Distances(t, "b"), (std::vector<std::uint32_t>{10, 0, kInfiniteDistance}));
  Distance(t, "b", "b", 5);  // the own zone may be named
  EXPECT_EQ(Distances(t, "b"), (std::vector<std::uint32_t>{10, 5, kInfiniteDistance}));
  EXPECT_EQ(Distances(t, ""), std::vector<std::uint32_t>(3, kInfiniteDistance));
}

TEST(Directory, RefusesWhatCannotBeUsed) {
  const std::vector<std::function<void(v1::Topology&)>> spoil = {
      [](v1::Topology& t) { t.set_version(0); },
      [](v1::Topology& t) { t.set_collection(0); },
      [](v1::Topology& t) { t.set_bucket_count(0); },
      [](v1::Topology& t) { t.set_bucket_count((1u << 20) + 1); },
      [](v1::Topology& t) { t.mutable_shard_by()->set_hash(v1::HASH_VSHARD_CRC32C); },
      [](v1::Topology& t) { t.mutable_shard_by()->set_hash(static_cast<v1::HashFunction>(99)); },
      [](v1::Topology& t) { t.mutable_shards(1)->set_uid(10); },
      [](v1::Topology& t) { t.mutable_shards(1)->set_uid(0); },
      [](v1::Topology& t) { t.mutable_shards(1)->set_name("s0"); },
      [](v1::Topology& t) { t.mutable_shards(1)->set_name(""); },
      [](v1::Topology& t) { t.mutable_shards(1)->clear_replicas(); },
      [](v1::Topology& t) { t.mutable_shards(1)->mutable_replicas(0)->set_name("s0a"); },
      [](v1::Topology& t) { t.mutable_shards(1)->mutable_replicas(0)->set_name(""); },
  };
  for (std::size_t i = 0; i < spoil.size(); ++i) {
    auto t = Valid();
    spoil[i](t);
    const auto made = Directory::Make(t, "a");
    ASSERT_FALSE(made.ok()) << i;
    EXPECT_EQ(made.status().reason(), Reason::kInvalidCfg) << i;
  }
}

}  // namespace
}  // namespace etalon::router
