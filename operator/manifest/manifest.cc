#include "operator/manifest/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "operator/manifest/yaml_documents.h"
#include "operator/manifest/yaml_reader.h"

namespace etalon::controller {
namespace {

constexpr char kApiVersion[] = "sharding.etalon.dev/v1alpha1";
constexpr char kKind[] = "ShardedCollection";
constexpr char kAdopt[] = "etalon.dev/adopt";
constexpr std::uint64_t kMaxShards = 1024;
constexpr std::uint64_t kMaxBuckets = 1u << 20;
constexpr std::uint64_t kMaxWeight = 1'000'000;
constexpr std::size_t kMaxName = 40;
constexpr std::size_t kMaxSpaceName = 63;
constexpr std::size_t kMaxSpaces = 1000;
constexpr std::uint64_t kMaxCount = 1'000'000;

bool IsDnsLabel(std::string_view name) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && small(name.front()) && (small(name.back()) || digit(name.back())) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return small(c) || digit(c) || c == '-'; });
}

// "shard-<number>", as the operator names them: any other name would silently mean nothing.
bool IsShardName(std::string_view name) {
  constexpr std::string_view kPrefix = "shard-";
  if (name.substr(0, kPrefix.size()) != kPrefix) return false;
  const std::string_view number = name.substr(kPrefix.size());
  return !number.empty() && number.size() <= 9 && (number.size() == 1 || number[0] != '0') &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void ReadMetadata(YamlReader metadata, CollectionSpec* spec) {
  metadata.Require("name", "it names the collection");
  spec->name = metadata.String("name");
  if (metadata.Has("name") && spec->name.size() > kMaxName) {
    metadata.Error(
        "name",
        fmt::format("must be at most {} characters, it has {}: names of pods are made from it",
                    kMaxName, spec->name.size()));
  } else if (metadata.Has("name") && !IsDnsLabel(spec->name)) {
    metadata.Error(
        "name", "must be small letters, digits and '-', begin with a letter and not end with '-'");
  }
  metadata.Ignore("namespace");
  metadata.Ignore("labels");
  metadata.Ignore("generation");
  metadata.Ignore("resourceVersion");
  metadata.Ignore("uid");
  metadata.Ignore("creationTimestamp");
  metadata.Ignore("finalizers");
  metadata.Ignore("managedFields");
  YamlReader annotations = metadata.Map("annotations");  // other annotations are other people's
  const std::string adopt = annotations.String(kAdopt);
  spec->adopt = CollectionId(FromHex(adopt));
  if (!adopt.empty() && !spec->adopt) {
    annotations.Error(kAdopt, "must be a collection ID: 1 to 16 hex digits");
  }
  metadata.Finish();
}

void ReadShardBy(YamlReader shard_by, CollectionSpec* spec) {
  shard_by.Require("field", "it names the field whose hash decides where a record lives");
  shard_by.Require("type", "Int64 or String");
  shard_by.Require("hash", "Murmur3, Crc32 or VshardCrc32c");
  spec->shard_by_field = shard_by.String("field");
  if (shard_by.Has("field") && (spec->shard_by_field.empty() ||
                                spec->shard_by_field.find_first_of("()") != std::string::npos)) {
    shard_by.Error("field", "must not be empty and have no parentheses");
  }
  spec->key_type = shard_by.Enum<v1::KeyType>(
      "type", v1::KEY_TYPE_INT64, {{"Int64", v1::KEY_TYPE_INT64}, {"String", v1::KEY_TYPE_STRING}});
  spec->hash = shard_by.Enum<v1::HashFunction>("hash", v1::HASH_MURMUR3,
                                               {{"Murmur3", v1::HASH_MURMUR3},
                                                {"Crc32", v1::HASH_CRC32},
                                                {"VshardCrc32c", v1::HASH_VSHARD_CRC32C}});
  if (spec->key_type == v1::KEY_TYPE_INT64 && spec->hash == v1::HASH_VSHARD_CRC32C) {
    shard_by.Error("hash",
                   "VshardCrc32c hashes String keys only; choose Murmur3 or Crc32 for Int64");
  }
  shard_by.Finish();
}

void ReadSpaces(YamlReader* spec_reader, CollectionSpec* spec) {
  std::set<std::string> names;
  for (YamlReader& item : spec_reader->Maps("spaces")) {
    const std::string name = item.String("name");
    if (name.empty() || name.size() > kMaxSpaceName) {
      item.Error("name", fmt::format("must have 1 to {} characters", kMaxSpaceName));
    } else if (!names.insert(name).second) {
      item.Error("name", fmt::format("space {} is declared twice", name));
    } else {
      spec->spaces.push_back(name);
    }
    item.Finish();
  }
  if (names.size() > kMaxSpaces)
    spec_reader->Error("spaces", fmt::format("at most {} are possible", kMaxSpaces));
}

void ReadShards(YamlReader* spec_reader, CollectionSpec* spec) {
  for (YamlReader& item : spec_reader->Maps("shards")) {
    const std::string name = item.String("name");
    ShardOverride shard;
    shard.weight = static_cast<std::uint32_t>(item.Number("weight", 100, 0, kMaxWeight));
    shard.policy = item.Enum<ShardPolicy>("policy", ShardPolicy::kBalanced,
                                          {{"Balanced", ShardPolicy::kBalanced},
                                           {"Locked", ShardPolicy::kLocked},
                                           {"Draining", ShardPolicy::kDraining}});
    if (!IsShardName(name)) {
      item.Error("name",
                 fmt::format("\"{}\" is no shard: shards are named shard-0, shard-1, ...", name));
    } else if (!spec->shards.emplace(name, shard).second) {
      item.Error("name", fmt::format("shard {} is listed twice", name));
    }
    item.Finish();
  }
}

void ReadRebalancing(YamlReader reader, CollectionSpec* spec) {
  RebalancingSpec& out = spec->rebalancing;
  out.mode = reader.Enum<RebalancingMode>("mode", RebalancingMode::kAutomatic,
                                          {{"Automatic", RebalancingMode::kAutomatic},
                                           {"Manual", RebalancingMode::kManual},
                                           {"Disabled", RebalancingMode::kDisabled}});
  out.shard = reader.String("shard");
  if (out.mode == RebalancingMode::kManual && !IsShardName(out.shard)) {
    reader.Error(
        "shard",
        "must name the shard that runs the rebalancer when the mode is Manual, such as shard-0");
  }
  out.max_freeze_millis =
      static_cast<std::uint32_t>(reader.Number("maxFreezeMilliseconds", 5, 1, 10000));
  out.disbalance_threshold_percent = reader.Real("disbalanceThresholdPercent", 1, 0, 100);
  out.max_sending =
      static_cast<std::uint32_t>(reader.Number("maxSendingPerShard", 4, 1, kMaxCount));
  out.max_receiving =
      static_cast<std::uint32_t>(reader.Number("maxReceivingPerShard", 16, 1, kMaxCount));
  out.max_transfer_bytes_per_second =
      reader.Quantity("maxTransferBytesPerSecond", out.max_transfer_bytes_per_second);
  reader.Finish();
}

void ReadZones(YamlReader reader, CollectionSpec* spec) {
  reader.Ignore("topologyKey");
  spec->leader_zone = reader.String("leader");
  std::set<std::pair<std::string, std::string>> pairs;
  for (YamlReader& item : reader.Maps("distances")) {
    ZoneDistance distance;
    distance.from = item.String("from");
    distance.to = item.String("to");
    distance.distance = static_cast<std::uint32_t>(item.Number("distance", 0, 0, kMaxCount));
    item.Require("distance", "the smaller it is, the sooner a replica there is read");
    if (distance.from.empty() || distance.to.empty()) {
      item.Error("from", "a distance is from one zone to one zone: both must be named");
    } else if (!pairs.emplace(distance.from, distance.to).second) {
      item.Error("from", fmt::format("the distance from {} to {} is given twice", distance.from,
                                     distance.to));
    }
    spec->distances.push_back(std::move(distance));
    item.Finish();
  }
  for (YamlReader& item : reader.Maps("assignments")) {
    item.Ignore("node");
    const std::string zone = item.String("zone");
    if (zone.empty()) item.Error("zone", "must name a zone");
    for (const std::string& replica : item.Strings("replicas")) {
      if (!spec->zones.emplace(replica, zone).second) {
        item.Error("replicas", fmt::format("{} is put into two zones", replica));
      }
    }
    item.Finish();
  }
  reader.Finish();
}

void ReadStorage(YamlReader reader) {
  for (const char* key : {"image", "dataVolumeClaim", "volumeRetention", "resources", "pod"})
    reader.Ignore(key);
  reader.Finish();
}

void ReadRouter(YamlReader reader, CollectionSpec* spec) {
  spec->routers = static_cast<std::uint32_t>(reader.Number("replicas", 2, 0, kMaxShards));
  spec->config_update = reader.Enum<ConfigUpdate>(
      "configUpdate", ConfigUpdate::kRolling,
      {{"Rolling", ConfigUpdate::kRolling}, {"Live", ConfigUpdate::kLive}});
  for (const char* key : {"image", "resources", "pod", "service"}) reader.Ignore(key);
  reader.Finish();
}

void ReadSpec(YamlReader reader, CollectionSpec* spec) {
  reader.Require("version", "it names the version of Etalon that runs, such as 0.1.0");
  reader.Require("shardNum", "choose how many shards the collection has");
  reader.Require("shardBy", "it says how keys are hashed and cannot be changed later");
  spec->version = reader.String("version");
  spec->shard_num = static_cast<std::uint32_t>(reader.Number("shardNum", 0, 1, kMaxShards));
  spec->bucket_count =
      static_cast<std::uint32_t>(reader.Number("bucketCount", 3000, 1, kMaxBuckets));
  const std::uint64_t replicas = reader.Number("replicasPerShard", 3, 1, 5);
  if (replicas % 2 == 0) {
    reader.Error(
        "replicasPerShard",
        fmt::format("must be 1, 3 or 5, it is {}: an even number adds cost, not safety", replicas));
  }
  spec->replicas_per_shard = static_cast<std::uint32_t>(replicas);
  if (reader.Has("shardBy")) ReadShardBy(reader.Map("shardBy"), spec);
  ReadSpaces(&reader, spec);
  ReadShards(&reader, spec);
  ReadRebalancing(reader.Map("rebalancing"), spec);
  YamlReader resharding = reader.Map("resharding");
  spec->strategy =
      resharding.Enum<ReshardingStrategy>("strategy", ReshardingStrategy::kAutomatic,
                                          {{"Automatic", ReshardingStrategy::kAutomatic},
                                           {"Split", ReshardingStrategy::kSplit},
                                           {"Weights", ReshardingStrategy::kWeights}});
  resharding.Finish();
  YamlReader scale_down = reader.Map("scaleDown");
  spec->scale_down = scale_down.Enum<ScaleDownPolicy>(
      "policy", ScaleDownPolicy::kDrain,
      {{"Drain", ScaleDownPolicy::kDrain}, {"Forbid", ScaleDownPolicy::kForbid}});
  scale_down.Finish();
  spec->paused = reader.Bool("paused", false);
  ReadStorage(reader.Map("storage"));
  ReadRouter(reader.Map("router"), spec);
  YamlReader sidecar = reader.Map("sidecar");
  sidecar.Ignore("image");
  sidecar.Ignore("resources");
  sidecar.Finish();
  ReadZones(reader.Map("zones"), spec);
  reader.Ignore("functionsConfigMapRef");
  reader.Finish();
}

Manifest ReadDocument(const YAML::Node& document) {
  Manifest out;
  CollectionSpec spec;
  YamlReader reader(document, "", &out.errors);
  const std::string version = reader.String("apiVersion");
  if (version != kApiVersion)
    reader.Error("apiVersion", fmt::format("must be {}, it is \"{}\"", kApiVersion, version));
  reader.Ignore("kind");
  reader.Ignore("status");
  reader.Require("metadata", "it names the collection");
  reader.Require("spec", "it says what the collection is to be");
  if (reader.Has("metadata")) ReadMetadata(reader.Map("metadata"), &spec);
  if (reader.Has("spec")) ReadSpec(reader.Map("spec"), &spec);
  reader.Finish();
  if (out.errors.empty()) out.spec = std::move(spec);
  return out;
}

}  // namespace

