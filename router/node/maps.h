// All MapCalls that are under way: one MapMachine each, driven here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "etalon/v1/router.pb.h"
#include "router/call/map_call.h"
#include "router/node/alarms.h"
#include "router/node/host.h"

namespace etalon::router {

struct MapsOptions {
  MapOptions map;
  Duration default_timeout = std::chrono::seconds(10);
  std::size_t max_running = 64;
};

class Maps {
 public:
  Maps(MapsOptions options, Host& host) : options_(options), host_(host) {}

  // `buckets` are sorted, different, of `level`, and within the table. RESOURCE_EXHAUSTED over the
  // bound of running ones.
  Status Admit(SteadyTime now, const NodeName& client, std::uint64_t request,
               v1::MapCallRequest call, std::vector<std::uint32_t> buckets, std::uint8_t level,
               std::uint8_t table_level, std::uint32_t bucket_count);
  void OnReply(SteadyTime now, const NodeName& from, const v1::MapRunReply& reply,
               std::uint8_t table_level);
  // What is out at `peer` will not be answered.
  void OnPeerLost(SteadyTime now, const NodeName& peer, Loss why, std::uint8_t table_level);
  void OnLeader(SteadyTime now, ShardUid shard, const NodeName& leader);
  void OnWake(SteadyTime now, std::uint8_t table_level);
  SteadyTime wake() const { return alarms_.next(); }
  std::size_t size() const { return maps_.size(); }

 private:
  using Number = std::uint64_t;
  struct Running {
    NodeName client;
    std::uint64_t request;
    SteadyTime deadline;
    MapMachine machine;
  };
  struct Out {
    Number number;
    std::uint64_t ticket;
    NodeName to;
  };

  bool TakeHints(const Out& out, const v1::MapRunReply& reply);
  void Perform(SteadyTime now, Number number, MapMachine::Output output, std::uint8_t level);

  const MapsOptions options_;
  Host& host_;
  Number last_ = 0;
  std::uint64_t last_run_ = 0;
  std::map<Number, std::unique_ptr<Running>> maps_;
  std::map<std::uint64_t, Out> out_;  // by run ID
  Alarms<Number> alarms_;
};

}  // namespace etalon::router
