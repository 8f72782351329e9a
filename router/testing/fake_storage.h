// Scripted storages for tests of the router: they keep their buckets in memory, speak NodeMessage,
// and do what the test tells them, right or wrong. No log, no election: the test names the leader.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "env/env.h"
#include "etalon/v1/call.pb.h"
#include "etalon/v1/peer.pb.h"
#include "sim/world/world.h"

namespace etalon::router::testing {

class FakeReplica;

// What the replicas of one shard share.
struct FakeShard {
  struct Gone {
    std::uint64_t epoch;  // at `to`; without one: `own`
    ShardUid to;
  };
  ShardUid uid;
  std::string name;
  std::uint64_t term = 1;
  std::uint64_t index = 100;
  std::uint32_t level = 0;
  std::uint32_t bucket_count = 0;
  std::string leader;                            // empty: nobody leads
  std::map<std::uint32_t, std::uint64_t> owned;  // bucket -> epoch
  std::set<std::uint32_t> sending;               // of the owned ones: told as readable only
  std::map<std::uint32_t, Gone> gone;
  std::map<std::string, std::string> data;    // by routing value and key
  std::map<std::string, std::uint64_t> runs;  // of `count`, by bucket
  std::map<std::pair<std::uint64_t, std::uint64_t>, v1::CallReply> results;  // by request ID
  std::vector<FakeReplica*> replicas;

  std::uint32_t Modulus() const { return bucket_count << level; }
  // Each also tells the subscribers, unless `silent`.
  void Own(std::uint32_t bucket, std::uint64_t epoch, bool silent = false);
  void Leave(std::uint32_t bucket, ShardUid to, std::uint64_t epoch_there, bool silent = false);
  void Rebase(std::uint32_t to_level, bool silent = false);
  void Publish(std::set<std::uint32_t> buckets);
  void Lead(const std::string& replica) {
    leader = replica;
    ++term;
  }
};

class FakeReplica {
 public:
  struct Seen {
    SteadyTime at;
    std::string function;
    std::uint64_t routing_value;
    std::uint64_t epoch;
    v1::Mode mode;
    std::uint64_t client;
    std::uint32_t timeout_millis;
    std::size_t frame;  // number of the frame that it came in
  };

  FakeReplica(sim::SimWorld& world, NodeName name, FakeShard& shard);

  const NodeName& name() const { return name_; }
  bool leads() const { return shard_.leader == name_; }
  const std::vector<Seen>& calls() const { return calls_; }
  std::size_t subscriptions() const { return subscriptions_; }
  std::size_t fetches() const { return fetches_; }
  const std::vector<v1::Suspicion>& suspicions() const { return suspicions_; }
  void ForgetCalls() { calls_.clear(); }

  // Script.
  bool mute = false;          // connected, but nothing is done
  bool mute_calls = false;    // pings are answered, calls are not
  bool mute_feed = false;     // subscriptions are accepted and never served
  bool hold_replies = false;  // until Release
  bool ready = true;
  std::uint64_t lag_millis = 0;
  std::uint64_t applied = 100;
  std::function<std::optional<Status>(const v1::Call&)> refuse;  // before anything else
  std::function<std::optional<v1::MapRunReply>(const v1::MapRun&)> map_run;
  std::optional<v1::Topology> topology;

  void Release();                          // sends the replies that were held
  void SendFeed(v1::FeedMessage message);  // to the subscribers, in the chain
  // As it is; for messages out of the chain.
  void SendRaw(v1::FeedMessage message);

 private:
  struct Subscriber {
    std::uint64_t subscription;
    std::uint64_t last;
  };
  void OnMessage(const NodeName& from, const std::string& bytes);
  void Subscribe(const NodeName& from, const v1::FeedSubscribe& request);
  v1::CallReply Answer(const v1::Call& call);
  v1::MapRunReply Run(const v1::MapRun& run);
  Status WrongBucket(std::uint32_t bucket) const;
  void Send(const NodeName& to, v1::NodeMessage message);
  void Beat();

  Env env_;
  const NodeName name_;
  FakeShard& shard_;
  std::map<NodeName, Subscriber> subscribers_;
  std::vector<Seen> calls_;
  std::vector<std::pair<NodeName, v1::NodeMessage>> held_;
  std::size_t frames_ = 0;
  std::size_t subscriptions_ = 0;
  std::size_t fetches_ = 0;
  std::vector<v1::Suspicion> suspicions_;
};

}  // namespace etalon::router::testing
