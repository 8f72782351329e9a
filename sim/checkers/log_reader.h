// What stands in a replica's log.
#pragma once

#include <functional>

#include "storage/node/shard.h"

namespace etalon::sim {

// Every control command in [from, last], in order. False: a part of that is not in the log any
// more.
bool ForEachControl(const storage::Shard& shard, LogIndex from,
                    const std::function<void(LogIndex, const v1::Control&)>& f);

}  // namespace etalon::sim
