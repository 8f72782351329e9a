#include "storage/node/feed_publisher.h"

#include "proto/wire.h"

namespace etalon::storage {

namespace {

using bucket::Row;
using bucket::RowStatus;

// A bucket that still answers here is ours; everything else is gone, with where to if a mark or the
// row knows.
v1::FeedBucket Describe(std::uint32_t number, const Row* row, const bucket::Marks& marks) {
  v1::FeedBucket out;
  out.set_bucket(number);
  if (row != nullptr && bucket::IsReadable(row->status)) {
    out.set_epoch(row->epoch.value());
    out.set_readable_only(row->status == RowStatus::kSending);
    return out;
  }
  out.set_gone(true);
  if (marks.left_epoch >= marks.own && marks.left_to) {
    out.set_destination(marks.left_to.value());
    out.set_epoch(marks.left_epoch.value() + 1);
  } else {
    out.set_epoch(marks.own.value());
  }
  return out;
}

}  // namespace

v1::FeedMessage FeedPublisher::Full(const bucket::StateMachine& state, Term term) const {
  v1::FeedMessage out;
  out.set_shard(state.shard().value());
  out.set_term(term.value());
  out.set_level(state.level());
  out.set_index(state.applied_index().value());
  out.set_full(true);
  out.set_topology_version(state.topology().version());
  for (const auto& [number, row] : state.rows()) {
    if (bucket::IsReadable(row.status))
      *out.add_buckets() = Describe(number, &row, state.FindMarks(number));
  }
  for (const auto& [number, marks] : state.marks()) {
    const Row* row = state.FindRow(number);
    if (row == nullptr || !bucket::IsReadable(row->status))
      *out.add_buckets() = Describe(number, row, marks);
  }
  return out;
}

v1::FeedMessage FeedPublisher::Subscribe(const NodeName& from, const v1::FeedSubscribe& request,
                                         const bucket::StateMachine& state, Term term,
                                         SteadyTime now) {
  v1::FeedMessage out;
  if (subscribers_.size() >= kMaxSubscribers && !subscribers_.contains(from)) {
    *out.mutable_status() =
        ToProto(ResourceExhausted("too many routers listen to this shard's feed"));
    out.set_shard(state.shard().value());
  } else {
    out = Full(state, term);
    subscribers_[from] = {request.subscription(), state.applied_index(), now};
  }
  out.set_subscription(request.subscription());
  return out;
}

void FeedPublisher::Unsubscribe(const NodeName& from) { subscribers_.erase(from); }

std::vector<FeedPublisher::Outgoing> FeedPublisher::Flush(const bucket::StateMachine& state,
                                                          Term term, SteadyTime now) {
  std::vector<Outgoing> out;
  if (!subscribers_.empty() && (all_changed_ || !changed_.empty())) {
    v1::FeedMessage delta;
    if (all_changed_) {
      delta = Full(state, term);  // a change of level names every bucket anew
    } else {
      delta.set_shard(state.shard().value());
      delta.set_term(term.value());
      delta.set_level(state.level());
      delta.set_index(state.applied_index().value());
      delta.set_topology_version(state.topology().version());
      for (std::uint32_t number : changed_) {
        *delta.add_buckets() = Describe(number, state.FindRow(number), state.FindMarks(number));
      }
    }
    for (auto& [name, subscriber] : subscribers_) {
      delta.set_subscription(subscriber.subscription);
      delta.set_previous_index(subscriber.last.value());
      subscriber.last = state.applied_index();
      subscriber.told = now;
      out.push_back({name, delta});
    }
  }
  changed_.clear();
  all_changed_ = false;
  for (auto& [name, subscriber] : subscribers_) {
    if (now - subscriber.told < kHeartbeat) continue;
    v1::FeedMessage beat;
    beat.set_subscription(subscriber.subscription);
    beat.set_shard(state.shard().value());
    beat.set_term(term.value());
    beat.set_level(state.level());
    beat.set_previous_index(subscriber.last.value());
    subscriber.last = state.applied_index();
    beat.set_index(subscriber.last.value());
    beat.set_heartbeat(true);
    beat.set_topology_version(state.topology().version());
    subscriber.told = now;
    out.push_back({name, std::move(beat)});
  }
  return out;
}

std::vector<FeedPublisher::Outgoing> FeedPublisher::Close(const Status& why, ShardUid shard) {
  std::vector<Outgoing> out;
  for (const auto& [name, subscriber] : subscribers_) {
    v1::FeedMessage end;
    end.set_subscription(subscriber.subscription);
    end.set_shard(shard.value());
    *end.mutable_status() = ToProto(why);
    out.push_back({name, std::move(end)});
  }
  subscribers_.clear();
  changed_.clear();
  all_changed_ = false;
  return out;
}

}  // namespace etalon::storage
