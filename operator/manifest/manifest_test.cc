#include "operator/manifest/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace etalon::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::string With(const std::string& spec_lines, const std::string& metadata = "{name: orders}") {
  return "apiVersion: sharding.etalon.dev/v1alpha1\nkind: ShardedCollection\nmetadata: " +
         metadata +
         "\nspec:\n  version: 0.1.0\n  shardBy: {field: customer_id, type: Int64, hash: "
         "Murmur3}\n" +
         spec_lines;
}

TEST(Manifest, TheLeastThatIsNeeded) {
  const Manifest parsed = ParseManifest(With("  shardNum: 3\n"));
  ASSERT_THAT(parsed.errors, IsEmpty());
  const CollectionSpec& spec = *parsed.spec;
  EXPECT_EQ(spec.name, "orders");
  EXPECT_EQ(spec.shard_num, 3u);
  EXPECT_EQ(spec.bucket_count, 3000u);
  EXPECT_EQ(spec.replicas_per_shard, 3u);
  EXPECT_EQ(spec.routers, 2u);
  EXPECT_EQ(spec.rebalancing.max_transfer_bytes_per_second, 200u << 20);
  EXPECT_EQ(spec.Override("shard-7").weight, 100u);
  EXPECT_FALSE(spec.paused);
}

constexpr char kWhole[] = R"(---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
---
apiVersion: sharding.etalon.dev/v1alpha1
kind: ShardedCollection
metadata:
  name: orders
  namespace: shop
  labels: {team: x}
  annotations: {etalon.dev/adopt: 00ab, other: thing}
spec:
  version: 0.1.0
  shardNum: 4
  bucketCount: 1024
  shardBy: {field: id, type: String, hash: VshardCrc32c}
  replicasPerShard: 5
  spaces: [{name: orders}, {name: accounts}]
  shards:
  - {name: shard-0, weight: 150, policy: Balanced}
  - {name: shard-1, weight: 0}
  - {name: shard-2, policy: Locked}
  - {name: shard-3, policy: Draining}
  rebalancing:
    mode: Manual
    shard: shard-1
    maxFreezeMilliseconds: 7
    disbalanceThresholdPercent: 2.5
    maxSendingPerShard: 3
    maxReceivingPerShard: 9
    maxTransferBytesPerSecond: 1Gi
  resharding: {strategy: Split}
  scaleDown: {policy: Forbid}
  paused: true
  storage:
    image: x
    dataVolumeClaim: {storageClassName: fast}
    volumeRetention: {whenScaled: Retain}
    resources: {}
    pod: {labels: {}}
  router: {replicas: 5, image: "", resources: {}, pod: {}, configUpdate: Live, service: {type: ClusterIP}}
  sidecar: {image: "", resources: {}}
  zones:
    topologyKey: topology.kubernetes.io/zone
    leader: a
    distances: [{from: a, to: b, distance: 10}]
    assignments:
    - {node: local, zone: a, replicas: [orders-shard-0-0, orders-router-0]}
    - {zone: b, replicas: [orders-shard-0-1]}
  functionsConfigMapRef: {name: f}
status: {anything: [1]}
)";

TEST(Manifest, EveryField) {
  const Manifest parsed = ParseManifest(kWhole);
  ASSERT_THAT(parsed.errors, IsEmpty());
  const CollectionSpec& spec = *parsed.spec;
  EXPECT_EQ(spec.adopt, CollectionId(0xab));
  EXPECT_EQ(spec.bucket_count, 1024u);
  EXPECT_EQ(spec.key_type, v1::KEY_TYPE_STRING);
  EXPECT_EQ(spec.hash, v1::HASH_VSHARD_CRC32C);
  EXPECT_THAT(spec.spaces, ElementsAre("orders", "accounts"));
  EXPECT_EQ(spec.Override("shard-0").weight, 150u);
  EXPECT_EQ(spec.Override("shard-1").weight, 0u);
  EXPECT_EQ(spec.Override("shard-2").policy, ShardPolicy::kLocked);
  EXPECT_EQ(spec.Override("shard-3").policy, ShardPolicy::kDraining);
  EXPECT_EQ(spec.rebalancing.mode, RebalancingMode::kManual);
  EXPECT_EQ(spec.rebalancing.shard, "shard-1");
  EXPECT_EQ(spec.rebalancing.max_freeze_millis, 7u);
  EXPECT_EQ(spec.rebalancing.disbalance_threshold_percent, 2.5);
  EXPECT_EQ(spec.rebalancing.max_sending, 3u);
  EXPECT_EQ(spec.rebalancing.max_receiving, 9u);
  EXPECT_EQ(spec.rebalancing.max_transfer_bytes_per_second, 1u << 30);
  EXPECT_EQ(spec.strategy, ReshardingStrategy::kSplit);
  EXPECT_EQ(spec.scale_down, ScaleDownPolicy::kForbid);
  EXPECT_TRUE(spec.paused);
  EXPECT_EQ(spec.routers, 5u);
  EXPECT_EQ(spec.config_update, ConfigUpdate::kLive);
  EXPECT_EQ(spec.leader_zone, "a");
  EXPECT_THAT(spec.distances, ElementsAre(ZoneDistance{"a", "b", 10}));
  EXPECT_EQ(spec.zones.at("orders-router-0"), "a");
  EXPECT_EQ(spec.zones.at("orders-shard-0-1"), "b");
}

