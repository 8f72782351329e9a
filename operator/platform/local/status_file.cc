#include "operator/platform/local/status_file.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace etalon::controller {

namespace {
using nlohmann::ordered_json;
}

std::string StatusJson(const Report& report, const StatusContext& context) {
  const auto time = [&](SteadyTime t) {
    return context.unix_millis_of_zero +
           std::chrono::duration_cast<std::chrono::milliseconds>(t.time_since_epoch()).count();
  };
  ordered_json out = {{"name", context.collection_name},
                      {"collectionID", ToHex(context.collection.value())},
                      {"manifest", context.manifest},
                      {"manifestErrors", context.manifest_errors},
                      {"topologyVersion", report.topology_version},
                      {"settingsVersion", report.settings_version},
                      {"routingModulus", report.modulus},
                      {"readyRouters", report.ready_routers}};
  out["conditions"] = ordered_json::array();
  for (const Condition& c : report.conditions) {
    out["conditions"].push_back({{"type", c.type},
                                 {"status", StatusName(c.status)},
                                 {"reason", c.reason},
                                 {"message", c.message},
                                 {"sinceUnixMillis", time(c.since)}});
  }
  out["waits"] = ordered_json::array();
  for (const Wait& w : report.waits) {
    out["waits"].push_back(
        {{"what", w.what}, {"left", w.left}, {"next", w.next}, {"sinceUnixMillis", time(w.since)}});
  }
  out["shards"] = ordered_json::array();
  for (const ShardReport& s : report.shards) {
    ordered_json shard = {{"name", s.name},
                          {"uid", ToHex(s.uid.value())},
                          {"state", s.state},
                          {"leader", s.leader},
                          {"term", s.term},
                          {"replicas", s.replicas},
                          {"readyReplicas", s.ready_replicas},
                          {"weight", s.weight}};
    // What is unknown is absent; a disbalance may be infinite, which JSON has no number for.
    if (s.buckets) shard["buckets"] = *s.buckets;
    if (s.etalon) shard["etalon"] = *s.etalon;
    if (s.disbalance_percent && std::isfinite(*s.disbalance_percent))
      shard["disbalancePercent"] = *s.disbalance_percent;
    if (s.disbalance_percent && !std::isfinite(*s.disbalance_percent))
      shard["disbalancePercent"] = "inf";
    if (s.bytes) shard["bytes"] = *s.bytes;
    out["shards"].push_back(std::move(shard));
  }
  return out.dump(2) + "\n";
}

std::string EndpointsJson(const std::string& collection_name, CollectionId collection,
                          const std::vector<Endpoint>& endpoints) {
  ordered_json out = {{"name", collection_name}, {"collectionID", ToHex(collection.value())}};
  out["routers"] = ordered_json::array();
  out["storages"] = ordered_json::array();
  for (const Endpoint& e : endpoints) {
    ordered_json one = {{"name", e.name}, {"address", e.address}, {"zone", e.zone}, {"pid", e.pid}};
    if (!e.shard.empty()) one["shard"] = e.shard;
    out[e.shard.empty() ? "routers" : "storages"].push_back(std::move(one));
  }
  return out.dump(2) + "\n";
}

}  // namespace etalon::controller
