// The ordered key-value store of one replica: what its log has been applied to.
//
// Keys are compared as unsigned bytes; keys and values may hold any bytes and may be empty.
//
// Durability. A Write is visible at once and durable only later. After a crash the store holds
// exactly the first n Writes, whole and in their order, for some n: at least all that were made
// before the call of the last Checkpoint whose `done` reported success, possibly more, never a part
// of a batch, never a hole. So an owner that puts the index of what it applied into the same batch
// as the effects reads after a restart where to go on.
//
// Threads: everything on the node's core executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "common/unique_function.h"
#include "engine/store/batch.h"

namespace etalon::store {

// Walks the keys of a range in ascending order. Sees the moment its snapshot was taken, and may
// outlive the snapshot.
//
// After a failed read Valid() is false and status() says why; so a loop over Valid() is complete
// only if status() is ok after it.
class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual bool Valid() const = 0;
  // Only while Valid(). The views stay good until the next Next or Seek.
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Only while Valid().
  virtual void Next() = 0;
  // To the first key of the range at or after `key`; a key before the range leads to the start of
  // the range.
  virtual void Seek(std::string_view key) = 0;
  virtual Status status() const = 0;
};

// The store as it was when the snapshot was taken, whatever is written, deleted or replaced
// afterwards. It may outlive its Store (what it reads stays on the disk until then, and its
// directory cannot be opened again before).
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  // nullopt: no such key.
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;
  // Over [begin, end), standing on the first key. An empty `end` means no end.
  virtual std::unique_ptr<Iterator> NewIterator(std::string_view begin,
                                                std::string_view end) const = 0;
};

// Errors of every function:
//   RESOURCE_EXHAUSTED/DISK_FULL   nothing is lost; free space, then the next Checkpoint heals the
//   store DATA_LOSS/CORRUPT              bytes on the disk are wrong or missing: this replica must
//   be built anew from others INTERNAL                       the operating system refused a read or
//   write: the process must end and start again
class Store {
 public:
  using Done = UniqueFunction<void(Status)>;

  virtual ~Store() = default;

  // All of `batch` or nothing. On success the batch is empty; on failure it is unchanged, and so is
  // the store: the owner may try the *same* batch again later, and must not go on with a later one.
  // Besides the errors above: RESOURCE_EXHAUSTED/OVERLOADED when the disk does not keep up. Never
  // waits for the disk.
  virtual Status Write(Batch&& batch) = 0;

  // nullopt: no such key.
  virtual Result<std::optional<std::string>> Get(std::string_view key) const = 0;

  // Cheap. Delays the release of what is deleted while it lives.
  virtual std::unique_ptr<Snapshot> NewSnapshot() const = 0;

  // Makes everything written before this call durable. Calls made while one runs share the next
  // run. `done` is called later, never from within; it is dropped if the Store ends first. After a
  // failure the store goes on.
  virtual void Checkpoint(Done done) = 0;

  // Bytes that [begin, end) takes, roughly: what was written lately or deleted lately may be
  // counted or not. An empty `end` means no end.
  virtual std::uint64_t ApproximateBytes(std::string_view begin, std::string_view end) const = 0;

  // Reads all that is on the disk and checks it. Slow, blocks: for tools and start-up.
  virtual Status Verify() = 0;

  // What the next Write or Checkpoint would meet, without doing it: ok, or the last failure that is
  // not healed yet. DATA_LOSS for good once any read, of a snapshot or iterator too, met damage.
  virtual Status Health() const = 0;
};

enum class OpenMode : unsigned char {
  kExisting,  // DATA_LOSS if no checkpoint was ever completed there
  kFresh,     // the directory exists and is empty
};

// Opens the stores of one kind. A directory is relative to the root of the node's disk.
class StoreFactory {
 public:
  virtual ~StoreFactory() = default;
  virtual Result<std::unique_ptr<Store>> Open(std::string_view dir, OpenMode mode) = 0;
};

}  // namespace etalon::store
