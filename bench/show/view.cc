#include "bench/show/view.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace etalon::show {

namespace {

using std::chrono::milliseconds;

std::string Bytes(std::uint64_t n) {
  if (n >= 10u << 20) return fmt::format("{:.0f} MiB", static_cast<double>(n) / (1 << 20));
  if (n >= 1u << 20) return fmt::format("{:.1f} MiB", static_cast<double>(n) / (1 << 20));
  return fmt::format("{:.0f} KiB", static_cast<double>(n) / 1024);
}

std::uint64_t Held(const v1::InfoResponse& info) {
  return info.buckets().active() + info.buckets().pinned();
}

std::string StateOf(const ShardView& shard) {
  if (!shard.leader) return "no leader";
  const auto& b = shard.leader->buckets();
  if (b.quarantined() > 0) return "QUARANTINED";
  int out = 0, in = 0;
  for (const auto& t : shard.leader->transfers()) ++(t.outgoing() ? out : in);
  if (out > 0 && in > 0) return fmt::format("sends {} gets {}", out, in);
  if (out > 0) return fmt::format("sends {}", out);
  if (in > 0) return fmt::format("receives {}", in);
  return shard.alive < shard.replicas ? fmt::format("{} of {} up", shard.alive, shard.replicas)
                                      : "serves";
}

}  // namespace

Result<Endpoints> ReadEndpoints(const std::string& data_dir) {
  std::ifstream in(data_dir + "/endpoints.json");
  if (!in) return NotFound("there is no " + data_dir + "/endpoints.json (yet)");
  const auto json = nlohmann::json::parse(in, nullptr, false);
  if (!json.is_object()) return DataLoss(data_dir + "/endpoints.json is no JSON object");
  Endpoints out;
  for (const auto& router : json.value("routers", nlohmann::json::array()))
    out.routers.push_back(router.value("address", ""));
  for (const auto& s : json.value("storages", nlohmann::json::array())) {
    out.storages.push_back(
        {s.value("name", ""), s.value("shard", ""), s.value("address", ""), s.value("pid", 0)});
  }
  return out;
}

rpc::StorageClient& View::Client(const std::string& address) {
  auto& client = clients_[address];
  if (!client) client = std::make_unique<rpc::StorageClient>(address);
  return *client;
}

void View::Poll() {
  if (auto read = ReadEndpoints(data_dir_); read.ok()) endpoints_ = *read;
  std::vector<std::optional<v1::InfoResponse>> infos(endpoints_.storages.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    rpc::StorageClient& client = Client(endpoints_.storages[i].address);
    threads.emplace_back([&client, &info = infos[i]] {
      if (auto answer = client.Info(milliseconds(400)); answer.ok()) info = *std::move(answer);
    });
  }
  for (auto& thread : threads) thread.join();
  shards_.clear();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    ShardView& shard = shards_[endpoints_.storages[i].shard];
    shard.name = endpoints_.storages[i].shard;
    ++shard.replicas;
    if (!infos[i]) continue;
    ++shard.alive;
    if (infos[i]->leader() && (!shard.leader || shard.leader->term() < infos[i]->term()))
      shard.leader = std::move(infos[i]);
  }
}

std::size_t View::serving() const {
  std::size_t n = 0;
  for (const auto& [name, shard] : shards_) n += shard.leader && Held(*shard.leader) > 0;
  return n;
}

bool View::Settled(std::size_t shards, std::uint64_t buckets, std::string* why) const {
  if (shards_.size() != shards) {
    *why = fmt::format("{} shards are there, {} are wanted", shards_.size(), shards);
    return false;
  }
  // Shards may stand at different levels: one residue of a coarse one is several of a fine one.
  std::uint64_t finest = buckets;
  for (const auto& [name, shard] : shards_) {
    if (shard.leader) finest = std::max(finest, shard.leader->modulus());
  }
  std::uint64_t owned = 0;
  for (const auto& [name, shard] : shards_) {
    if (!shard.leader) {
      *why = name + " has no leader";
      return false;
    }
    const auto& info = *shard.leader;
    if (shard.alive < shard.replicas) {
      *why = fmt::format("{} has {} of {} replicas", name, shard.alive, shard.replicas);
      return false;
    }
    if (info.transfers_size() > 0 || info.buckets().sending() + info.buckets().sent() +
                                             info.buckets().receiving() + info.buckets().garbage() >
                                         0) {
      *why = name + " is moving buckets";
      return false;
    }
    const std::uint64_t factor = finest / info.modulus();
    owned += Held(info) * factor;
    if (!info.has_etalon() || static_cast<double>(Held(info) * factor) != info.etalon()) {
      *why = fmt::format("{} holds {} buckets, its etalon is {}", name, Held(info) * factor,
                         info.has_etalon() ? fmt::format("{}", info.etalon()) : "unknown");
      return false;
    }
  }
  if (owned != finest) *why = fmt::format("{} buckets of {} are owned", owned, finest);
  return owned == finest;
}

Status View::ReplicasEqual() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string why;
  do {
    why.clear();
    std::map<std::string, std::set<std::pair<std::uint64_t, std::uint64_t>>> sums;
    for (const auto& storage : endpoints_.storages) {
      auto sum = Client(storage.address).Checksum({}, std::chrono::seconds(10));
      if (!sum.ok()) {
        why = storage.name + ": " + sum.status().ToString();
        break;
      }
      sums[storage.shard].emplace(sum->applied_index(), sum->checksum());
    }
    for (const auto& [shard, different] : sums) {
      if (different.size() != 1) why = "the replicas of " + shard + " differ";
    }
  } while (!why.empty() && std::chrono::steady_clock::now() < end);
  return why.empty() ? OkStatus() : Internal(why);
}

std::string RenderShards(const std::map<std::string, ShardView>& shards) {
  std::string out = fmt::format("  {:<16} {:<16} {:<20} {:>8} {:>8} {:>10} {:>10}\n", "SHARD",
                                "STATE", "LEADER", "BUCKETS", "ETALON", "DISBALANCE", "DATA");
  for (const auto& [name, shard] : shards) {
    if (!shard.leader) {
      out += fmt::format("  {:<16} {:<16} {:<20} {:>8} {:>8} {:>10} {:>10}\n", name, StateOf(shard),
                         "-", "?", "?", "?", "?");
      continue;
    }
    const auto& info = *shard.leader;
    const std::string disbalance = !info.has_disbalance() ? "?"
                                   : std::isinf(info.disbalance())
                                       ? "inf"
                                       : fmt::format("{:.1f} %", info.disbalance() * 100);
    out += fmt::format("  {:<16} {:<16} {:<20} {:>8} {:>8} {:>10} {:>10}\n", name, StateOf(shard),
                       info.replica(), Held(info),
                       info.has_etalon() ? fmt::format("{:.0f}", info.etalon()) : "?", disbalance,
                       Bytes(info.store_bytes()));
  }
  return out;
}

}  // namespace etalon::show
