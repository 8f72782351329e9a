// The subscription to one shard's change feed (docs/protocols/router.md has the table of states).
//
// A pure machine: it is told the time and what happened, and says what to send, whether the message
// that it was given is in its place, and when to wake it. Only a leader with a lease feeds; whoever
// else is asked says so and names whom it knows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/random.h"
#include "common/time.h"
#include "env/transport.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::router {

struct FeedOptions {
  Duration silence = std::chrono::seconds(2);  // a feed that says nothing for so long is dead
  Duration answer = std::chrono::seconds(1);   // for the first list after a subscription
  Duration backoff_base = std::chrono::milliseconds(50);
  Duration backoff_cap = std::chrono::seconds(2);
  Duration refresh_gap = std::chrono::seconds(1);  // between full lists that were asked for anew
};

class Feed {
 public:
  enum class State : std::uint8_t {
    kWaiting,  // backing off before the next subscription
    kAsking,   // subscribed; the full list has not come
    kLive,     // the list and every change since are known
  };

  struct Send {
    NodeName to;
    v1::FeedSubscribe message;
  };
  struct Output {
    std::vector<Send> sends;
    // Not empty: the next list or delta of the feed is whole; these are its parts, in their order.
    std::vector<v1::FeedMessage> apply;
  };

  // What a list or delta in parts may hold before it is whole.
  static constexpr std::size_t kMaxPartsBytes = 64u << 20;

  // `replicas` is not empty.
  Feed(ShardUid shard, std::vector<NodeName> replicas, FeedOptions options);

  Output Start(SteadyTime now, Random& random);
  Output OnMessage(SteadyTime now, const NodeName& from, v1::FeedMessage message, Random& random);
  // Somebody named the leader: if its term is not older than what is known it is asked at once,
  // unless it was asked already and refused or did not answer in that very term.
  Output OnLeader(SteadyTime now, const NodeName& leader, Term term, Random& random);
  // A message that was to be applied cannot be of this collection.
  Output OnUnusable(SteadyTime now, Random& random);
  // The connection to that replica has ended: if it fed, there is a gap now.
  Output OnDisconnect(SteadyTime now, const NodeName& replica, Random& random);
  // The table and the shard contradict each other, or an owner is sought: a new full list, as soon
  // as the bounds allow.
  Output Refresh(SteadyTime now, Random& random);
  Output OnWake(SteadyTime now, Random& random);
  // The next topology; the subscription goes on if its feeder is still a replica.
  Output SetReplicas(SteadyTime now, std::vector<NodeName> replicas, Random& random);
  // Ends the subscription at the feeder; the machine is not used any more.
  Output Stop();

  SteadyTime wake() const;
  State state() const { return state_; }
  // When the feed was last known to be complete; nullopt: never yet.
  std::optional<SteadyTime> live_until() const { return live_until_; }
  SteadyTime started() const { return started_; }

 private:
  Output Ask(SteadyTime now, Random& random);
  Output BackOff(SteadyTime now, Random& random);
  enum class Place : std::uint8_t { kNext, kOld, kGap };
  Place PlaceOf(const v1::FeedMessage& message) const;
  Output Take(SteadyTime now, v1::FeedMessage message, Random& random);
  Output OnRefusal(SteadyTime now, const v1::Status& status, Random& random);
  bool IsReplica(const NodeName& name) const;

  const ShardUid shard_;
  std::vector<NodeName> replicas_;
  const FeedOptions options_;
  State state_ = State::kWaiting;
  std::size_t next_ = 0;  // replica that is asked next while no leader is known
  NodeName leader_;       // empty: not known
  Term term_;             // highest seen of this shard
  NodeName feeder_;
  std::uint64_t subscription_ = 0;
  LogIndex last_;
  std::vector<v1::FeedMessage> parts_;  // of the list or delta that is not whole yet
  std::size_t parts_bytes_ = 0;
  unsigned redirects_ = 0;  // in a row, without a wait
  Backoff backoff_;
  SteadyTime until_ = SteadyTime::max();  // kWaiting: of the wait; kAsking: of the answer
  SteadyTime heard_;
  SteadyTime asked_;
  SteadyTime listed_;
  std::optional<SteadyTime> refresh_at_;
  std::optional<SteadyTime> live_until_;
  SteadyTime started_;
};

}  // namespace etalon::router
