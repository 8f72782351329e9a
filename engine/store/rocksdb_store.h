// The store on RocksDB, in directories of the real file system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/store/store.h"
#include "env/executor.h"

namespace rocksdb {
class Env;
}

namespace etalon::store {

struct RocksDbOptions {
  // Path on the file system of the root of the node's Disk: directories of Open are relative to it.
  std::string root;
  // Changes are held in memory up to about this; then they are flushed even without a checkpoint.
  std::size_t write_buffer_bytes = 64u << 20;
  std::size_t block_cache_bytes = 64u << 20;
  // So many range deletes since the last flush start one: each costs every read a little until
  // then.
  std::size_t range_deletes_per_flush = 256;
  // Once range deletes have dropped about so many bytes, the files that hold them are compacted.
  std::uint64_t reclaim_bytes = 64u << 20;
  // Null: the default one of RocksDB. Tests put a failing one here.
  rocksdb::Env* env = nullptr;
};

// RocksDB's own log is off: the replica's log takes its place. RocksDB is flushed by Checkpoint,
// and besides when the write buffer is full or when many range deletes have gathered; every flush
// ends between two batches. RocksDB's LOG file is not written; Health says what went wrong.
//
// Each store owns two threads: one flushes, one compacts what range deletes have dropped. `core`
// gets the completions; it must outlive the stores. The end of a Store waits for a running flush or
// compaction to notice (on a disk that hangs, for ever), and flushes nothing.
std::unique_ptr<StoreFactory> NewRocksDbFactory(Executor& core, RocksDbOptions options);

}  // namespace etalon::store
