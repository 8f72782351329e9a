// MapRun: one function on exactly those named buckets that this shard owns at the named epochs; the
// rest is returned.
#pragma once

#include "common/unique_function.h"
#include "etalon/v1/peer.pb.h"
#include "storage/node/calls.h"

namespace etalon::storage {

// Runs the function on each bucket by an ordinary call of its own (so a write's ownership is
// decided at apply) and answers once, when all are through. A bucket whose outcome is a routing
// refusal is in `rest`.
void RunMap(Calls& calls, const v1::MapRun& request, std::uint8_t level, std::uint64_t modulus,
            UniqueFunction<void(v1::MapRunReply)> done);

}  // namespace etalon::storage
