// What is told: conditions, waits, and a line for each shard.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "operator/plan/names.h"
#include "operator/plan/planner.h"

namespace etalon::controller {
namespace {

// The same failure so often is not bad luck.
constexpr std::uint32_t kStalledAfter = 5;

Condition Make(std::string type, bool holds, std::string reason, std::string message) {
  return {std::move(type), holds ? ConditionStatus::kTrue : ConditionStatus::kFalse,
          std::move(reason), std::move(message), SteadyTime()};
}

Condition Unknown(std::string type, std::string reason, std::string message) {
  return {std::move(type), ConditionStatus::kUnknown, std::move(reason), std::move(message),
          SteadyTime()};
}

std::string First(const std::vector<Wait>& waits) {
  if (waits.empty()) return "";
  std::string out = waits.front().what;
  if (!waits.front().left.empty()) out += " (left: " + waits.front().left + ")";
  if (!waits.front().next.empty()) out += "; " + waits.front().next;
  if (waits.size() > 1) out += fmt::format("; and {} more", waits.size() - 1);
  return out;
}

}  // namespace

void Planner::MakeReport() {
  Report& report = report_;
  report.topology_version = view_.topology_version();
  report.settings_version = view_.settings_version();
  report.modulus = view_.topology() == nullptr
                       ? 0
                       : std::uint64_t{view_.topology()->bucket_count()} << view_.level();
  if (seen_.routers.known()) {
    for (const auto& [name, router] : seen_.routers.value()) {
      report.ready_routers += router.info.known() && router.info.value().ready();
    }
  }
  ReportShards(&report);
  std::sort(waits_.begin(), waits_.end(),
            [](const Wait& a, const Wait& b) { return a.key < b.key; });
  report.waits = waits_;

  auto& out = report.conditions;
  out.push_back(Available());
  out.push_back(Balanced());
  out.push_back(FewBuckets());
  out.push_back(Make(
      "Paused", spec_.paused, spec_.paused ? "Paused" : "Running",
      spec_.paused ? "spec.paused is true: everything is observed and nothing is changed" : ""));
  out.push_back(Ready());
  const bool reconciling = !actions_.empty() || !waits_.empty();
  out.push_back(Make("Reconciling", reconciling, reconciling ? "Working" : "AtRest",
                     !waits_.empty()     ? First(waits_)
                     : !actions_.empty() ? Key(actions_.front())
                                         : ""));
  out.push_back(Resharding());
  out.push_back(Make("ScaleDownBlocked", !down_blocked_.empty(),
                     down_blocked_.empty() ? "NotBlocked" : "Blocked", down_blocked_));
  std::string stalled;
  for (const std::string& sentence : refused_) stalled += (stalled.empty() ? "" : "; ") + sentence;
  for (const auto& [key, failure] : seen_.failures) {
    if (stalled.empty() && failure.times >= kStalledAfter) {
      stalled = fmt::format("{} failed {} times: {}", key, failure.times, failure.sentence);
    }
  }
  out.push_back(Make("Stalled", !stalled.empty(),
                     !refused_.empty() ? "Refused"
                     : stalled.empty() ? "Progressing"
                                       : "Failing",
                     stalled));
  std::size_t behind = 0;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr) continue;
    behind += shard.leader == nullptr ||
              shard.leader->topology_version() < view_.topology_version() ||
              shard.leader->settings_version() < view_.settings_version();
  }
  std::string who;
  const bool routers = view_.RoutersKnow(view_.topology_version(), &who);
  const bool converged = routers && behind == 0 && view_.topology() != nullptr;
  out.push_back(
      Make("TopologyConverged", converged, converged ? "Converged" : "Spreading",
           converged  ? fmt::format("topology {} and settings {} are everywhere",
                                    view_.topology_version(), view_.settings_version())
           : !routers ? "waits for " + who
                      : fmt::format("{} shards do not have topology {} and settings {} yet", behind,
                                    view_.topology_version(), view_.settings_version())));
  std::sort(out.begin(), out.end(),
            [](const Condition& a, const Condition& b) { return a.type < b.type; });
  KeepSince(seen_.last, now_, &report);
}

void Planner::ReportShards(Report* report) const {
  for (const ShardView& shard : view_.shards()) {
    ShardReport out;
    out.name = shard.name;
    out.uid = shard.uid;
    switch (shard.role) {
      case Role::kNew:
        out.state = "Creating";
        break;
      case Role::kKeep: {
        const ShardPolicy policy = spec_.Override(shard.name).policy;
        out.state = shard.creating()                   ? "Creating"
                    : policy == ShardPolicy::kLocked   ? "Locked"
                    : policy == ShardPolicy::kDraining ? "Draining"
                                                       : "Normal";
        break;
      }
      case Role::kVictim:
        out.state = "Draining";
        break;
      case Role::kRetired:
        out.state = "Retired";
        break;
      case Role::kRemoved:
        out.state = "Removed";
        break;
      case Role::kStray:
        continue;
    }
    out.weight = static_cast<std::uint32_t>(shard.weight());
    for (const ReplicaView& replica : shard.replicas) {
      ++out.replicas;
      out.ready_replicas += replica.info != nullptr && replica.info->formed();
    }
    if (shard.leader != nullptr) {
      out.leader = shard.leader->replica();
      out.term = shard.leader->term();
      out.buckets = view_.AtHighestLevel(*shard.leader, OwnedBy(*shard.leader));
      if (shard.leader->has_etalon()) out.etalon = shard.leader->etalon();
      if (shard.leader->has_disbalance()) out.disbalance_percent = shard.leader->disbalance() * 100;
      out.bytes = shard.leader->store_bytes();
    }
    report->shards.push_back(std::move(out));
  }
}

