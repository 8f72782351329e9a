// MapRun: one function on exactly those named buckets that this shard owns at the named epochs; the
// rest is returned.
#pragma once

#include "common/unique_function.h"
#include "etalon/v1/peer.pb.h"
#include "storage/node/calls.h"

namespace etalon::storage {

inline constexpr int kMaxMapBuckets = 100'000;  // named by one run; over it the run is refused
// More than that, and more bytes of results, do not go into one answer: it says `more`.
inline constexpr std::size_t kMaxMapParts = 16'384;
inline constexpr std::uint64_t kMaxMapReplyBytes = 4u << 20;

// Runs the function on each bucket by an ordinary call of its own (so a write's ownership is
// decided at apply) and answers once, when all are through. A bucket whose outcome is a routing
// refusal is in `rest`.
//
// The caller may name buckets of another level than `level`, the shard's. Coarser ones are run as
// the buckets of this shard that they consist of. Finer ones are run as they are named: a part of a
// bucket is as good a range of keys as a whole one, and its owner is the bucket's. Each call says
// which bucket it means (Call.level), so if the modulus doubles before it is executed it is refused
// instead of running on one half, and the caller names both halves.
void RunMap(Calls& calls, const v1::MapRun& request, std::uint8_t level, std::uint32_t bucket_count,
            UniqueFunction<void(v1::MapRunReply)> done);

}  // namespace etalon::storage
