#include "storage/node/feed_publisher.h"

#include <algorithm>
#include <utility>

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

std::uint32_t CountOf(const v1::FeedBucket& entry) {
  return std::max<std::uint32_t>(entry.count(), 1);
}

// One message under construction.
class Part {
 public:
  explicit Part(v1::FeedMessage* out) : out_(out) {}

  // False when there is no room left.
  bool Add(const v1::FeedBucket& entry) {
    if (last_ != nullptr && Continues(*last_, entry)) {
      last_->set_count(CountOf(*last_) + 1);
      return true;
    }
    const std::size_t size = entry.ByteSizeLong() + kOverhead;
    if (last_ != nullptr && bytes_ + size > FeedPublisher::kPartBytes) return false;
    bytes_ += size;
    last_ = out_->add_buckets();
    *last_ = entry;
    return true;
  }

 private:
  static constexpr std::size_t kOverhead = 16;  // of an entry in a message, with its count

  static bool Continues(const v1::FeedBucket& run, const v1::FeedBucket& next) {
    return next.bucket() == run.bucket() + CountOf(run) && next.epoch() == run.epoch() &&
           next.gone() == run.gone() && next.destination() == run.destination() &&
           next.readable_only() == run.readable_only();
  }

  v1::FeedMessage* const out_;
  v1::FeedBucket* last_ = nullptr;
  std::size_t bytes_ = 0;
};

// All buckets from *next on that are here or were; moves *next behind the last one told. True when
// there are no more.
bool AddList(const FeedPublisher::View& view, std::uint64_t* next, v1::FeedMessage* out) {
  Part part(out);
  auto row = view.rows.lower_bound(static_cast<std::uint32_t>(*next));
  auto mark = view.marks.lower_bound(static_cast<std::uint32_t>(*next));
  while (row != view.rows.end() || mark != view.marks.end()) {
    const bool has_row =
        mark == view.marks.end() || (row != view.rows.end() && row->first <= mark->first);
    const bool has_mark =
        row == view.rows.end() || (mark != view.marks.end() && mark->first <= row->first);
    const std::uint32_t number = has_row ? row->first : mark->first;
    const bool here = has_row && bucket::IsReadable(row->second.status);
    // One that has never been here, and is not yet, is nobody's news.
    if (here || has_mark) {
      const v1::FeedBucket entry = Describe(number, has_row ? &row->second : nullptr,
                                            has_mark ? mark->second : bucket::Marks());
      if (!part.Add(entry)) return false;
    }
    *next = std::uint64_t{number} + 1;
    if (has_row) ++row;
    if (has_mark) ++mark;
  }
  return true;
}

bool AddDelta(const FeedPublisher::View& view, std::set<std::uint32_t>* buckets,
              v1::FeedMessage* out) {
  Part part(out);
  while (!buckets->empty()) {
    const std::uint32_t number = *buckets->begin();
    const auto row = view.rows.find(number);
    const auto mark = view.marks.find(number);
    const v1::FeedBucket entry =
        Describe(number, row == view.rows.end() ? nullptr : &row->second,
                 mark == view.marks.end() ? bucket::Marks() : mark->second);
    if (!part.Add(entry)) return false;
    buckets->erase(buckets->begin());
  }
  return true;
}

}  // namespace

FeedPublisher::View FeedPublisher::ViewOf(const bucket::StateMachine& state, Term term) {
  return {state.shard(),
          term,
          state.level(),
          state.applied_index(),
          TopologyVersion(state.topology().version()),
          state.rows(),
          state.marks()};
}

v1::FeedMessage FeedPublisher::Header(const Subscriber& subscriber, const View& view) {
  v1::FeedMessage out;
  out.set_subscription(subscriber.subscription);
  out.set_shard(view.shard.value());
  out.set_term(view.term.value());
  out.set_level(view.level);
  out.set_previous_index(subscriber.last.value());
  out.set_topology_version(view.topology.value());
  return out;
}

v1::FeedMessage FeedPublisher::NextPart(Subscriber& subscriber, const View& view, SteadyTime now) {
  if (!subscriber.telling) {
    FeedTelling& begun = subscriber.telling.emplace();
    begun.full = std::exchange(subscriber.list, false);
    begun.index = view.index;
    // A list that begins now has all that changed before.
    auto changed = std::exchange(subscriber.changed, {});
    if (!begun.full) begun.buckets = std::move(changed);
  }
  FeedTelling& telling = *subscriber.telling;
  v1::FeedMessage out = Header(subscriber, view);
  out.set_index(telling.index.value());
  out.set_full(telling.full);
  out.set_part(telling.part++);
  const bool whole =
      telling.full ? AddList(view, &telling.next, &out) : AddDelta(view, &telling.buckets, &out);
  out.set_more(!whole);
  subscriber.told = now;
  if (whole) {
    subscriber.last = telling.index;
    subscriber.telling.reset();
  }
  return out;
}

v1::FeedMessage FeedPublisher::Heartbeat(Subscriber& subscriber, const View& view, SteadyTime now) {
  v1::FeedMessage out = Header(subscriber, view);
  subscriber.last = view.index;
  subscriber.told = now;
  out.set_index(view.index.value());
  out.set_heartbeat(true);
  return out;
}

v1::FeedMessage FeedPublisher::Subscribe(const NodeName& from, const v1::FeedSubscribe& request,
                                         const View& view, SteadyTime now) {
  if (subscribers_.size() >= kMaxSubscribers && !subscribers_.contains(from)) {
    v1::FeedMessage refusal;
    refusal.set_subscription(request.subscription());
    refusal.set_shard(view.shard.value());
    *refusal.mutable_status() =
        ToProto(ResourceExhausted("too many routers listen to this shard's feed"));
    return refusal;
  }
  Subscriber& subscriber = subscribers_[from];
  subscriber = {};
  subscriber.subscription = request.subscription();
  subscriber.list = true;
  return NextPart(subscriber, view, now);
}

std::vector<FeedPublisher::Outgoing> FeedPublisher::Flush(const View& view, SteadyTime now) {
  std::vector<Outgoing> out;
  for (auto& [name, subscriber] : subscribers_) {
    if (all_changed_) {  // a change of level names every bucket anew
      subscriber.telling.reset();
      subscriber.changed.clear();
      subscriber.list = true;
    } else {
      subscriber.changed.insert(changed_.begin(), changed_.end());
    }
    while (subscriber.Due(now)) out.push_back({name, NextPart(subscriber, view, now)});
    if (!subscriber.telling && now - subscriber.told >= kHeartbeat) {
      out.push_back({name, Heartbeat(subscriber, view, now)});
    }
  }
  changed_.clear();
  all_changed_ = false;
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
