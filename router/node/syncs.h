// Sync: waits until every replica of every shard has applied what its leader had applied when it
// was asked after the start. Fed by the answers to pings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "common/time.h"
#include "router/node/health.h"
#include "router/table/directory.h"

namespace etalon::router {

class Syncs {
 public:
  struct Done {
    NodeName client;
    std::uint64_t request;
    Status status;
  };

  static constexpr std::size_t kMax = 64;

  // Pings that are sent later count.
  Status Admit(SteadyTime now, const NodeName& client, std::uint64_t request, Duration timeout,
               const Health& health);
  // After answers to pings, and when the time of wake() has come: those that are done. A failure
  // names the first replica that is missing; its shard stands in hint.text.
  std::vector<Done> Check(SteadyTime now, const Directory& directory, const Health& health);
  SteadyTime wake() const;
  bool empty() const { return syncs_.empty(); }

 private:
  struct Sync {
    NodeName client;
    std::uint64_t request;
    SteadyTime deadline;
    std::uint64_t after;                   // ID of the last ping before the start
    std::map<ShardUid, LogIndex> targets;  // of shards whose leader has answered
  };
  // The first that is missing; nullopt: none.
  static std::optional<Status> Missing(Sync& sync, const Directory& directory,
                                       const Health& health);

  std::vector<Sync> syncs_;
};

}  // namespace etalon::router
