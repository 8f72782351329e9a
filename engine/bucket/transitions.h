// The table of bucket states (docs/protocols/buckets.md). Every change of a row's status by a
// command goes through it; a rebase copies rows and changes no status.
#pragma once

#include <optional>

#include "engine/bucket/rows.h"

namespace etalon::bucket {

// Whether a row may go from one status to another; nullopt is "no row". Staying is no transition.
bool MayBecome(std::optional<RowStatus> from, std::optional<RowStatus> to);

}  // namespace etalon::bucket
