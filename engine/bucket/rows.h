// Buckets of one shard, as its replicated state knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"

namespace etalon::bucket {

// docs/protocols/buckets.md has the transition table. Numbers are the wire's and the disk's
// (log.proto, BucketStatus).
enum class RowStatus : std::uint8_t {
  kActive = 1,
  kPinned = 2,
  kSending = 3,
  kSent = 4,
  kReceiving = 5,
  kGarbage = 6,
  kQuarantined = 7,
};

std::string_view RowStatusName(RowStatus status);  // "ACTIVE"

constexpr bool IsWritable(RowStatus s) {
  return s == RowStatus::kActive || s == RowStatus::kPinned;
}
constexpr bool IsReadable(RowStatus s) { return IsWritable(s) || s == RowStatus::kSending; }

// A bucket that is here. Its number is at the shard's level.
struct Row {
  RowStatus status = RowStatus::kActive;
  Epoch epoch = {};
  TransferId transfer = {};  // empty: none
  Epoch own_seen = {};       // QUARANTINED: the proof of a newer owner
  bool operator==(const Row&) const = default;
};

// Kept per bucket, even without a row.
struct Marks {
  Epoch own = {};         // highest epoch that this shard activated
  Epoch left_epoch = {};  // of its last SENT
  TransferId left = {};
  ShardUid left_to = {};
  bool operator==(const Marks&) const = default;
};

struct BucketEpoch {
  std::uint32_t bucket = 0;
  Epoch epoch = {};
  bool operator==(const BucketEpoch&) const = default;
};

// Where a transfer of ours goes. Its phase is the status of its rows.
struct Outgoing {
  TransferId id = {};
  ShardUid target = {};
  std::uint8_t level = 0;             // when it opened
  std::vector<BucketEpoch> set = {};  // sorted by bucket; epochs e
  std::string split_task = {};        // empty: a move
  LogIndex sending_index = {};        // of the SENDING entry; 0 before
  bool operator==(const Outgoing&) const = default;
};

// What arrives. `set` is as the source named it (its level, its epochs e); the rows here are at our
// own level with e+1.
struct Incoming {
  TransferId id = {};
  std::uint8_t level = 0;
  std::vector<BucketEpoch> set = {};
  std::uint64_t next_number = 1;  // of the chunk to be applied next
  std::uint64_t hash = 0;         // ChainChunk over all applied chunks
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  bool prepared = false;
  // What arrived is not what the source sent: takes no more chunks; the source must abort.
  bool mismatch = false;
  bool operator==(const Incoming&) const = default;
};

enum class SplitState : std::uint8_t {
  kPreparing,
  kCopying,
  kFencing,
  kCommitted,
  kDone,
  kAborted
};

struct SplitTask {
  std::string task = {};
  ShardUid target = {};
  SplitState state = SplitState::kPreparing;
  LogIndex t_switch = {};  // index of the SENDING that led to SENT; 0 before
  LogIndex fence = {};     // index of the SENDING under way, while Fencing
  TransferId transfer = {};
  std::string why = {};  // Aborted
  bool operator==(const SplitTask&) const = default;
};

// The hash of a chunk sequence, from 0: both sides fold every chunk's number and CRC, the last
// one's too. Its counts: `records` of all ChunkRecords, tombstones too; `bytes` of their keys and
// values.
std::uint64_t ChainChunk(std::uint64_t hash, std::uint64_t number, std::uint32_t crc);

}  // namespace etalon::bucket
