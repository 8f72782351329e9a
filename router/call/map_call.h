// A function over many buckets, each exactly once.
//
// The buckets are grouped by the shard that the table names, and each shard is told the exact set
// it is to run on, with epochs; it runs on those that it owns at these epochs and returns the rest,
// which is asked for again wherever it is then. At most one run is out for a shard, of a bounded
// number of buckets. A bucket has its result when a shard said so; only buckets without one are
// ever named again, and those of a write without request ID not even then, once a run that named
// them was lost: whether they were run cannot be known.
//
// A pure machine. Buckets are numbers of the level that the table has when they are named. A shard
// that stands at a higher one answers for the parts of the named buckets, by their numbers there;
// one at a lower level runs on the named parts of its buckets. When the table grows meanwhile,
// buckets that are still to be run are halved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "etalon/v1/peer.pb.h"
#include "etalon/v1/router.pb.h"
#include "router/call/call.h"

namespace etalon::router {

struct MapOptions {
  Duration backoff_base = std::chrono::milliseconds(100);
  Duration backoff_cap = std::chrono::seconds(1);
  Duration run_try = std::chrono::seconds(2);  // at least, for a run that may be sent twice
  Duration deposed_grace = std::chrono::milliseconds(300);  // as of CallOptions
  std::size_t run_buckets = 4096;
  std::uint64_t result_bytes = 64u << 20;
};

class MapMachine {
 public:
  struct Run {
    NodeName to;
    ShardUid shard;
    v1::MapRun message;  // without ID and timeout
    SteadyTime until;
    std::uint64_t ticket;  // repeated by OnReply and OnLost
  };
  struct Output {
    std::vector<Run> runs;
    std::optional<ShardUid> ask_owners;  // the shard that contradicts the table; 0: none does
    bool ask_topology = false;
    std::vector<ShardUid> ask_replicas;
    std::optional<v1::MapCallResponse> finished;
  };

  // `buckets` are sorted, different, and of `level`.
  MapMachine(v1::MapCallRequest request, std::vector<std::uint32_t> buckets, std::uint8_t level,
             std::uint32_t bucket_count, SteadyTime deadline, const MapOptions& options);

  Output Start(SteadyTime now, std::uint8_t level, Routing& routing, Random& random);
  // `level` is the table's; the reply's is not above it. `news`: the reply told of other owners.
  Output OnReply(SteadyTime now, std::uint64_t ticket, const v1::MapRunReply& reply,
                 std::uint8_t level, bool news, Routing& routing, Random& random);
  // The run will not be answered.
  Output OnLost(SteadyTime now, std::uint64_t ticket, Loss why, std::uint8_t level,
                Routing& routing, Random& random);
  // The run never left.
  Output OnNotSent(SteadyTime now, std::uint64_t ticket, std::uint8_t level, Routing& routing,
                   Random& random);
  // See CallMachine::OnDeposed. True when wake() has changed.
  bool OnLeader(SteadyTime now, ShardUid shard, const NodeName& leader);
  // Whom the run that is out took for the owner of a bucket, or of what a part of one belongs to.
  std::optional<Owner> Asked(std::uint64_t ticket, BucketId bucket) const;
  Output OnWake(SteadyTime now, std::uint8_t level, Routing& routing, Random& random);
  SteadyTime wake() const;

 private:
  struct Out {
    ShardUid shard;
    NodeName to;
    std::uint8_t level;
    std::map<std::uint32_t, Epoch> buckets;
    SteadyTime until;
    bool deposed = false;
  };

  void Distribute(std::uint8_t level, Routing& routing, Output& out);
  void Pump(SteadyTime now, Routing& routing, Output& out);
  void Again(std::uint32_t bucket, std::uint8_t level);
  void Record(std::uint32_t bucket, std::uint8_t level, ShardUid shard, v1::Status status,
              std::string result);
  void Lose(const Out& run, const Status& why);
  Output Proceed(SteadyTime now, std::uint8_t level, bool distribute, Routing& routing,
                 Random& random);
  v1::MapCallResponse Result(SteadyTime now);
  bool safe() const { return !request_.write() || request_.request().client() != 0; }

  const v1::MapCallRequest request_;
  const std::uint32_t bucket_count_;
  const SteadyTime deadline_;
  const MapOptions options_;
  Backoff backoff_;
  std::vector<BucketId> again_;  // to be distributed
  SteadyTime again_at_ = SteadyTime::min();
  std::map<ShardUid, std::vector<std::pair<std::uint32_t, Epoch>>> queues_;  // of level_
  std::uint8_t level_;
  std::map<std::uint64_t, Out> out_;  // by ticket
  std::uint64_t tickets_ = 0;
  v1::MapCallResponse response_;
  std::uint64_t bytes_ = 0;
  std::uint64_t lost_ = 0;  // buckets of which it cannot be known whether they were run
  Status last_;
};

}  // namespace etalon::router
