#include "router/call/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "router/call/verdict.h"

namespace etalon::router {

namespace {

constexpr unsigned kMaxDoublings = 8;

}  // namespace

std::string_view DescribeLoss(Loss why) {
  switch (why) {
    case Loss::kDown:
      return " does not answer any more";
    case Loss::kDisconnected:
      return "'s connection ended before it answered";
    case Loss::kDeposed:
      return " was replaced as the leader and has not answered";
    case Loss::kSilent:
      return " did not answer in time";
  }
  return "";
}

CallMachine::Output CallMachine::Start(SteadyTime now, Routing& routing, Random& random) {
  return Route(now, routing, random);
}

CallMachine::Output CallMachine::SendTo(SteadyTime now, const NodeName& to, const Owner& owner) {
  if (owner.shard != asked_.shard) tried_.clear();
  if (Follower()) tried_.push_back(to);
  asked_ = owner;
  peer_ = to;
  out_ = true;
  deposed_ = false;
  ++tries_;
  until_ = traits_.deadline;
  if (traits_.safe) {
    Duration bound = Follower() ? options_->read_try : options_->leader_try;
    bound *= 1u << std::min(silent_, kMaxDoublings);
    // Half of a short time is kept for another replica.
    if (Follower()) bound = std::min(bound, (traits_.deadline - now) / 2);
    until_ = std::min(traits_.deadline, now + bound);
  }
  return {Send{to, owner, until_}, Ask::kNothing, {}};
}

CallMachine::Output CallMachine::Pause(SteadyTime now, WaitFor what, Random& random, Ask ask,
                                       ShardUid shard) {
  hops_ = 0;
  tried_.clear();
  until_ = std::min(traits_.deadline, now + backoff_.Next(random));
  return {Wait{what, until_, shard}, ask, shard};
}

CallMachine::Output CallMachine::Expired() {
  const bool unsure = unsure_ || (out_ && !traits_.read);
  const std::string tries = fmt::format("the deadline passed after {} tries", tries_);
  if (unsure && !traits_.safe) {
    return {Finish{Unavailable(Reason::kOutcomeUnknown,
                               tries + "; the write may have been applied: give writes a request "
                                       "ID to have them tried again safely")},
            Ask::kNothing,
            {}};
  }
  if (unsure) {
    return {Finish{Status(Code::kDeadlineExceeded, Reason::kOutcomeUnknown,
                          tries + "; the write may have been applied: send it again with the same "
                                  "request ID")},
            Ask::kNothing,
            {}};
  }
  if (last_.ok())
    return {Finish{DeadlineExceeded(tries + " without an answer")}, Ask::kNothing, {}};
  return {Finish{Status(Code::kDeadlineExceeded, last_.reason(),
                        tries + "; the last: " + last_.message(), last_.hint())},
          Ask::kNothing,
          {}};
}

CallMachine::Output CallMachine::Route(SteadyTime now, Routing& routing, Random& random) {
  out_ = false;
  if (now >= traits_.deadline) return Expired();
  const auto owner = routing.Find(traits_.value);
  if (!owner) {
    if (last_.ok()) {
      last_ = Unavailable(Reason::kNoRouteToBucket, "no shard is known to have the bucket");
    }
    return Pause(now, WaitFor::kOwner, random, Ask::kOwners, ShardUid());
  }
  if (!routing.Knows(owner->shard)) {
    last_ = Unavailable(Reason::kNoSuchReplicaset,
                        "the bucket is at shard " + ToHex(owner->shard.value()) +
                            ", which this router's topology does not name yet");
    return Pause(now, WaitFor::kTopology, random, Ask::kTopology, owner->shard);
  }
  if (owner->shard != asked_.shard) tried_.clear();
  if (!Follower()) {
    if (const auto leader = routing.Leader(owner->shard)) return SendTo(now, *leader, *owner);
    if (last_.ok()) {
      last_ = Unavailable(Reason::kMissingMaster, "no leader of the bucket's shard is known");
    }
    return Pause(now, WaitFor::kReplica, random, Ask::kReplicas, owner->shard);
  }
  if (const auto reader = routing.Reader(owner->shard, traits_.mode, tried_)) {
    return SendTo(now, *reader, *owner);
  }
  if (tried_.empty() && last_.ok()) {
    last_ = Unavailable(Reason::kUnreachableReplicaset,
                        "no replica of the bucket's shard can be reached");
  }
  return Pause(now, WaitFor::kReplica, random, Ask::kReplicas, owner->shard);
}

// A follower may simply be behind: before anything is waited for, the others are asked.
CallMachine::Output CallMachine::OtherReplica(SteadyTime now, WaitFor otherwise, Routing& routing,
                                              Random& random, Ask ask) {
  if (Follower() && routing.Find(traits_.value) && routing.Knows(asked_.shard)) {
    if (const auto reader = routing.Reader(asked_.shard, traits_.mode, tried_)) {
      return SendTo(now, *reader, asked_);
    }
  }
  return Pause(now, otherwise, random, ask, asked_.shard);
}

CallMachine::Output CallMachine::OnReply(SteadyTime now, const Status& status, Routing& routing,
                                         Random& random) {
  out_ = false;
  const Verdict verdict = Judge(status);
  if (verdict == Verdict::kFinal) return {Finish{status}, Ask::kNothing, {}};
  if (verdict == Verdict::kUnknown) {
    if (!traits_.safe) return {Finish{status}, Ask::kNothing, {}};
    unsure_ = unsure_ || !traits_.read;
  }
  last_ = status;
  if (now >= traits_.deadline) return Expired();
  switch (verdict) {
    case Verdict::kReroute: {
      const auto owner = routing.Find(traits_.value);
      const bool elsewhere = owner && (owner->shard != asked_.shard || owner->epoch > asked_.epoch);
      if (elsewhere && ++hops_ <= options_->max_hops) return Route(now, routing, random);
      return OtherReplica(now, WaitFor::kOwner, routing, random, Ask::kOwners);
    }
    case Verdict::kMoving:
      return OtherReplica(now, WaitFor::kBucket, routing, random, Ask::kNothing);
    case Verdict::kNotLeader: {
      if (Follower()) {
        return OtherReplica(now, WaitFor::kReplica, routing, random, Ask::kReplicas);
      }
      const auto leader = routing.Leader(asked_.shard);
      if (leader && *leader != peer_ && ++hops_ <= options_->max_hops) {
        return Route(now, routing, random);
      }
      return Pause(now, WaitFor::kReplica, random, Ask::kReplicas, asked_.shard);
    }
    case Verdict::kTopology:
      return Pause(now, WaitFor::kTopology, random, Ask::kTopology, asked_.shard);
    case Verdict::kBusy:
    case Verdict::kUnknown:
    case Verdict::kFinal:
      break;
  }
  return OtherReplica(now, WaitFor::kBackoff, routing, random, Ask::kNothing);
}

CallMachine::Output CallMachine::OnLost(SteadyTime now, Loss why, Routing& routing,
                                        Random& random) {
  out_ = false;
  const std::string what = peer_ + std::string(DescribeLoss(why));
  if (!traits_.safe) {
    return {Finish{Unavailable(Reason::kOutcomeUnknown,
                               what + ": the outcome is unknown, the write may have been applied; "
                                      "it is not tried again, because it has no request ID")},
            Ask::kNothing,
            {}};
  }
  unsure_ = unsure_ || !traits_.read;
  if (why == Loss::kSilent) ++silent_;
  last_ = Unavailable(Reason::kUnreachableReplicaset, what);
  return Route(now, routing, random);
}

SteadyTime CallMachine::OnDeposed(SteadyTime now) {
  deposed_ = true;
  return until_ = std::min(until_, now + options_->deposed_grace);
}

CallMachine::Output CallMachine::OnNotSent(SteadyTime now, const Status& why, Routing& routing,
                                           Random& random) {
  out_ = false;
  last_ = why;
  if (now >= traits_.deadline) return Expired();
  return OtherReplica(now, WaitFor::kBackoff, routing, random, Ask::kNothing);
}

CallMachine::Output CallMachine::OnNews(SteadyTime now, Routing& routing, Random& random) {
  return Route(now, routing, random);
}

CallMachine::Output CallMachine::OnWake(SteadyTime now, Routing& routing, Random& random) {
  if (now >= traits_.deadline) return Expired();
  if (out_) return OnLost(now, deposed_ ? Loss::kDeposed : Loss::kSilent, routing, random);
  return Route(now, routing, random);
}

}  // namespace etalon::router
