// Tells routers which buckets are here: a full list at one index, then deltas
// (docs/protocols/router.md, "Change feed"). Only a leader with a lease feeds. A pure machine: the
// owner sends what it returns.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/time.h"
#include "engine/bucket/state_machine.h"
#include "env/transport.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::storage {

class FeedPublisher {
 public:
  struct Outgoing {
    NodeName to;
    v1::FeedMessage message;
  };

  // A router is given up when it was told nothing for this long because its link was full.
  static constexpr Duration kHeartbeat = std::chrono::milliseconds(200);
  static constexpr std::size_t kMaxSubscribers = 1024;

  // The first message of a new subscription, or the refusal.
  v1::FeedMessage Subscribe(const NodeName& from, const v1::FeedSubscribe& request,
                            const bucket::StateMachine& state, Term term, SteadyTime now);
  void Unsubscribe(const NodeName& from);

  // During Apply.
  void OnRow(std::uint32_t bucket) { changed_.insert(bucket); }
  void OnRebase() { all_changed_ = true; }

  // After an apply group, and on ticks: deltas and heartbeats that are due.
  std::vector<Outgoing> Flush(const bucket::StateMachine& state, Term term, SteadyTime now);
  // The transport refused a message to `to`: its subscription has a gap and ends; it will subscribe
  // again.
  void Dropped(const NodeName& to) { subscribers_.erase(to); }
  // Leadership or the lease is gone: everybody is told and dropped.
  std::vector<Outgoing> Close(const Status& why, ShardUid shard);

  std::size_t subscribers() const { return subscribers_.size(); }

 private:
  struct Subscriber {
    std::uint64_t subscription = 0;
    LogIndex last;
    SteadyTime told;
  };
  v1::FeedMessage Full(const bucket::StateMachine& state, Term term) const;

  std::map<NodeName, Subscriber> subscribers_;
  std::set<std::uint32_t> changed_;
  bool all_changed_ = false;
};

}  // namespace etalon::storage