ShardOverride CollectionSpec::Override(const std::string& shard) const {
  const auto it = shards.find(shard);
  return it == shards.end() ? ShardOverride() : it->second;
}

Manifest ParseManifest(std::string_view text) {
  Manifest out;
  if (text.size() > kMaxManifestBytes) {
    out.errors.push_back(fmt::format("the manifest has {} bytes, at most {} are read", text.size(),
                                     kMaxManifestBytes));
    return out;
  }
  try {  // yaml-cpp throws
    std::vector<YAML::Node> found;
    for (const YAML::Node& document : LoadDocuments(std::string(text))) {
      if (!document.IsMap()) continue;
      const YAML::Node kind = document["kind"];
      if (kind.IsDefined() && kind.IsScalar() && kind.Scalar() == kKind) found.push_back(document);
    }
    if (found.size() != 1) {
      out.errors.push_back(
          fmt::format("the manifest must hold one {}, it holds {}", kKind, found.size()));
      return out;
    }
    return ReadDocument(found[0]);
  } catch (const YAML::Exception& e) {
    out.errors = {fmt::format("the manifest is no YAML: {}", e.what())};
    out.spec.reset();
    return out;
  }
}

std::vector<std::string> CheckCreation(const CollectionSpec& spec) {
  if (spec.shard_num <= spec.bucket_count) return {};
  return {fmt::format(
      "spec.shardNum: must be at most bucketCount ({}) when the collection is made, it is {}",
      spec.bucket_count, spec.shard_num)};
}

std::vector<std::string> CheckChange(const CollectionSpec& before, const CollectionSpec& after) {
  std::vector<std::string> errors;
  if (before.name != after.name) {
    errors.push_back(
        fmt::format("metadata.name: is {} and cannot become {}; another collection needs a "
                    "directory of its own",
                    before.name, after.name));
  }
  if (before.bucket_count != after.bucket_count) {
    errors.push_back(
        fmt::format("spec.bucketCount: is fixed at creation; it is {} and cannot become {}",
                    before.bucket_count, after.bucket_count));
  }
  if (before.shard_by_field != after.shard_by_field || before.key_type != after.key_type ||
      before.hash != after.hash) {
    errors.push_back(
        "spec.shardBy: is fixed at creation, since it decides where every record lives; set it "
        "back");
  }
  for (const std::string& space : before.spaces) {
    if (std::find(after.spaces.begin(), after.spaces.end(), space) == after.spaces.end()) {
      errors.push_back(fmt::format(
          "spec.spaces: {} is missing; spaces are only ever added, put it back", space));
    }
  }
  return errors;
}

}  // namespace etalon::controller
