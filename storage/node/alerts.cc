#include "storage/node/alerts.h"

#include <algorithm>

namespace etalon::storage {

namespace {

using std::chrono::seconds;

// VShard's thresholds of replication lag.
constexpr Duration kLagSoft = seconds(1);
constexpr Duration kLagHard = seconds(5);
constexpr Duration kLagFail = seconds(10);

std::string Seconds(Duration d) {
  return std::to_string(std::chrono::duration_cast<seconds>(d).count()) + " s";
}

std::string Join(const std::vector<std::string>& items) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : "; ") + item;
  return out;
}

void FollowerAlerts(const AlertFacts& f, std::vector<StorageAlert>* out) {
  if (!f.leader_known) {
    out->push_back({"MISSING_MASTER", "this shard has no leader", Severity::kOrange});
    return;
  }
  if (f.since_leader >= kLagSoft) {
    const Severity severity = f.since_leader > kLagFail   ? Severity::kRed
                              : f.since_leader > kLagHard ? Severity::kOrange
                                                          : Severity::kYellow;
    out->push_back({"UNREACHABLE_MASTER",
                    "nothing heard from the leader for " + Seconds(f.since_leader), severity});
    return;
  }
  if (f.lag >= kLagFail) {
    out->push_back({"OUT_OF_SYNC", "behind the leader for " + Seconds(f.lag), Severity::kRed});
  } else if (f.lag >= kLagSoft) {
    out->push_back({"HIGH_REPLICATION_LAG", "behind the leader for " + Seconds(f.lag),
                    f.lag >= kLagHard ? Severity::kOrange : Severity::kYellow});
  }
}

void LeaderAlerts(const AlertFacts& f, std::vector<StorageAlert>* out) {
  std::vector<std::string> dead;
  std::size_t voters = 0, alive = 0;
  for (const MemberFacts& m : f.others) {
    if (!m.alive) dead.push_back(m.name);
    if (m.learner) continue;
    ++voters;
    if (m.alive) ++alive;
  }
  if (!dead.empty()) {
    out->push_back({"UNREACHABLE_REPLICA", "no answer from " + Join(dead), Severity::kYellow});
  }
  if (voters >= 1 && alive == 0) {
    out->push_back({"UNREACHABLE_REPLICASET", "no other replica answers", Severity::kRed});
  } else if (voters >= 2 && alive == 1) {
    out->push_back({"LOW_REDUNDANCY", "only one other replica answers", Severity::kOrange});
  }
}

}  // namespace

std::vector<StorageAlert> StorageAlerts(const AlertFacts& f) {
  std::vector<StorageAlert> out;
  if (!f.formed) {
    out.push_back({"UNFORMED", "this disk belongs to no shard yet", Severity::kYellow});
    return out;
  }
  if (f.leader) {
    LeaderAlerts(f, &out);
  } else {
    FollowerAlerts(f, &out);
  }
  if (f.sending && f.receiving) {
    out.push_back({"INVALID_REBALANCING", "this shard sends and receives buckets at once",
                   Severity::kYellow});
  }
  if (f.quarantined > 0) {
    out.push_back({"DOUBLED_BUCKETS",
                   std::to_string(f.quarantined) +
                       " buckets are quarantined: another shard proved newer ownership",
                   Severity::kRed});
  }
  if (!f.lost.empty()) out.push_back({"LOST_BUCKETS", Join(f.lost), Severity::kRed});
  if (!f.held.empty()) out.push_back({"HELD_TRANSFER", Join(f.held), Severity::kRed});
  if (!f.stuck.empty()) out.push_back({"STUCK_TRANSFER", Join(f.stuck), Severity::kYellow});
  if (f.disk_full)
    out.push_back({"DISK_FULL", "writes are refused until space is freed", Severity::kRed});
  if (!f.store_failure.empty()) out.push_back({"STORE_FAILURE", f.store_failure, Severity::kRed});
  if (f.all_weights_zero) {
    out.push_back(
        {"ALL_WEIGHTS_ZERO", "no shard may hold buckets: give one a weight", Severity::kOrange});
  }
  if (f.all_locked)
    out.push_back({"ALL_SHARDS_LOCKED", "every shard is locked: nothing moves", Severity::kYellow});
  if (f.topology_conflict) {
    out.push_back({"INVALID_CFG", "two topologies of one version were seen", Severity::kRed});
  }
  if (f.collection_incomplete) {
    out.push_back({"COLLECTION_INCOMPLETE", "not every shard is formed yet: nothing moves",
                   Severity::kYellow});
  }
  std::sort(out.begin(), out.end(),
            [](const StorageAlert& a, const StorageAlert& b) { return a.code < b.code; });
  return out;
}

Severity StatusOf(const std::vector<StorageAlert>& alerts) {
  Severity worst = Severity::kGreen;
  for (const auto& alert : alerts) worst = std::max(worst, alert.severity);
  return worst;
}

const std::vector<std::string>& StorageAlertCodes() {
  static const std::vector<std::string> kCodes = {
      "ALL_SHARDS_LOCKED",   "ALL_WEIGHTS_ZERO",    "COLLECTION_INCOMPLETE", "DISK_FULL",
      "DOUBLED_BUCKETS",     "HELD_TRANSFER",       "HIGH_REPLICATION_LAG",  "INVALID_CFG",
      "INVALID_REBALANCING", "LOST_BUCKETS",        "LOW_REDUNDANCY",        "MISSING_MASTER",
      "OUT_OF_SYNC",         "STORE_FAILURE",       "STUCK_TRANSFER",        "UNFORMED",
      "UNREACHABLE_MASTER",  "UNREACHABLE_REPLICA", "UNREACHABLE_REPLICASET"};
  return kCodes;
}

}  // namespace etalon::storage
