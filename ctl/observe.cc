#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "ctl/commands.h"
#include "placement/etalon.h"
#include "placement/moves.h"

namespace etalon::ctl {

namespace {

std::uint64_t Held(const v1::InfoResponse& info) {
  return info.buckets().active() + info.buckets().pinned();
}

std::string Colour(std::uint32_t status) {
  static const char* kNames[] = {"green", "yellow", "orange", "red"};
  return kNames[std::min<std::uint32_t>(status, 3)];
}

std::string Percent(const v1::InfoResponse& info) {
  if (!info.has_disbalance()) return "?";
  return std::isinf(info.disbalance()) ? "inf" : fmt::format("{:.1f}%", info.disbalance() * 100);
}

// Conditions as the operator last wrote them; empty when there are none.
nlohmann::json OperatorStatus(const Target& target) {
  std::ifstream in(target.data_dir() + "/status.json");
  if (!in) return nlohmann::json::object();
  auto json = nlohmann::json::parse(in, nullptr, false);
  return json.is_object() ? json : nlohmann::json::object();
}

Status VerifyReplicas(Target& target) {
  for (const std::string& shard : target.Shards()) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> sums;
    for (const Replica& replica : target.replicas()) {
      if (replica.shard != shard) continue;
      auto sum = target.storage(replica).Checksum({}, std::chrono::seconds(60));
      if (!sum.ok()) return sum.status().Annotate(replica.name);
      sums.emplace(sum->applied_index(), sum->checksum());
    }
    std::set<std::uint64_t> indexes;
    for (const auto& [index, sum] : sums) indexes.insert(index);
    if (indexes.size() > 1) {
      return Unavailable(
          Reason::kNone,
          "the replicas of " + shard + " stand at different indexes: try again when nobody writes");
    }
    if (sums.size() > 1) return DataLoss("the replicas of " + shard + " differ at one index");
  }
  std::printf("replicas equal\n");
  return OkStatus();
}

}  // namespace

Status ShowStatus(Target& target, Format format, bool verify) {
  target.Observe();
  const nlohmann::json conditions =
      OperatorStatus(target).value("conditions", nlohmann::json::array());
  if (format == Format::kJson) {
    nlohmann::json out;
    out["conditions"] = conditions;
    for (const Replica& replica : target.replicas()) {
      nlohmann::json r = {{"name", replica.name},
                          {"shard", replica.shard},
                          {"address", replica.address},
                          {"answers", replica.info.has_value()}};
      if (replica.info) {
        r["leader"] = replica.info->leader();
        r["term"] = replica.info->term();
        r["applied"] = replica.info->applied_index();
        r["status"] = replica.info->status();
        for (const auto& alert : replica.info->alerts())
          r["alerts"].push_back({{"code", alert.code()}, {"text", alert.text()}});
      }
      out["replicas"].push_back(std::move(r));
    }
    for (const Router& router : target.routers()) {
      nlohmann::json r = {
          {"name", router.name}, {"address", router.address}, {"answers", router.info.has_value()}};
      if (router.info) {
        r["ready"] = router.info->ready();
        r["status"] = router.info->status();
        r["topology"] = router.info->topology_version();
      }
      out["routers"].push_back(std::move(r));
    }
    std::printf("%s\n", out.dump(2).c_str());
    return verify ? VerifyReplicas(target) : OkStatus();
  }
  for (const std::string& shard : target.Shards()) {
    auto leader = target.Leader(shard);
    if (leader.ok()) {
      const auto& info = *(*leader)->info;
      std::printf("%s  %llu buckets, etalon %s, disbalance %s\n", shard.c_str(),
                  static_cast<unsigned long long>(Held(info)),
                  info.has_etalon() ? fmt::format("{:.0f}", info.etalon()).c_str() : "?",
                  Percent(info).c_str());
    } else {
      std::printf("%s  NO LEADER\n", shard.c_str());
    }
    for (const Replica& replica : target.replicas()) {
      if (replica.shard != shard) continue;
      if (!replica.info) {
        std::printf("  %-24s does not answer at %s\n", replica.name.c_str(),
                    replica.address.c_str());
        continue;
      }
      const auto& info = *replica.info;
      std::printf("  %-24s %-9s term %llu, applied %llu, %s\n", replica.name.c_str(),
                  info.leader()   ? "leader"
                  : info.formed() ? "follower"
                                  : "unformed",
                  static_cast<unsigned long long>(info.term()),
                  static_cast<unsigned long long>(info.applied_index()),
                  Colour(info.status()).c_str());
      for (const auto& alert : info.alerts())
        std::printf("    ! %s: %s\n", alert.code().c_str(), alert.text().c_str());
    }
  }
  for (const Router& router : target.routers()) {
    if (!router.info) {
      std::printf("%s  does not answer at %s\n", router.name.c_str(), router.address.c_str());
      continue;
    }
    const auto& info = *router.info;
    std::printf("%s  %s, topology %llu, %llu of %llu buckets writable, %s\n", router.name.c_str(),
                info.ready() ? "ready" : "not ready",
                static_cast<unsigned long long>(info.topology_version()),
                static_cast<unsigned long long>(info.available_rw()),
                static_cast<unsigned long long>(info.modulus()), Colour(info.status()).c_str());
    for (const auto& alert : info.alerts())
      std::printf("    ! %s: %s\n", alert.code().c_str(), alert.text().c_str());
  }
  for (const auto& condition : conditions) {
    std::printf("%-20s %-8s %s\n", condition.value("type", "").c_str(),
                condition.value("status", "").c_str(), condition.value("message", "").c_str());
  }
  return verify ? VerifyReplicas(target) : OkStatus();
}