struct Refusal {
  const char* manifest_lines;
  const char* sentence;  // part of the only error
};

TEST(Manifest, RefusesWithASentenceThatNamesTheField) {
  const Refusal refusals[] = {
      {"  shardNum: 0\n", "spec.shardNum: must be 1 to 1024, it is \"0\""},
      {"  shardNum: 1025\n", "spec.shardNum: must be 1 to 1024"},
      {"  shardNum: -3\n", "spec.shardNum: must be 1 to 1024"},
      {"  shardNum: \"3\"\n", "spec.shardNum: must be a whole number"},
      {"  shardNum: 3.5\n", "spec.shardNum: must be a whole number"},
      {"  shardNum: [3]\n", "spec.shardNum: must be a single value"},
      {"  shardNum: 99999999999999999999\n", "spec.shardNum: must be 1 to 1024"},
      {"", "spec.shardNum: is required"},
      {"  shardNum: 3\n  bucketCount: 1048577\n", "spec.bucketCount: must be 1 to 1048576"},
      {"  shardNum: 3\n  replicasPerShard: 2\n",
       "spec.replicasPerShard: must be 1, 3 or 5, it is 2"},
      {"  shardNum: 3\n  replicasPerShard: 4\n",
       "spec.replicasPerShard: must be 1, 3 or 5, it is 4"},
      {"  shardNum: 3\n  shards: [{name: shard-0}, {name: shard-0}]\n",
       "shard shard-0 is listed twice"},
      {"  shardNum: 3\n  shards: [{name: first}]\n", "spec.shards[0].name: \"first\" is no shard"},
      {"  shardNum: 3\n  shards: [{name: shard-01}]\n", "is no shard"},
      {"  shardNum: 3\n  shards: [{name: shard-0, weight: -1}]\n",
       "spec.shards[0].weight: must be 0 to 1000000"},
      {"  shardNum: 3\n  shards: [{name: shard-0, policy: Off}]\n",
       "spec.shards[0].policy: must be one of Balanced, Locked, Draining"},
      {"  shardNum: 3\n  shards: [{name: shard-0, wieght: 1}]\n",
       "spec.shards[0].\"wieght\": there is no such field"},
      {"  shardNum: 3\n  spaces: [{name: a}, {name: a}]\n", "space a is declared twice"},
      {"  shardNum: 3\n  spaces: {name: a}\n", "spec.spaces: must be a list"},
      {"  shardNum: 3\n  rebalancing: {mode: Off}\n",
       "spec.rebalancing.mode: must be one of Automatic, Manual, Disabled"},
      {"  shardNum: 3\n  rebalancing: {mode: Manual}\n",
       "spec.rebalancing.shard: must name the shard"},
      {"  shardNum: 3\n  rebalancing: {maxTransferBytesPerSecond: fast}\n",
       "must be a quantity of bytes"},
      {"  shardNum: 3\n  rebalancing: {disbalanceThresholdPercent: -1}\n", "must be 0 to 100"},
      {"  shardNum: 3\n  paused: yes\n", "spec.paused: must be true or false"},
      {"  shardNum: 3\n  scaleDown: Drain\n", "spec.scaleDown: must be a map of fields"},
      {"  shardNum: 3\n  shardnum: 4\n", "spec.\"shardnum\": there is no such field"},
      {"  shardNum: 3\n  router: {replica: 1}\n",
       "spec.router.\"replica\": there is no such field"},
      {"  shardNum: 3\n  shardNum: 4\n", "spec.shardNum: is given twice"},
      {"  shardNum: 3\n  zones: {assignments: [{zone: a, replicas: [x]}, {zone: b, replicas: "
       "[x]}]}\n",
       "x is put into two zones"},
      {"  shardNum: 3\n  zones: {distances: [{from: a, to: b}]}\n", "distance: is required"},
  };
  for (const Refusal& refusal : refusals) {
    const Manifest parsed = ParseManifest(With(refusal.manifest_lines));
    EXPECT_FALSE(parsed.spec.has_value()) << refusal.manifest_lines;
    ASSERT_EQ(parsed.errors.size(), 1u)
        << refusal.manifest_lines << ::testing::PrintToString(parsed.errors);
    EXPECT_THAT(parsed.errors[0], HasSubstr(refusal.sentence));
  }
}

