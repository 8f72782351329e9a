#include "router/node/alerts.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace etalon::router {

namespace {

bool Answers(const Candidate& r) { return r.fitness != Fitness::kDown; }

// The replica that reads by zone use is not the one that they would use if all were well.
bool Suboptimal(const ShardFacts& shard) {
  std::vector<Candidate> ideal = shard.replicas;
  for (Candidate& c : ideal) c.fitness = Fitness::kHealthy;
  return ChooseReplica(shard.replicas, v1::MODE_RO, 0, {}) !=
         ChooseReplica(ideal, v1::MODE_RO, 0, {});
}

void AddShard(const ShardFacts& shard, const AlertBounds& bounds, std::vector<RouterAlert>* out) {
  const auto leader = std::find_if(shard.replicas.begin(), shard.replicas.end(),
                                   [](const Candidate& r) { return r.leader; });
  if (leader == shard.replicas.end()) {
    out->push_back(
        {"MISSING_MASTER", "no leader of shard " + shard.name + " is known", Severity::kOrange});
  } else if (!Answers(*leader)) {
    out->push_back({"UNREACHABLE_MASTER",
                    "leader " + leader->name + " of shard " + shard.name + " does not answer",
                    Severity::kOrange});
  }
  for (const Candidate& r : shard.replicas) {
    if (!Answers(r)) {
      out->push_back({"UNREACHABLE_REPLICA",
                      "replica " + r.name + " of shard " + shard.name + " does not answer",
                      Severity::kYellow});
    }
    if (r.fitness == Fitness::kLagging) {
      out->push_back({"HIGH_REPLICATION_LAG",
                      "replica " + r.name + " of shard " + shard.name +
                          " is too far behind to be read while others answer",
                      Severity::kYellow});
    }
  }
  if (std::none_of(shard.replicas.begin(), shard.replicas.end(), Answers)) {
    out->push_back({"UNREACHABLE_REPLICASET", "no replica of shard " + shard.name + " answers",
                    Severity::kRed});
  } else if (Suboptimal(shard)) {
    out->push_back({"SUBOPTIMAL_REPLICA",
                    "reads of shard " + shard.name + " do not go to the nearest replica",
                    Severity::kYellow});
  }
  if (shard.feed_down && *shard.feed_down >= bounds.feed) {
    out->push_back({"FEED_INTERRUPTED",
                    "changes of shard " + shard.name +
                        " are not heard: moved buckets are found by "
                        "refused calls only",
                    Severity::kYellow});
  }
}

}  // namespace

std::vector<RouterAlert> RouterAlerts(const RouterFacts& facts, const AlertBounds& bounds) {
  std::vector<RouterAlert> out;
  if (!facts.loaded) {
    out.push_back(
        {"NO_TOPOLOGY", "no topology is loaded: the router serves nothing", Severity::kRed});
  }
  for (const ShardFacts& shard : facts.shards) AddShard(shard, bounds, &out);
  if (facts.unknown_buckets != 0 && facts.lost && *facts.lost >= bounds.lost) {
    out.push_back({"LOST_BUCKETS",
                   fmt::format("{} buckets are owned by no shard, and every shard was heard",
                               facts.unknown_buckets),
                   Severity::kRed});
  } else if (facts.unknown_buckets != 0) {
    out.push_back({"UNKNOWN_BUCKETS",
                   fmt::format("the owners of {} buckets are not known", facts.unknown_buckets),
                   Severity::kYellow});
  }
  for (const std::string& text : facts.doubled) {
    out.push_back({"DOUBLED_BUCKETS", "two shards claim bucket " + text, Severity::kRed});
  }
  for (const std::string& text : facts.quarantined) {
    out.push_back({"QUARANTINED_BUCKETS", "bucket " + text + " is quarantined", Severity::kRed});
  }
  for (const std::string& text : facts.stuck) {
    out.push_back({"STUCK_TRANSFER",
                   "bucket " + text + " does not take writes: its move does not end",
                   Severity::kOrange});
  }
  if (!facts.invalid_config.empty()) {
    out.push_back({"INVALID_CFG", facts.invalid_config, Severity::kRed});
  }
  if (facts.newer_topology > facts.topology_version) {
    out.push_back({"STALE_TOPOLOGY",
                   fmt::format("topology {} is loaded, storages have {}", facts.topology_version,
                               facts.newer_topology),
                   Severity::kYellow});
  }
  std::sort(out.begin(), out.end(), [](const RouterAlert& a, const RouterAlert& b) {
    return std::tie(a.code, a.text) < std::tie(b.code, b.text);
  });
  return out;
}

Severity StatusOf(const std::vector<RouterAlert>& alerts) {
  Severity worst = Severity::kGreen;
  for (const RouterAlert& alert : alerts) worst = std::max(worst, alert.severity);
  return worst;
}

const std::vector<std::string>& RouterAlertCodes() {
  static const std::vector<std::string> kCodes = {
      "DOUBLED_BUCKETS",    "FEED_INTERRUPTED",    "HIGH_REPLICATION_LAG",  "INVALID_CFG",
      "LOST_BUCKETS",       "MISSING_MASTER",      "NO_TOPOLOGY",           "QUARANTINED_BUCKETS",
      "STALE_TOPOLOGY",     "STUCK_TRANSFER",      "SUBOPTIMAL_REPLICA",    "UNKNOWN_BUCKETS",
      "UNREACHABLE_MASTER", "UNREACHABLE_REPLICA", "UNREACHABLE_REPLICASET"};
  return kCodes;
}

}  // namespace etalon::router