Status ShowShards(Target& target, Format format) {
  target.Observe();
  Table table({"SHARD", "UID", "LEADER", "REPLICAS", "BUCKETS", "PINNED", "ETALON", "DISBALANCE",
               "SENDING", "RECEIVING", "DATA", "STATUS"});
  for (const std::string& shard : target.Shards()) {
    int all = 0, up = 0;
    for (const Replica& replica : target.replicas()) {
      if (replica.shard != shard) continue;
      ++all;
      up += replica.info.has_value();
    }
    auto leader = target.Leader(shard);
    if (!leader.ok()) {
      table.Row({shard, "?", "-", fmt::format("{}/{}", up, all), "?", "?", "?", "?", "?", "?", "?",
                 "red"});
      continue;
    }
    const auto& info = *(*leader)->info;
    int out = 0, in = 0;
    for (const auto& t : info.transfers()) ++(t.outgoing() ? out : in);
    table.Row({shard, ToHex(info.shard()), (*leader)->name, fmt::format("{}/{}", up, all),
               std::to_string(Held(info)), std::to_string(info.buckets().pinned()),
               info.has_etalon() ? fmt::format("{:.0f}", info.etalon()) : "?", Percent(info),
               std::to_string(out), std::to_string(in), HumanBytes(info.store_bytes()),
               Colour(info.status())});
  }
  table.Print(format);
  return OkStatus();
}

namespace {

void AddBucket(Table* table, const Target& target, const std::string& shard, std::uint32_t level,
               const v1::BucketDetail& b) {
  const auto& row = b.row();
  const std::uint32_t number = b.has_row() ? row.bucket() : b.marks().bucket();
  std::string status = b.has_row() ? v1::BucketStatus_Name(row.status()).substr(7) : "-";
  table->Row({std::to_string(number), std::to_string(level), shard, status,
              b.has_row() ? std::to_string(row.epoch()) : "-",
              b.peer() != 0 ? target.NameOf(b.peer()) : "-", std::to_string(b.refs_ro()),
              HumanBytes(b.approximate_bytes())});
}

const std::vector<std::string> kBucketHead = {"BUCKET", "LEVEL", "SHARD", "STATUS",
                                              "EPOCH",  "PEER",  "REFS",  "DATA"};

}  // namespace

