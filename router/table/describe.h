// DescribeCollection, made from the table: one owner a bucket.
#pragma once

#include "etalon/v1/router.pb.h"
#include "router/table/bucket_table.h"
#include "router/table/directory.h"

namespace etalon::router {

// Index-parallel lists by shard name; shards that own nothing are not listed; a shard is Creating
// until the topology makes it Normal (a Draining one that still owns buckets is Normal). `version`
// orders two answers: the one with the greater version is not the older one.
//
// In the status of the answer: UNAVAILABLE/UNKNOWN_BUCKETS with their count in hint.number while
// the table has holes; UNAVAILABLE/STALE_TOPOLOGY while a bucket is at a shard that this topology
// does not name yet. Nothing else is set then.
v1::DescribeCollectionResponse Describe(const BucketTable& table, const Directory& directory);

}  // namespace etalon::router