TEST(Manifest, AllErrorsAtOnce) {
  const Manifest parsed =
      ParseManifest(With("  shardNum: 0\n  replicasPerShard: 2\n  wrong: 1\n", "{name: Orders}"));
  EXPECT_THAT(
      parsed.errors,
      ElementsAre(StartsWith("metadata.name: must be small letters"), StartsWith("spec.shardNum:"),
                  StartsWith("spec.replicasPerShard:"), StartsWith("spec.\"wrong\":")));
}

TEST(Manifest, Names) {
  const auto errors = [](const std::string& metadata) {
    return ParseManifest(With("  shardNum: 1\n", metadata)).errors;
  };
  EXPECT_THAT(errors("{name: a}"), IsEmpty());
  EXPECT_THAT(errors("{name: " + std::string(40, 'a') + "}"), IsEmpty());
  EXPECT_THAT(errors("{name: " + std::string(41, 'a') + "}"),
              ElementsAre(HasSubstr("at most 40 characters, it has 41")));
  for (const char* name : {"1a", "a-", "a_b", "-a", "a.b"}) {
    EXPECT_THAT(errors(std::string("{name: ") + name + "}"),
                ElementsAre(StartsWith("metadata.name: must be small letters")));
  }
  EXPECT_THAT(errors("{name: a, annotations: {etalon.dev/adopt: xyz}}"),
              ElementsAre(HasSubstr("etalon.dev/adopt: must be a collection ID")));
}

TEST(Manifest, Int64KeysHaveNoVshardHash) {
  const Manifest parsed = ParseManifest(
      "apiVersion: sharding.etalon.dev/v1alpha1\nkind: ShardedCollection\nmetadata: {name: a}\n"
      "spec: {version: 1, shardNum: 1, shardBy: {field: f, type: Int64, hash: VshardCrc32c}}\n");
  EXPECT_THAT(parsed.errors,
              ElementsAre(HasSubstr("spec.shardBy.hash: VshardCrc32c hashes String keys only")));
}

TEST(Manifest, WhatIsNoManifest) {
  EXPECT_THAT(ParseManifest("").errors,
              ElementsAre(HasSubstr("must hold one ShardedCollection, it holds 0")));
  EXPECT_THAT(ParseManifest("a: [").errors, ElementsAre(HasSubstr("is no YAML")));
  EXPECT_THAT(ParseManifest(",").errors, ElementsAre(HasSubstr("or none that ends")));
  const std::string one = With("  shardNum: 1\n");
  EXPECT_THAT(ParseManifest(one + "---\n" + one).errors, ElementsAre(HasSubstr("it holds 2")));
  EXPECT_THAT(ParseManifest("kind: ShardedCollection\n").errors,
              ElementsAre(StartsWith("apiVersion:"), StartsWith("metadata: is required"),
                          StartsWith("spec: is required")));
  EXPECT_THAT(ParseManifest(std::string(kMaxManifestBytes + 1, ' ')).errors,
              ElementsAre(HasSubstr("at most")));
}

TEST(Manifest, CreationAndChange) {
  CollectionSpec spec =
      *ParseManifest(With("  shardNum: 3\n  bucketCount: 3\n  spaces: [{name: a}]\n")).spec;
  EXPECT_THAT(CheckCreation(spec), IsEmpty());
  EXPECT_THAT(CheckChange(spec, spec), IsEmpty());
  CollectionSpec more = spec;
  more.shard_num = 4;
  more.spaces.push_back("b");
  EXPECT_THAT(CheckCreation(more), ElementsAre(HasSubstr("at most bucketCount (3)")));
  EXPECT_THAT(CheckChange(spec, more),
              IsEmpty());  // more shards than bucketCount are made by splits
  CollectionSpec other = spec;
  other.name = "b";
  other.bucket_count = 4;
  other.hash = v1::HASH_CRC32;
  other.spaces.clear();
  EXPECT_THAT(CheckChange(spec, other),
              ElementsAre(StartsWith("metadata.name"), StartsWith("spec.bucketCount"),
                          StartsWith("spec.shardBy"), HasSubstr("a is missing")));
}

}  // namespace
}  // namespace etalon::controller
