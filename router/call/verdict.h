// What the refusal of one try means for the call: the table of docs/protocols/router.md.
#pragma once

#include <cstdint>

#include "common/status.h"

namespace etalon::router {

enum class Verdict : std::uint8_t {
  kFinal,      // the client's answer, success or not
  kReroute,    // the bucket is elsewhere, or at another epoch
  kMoving,     // the bucket is here or will be, but moves: wait for news of it
  kNotLeader,  // the shard is right, the replica is not
  kTopology,   // somebody's topology is behind
  kBusy,       // not now, or not here: back off; a read goes to another replica at once
  kUnknown,    // the storage itself does not know whether the call was applied
};

Verdict Judge(const Status& status);

}  // namespace etalon::router
