// All calls that are under way: one CallMachine each, driven here. Admits them within bounds, sends
// their tries through the outbox, matches the answers, wakes those that wait.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "etalon/v1/router.pb.h"
#include "router/call/call.h"
#include "router/call/outbox.h"
#include "router/node/alarms.h"
#include "router/node/counters.h"
#include "router/node/host.h"

namespace etalon::router {

struct CallsOptions {
  CallOptions call;
  Outbox::Options outbox;
  Duration default_timeout = std::chrono::seconds(10);
  std::uint64_t client_bytes = 16u << 20;  // of unanswered calls, for one client
  std::uint64_t total_bytes = 256u << 20;  // the same for all clients together
};

class Calls {
 public:
  Calls(CallsOptions options, Host& host, Counters& counters)
      : options_(options), host_(host), counters_(counters), outbox_(options.outbox) {}

  // Takes a call or refuses it at once: RESOURCE_EXHAUSTED / OVERLOADED before anything is queued,
  // INVALID_ARGUMENT for a write in a mode for reads.
  void Admit(SteadyTime now, const NodeName& client, std::uint64_t request, v1::ClientCall call,
             RoutingValue value, std::uint32_t bucket_count);
  void OnReplies(SteadyTime now, const NodeName& from, const std::string& frame);

  // News; `bucket` of any level.
  bool AnyWaitsForBuckets() const { return !by_bucket_.empty(); }
  void OnBucketNews(SteadyTime now, BucketId bucket, bool writable, std::uint32_t bucket_count);
  // `leader` empty: none is known.
  void OnReplicaNews(SteadyTime now, ShardUid shard, const NodeName& leader);
  void OnTopologyNews(SteadyTime now);
  // What is out at `peer` will not be answered.
  void OnPeerLost(SteadyTime now, const NodeName& peer, Loss why);

  void OnWake(SteadyTime now);
  SteadyTime wake() const { return alarms_.next(); }
  // Sends what this turn has queued.
  void Flush(SteadyTime now, std::uint64_t topology_version,
             const std::function<SendResult(const NodeName&, std::string)>& send);

  std::size_t size() const { return calls_.size(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Number = std::uint64_t;

  struct Pending {
    Pending(const CallMachine::Traits& traits, const CallOptions& options)
        : machine(traits, options) {}
    CallMachine machine;
    NodeName client;
    std::uint64_t request = 0;
    v1::ClientCall call;
    SteadyTime started;
    std::uint32_t base_bucket = 0;   // level 0
    std::uint64_t cost = 0;          // bytes counted for the client
    std::uint64_t queued_bytes = 0;  // of the try that is out; 0: none is
    std::uint64_t wire_id = 0;       // of the try that is out or was the last
    CallMachine::WaitFor waits = CallMachine::WaitFor::kBackoff;
    ShardUid waits_shard;
  };

  void Perform(SteadyTime now, Number number, CallMachine::Output output);
  bool Send(SteadyTime now, Number number, Pending& pending, const CallMachine::Send& send);
  void Wait(Number number, Pending& pending, const CallMachine::Wait& wait);
  void Finish(SteadyTime now, Number number, const Status& status, std::string result);
  void StopWaiting(Number number, Pending& pending);
  void EndTry(Pending& pending);
  void Wake(SteadyTime now, const std::vector<Number>& numbers);
  void Refuse(const NodeName& client, std::uint64_t request, const v1::ClientCall& call,
              const Status& why);

  const CallsOptions options_;
  Host& host_;
  Counters& counters_;
  Outbox outbox_;
  Number last_ = 0;
  std::map<Number, std::unique_ptr<Pending>> calls_;
  std::map<NodeName, std::uint64_t> client_bytes_;
  std::uint64_t bytes_ = 0;
  Alarms<Number> alarms_;
  std::set<std::pair<std::uint32_t, Number>> by_bucket_;  // level 0 of what is waited for
  std::set<std::pair<ShardUid, Number>> by_shard_;
  std::set<Number> by_topology_;
};

}  // namespace etalon::router
