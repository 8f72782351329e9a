// The log of one replica: write-ahead log and replication log in one, as preallocated segment
// files.
//
// Format, rules of recovery and what they prove: docs/formats.md, "Log segments".
//
// Durability: what Append takes is readable at once and durable when durable(number) is called with
// a number at least that of the Persist. One disk job is in flight; everything appended meanwhile
// is the next one, with one sync (group commit). A Persist is one record under one checksum: after
// a crash all of it is there or nothing, and what is there is always a prefix of what was appended.
//
// Failures: a full disk is an answer one can live with: Health() tells it, what was appended waits
// in memory, nothing is called durable, the log tries again by itself with jittered backoff. Any
// other failure of the disk ends the log: failed(status) once, never durable() again, and the owner
// must end.
//
// Memory: about 32 bytes for each entry kept, Options::cache_bytes of the newest records, plus
// whatever is not yet on the disk (the owner bounds it: it refuses proposals while Health() is not
// OK and watches PendingBytes()).
//
// Threads: core executor only. Callbacks run on it as tasks, never from inside a call of the log
// (but for snapshot_provider); they may call the log but not destroy it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/logger.h"
#include "common/random.h"
#include "common/status.h"
#include "common/unique_function.h"
#include "engine/consensus/types.h"
#include "engine/log/format.h"
#include "engine/log/writer.h"
#include "env/clock.h"
#include "env/disk.h"
#include "env/executor.h"

namespace etalon::log {

// What recovery found. First and Last are those of the log right after Open.
struct Recovered {
  // Nothing was ever durable in this log. The owner decides by its identity whether that may be.
  bool blank = true;
  consensus::HardState hard_state;
  // The snapshot that the log starts at; only while nothing after it was trimmed (then First() ==
  // index + 1). The owner needs it when its own state is older than the snapshot.
  std::optional<consensus::Snapshot> snapshot;
  LogIndex first{1};
  LogIndex last;
  // Bytes of records at the end that were never durable and are cut off.
  std::uint64_t torn_bytes = 0;
};

class SegmentedLog final : public consensus::Log {
 public:
  struct Options {
    std::string dir;  // made if absent; belongs to the log alone
    std::uint64_t segment_bytes = 16u << 20;
    std::uint64_t cache_bytes = 32u << 20;
  };

  struct Callbacks {
    // What recovered() tells is durable from now on. Until then nothing may be promised on the
    // strength of it: the last records may be known to this machine's memory only. Always called,
    // once, unless failed() is.
    UniqueFunction<void()> ready;
    // Highest number of a Persist with sync that is durable, with all before it.
    UniqueFunction<void(std::uint64_t number)> durable;
    // Entries that Read answered kNotNow for are in memory: to be read from inside this call.
    UniqueFunction<void()> fetched;
    UniqueFunction<void(Status)> failed;
    // Answers SnapshotFor, from inside it. May be empty: there is never one.
    UniqueFunction<std::optional<consensus::Snapshot>(MemberId to, LogIndex at_least)>
        snapshot_provider;
  };

  // Recovers synchronously. DATA_LOSS/CORRUPT: the disk counts as lost;
  // FAILED_PRECONDITION/NEWER_FORMAT: written by a newer version. Both leave the files as they are.
  // What was trimmed away is not looked at: the owner compares First() with the index of its own
  // state.
  static Result<std::unique_ptr<SegmentedLog>> Open(Disk& disk, Executor& executor,
                                                    const Clock& clock, Random random,
                                                    Logger& logger, Options options);
  ~SegmentedLog() override;

  // Once, before the executor runs again.
  void SetCallbacks(Callbacks callbacks);

  const Recovered& recovered() const { return recovered_; }
  // RESOURCE_EXHAUSTED/DISK_FULL while the disk has no room for what comes next; the final failure
  // after failed().
  Status Health() const { return writer_->health(); }
  // Appended but not yet durable.
  std::uint64_t PendingBytes() const { return writer_->pending_bytes(); }
  // Bytes of all segments that hold records.
  std::uint64_t SizeBytes() const { return writer_->size_bytes(); }
  std::uint64_t CachedBytes() const { return cached_bytes_; }
  const consensus::HardState& hard_state() const { return hard_state_; }

  // Entries up to here are no longer needed; drops whole segments, so First() may stay below.
  // `up_to` must be applied and committed. The files go once what is kept is durable on its own.
  void Trim(LogIndex up_to);

  // consensus::Log. Read without may_wait reads from the disk in place; should that fail, it
  // answers kAbsent and failed() follows.
  LogIndex First() const override { return base_index_.Next(); }
  LogIndex Last() const override { return LogIndex(base_index_.value() + slots_.size()); }
  std::optional<Term> TermAt(LogIndex index) const override;
  Answer Read(LogIndex low, LogIndex high, std::uint64_t max_bytes, bool with_data, bool may_wait,
              std::vector<consensus::Entry>* out) override;
  std::optional<consensus::Snapshot> SnapshotFor(MemberId to, LogIndex at_least) override;
  void Append(const consensus::Persist& persist) override;
  void Warn(std::string_view text) override;

 private:
  // Where one entry is: the record that holds it, and the data inside the record's payload.
  struct Slot {
    Term term;
    Position record;
    std::uint32_t data_offset;
    std::uint32_t data_size;
    consensus::EntryKind kind;
  };
  // A record whose payload is in memory. Ordered by position; those not yet written are never
  // dropped.
  struct Cached {
    Position record;
    std::string payload;
  };
  struct Wanted {
    LogIndex low;
    LogIndex high;
    std::uint64_t max_bytes;
  };

  SegmentedLog(Disk& disk, Executor& executor, Logger& logger, Options options);

  const Slot& SlotAt(LogIndex index) const {
    return slots_[index.value() - base_index_.value() - 1];
  }
  Status Replay(Position record, const Content& content, std::string_view payload);
  Status FinishReplay(std::uint64_t torn_bytes);
  void Index(std::span<const consensus::Entry> entries, Position record,
             std::uint32_t entries_offset);
  void Remember(Position record, std::string payload);
  void Evict();
  const std::string* InMemory(Position record) const;
  Result<std::string> ReadPayload(Position record);
  void Want(const Wanted& wanted);
  void Fetch();
  void FailLater(Status status);

  Disk& disk_;
  Executor& executor_;
  Logger& logger_;
  const Options options_;
  Callbacks callbacks_;
  Recovered recovered_;

  LogIndex base_index_;
  Term base_term_;
  consensus::HardState hard_state_;
  std::deque<Slot> slots_;
  std::deque<Cached> cache_;
  std::uint64_t cached_bytes_ = 0;

  std::vector<Wanted> wanted_;                // asked for with kNotNow; one task serves them all
  std::map<Position, std::string> fetched_;   // what that task read, until the next one
  std::map<Position, std::string> read_now_;  // what the last Read read in place

  std::unique_ptr<SegmentWriter> writer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks hold it weakly
};

}  // namespace etalon::log
