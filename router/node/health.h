// Which replicas answer, how far behind they are, and who leads each shard.
//
// Every replica is pinged about every 250 ms. Three pings in a row without an answer, or calls that
// it left unanswered in between, make it down: a replica that is connected but mute is as bad as
// one that is gone. One answer brings it back. Leaders are learnt from the answers and from hints
// of refused calls; of two words the one with the higher term counts.
//
// A pure machine: says what to send and what changed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/random.h"
#include "common/time.h"
#include "etalon/v1/peer.pb.h"
#include "router/call/choose.h"
#include "router/table/directory.h"

namespace etalon::router {

struct HealthOptions {
  Duration ping_period = std::chrono::milliseconds(250);  // jittered by a fifth
  unsigned misses = 3;
  Duration max_lag = std::chrono::seconds(30);
};

struct ReplicaState {
  bool dialled = false;  // answered once, or was found to be down
  bool answers = false;
  bool ready = false;  // by its own word
  bool lagging = false;
  bool leads = false;  // with a lease, by its last word
  unsigned misses = 0;
  std::uint64_t sent = 0;      // ID of the last ping
  std::uint64_t awaited = 0;   // ID of the last regular one: unanswered until the next it is a miss
  std::uint64_t answered = 0;  // ID of the last ping that was answered
  SteadyTime next_ping;
  Duration lag{};
  LogIndex applied;
  std::uint64_t topology_version = 0;

  Fitness fitness() const;
};

struct Leader {
  NodeName name;  // empty: not known
  Term term;      // highest seen of the shard
};

class Health {
 public:
  struct Output {
    std::vector<std::pair<NodeName, v1::Ping>> pings;
    std::vector<NodeName> down;     // were not before
    std::vector<ShardUid> leaders;  // has another leader, or a replica that can serve again
  };

  explicit Health(HealthOptions options) : options_(options) {}

  // Replicas that stay keep their state; new ones are pinged at once.
  Output SetDirectory(SteadyTime now, std::shared_ptr<const Directory> directory, Random& random);
  Output OnWake(SteadyTime now, Random& random);
  Output OnPong(SteadyTime now, const NodeName& from, const v1::Pong& pong);
  // The transport knows no way to it.
  Output OnUnreachable(SteadyTime now, const NodeName& replica);
  // A call to it was not answered in time.
  Output OnSilence(SteadyTime now, const NodeName& replica);
  // It refused a call because it does not lead, and named whom it knows (or nobody).
  Output OnNotLeader(SteadyTime now, const NodeName& replica, const NodeName& hint,
                     std::optional<Term> term);
  // Only a leader with a lease speaks so.
  Output OnProof(const NodeName& leader, Term term);
  // A leader of the shard is wanted: all its replicas are pinged, at most once in a short while.
  Output Seek(SteadyTime now, ShardUid shard);

  // Known, and not down.
  std::optional<NodeName> UsableLeader(ShardUid shard) const;
  Leader LeaderOf(ShardUid shard) const;
  // In the order of the topology; empty for a shard that it does not know.
  const std::vector<Candidate>& Candidates(ShardUid shard) const;
  const ReplicaState& State(const NodeName& replica) const { return replicas_.at(replica); }
  bool Knows(const NodeName& replica) const { return replicas_.contains(replica); }
  // Pings sent from now on have a greater ID.
  std::uint64_t last_ping() const { return next_id_; }
  // Every replica answered once, or was found to be down.
  bool AllDialled() const;
  SteadyTime wake() const { return wake_; }

 private:
  struct ShardState {
    Leader leader;
    std::vector<Candidate> candidates;
    SteadyTime sought = SteadyTime::min();
  };

  void Ask(const NodeName& name, ReplicaState& state, Output& out);
  void Ping(SteadyTime now, const NodeName& name, ReplicaState& state, Random& random, Output& out);
  void Miss(const NodeName& name, ReplicaState& state, unsigned count, Output& out);
  void Learn(ShardUid shard, const NodeName& leader, Term term, Output& out);
  void Refresh(ShardUid shard);
  void Reschedule();

  const HealthOptions options_;
  std::shared_ptr<const Directory> directory_;
  std::map<NodeName, ReplicaState> replicas_;
  std::map<ShardUid, ShardState> shards_;
  std::uint64_t next_id_ = 0;
  SteadyTime wake_ = SteadyTime::max();
};

}  // namespace etalon::router
