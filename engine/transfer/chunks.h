// Reads what a transfer sends from a store snapshot, cut into the payloads of chunks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "engine/store/keys.h"
#include "engine/store/store.h"

namespace etalon::transfer {

inline constexpr std::size_t kChunkBytes =
    256 << 10;  // of keys and values; a larger record is a chunk of its own

struct Piece {
  std::string payload;  // serialized v1::ChunkPayload
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // of keys and values
};

// One pass: all records of ranges, or the present value (or tombstone) of each of some keys.
// Results of request IDs travel with what is left of their life at `log_time`; dead ones stay
// behind.
class ChunkReader {
 public:
  ChunkReader(std::unique_ptr<store::Snapshot> snapshot, std::vector<store::KeyRange> ranges,
              LogTime log_time);
  ChunkReader(std::unique_ptr<store::Snapshot> snapshot, std::set<std::string, std::less<>> keys,
              LogTime log_time);
  ~ChunkReader();

  // The next payload, never empty of records; nullopt: everything was read. Not OK: the store
  // failed.
  Result<std::optional<Piece>> Next();
  // The last piece was the last: the next call of Next would return nullopt.
  bool exhausted() const { return exhausted_; }

 private:
  class Cursor;
  class RangeCursor;
  class KeyCursor;

  LogTime log_time_;
  std::unique_ptr<Cursor> cursor_;
  bool exhausted_ = false;
};

// The ranges of these buckets, sorted, adjacent ones joined.
std::vector<store::KeyRange> RangesOf(std::uint8_t level, const std::vector<std::uint32_t>& buckets,
                                      std::uint32_t bucket_count);

}  // namespace etalon::transfer