Status ShowBuckets(Target& target, Format format, const std::string& shard,
                   const std::string& status, std::uint32_t limit) {
  target.Observe();
  v1::BucketsInfoRequest request;
  request.set_limit(limit);
  if (!status.empty()) {
    v1::BucketStatus parsed;
    if (!v1::BucketStatus_Parse("BUCKET_" + status, &parsed) || parsed == v1::BUCKET_NONE) {
      return InvalidArgument(
          "there is no bucket status '" + status +
          "': use ACTIVE, PINNED, SENDING, SENT, RECEIVING, GARBAGE or QUARANTINED");
    }
    request.set_status(parsed);
  }
  Table table(kBucketHead);
  std::uint64_t total = 0;
  for (const std::string& name : target.Shards()) {
    if (!shard.empty() && shard != name) continue;
    ETALON_ASSIGN_OR_RETURN(const Replica* leader, target.Leader(name));
    ETALON_ASSIGN_OR_RETURN(const auto answer,
                            target.storage(*leader).BucketsInfo(request, target.timeout()));
    total += answer.total();
    for (const auto& b : answer.buckets()) AddBucket(&table, target, name, answer.level(), b);
  }
  if (!shard.empty()) ETALON_RETURN_IF_ERROR(target.Uid(shard).status());
  table.Print(format);
  if (format == Format::kTable)
    std::printf("%llu buckets in all\n", static_cast<unsigned long long>(total));
  return OkStatus();
}

Status ShowBucket(Target& target, Format format, std::uint32_t bucket) {
  target.Observe();
  Table table(kBucketHead);
  bool found = false;
  for (const std::string& name : target.Shards()) {
    auto leader = target.Leader(name);
    if (!leader.ok()) continue;
    v1::BucketsInfoRequest request;
    request.set_bucket(bucket);
    request.set_with_marks(true);
    auto answer = target.storage(**leader).BucketsInfo(request, target.timeout());
    if (!answer.ok()) {
      if (answer.status().code() == Code::kOutOfRange) return answer.status();
      continue;
    }
    for (const auto& b : answer->buckets()) {
      if (!b.has_row() && b.marks().own() == 0) continue;
      found |= b.has_row();
      AddBucket(&table, target, name, answer->level(), b);
    }
  }
  table.Print(format);
  if (!found)
    return Unavailable(Reason::kNoRouteToBucket,
                       "no shard that answers has bucket " + std::to_string(bucket));
  return OkStatus();
}

Status ShowRebalancer(Target& target, Format format) {
  target.Observe();
  for (const std::string& shard : target.Shards()) {
    auto leader = target.Leader(shard);
    if (!leader.ok()) continue;
    auto state = target.storage(**leader).RebalancerState(target.timeout());
    if (!state.ok() || !state->runs_here()) continue;
    if (format == Format::kTable) {
      std::printf("%s on %s: %s\n", state->state().c_str(), shard.c_str(),
                  state->explanation().c_str());
      std::printf("planned %llu, moved %llu, remaining %llu, %s",
                  static_cast<unsigned long long>(state->planned()),
                  static_cast<unsigned long long>(state->moved()),
                  static_cast<unsigned long long>(state->remaining()),
                  HumanBytes(state->bytes()).c_str());
      if (state->eta_millis() > 0)
        std::printf(", %s left", HumanMillis(state->eta_millis()).c_str());
      std::printf("\n");
      for (const auto& [reason, n] : state->failed())
        std::printf("failed %s: %llu\n", reason.c_str(), static_cast<unsigned long long>(n));
    }
    Table table({"SHARD", "WEIGHT", "BUCKETS", "PINNED", "ETALON", "DISBALANCE", "LOCKED"});
    for (const auto& s : state->shards()) {
      table.Row({s.name(), std::to_string(s.weight()),
                 s.known() ? std::to_string(s.buckets()) : "?",
                 s.known() ? std::to_string(s.pinned()) : "?", fmt::format("{:.0f}", s.etalon()),
                 std::isinf(s.disbalance()) ? "inf" : fmt::format("{:.1f}%", s.disbalance() * 100),
                 s.locked() ? "yes" : "no"});
    }
    table.Print(format);
    return OkStatus();
  }
  return NotFound(
      "no rebalancer runs now: its mode is Disabled, or the shard that is to run it has no leader");
}

