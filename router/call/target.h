// From what a client names to a routing value.
#pragma once

#include "common/status.h"
#include "etalon/v1/router.pb.h"
#include "router/table/directory.h"

namespace etalon::router {

// A key is hashed as the collection declares; a bucket number is its own routing value and must be
// below `modulus`. INVALID_ARGUMENT: no target, or a key of the wrong type; OUT_OF_RANGE /
// BUCKET_OUT_OF_RANGE: no such bucket.
Result<RoutingValue> RoutingValueOf(const v1::Target& target, const Directory& directory,
                                    std::uint64_t modulus);

}  // namespace etalon::router
