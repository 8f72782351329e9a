// A replica's whole state on its way to another one: every pair of the store, metadata included, as
// of one applied index.
#pragma once

#include <memory>
#include <string>

#include "engine/consensus/snapshot_stream.h"
#include "engine/store/store_set.h"

namespace etalon::storage {

std::unique_ptr<consensus::SnapshotSource> MakeSnapshotSource(
    std::unique_ptr<store::Snapshot> snapshot);

// Builds a fresh generation named `generation` in `stores`. Chunks that come before the generation
// is there wait in memory (the stream's credits bound them). DATA_LOSS for a chunk that is no
// sequence of pairs.
std::unique_ptr<consensus::SnapshotSink> MakeSnapshotSink(store::StoreSet& stores,
                                                          std::string generation);

}  // namespace etalon::storage