Status ShowRoute(Target& target, Format format, const v1::Target& key) {
  ETALON_ASSIGN_OR_RETURN(const auto route, target.router().Route(key, target.timeout()));
  Table table({"VALUE", "BUCKET", "SHARD", "EPOCH", "LEADER"});
  table.Row({std::to_string(route.routing_value()),
             ToString(BucketId{static_cast<std::uint8_t>(route.bucket().level()),
                               route.bucket().number()}),
             route.shard_name(), std::to_string(route.epoch()), route.leader()});
  table.Print(format);
  return OkStatus();
}

Status ShowPlan(Target& target, Format format, std::uint32_t shard_num) {
  if (shard_num < 1 || shard_num > 1024) return InvalidArgument("--shard-num is 1 to 1024");
  target.Observe();
  std::vector<placement::ShardLoad> loads;
  std::uint64_t modulus = 0, bytes = 0, buckets = 0;
  for (const std::string& shard : target.Shards()) {
    ETALON_ASSIGN_OR_RETURN(const Replica* leader, target.Leader(shard));
    const auto& info = *leader->info;
    placement::ShardLoad load;
    load.name = shard;
    load.locked = info.locked();
    load.pinned = info.buckets().pinned();
    load.buckets = Held(info);
    loads.push_back(load);
    modulus = std::max(modulus, info.modulus());
    bytes += info.store_bytes();
    buckets += load.buckets;
  }
  const auto now = static_cast<std::uint32_t>(loads.size());
  // The youngest go first when shards are taken away; their numbers end their names.
  std::stable_sort(loads.begin(), loads.end(), [](const auto& a, const auto& b) {
    return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
  });
  for (std::uint32_t i = shard_num; i < now; ++i) loads[i].weight = 0;
  for (std::uint32_t i = now; i < shard_num; ++i) {
    placement::ShardLoad fresh;
    fresh.name = "new-" + std::to_string(i - now + 1);
    loads.push_back(fresh);
  }
  const auto etalon = placement::ComputeEtalon(loads);
  std::vector<placement::MoveShard> shards;
  Table table({"SHARD", "NOW", "THEN"});
  for (const auto& s : etalon.shards) {
    table.Row({s.name, std::to_string(s.buckets), std::to_string(s.etalon)});
    placement::MoveShard m;
    m.name = s.name;
    m.buckets = s.buckets;
    m.etalon = s.etalon;
    for (const auto& load : loads) {
      if (load.name == s.name) m.pinned = load.pinned, m.locked = load.locked;
    }
    shards.push_back(m);
  }
  placement::MoveLimits limits;
  limits.disbalance_threshold_percent = 0;
  std::uint64_t moves = 0;
  for (const auto& route : placement::PlanRoutes(shards, limits)) moves += route.count;
  const std::uint64_t move_bytes =
      buckets == 0
          ? 0
          : static_cast<std::uint64_t>(static_cast<double>(bytes) / static_cast<double>(buckets) *
                                       static_cast<double>(moves));
  if (format == Format::kJson) {
    nlohmann::json out = {{"shardNum", shard_num},
                          {"now", now},
                          {"moves", moves},
                          {"bytes", move_bytes},
                          {"shards", table.Json()}};
    std::printf("%s\n", out.dump(2).c_str());
    return OkStatus();
  }
  table.Print(format);
  std::printf(
      "%u -> %u shards: %llu of %llu buckets move, about %s%s\n", now, shard_num,
      static_cast<unsigned long long>(moves), static_cast<unsigned long long>(buckets),
      HumanBytes(move_bytes).c_str(),
      shard_num == 2 * now ? "; by splits: each shard gives half of its buckets to a new one" : "");
  if (shard_num > 0 && modulus / shard_num < 100 && shard_num > now) {
    std::printf("warning: fewer than 100 buckets a shard, so the shares will be coarse\n");
  }
  return OkStatus();
}

}  // namespace etalon::ctl
