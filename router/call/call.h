// One call on its way: where the next try goes, what is waited for, when to give up.
// docs/protocols/router.md has the states and the table of retries.
//
// A pure machine. Before it is told of an answer, its owner has taken the answer's hints into the
// table and into the knowledge of leaders (those are good for all calls); the machine only looks at
// what is known then.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "common/time.h"
#include "env/transport.h"
#include "etalon/v1/call.pb.h"
#include "router/table/bucket_table.h"

namespace etalon::router {

// Why a try that is out will not be answered.
enum class Loss : std::uint8_t {
  kDown,          // its replica is down
  kDisconnected,  // the connection that it went over has ended
  kDeposed,       // another replica leads the shard, and the grace for a late answer is over
  kSilent,        // nothing came within the time of the try
};

std::string_view DescribeLoss(Loss why);  // to follow the name of a replica

// What a call may ask about the world.
class Routing {
 public:
  virtual ~Routing() = default;
  virtual std::optional<Owner> Find(RoutingValue value) const = 0;
  virtual bool Knows(ShardUid shard) const = 0;                      // the topology names it
  virtual std::optional<NodeName> Leader(ShardUid shard) const = 0;  // known, and not down
  // A replica that may answer the read and is not among `tried`.
  virtual std::optional<NodeName> Reader(ShardUid shard, v1::Mode mode,
                                         const std::vector<NodeName>& tried) = 0;
};

struct CallOptions {
  Duration backoff_base = std::chrono::milliseconds(100);
  Duration backoff_cap = std::chrono::seconds(1);
  // For the answer to one try; doubled by each try that stays without one. The tries of a write
  // that may not be sent twice have no such bound.
  Duration read_try = std::chrono::milliseconds(300);
  Duration leader_try = std::chrono::seconds(1);
  // For an answer that may still be on its way when another leader is heard of.
  Duration deposed_grace = std::chrono::milliseconds(300);
  unsigned max_hops = 3;  // redirections that are followed without a wait in between
};

class CallMachine {
 public:
  struct Traits {
    RoutingValue value;
    v1::Mode mode = v1::MODE_RW;
    bool read = false;  // changes nothing
    bool safe = false;  // may be sent again when the outcome of a try is unknown
    SteadyTime deadline;
  };

  enum class WaitFor : std::uint8_t {
    kBackoff,
    kOwner,     // of the bucket
    kBucket,    // news of the bucket
    kReplica,   // a leader of the shard, or a replica that can answer
    kTopology,  // a newer one
  };
  // Somebody must be asked, or what is waited for may never come.
  enum class Ask : std::uint8_t { kNothing, kOwners, kReplicas, kTopology };

  struct Send {
    NodeName to;
    Owner owner;
    SteadyTime until;  // the try is over then; never after the deadline
  };
  struct Wait {
    WaitFor what;
    SteadyTime until;  // tries again then, whatever came; never after the deadline
    ShardUid shard;    // kReplica
  };
  struct Finish {
    Status status;
  };
  struct Output {
    std::variant<Send, Wait, Finish> action;
    Ask ask = Ask::kNothing;
    ShardUid shard;  // whom the question is about, when known
  };

  CallMachine(const Traits& traits, const CallOptions& options)
      : traits_(traits), options_(&options), backoff_(options.backoff_base, options.backoff_cap) {}

  Output Start(SteadyTime now, Routing& routing, Random& random);
  // The answer to the try that is out.
  Output OnReply(SteadyTime now, const Status& status, Routing& routing, Random& random);
  // The try that is out will not be answered.
  Output OnLost(SteadyTime now, Loss why, Routing& routing, Random& random);
  // Another replica than the one that was asked leads the shard now. The one before answers what it
  // can still answer soon, or never: the try is over at the time that is returned.
  SteadyTime OnDeposed(SteadyTime now);
  // The try never left, for this reason.
  Output OnNotSent(SteadyTime now, const Status& why, Routing& routing, Random& random);
  // What is waited for has come, or may have.
  Output OnNews(SteadyTime now, Routing& routing, Random& random);
  // The time of the last Send or Wait has come.
  Output OnWake(SteadyTime now, Routing& routing, Random& random);

  const Traits& traits() const { return traits_; }
  // Of the try that is out or the last one.
  const Owner& asked() const { return asked_; }
  const NodeName& peer() const { return peer_; }
  unsigned tries() const { return tries_; }
  // The try that is out does not wait for silence only.
  bool deposed() const { return deposed_; }

 private:
  Output Route(SteadyTime now, Routing& routing, Random& random);
  Output SendTo(SteadyTime now, const NodeName& to, const Owner& owner);
  Output Pause(SteadyTime now, WaitFor what, Random& random, Ask ask, ShardUid shard);
  Output OtherReplica(SteadyTime now, WaitFor otherwise, Routing& routing, Random& random, Ask ask);
  Output Expired();
  bool Follower() const { return traits_.mode != v1::MODE_RW; }

  Traits traits_;
  const CallOptions* options_;
  Backoff backoff_;
  Owner asked_;
  NodeName peer_;
  std::vector<NodeName>
      tried_;    // replicas of asked_.shard in this round; reads off the leader only
  Status last_;  // of the last answer that was not final
  SteadyTime until_;
  unsigned tries_ = 0;
  unsigned hops_ = 0;
  unsigned silent_ = 0;
  bool out_ = false;      // a try is out
  bool deposed_ = false;  // and its replica does not lead any more
  bool unsure_ = false;   // an earlier try of a write may have been applied
};

}  // namespace etalon::router
