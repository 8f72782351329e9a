#include "router/node/health.h"

#include <algorithm>

namespace etalon::router {

namespace {

constexpr Duration kSeekGap = std::chrono::milliseconds(50);

}  // namespace

Fitness ReplicaState::fitness() const {
  if (!dialled) return Fitness::kUntried;
  if (!answers || !ready) return Fitness::kDown;
  return lagging ? Fitness::kLagging : Fitness::kHealthy;
}

Health::Output Health::SetDirectory(SteadyTime now, std::shared_ptr<const Directory> directory,
                                    Random& random) {
  directory_ = std::move(directory);
  if (next_id_ == 0) next_id_ = random.NextId() >> 1;  // answers to an earlier life do not match
  Output out;
  std::map<NodeName, ReplicaState> before = std::move(replicas_);
  replicas_.clear();
  std::map<ShardUid, ShardState> shards = std::move(shards_);
  shards_.clear();
  for (const auto& [uid, shard] : directory_->shards()) {
    ShardState& state = shards_[uid];
    if (const auto it = shards.find(uid); it != shards.end()) state.leader = it->second.leader;
    bool leader_stays = false;
    for (const Replica& replica : shard.replicas) {
      leader_stays = leader_stays || replica.name == state.leader.name;
      const auto [it, added] = replicas_.try_emplace(replica.name);
      if (const auto old = before.find(replica.name); old != before.end()) {
        it->second = old->second;
      } else {
        Ping(now, replica.name, it->second, random, out);
      }
    }
    if (!leader_stays) state.leader.name.clear();
    Refresh(uid);
  }
  Reschedule();
  return out;
}

void Health::Ask(const NodeName& name, ReplicaState& state, Output& out) {
  state.sent = ++next_id_;
  v1::Ping ping;
  ping.set_id(state.sent);
  out.pings.emplace_back(name, std::move(ping));
}

void Health::Ping(SteadyTime now, const NodeName& name, ReplicaState& state, Random& random,
                  Output& out) {
  Ask(name, state, out);
  state.awaited = state.sent;
  const Duration jitter = options_.ping_period / 5;
  state.next_ping =
      now + random.Between(options_.ping_period - jitter, options_.ping_period + jitter);
}

void Health::Miss(const NodeName& name, ReplicaState& state, unsigned count, Output& out) {
  state.misses += count;
  if (state.misses < options_.misses || (state.dialled && !state.answers)) return;
  state.dialled = true;
  state.answers = false;
  out.down.push_back(name);
  if (const Shard* shard = directory_->ShardOf(name)) Refresh(shard->uid);
}

Health::Output Health::OnWake(SteadyTime now, Random& random) {
  Output out;
  if (now < wake_) return out;
  for (auto& [name, state] : replicas_) {
    if (now < state.next_ping) continue;
    if (state.answered < state.awaited) Miss(name, state, 1, out);
    Ping(now, name, state, random, out);
  }
  Reschedule();
  return out;
}

Health::Output Health::OnPong(SteadyTime, const NodeName& from, const v1::Pong& pong) {
  Output out;
  const auto it = replicas_.find(from);
  if (it == replicas_.end()) return out;
  ReplicaState& state = it->second;
  if (pong.id() <= state.answered || pong.id() > state.sent) return out;  // twice, or a stranger's
  const Shard* shard = directory_->ShardOf(from);
  const Fitness before = state.fitness();
  state.answered = pong.id();
  state.dialled = state.answers = true;
  state.misses = 0;
  // A process that serves another shard under this name has another disk: not the one that is
  // meant.
  state.ready = pong.ready() && (pong.shard() == 0 || ShardUid(pong.shard()) == shard->uid);
  state.leads = pong.leader();
  state.lag = std::chrono::milliseconds(pong.lag_millis());
  state.lagging = !pong.leader() && state.lag > options_.max_lag;
  state.applied = LogIndex(pong.applied_index());
  state.topology_version = pong.topology_version();
  Refresh(shard->uid);
  if (before == Fitness::kDown && state.fitness() != Fitness::kDown) {
    out.leaders.push_back(shard->uid);
  }
  if (!state.ready) return out;
  const Leader& known = shards_[shard->uid].leader;
  if (pong.leader() || !pong.leader_name().empty()) {
    Learn(shard->uid, pong.leader() ? from : pong.leader_name(), Term(pong.term()), out);
  } else if (known.name == from && Term(pong.term()) >= known.term) {
    Learn(shard->uid, "", Term(pong.term()), out);
  }
  return out;
}

void Health::Learn(ShardUid shard, const NodeName& leader, Term term, Output& out) {
  Leader& known = shards_[shard].leader;
  if (term < known.term || (term == known.term && known.name == leader)) return;
  const Shard* owner = leader.empty() ? nullptr : directory_->ShardOf(leader);
  if (!leader.empty() && (owner == nullptr || owner->uid != shard)) return;
  const bool changed = known.name != leader;
  known = {leader, term};
  Refresh(shard);
  if (changed && !leader.empty()) out.leaders.push_back(shard);
}

Health::Output Health::OnUnreachable(SteadyTime, const NodeName& replica) {
  Output out;
  if (const auto it = replicas_.find(replica); it != replicas_.end()) {
    Miss(replica, it->second, options_.misses, out);
  }
  return out;
}

Health::Output Health::OnSilence(SteadyTime, const NodeName& replica) {
  Output out;
  if (const auto it = replicas_.find(replica); it != replicas_.end()) {
    Miss(replica, it->second, 1, out);
  }
  return out;
}

Health::Output Health::OnNotLeader(SteadyTime, const NodeName& replica, const NodeName& hint,
                                   std::optional<Term> term) {
  Output out;
  const Shard* shard = directory_ == nullptr ? nullptr : directory_->ShardOf(replica);
  if (shard == nullptr) return out;
  const Leader known = LeaderOf(shard->uid);
  if (!hint.empty() && hint != replica) {
    Learn(shard->uid, hint, term.value_or(known.term), out);
  } else if (known.name == replica && term.value_or(known.term) >= known.term) {
    Learn(shard->uid, "", term.value_or(known.term), out);
  }
  return out;
}

Health::Output Health::OnProof(const NodeName& leader, Term term) {
  Output out;
  if (const Shard* shard = directory_->ShardOf(leader)) Learn(shard->uid, leader, term, out);
  return out;
}

Health::Output Health::Seek(SteadyTime now, ShardUid shard) {
  Output out;
  const auto it = shards_.find(shard);
  if (it == shards_.end()) return out;
  if (it->second.sought != SteadyTime::min() && now < it->second.sought + kSeekGap) return out;
  it->second.sought = now;
  for (const Candidate& c : it->second.candidates) {
    Ask(c.name, replicas_[c.name], out);
  }
  return out;
}

std::optional<NodeName> Health::UsableLeader(ShardUid shard) const {
  const auto it = shards_.find(shard);
  if (it == shards_.end() || it->second.leader.name.empty()) return std::nullopt;
  const NodeName& name = it->second.leader.name;
  if (State(name).fitness() == Fitness::kDown) return std::nullopt;
  return name;
}

Leader Health::LeaderOf(ShardUid shard) const {
  const auto it = shards_.find(shard);
  return it == shards_.end() ? Leader{} : it->second.leader;
}

const std::vector<Candidate>& Health::Candidates(ShardUid shard) const {
  static const std::vector<Candidate> kNone;
  const auto it = shards_.find(shard);
  return it == shards_.end() ? kNone : it->second.candidates;
}

bool Health::AllDialled() const {
  return std::all_of(replicas_.begin(), replicas_.end(),
                     [](const auto& replica) { return replica.second.dialled; });
}

void Health::Refresh(ShardUid shard) {
  ShardState& state = shards_[shard];
  state.candidates.clear();
  for (const Replica& r : directory_->Find(shard)->replicas) {
    const auto it = replicas_.find(r.name);
    const Fitness fitness = it == replicas_.end() ? Fitness::kUntried : it->second.fitness();
    state.candidates.push_back({r.name, fitness, r.distance, r.name == state.leader.name});
  }
}

void Health::Reschedule() {
  wake_ = SteadyTime::max();
  for (const auto& [name, state] : replicas_) wake_ = std::min(wake_, state.next_ping);
}

}  // namespace etalon::router
