// Tells routers which buckets are here: a full list at one index, then deltas
// (docs/protocols/router.md, "Change feed"). Only a leader with a lease feeds. A pure machine: the
// owner sends what it returns.
//
// No message is larger than kPartBytes: a list or a delta of more goes in parts, at most one in
// kPartGap for a subscriber, so that a million buckets neither fill its link nor hold up what else
// goes there. Buckets in a row of which the same is true share an entry, so the usual list is one
// small message.
//
// A part is made when it is sent and speaks of its buckets as they are then, which may be later
// than the index that its list is named for. That is harmless: whatever changed since that index is
// told once more by the delta that follows the list.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/time.h"
#include "engine/bucket/state_machine.h"
#include "env/transport.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::storage {

// A list or delta under way.
struct FeedTelling {
  bool full = false;
  LogIndex index;
  std::uint32_t part = 0;           // the next
  std::uint64_t next = 0;           // full: all buckets below have been told
  std::set<std::uint32_t> buckets;  // delta: still to be told
};

class FeedPublisher {
 public:
  struct Outgoing {
    NodeName to;
    v1::FeedMessage message;
  };
  // What there is to tell.
  struct View {
    ShardUid shard;
    Term term;
    std::uint8_t level = 0;
    LogIndex index;
    TopologyVersion topology;
    const std::map<std::uint32_t, bucket::Row>& rows;
    const std::map<std::uint32_t, bucket::Marks>& marks;
  };
  static View ViewOf(const bucket::StateMachine& state, Term term);

  static constexpr Duration kHeartbeat = std::chrono::milliseconds(200);
  static constexpr std::size_t kMaxSubscribers = 1024;
  static constexpr std::size_t kPartBytes = 256u << 10;
  static constexpr Duration kPartGap = std::chrono::milliseconds(20);

  // The first message of a new subscription, or the refusal.
  v1::FeedMessage Subscribe(const NodeName& from, const v1::FeedSubscribe& request,
                            const View& view, SteadyTime now);
  void Unsubscribe(const NodeName& from) { subscribers_.erase(from); }

  // During Apply. Whoever subscribes later has it in its list.
  void OnRow(std::uint32_t bucket) {
    if (!subscribers_.empty()) changed_.insert(bucket);
  }
  void OnRebase() { all_changed_ = !subscribers_.empty(); }

  // After an apply group, and on ticks: deltas, further parts and heartbeats that are due.
  std::vector<Outgoing> Flush(const View& view, SteadyTime now);
  // The transport refused a message to `to`: its subscription has a gap and ends; it will subscribe
  // again.
  void Dropped(const NodeName& to) { subscribers_.erase(to); }
  // Leadership or the lease is gone: everybody is told and dropped.
  std::vector<Outgoing> Close(const Status& why, ShardUid shard);

  std::size_t subscribers() const { return subscribers_.size(); }

 private:
  struct Subscriber {
    std::uint64_t subscription = 0;
    LogIndex last;  // of the last list, delta or heartbeat
    SteadyTime told;
    std::optional<FeedTelling> telling;
    // What is due behind it.
    bool list = false;
    std::set<std::uint32_t> changed;

    bool Due(SteadyTime now) const {
      return telling ? now - told >= kPartGap : list || !changed.empty();
    }
  };

  static v1::FeedMessage Header(const Subscriber& subscriber, const View& view);
  static v1::FeedMessage NextPart(Subscriber& subscriber, const View& view, SteadyTime now);
  static v1::FeedMessage Heartbeat(Subscriber& subscriber, const View& view, SteadyTime now);

  std::map<NodeName, Subscriber> subscribers_;
  std::set<std::uint32_t> changed_;
  bool all_changed_ = false;
};

}  // namespace etalon::storage
