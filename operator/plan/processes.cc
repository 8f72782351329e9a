// Which processes run. Storages: every one that a topology or a log names, and those of shards to
// be made. Routers: as many as asked for, rolled over to each new topology one at a time.
#include <fmt/format.h>

#include <algorithm>

#include "operator/plan/names.h"
#include "operator/plan/planner.h"

namespace etalon::controller {

void Planner::StartStorages() {
  for (const ShardView& shard : view_.shards()) {
    if (shard.role == Role::kStray) continue;
    // Of a shard that is gone nothing is started once its deletion has begun; before, its leader
    // must still answer.
    if (shard.role == Role::kRemoved &&
        (shard.form == nullptr || seen_.doomed.value().contains(shard.uid)))
      continue;
    for (const ReplicaView& replica : shard.replicas) {
      const bool declared =
          shard.declared == nullptr ||
          std::any_of(shard.declared->replicas().begin(), shard.declared->replicas().end(),
                      [&](const v1::ReplicaInfo& r) { return r.name() == replica.name; });
      const bool wanted = ReplicaOrdinal(spec_.name, shard.name, replica.name).value_or(~0u) <
                          spec_.replicas_per_shard;
      if (declared || wanted) StartIfNotRunning(shard, replica);
    }
  }
}

void Planner::StartIfNotRunning(const ShardView& shard, const ReplicaView& replica) {
  switch (replica.state()) {
    case ProcessState::kUnknown:
    case ProcessState::kUp:
      return;
    case ProcessState::kAbsent:
      return Do(StartStorage{replica.name, shard.name, shard.uid});
    case ProcessState::kDown:
      break;
  }
  const Process& process = replica.seen->process;
  if (process.disk_lost) return;  // PlanLostDisks decides
  if (process.restart_at <= now_) return Do(StartStorage{replica.name, shard.name, shard.uid});
  wake_at_ = std::min(wake_at_, process.restart_at);
  WaitFor("restart " + replica.name,
          fmt::format("waits to start {} again, which ended: {}", replica.name, process.last_words),
          "", "it is started with the disk that it has");
}

void Planner::StopStrays() {
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kStray) continue;
    for (const ReplicaView& replica : shard.replicas) {
      if (replica.unformed() && shard.form == nullptr) {
        Do(StopStorage{replica.name});  // of a shard that was never made
      } else if (replica.info != nullptr) {
        WaitFor("stray " + replica.name,
                fmt::format("{} holds data of a shard that no topology names; it is left alone",
                            replica.name),
                "", "somebody has to look at it");
      }
    }
  }
}

void Planner::PlanRouters() {
  if (!complete())
    return;  // nothing could be served yet, and their first topology would be outdated at once
  const std::uint64_t version = view_.topology_version();
  std::set<std::string> wanted;
  for (std::uint32_t i = 0; i < spec_.routers; ++i) wanted.insert(RouterName(spec_.name, i));
  const auto& routers = seen_.routers.value();
  for (const std::string& name : wanted) {
    const auto it = routers.find(name);
    const ProcessState state =
        it == routers.end() ? ProcessState::kAbsent : it->second.process.state;
    if (state == ProcessState::kAbsent ||
        (state == ProcessState::kDown && it->second.process.restart_at <= now_)) {
      Do(StartRouter{name, version});
    } else if (state == ProcessState::kDown) {
      wake_at_ = std::min(wake_at_, it->second.process.restart_at);
      WaitFor("restart " + name,
              fmt::format("waits to start {} again, which ended: {}", name,
                          it->second.process.last_words),
              "", "it is started with the newest topology");
    }
  }
  for (const auto& [name, router] : routers) {
    if (router.process.state != ProcessState::kUp || router.info.known() ||
        router.silent_since == SteadyTime::max())
      continue;
    const SteadyTime until = router.silent_since + kRouterSilence;
    if (until <= now_) {
      Do(RestartRouter{name, version});
    } else {
      wake_at_ = std::min(wake_at_, until);
    }
  }
  // Routers that are too many go one at a time, and not while others are being rolled.
  const std::string surge = SurgeRouterName(spec_.name);
  for (const auto& [name, router] : routers) {
    if (wanted.contains(name) || name == surge || router.process.state == ProcessState::kAbsent)
      continue;
    Do(StopRouter{name});
    break;
  }
  RollRouters(version);
}

void Planner::RollRouters(std::uint64_t version) {
  const std::string surge = SurgeRouterName(spec_.name);
  const auto& routers = seen_.routers.value();
  const RouterSeen* extra = nullptr;
  std::vector<std::string> outdated;
  std::string unready;
  for (const auto& [name, router] : routers) {
    if (router.process.state == ProcessState::kAbsent) continue;
    if (name == surge) {
      extra = &router;
      continue;
    }
    const v1::RouterInfoResponse* info = router.info.get();
    const bool behind = info != nullptr && info->topology_version() < version;
    if (behind) outdated.push_back(name);
    // One that is behind and not ready is restarted first: nobody is served by it.
    if (behind && !info->ready()) std::swap(outdated.front(), outdated.back());
    if (!behind && (info == nullptr || !info->ready())) unready = name;
  }
  if (spec_.config_update == ConfigUpdate::kLive) {
    for (const std::string& name : outdated) Do(PushTopology{name, version});
    if (extra != nullptr) Do(StopRouter{surge});
    return;
  }
  if (outdated.empty()) {
    if (extra != nullptr && unready.empty()) Do(StopRouter{surge});
    if (!unready.empty()) {
      WaitFor("router ready", fmt::format("waits for router {} to be ready", unready), "",
              "storages learn a topology once every router has it");
    }
    return;
  }
  const std::string left = fmt::format("{} of {} routers", outdated.size(), spec_.routers);
  const std::string next = fmt::format("then the storages learn topology {}", version);
  const v1::RouterInfoResponse* extra_info = extra == nullptr ? nullptr : extra->info.get();
  if (extra == nullptr ||
      (extra->process.state == ProcessState::kDown && extra->process.restart_at <= now_)) {
    Do(StartRouter{surge, version});
  } else if (extra_info != nullptr && extra_info->topology_version() < version) {
    Do(RestartRouter{surge, version});
  } else if (extra_info == nullptr || !extra_info->ready()) {
    WaitFor("roll", "waits for an extra router to be ready before the others are restarted", left,
            next);
  } else if (!unready.empty()) {
    WaitFor(
        "roll",
        fmt::format("waits for router {} to be ready before the next one is restarted", unready),
        left, next);
  } else {
    Do(RestartRouter{outdated.front(), version});
  }
}

}  // namespace etalon::controller
