// The commands of etalonctl. Each prints what it has to say and returns how it went.
#pragma once

#include <cstdint>
#include <string>

#include "ctl/output.h"
#include "ctl/target.h"

namespace etalon::ctl {

// ---- observe.cc ----
Status ShowStatus(Target& target, Format format, bool verify);
Status ShowShards(Target& target, Format format);
Status ShowBuckets(Target& target, Format format, const std::string& shard,
                   const std::string& status, std::uint32_t limit);
Status ShowBucket(Target& target, Format format, std::uint32_t bucket);
Status ShowRebalancer(Target& target, Format format);
Status ShowRoute(Target& target, Format format, const v1::Target& key);
Status ShowPlan(Target& target, Format format, std::uint32_t shard_num);

// ---- change.cc ----
// Rewrites shardNum in the manifest that the operator follows; the operator does the rest.
Status Scale(Target& target, std::uint32_t shard_num);
Status PinBucket(Target& target, std::uint32_t bucket, bool unpin);
Status MoveBucket(Target& target, std::uint32_t bucket, const std::string& to);
Status SplitShard(Target& target, const std::string& source, const std::string& to,
                  const std::string& task);
Status Switchover(Target& target, const std::string& shard, const std::string& to);
Status RecoverReplica(Target& target, const std::string& replica, bool confirmed);
// A quarantined bucket of `shard`: served again, or dropped.
Status ReleaseBucket(Target& target, std::uint32_t bucket, const std::string& shard, bool serve);

// ---- data.cc ----
Status Get(Target& target, const v1::Target& key, const std::string& space,
           const std::string& record, v1::Mode mode);
Status Put(Target& target, const v1::Target& key, const std::string& function,
           const std::string& space, const std::string& record, const std::string& value);
Status Delete(Target& target, const v1::Target& key, const std::string& space,
              const std::string& record);
Status Scan(Target& target, Format format, const v1::Target& key, const std::string& space,
            std::uint32_t limit);
// One JSON object a line: {"shardKey": ..., "space": "...", "key": "...", "value": "..." or any
// JSON}.
Status Import(Target& target, const std::string& file);
// `args` is the JSON form of the function's argument message; the answer is that of its result.
Status Call(Target& target, const v1::Target& key, const std::string& function,
            const std::string& args, v1::Mode mode);

// The key as the collection's shardBy wants it: an Int64 collection takes a number. "bucket:N"
// names a bucket.
Result<v1::Target> ParseKey(Target& target, const std::string& text);

}  // namespace etalon::ctl