Condition Planner::Ready() const {
  if (!refused_.empty()) return Make("Ready", false, "Refused", refused_.front());
  if (spec_.paused) return Make("Ready", false, "Paused", "spec.paused is true");
  if (!down_blocked_.empty()) return Make("Ready", false, "ScaleDownBlocked", down_blocked_);
  if (!waits_.empty()) return Make("Ready", false, "Waiting", First(waits_));
  if (!actions_.empty()) return Make("Ready", false, "Working", Key(actions_.front()));
  for (const ShardReport& shard : report_.shards) {
    if (shard.ready_replicas < shard.replicas) {
      return Make("Ready", false, "ReplicasMissing",
                  fmt::format("{} of {} replicas of {} serve", shard.ready_replicas, shard.replicas,
                              shard.name));
    }
  }
  if (report_.ready_routers < spec_.routers) {
    return Make("Ready", false, "RoutersMissing",
                fmt::format("{} of {} routers are ready", report_.ready_routers, spec_.routers));
  }
  if (const auto* state = seen_.rebalancer.get(); state != nullptr && state->remaining() > 0) {
    return Make("Ready", false, "BucketsMove",
                fmt::format("{} buckets are still to move", state->remaining()));
  }
  return Make("Ready", true, "AsSpecified",
              fmt::format("{} shards and {} routers serve", report_.shards.size(), spec_.routers));
}

Condition Planner::Available() const {
  if (!complete())
    return Make("Available", false, "Incomplete",
                "not every shard of the collection is formed yet");
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || (shard.creating() && shard.form == nullptr) ||
        shard.role == Role::kRetired)
      continue;
    if (shard.leader != nullptr) {
      const auto& alerts = shard.leader->alerts();
      const auto full = std::find_if(alerts.begin(), alerts.end(),
                                     [](const v1::Alert& a) { return a.code() == "DISK_FULL"; });
      if (full == alerts.end()) continue;
      return Make("Available", false, "DiskFull",
                  fmt::format("the disk of {}, which leads {}, is full: free space on it, or hand "
                              "over to a replica that has room",
                              shard.leader->replica(), shard.name));
    }
    if (std::string why = WhyNoMajority(shard); !why.empty())
      return Make("Available", false, "MajorityLost", std::move(why));
    const std::string sentence = fmt::format("no leader of {} answers", shard.name);
    if (shard.may_have_quorum) return Unknown("Available", "NoAnswer", sentence);
    return Make("Available", false, "NoQuorum", sentence + ", and too few of its replicas run");
  }
  return Make("Available", true, "EveryShardLed", "every shard has a leader that accepts writes");
}

Condition Planner::Resharding() const {
  const v1::RebalancerStateResponse* state = seen_.rebalancer.get();
  bool births = resharding_;
  for (const ShardView& shard : view_.shards()) {
    births = births || (complete() && (shard.role == Role::kNew ||
                                       (shard.role == Role::kKeep && shard.creating())));
  }
  const bool moves = state != nullptr && state->remaining() > 0;
  if (!births && !moves) return Make("Resharding", false, "AtRest", "");
  std::string message = moves ? fmt::format("{} of {} planned moves are done, {} remain",
                                            state->moved(), state->planned(), state->remaining())
                              : "shards are being added or removed";
  if (!waits_.empty()) message += "; " + First(waits_);
  return Make("Resharding", true, births ? "ShardsChange" : "BucketsMove", message);
}

Condition Planner::Balanced() const {
  bool weight = false;
  bool unlocked = false;
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kKeep && shard.role != Role::kNew) continue;
    const ShardOverride wish = spec_.Override(shard.name);
    weight = weight || (wish.weight > 0 && wish.policy != ShardPolicy::kDraining);
    unlocked = unlocked || wish.policy != ShardPolicy::kLocked;
  }
  if (!unlocked)
    return Make("Balanced", false, "AllLocked", "every shard is Locked: nothing moves; unlock one");
  if (!weight) {
    return Make("Balanced", false, "AllWeightsZero",
                "every weight is 0: nobody may take buckets; give one shard a weight above 0");
  }
  if (spec_.rebalancing.mode == RebalancingMode::kDisabled) {
    return Unknown("Balanced", "Disabled", "rebalancing.mode is Disabled: nobody looks");
  }
  if (view_.settings() == nullptr || view_.settings()->rebalancer() == 0) {
    return Unknown(
        "Balanced", "NoRebalancer",
        spec_.rebalancing.mode == RebalancingMode::kManual
            ? fmt::format("rebalancing.shard names {}, which is no shard of this collection",
                          spec_.rebalancing.shard)
            : "no unlocked shard has a quorum that could run the rebalancer");
  }
  const v1::RebalancerStateResponse* state = seen_.rebalancer.get();
  if (state == nullptr || !state->runs_here())
    return Unknown("Balanced", "NoAnswer", "the rebalancer does not answer");
  return Make("Balanced", state->state() == "BALANCED",
              state->state() == "BALANCED" ? "Balanced" : "Moving", state->explanation());
}

Condition Planner::FewBuckets() const {
  const std::uint64_t modulus = std::max<std::uint64_t>(report_.modulus, spec_.bucket_count);
  // bucketCount = shardNum, grown by splits, is a layout of its own: one bucket a shard is what was
  // asked for.
  const bool classic = spec_.bucket_count <= spec_.shard_num;
  const bool few = !classic && modulus < kFewBuckets * spec_.shard_num;
  return Make("FewBuckets", few, few ? "CoarseSpread" : "Enough",
              few ? fmt::format("{} buckets over {} shards are less than {} each: shards differ by "
                                "whole buckets, so the load "
                                "cannot be spread evenly",
                                modulus, spec_.shard_num, kFewBuckets)
                  : "");
}

}  // namespace etalon::controller
