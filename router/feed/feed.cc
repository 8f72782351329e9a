#include "router/feed/feed.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/reason.h"

namespace etalon::router {

namespace {

// Two replicas that name each other would otherwise be asked in turns without an end.
constexpr unsigned kMaxRedirects = 3;
// A refresh does not wait out a long backoff, but subscriptions never follow each other faster.
constexpr Duration kMinAskGap = std::chrono::milliseconds(100);

}  // namespace

Feed::Feed(ShardUid shard, std::vector<NodeName> replicas, FeedOptions options)
    : shard_(shard),
      replicas_(std::move(replicas)),
      options_(options),
      backoff_(options.backoff_base, options.backoff_cap) {
  ETALON_CHECK(!replicas_.empty(), "a shard without replicas has no feed");
}

bool Feed::IsReplica(const NodeName& name) const {
  return std::find(replicas_.begin(), replicas_.end(), name) != replicas_.end();
}

Feed::Output Feed::Ask(SteadyTime now, Random& random) {
  Output out;
  parts_.clear();
  const NodeName to = leader_.empty() ? replicas_[next_++ % replicas_.size()] : leader_;
  if (!feeder_.empty() && feeder_ != to) out = Stop();
  feeder_ = to;
  // Random, so that what a storage still sends to an earlier life of this router is not taken for
  // an answer.
  subscription_ = random.NextId();
  state_ = State::kAsking;
  asked_ = now;
  until_ = now + options_.answer;
  refresh_at_.reset();
  v1::FeedSubscribe subscribe;
  subscribe.set_subscription(subscription_);
  subscribe.set_shard(shard_.value());
  out.sends.push_back({to, std::move(subscribe)});
  return out;
}

Feed::Output Feed::BackOff(SteadyTime now, Random& random) {
  state_ = State::kWaiting;
  redirects_ = 0;
  refresh_at_.reset();
  parts_.clear();
  until_ = now + backoff_.Next(random);
  return {};
}

Feed::Output Feed::Start(SteadyTime now, Random& random) {
  started_ = now;
  return Ask(now, random);
}

Feed::Output Feed::Stop() {
  Output out;
  if (feeder_.empty()) return out;
  v1::FeedSubscribe cancel;
  cancel.set_subscription(subscription_);
  cancel.set_shard(shard_.value());
  cancel.set_cancel(true);
  out.sends.push_back({feeder_, std::move(cancel)});
  feeder_.clear();
  return out;
}

Feed::Output Feed::OnRefusal(SteadyTime now, const v1::Status& status, Random& random) {
  leader_.clear();
  const Term term(status.hint().term());
  const bool redirected = status.reason() == v1::REASON_NON_MASTER && term >= term_ &&
                          status.hint().leader() != feeder_ && IsReplica(status.hint().leader());
  if (!redirected) return BackOff(now, random);
  leader_ = status.hint().leader();
  term_ = term;
  if (++redirects_ > kMaxRedirects) return BackOff(now, random);
  return Ask(now, random);
}

// Where a message of this subscription, of no older term, belongs.
Feed::Place Feed::PlaceOf(const v1::FeedMessage& message) const {
  const LogIndex index(message.index());
  if (!parts_.empty()) {
    const v1::FeedMessage& first = parts_.front();
    if (message.full() == first.full() && message.index() == first.index() &&
        message.previous_index() == first.previous_index()) {
      if (message.part() == parts_.size()) return Place::kNext;
      return message.part() < parts_.size() ? Place::kOld : Place::kGap;
    }
    if (index < LogIndex(first.index())) return Place::kOld;
  }
  if (state_ == State::kAsking) {
    // A delta overtook the list: what follows it will show the gap.
    if (!message.full()) return Place::kOld;
    return message.part() == 0 ? Place::kNext : Place::kGap;
  }
  // A list needs nothing before it, and takes the place of one that was not finished.
  const bool follows =
      message.part() == 0 &&
      (message.full() ? index > last_ : LogIndex(message.previous_index()) == last_);
  if (follows) return Place::kNext;
  return index <= last_ ? Place::kOld : Place::kGap;
}

Feed::Output Feed::OnMessage(SteadyTime now, const NodeName& from, v1::FeedMessage message,
                             Random& random) {
  if (state_ == State::kWaiting || from != feeder_ || message.subscription() != subscription_ ||
      ShardUid(message.shard()) != shard_) {
    return {};
  }
  if (message.status().code() != 0) return OnRefusal(now, message.status(), random);
  if (Term(message.term()) < term_) {
    leader_.clear();
    return BackOff(now, random);
  }
  heard_ = now;
  switch (PlaceOf(message)) {
    case Place::kOld:
      return {};
    case Place::kGap:
      return BackOff(now, random);
    case Place::kNext:
      break;
  }
  return Take(now, std::move(message), random);
}

Feed::Output Feed::Take(SteadyTime now, v1::FeedMessage message, Random& random) {
  term_ = Term(message.term());
  if (message.part() == 0) {
    parts_.clear();
    parts_bytes_ = 0;
  }
  parts_bytes_ += message.ByteSizeLong();
  if (parts_bytes_ > kMaxPartsBytes) return BackOff(now, random);
  parts_.push_back(std::move(message));
  if (parts_.back().more()) {
    if (state_ == State::kAsking) until_ = now + options_.answer;
    return {};
  }
  if (state_ == State::kAsking) {
    listed_ = now;
    redirects_ = 0;
    leader_ = feeder_;
    state_ = State::kLive;
  } else {
    backoff_.Reset();  // not already by the list: that may be all that a bad feed can do
  }
  last_ = LogIndex(parts_.back().index());
  live_until_ = now;
  Output out;
  out.apply = std::exchange(parts_, {});
  return out;
}

Feed::Output Feed::OnUnusable(SteadyTime now, Random& random) { return BackOff(now, random); }

Feed::Output Feed::OnDisconnect(SteadyTime now, const NodeName& replica, Random& random) {
  if (state_ == State::kWaiting || replica != feeder_) return {};
  if (leader_ == feeder_) leader_.clear();
  return BackOff(now, random);
}

Feed::Output Feed::OnLeader(SteadyTime now, const NodeName& leader, Term term, Random& random) {
  if (term < term_ || !IsReplica(leader)) return {};
  const bool newer = term > term_;
  term_ = term;
  leader_ = leader;
  if (leader == feeder_ && (!newer || state_ != State::kWaiting)) return {};
  return Ask(now, random);
}

Feed::Output Feed::Refresh(SteadyTime now, Random& random) {
  switch (state_) {
    case State::kAsking:
      return {};
    case State::kWaiting:
      until_ = std::min(until_, asked_ + kMinAskGap);
      break;
    case State::kLive:
      if (!refresh_at_) {
        refresh_at_ = std::max(now, listed_ + options_.refresh_gap) +
                      random.Between(Duration::zero(), options_.backoff_base);
      }
      break;
  }
  return OnWake(now, random);
}

Feed::Output Feed::OnWake(SteadyTime now, Random& random) {
  if (now < wake()) return {};
  switch (state_) {
    case State::kWaiting:
      return Ask(now, random);
    case State::kAsking:
      if (leader_ == feeder_) leader_.clear();
      return BackOff(now, random);
    case State::kLive:
      if (refresh_at_ && now >= *refresh_at_) return Ask(now, random);
      if (leader_ == feeder_) leader_.clear();
      return BackOff(now, random);
  }
  return {};
}

Feed::Output Feed::SetReplicas(SteadyTime now, std::vector<NodeName> replicas, Random& random) {
  ETALON_CHECK(!replicas.empty(), "a shard without replicas has no feed");
  replicas_ = std::move(replicas);
  if (!IsReplica(leader_)) leader_.clear();
  if (state_ == State::kWaiting || IsReplica(feeder_)) return {};
  return Ask(now, random);
}

SteadyTime Feed::wake() const {
  switch (state_) {
    case State::kWaiting:
    case State::kAsking:
      return until_;
    case State::kLive:
      return refresh_at_ ? std::min(*refresh_at_, heard_ + options_.silence)
                         : heard_ + options_.silence;
  }
  return SteadyTime::max();
}

}  // namespace etalon::router
