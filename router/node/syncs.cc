#include "router/node/syncs.h"

#include <algorithm>
#include <utility>

namespace etalon::router {

Status Syncs::Admit(SteadyTime now, const NodeName& client, std::uint64_t request, Duration timeout,
                    const Health& health) {
  if (syncs_.size() >= kMax) return ResourceExhausted("too many syncs are waiting: back off");
  syncs_.push_back({client, request, now + timeout, health.last_ping(), {}});
  return OkStatus();
}

std::optional<Status> Syncs::Missing(Sync& sync, const Directory& directory, const Health& health) {
  std::optional<Status> missing;
  for (const auto& [uid, shard] : directory.shards()) {
    for (const Replica& replica : shard.replicas) {
      const ReplicaState& state = health.State(replica.name);
      if (state.leads && state.answered > sync.after) sync.targets.try_emplace(uid, state.applied);
    }
    const auto target = sync.targets.find(uid);
    for (const Replica& replica : shard.replicas) {
      if (missing) break;
      if (target != sync.targets.end() && health.State(replica.name).applied >= target->second) {
        continue;
      }
      Hint hint;
      hint.text = shard.name;
      missing = Status(Code::kDeadlineExceeded, Reason::kDeadlinePassed,
                       target == sync.targets.end()
                           ? "no leader of shard " + shard.name + " answered"
                           : "replica " + replica.name + " of shard " + shard.name +
                                 " has not applied what its leader has",
                       std::move(hint));
    }
  }
  return missing;
}

std::vector<Syncs::Done> Syncs::Check(SteadyTime now, const Directory& directory,
                                      const Health& health) {
  std::vector<Done> done;
  for (auto it = syncs_.begin(); it != syncs_.end();) {
    auto missing = Missing(*it, directory, health);
    if (missing && now < it->deadline) {
      ++it;
      continue;
    }
    done.push_back({it->client, it->request, missing ? std::move(*missing) : OkStatus()});
    it = syncs_.erase(it);
  }
  return done;
}

SteadyTime Syncs::wake() const {
  SteadyTime when = SteadyTime::max();
  for (const Sync& sync : syncs_) when = std::min(when, sync.deadline);
  return when;
}

}  // namespace etalon::router
