#include "ctl/target.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace etalon::ctl {

Result<Target> Target::Open(const std::string& data_dir, Duration timeout) {
  std::ifstream in(data_dir + "/endpoints.json");
  if (!in) {
    return NotFound(
        "there is no " + data_dir +
        "/endpoints.json: give the directory of a collection with --data DIR, or start one with "
        "etalon-operator --platform local --manifest FILE --data DIR");
  }
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object())
    return DataLoss(data_dir +
                    "/endpoints.json is damaged; the operator writes it anew when it starts");
  Target out;
  out.data_dir_ = data_dir;
  out.timeout_ = timeout;
  for (const auto& s : json.value("storages", nlohmann::json::array())) {
    out.replicas_.push_back(
        {s.value("name", ""), s.value("shard", ""), s.value("address", ""), std::nullopt});
  }
  for (const auto& r : json.value("routers", nlohmann::json::array())) {
    out.routers_.push_back({r.value("name", ""), r.value("address", ""), std::nullopt});
  }
  return out;
}

rpc::StorageClient& Target::storage(const Replica& replica) {
  auto& client = storages_[replica.address];
  if (!client) client = std::make_unique<rpc::StorageClient>(replica.address);
  return *client;
}

void Target::Observe() {
  std::vector<std::thread> threads;
  for (Replica& replica : replicas_) {
    rpc::StorageClient& client = storage(replica);
    threads.emplace_back([this, &client, &replica] {
      if (auto info = client.Info(timeout_); info.ok()) replica.info = *std::move(info);
    });
  }
  for (Router& router : routers_) {
    threads.emplace_back([this, &router] {
      rpc::RouterClient client(router.address);
      if (auto info = client.Info(timeout_); info.ok()) router.info = *std::move(info);
    });
  }
  for (auto& thread : threads) thread.join();
}

std::vector<std::string> Target::Shards() const {
  std::set<std::string> names;
  for (const Replica& replica : replicas_) names.insert(replica.shard);
  return {names.begin(), names.end()};
}

Result<const Replica*> Target::Leader(const std::string& shard) const {
  const Replica* best = nullptr;
  bool known = false;
  for (const Replica& replica : replicas_) {
    if (replica.shard != shard) continue;
    known = true;
    if (!replica.info || !replica.info->leader()) continue;
    if (best == nullptr || replica.info->term() > best->info->term()) best = &replica;
  }
  if (!known) return Uid(shard).status();
  if (best == nullptr) {
    return Unavailable(
        Reason::kMissingMaster,
        shard + " has no leader now; 'etalonctl status' shows which replicas answer");
  }
  return best;
}

Result<const Replica*> Target::Find(const std::string& name) const {
  for (const Replica& replica : replicas_) {
    if (replica.name == name) return &replica;
  }
  std::string names;
  for (const Replica& replica : replicas_) names += (names.empty() ? "" : ", ") + replica.name;
  return NotFound("there is no replica '" + name + "'; there are " + names);
}

Result<std::uint64_t> Target::Uid(const std::string& shard) const {
  for (const Replica& replica : replicas_) {
    if (replica.shard == shard && replica.info && replica.info->shard() != 0)
      return replica.info->shard();
  }
  std::string names;
  for (const auto& name : Shards()) names += (names.empty() ? "" : ", ") + name;
  return NotFound("there is no shard '" + shard + "' that answers; there are " + names,
                  Reason::kNoSuchReplicaset);
}

std::string Target::NameOf(std::uint64_t uid) const {
  if (uid == 0) return "-";
  for (const Replica& replica : replicas_) {
    if (replica.info && replica.info->shard() == uid) return replica.shard;
  }
  return ToHex(uid);
}

rpc::RouterClient& Target::router() {
  if (!router_) {
    auto it = std::find_if(routers_.begin(), routers_.end(),
                           [](const Router& r) { return r.info.has_value(); });
    if (it == routers_.end()) it = routers_.begin();
    router_ =
        std::make_unique<rpc::RouterClient>(it == routers_.end() ? "127.0.0.1:1" : it->address);
  }
  return *router_;
}

std::vector<std::string> Target::router_addresses() const {
  std::vector<std::string> out;
  for (const Router& router : routers_) out.push_back(router.address);
  return out;
}

}  // namespace etalon::ctl
