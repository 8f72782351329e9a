// Puts records into segment files: allocation ahead, group commit, removal of old segments,
// patience with a full disk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/logger.h"
#include "common/random.h"
#include "common/status.h"
#include "common/unique_function.h"
#include "engine/log/format.h"
#include "env/clock.h"
#include "env/disk.h"
#include "env/executor.h"

namespace etalon::log {

// What recovery leaves to the writer.
struct Tail {
  struct Segment {
    std::uint64_t salt = 0;
    std::uint64_t end = 0;  // of its last record
  };
  std::map<std::uint32_t, Segment> segments;  // those with records, consecutive
  std::uint64_t last_sequence = 0;
  std::vector<std::string> leftovers;  // paths of unfinished files
};

// Threads: core executor only. Handlers run as tasks of it, never from inside a call.
class SegmentWriter {
 public:
  struct Handlers {
    UniqueFunction<void()> ready;  // what was recovered is durable
    UniqueFunction<void(std::uint64_t number)>
        written;  // a group is durable; its highest sync number, or 0
    UniqueFunction<void(const Status&)> failed;  // once; nothing is written any more
  };

  SegmentWriter(Disk& disk, Executor& executor, const Clock& clock, Random random, Logger& logger,
                std::string dir, std::uint64_t segment_bytes, Tail tail);

  void Start(Handlers handlers);

  // Whether the next record, with a payload of that size, needs a new segment (and so a
  // Content::start).
  bool MustRoll(std::uint64_t payload_size) const;
  // Queues one record and returns its place. *payload lives until IsWritten. Without sync the
  // record waits for the next one that has it; `number` is told by `written` if it has.
  Position Append(const std::string* payload, bool roll, bool sync, std::uint64_t number);
  bool IsWritten(Position record) const {
    return queue_.empty() || record < queue_.front().position;
  }

  // Segment that the last appended record is in; 0 when there is none.
  std::uint32_t current() const { return current_; }
  // Removes the segments below, oldest first, once the record `after` is durable.
  void DropBelow(std::uint32_t segment, Position after);

  Status health() const;
  // From a task: ends the writer.
  void Fail(const Status& status);
  std::uint64_t pending_bytes() const { return pending_bytes_; }
  std::uint64_t size_bytes() const;

  std::string Path(std::uint32_t segment) const { return dir_ + "/" + SegmentName(segment); }
  // Of a segment that has written records.
  std::uint32_t SaltCrcOf(std::uint32_t segment) const;

 private:
  struct Queued {
    std::uint64_t sequence;
    Position position;
    const std::string* payload;
    bool sync;
    std::uint64_t number;
    std::uint64_t end() const { return position.offset + RecordBytes(payload->size()); }
  };
  struct Drop {
    std::uint32_t below;
    Position after;
  };
  // One kind of job: its last failure, and how long to wait before it is tried again.
  struct Activity {
    Status status;
    Backoff backoff{std::chrono::milliseconds(50), std::chrono::seconds(2)};
  };

  // Runs the job that `build` makes, again and again while the disk is full.
  void Run(Activity& activity, UniqueFunction<DiskJob()> build, UniqueFunction<void()> done);
  void Completed(Activity& activity, UniqueFunction<DiskJob()> build, UniqueFunction<void()> done,
                 const Status& status);
  DiskJob BuildStart() const;
  void Allocate();
  DiskJob BuildSegment(std::uint32_t number, std::uint64_t salt) const;
  void Pump();
  DiskJob BuildGroup(std::size_t records) const;
  void GroupDone(std::size_t records);
  void RemoveNext();
  void Release(DiskJob job, std::uint32_t removed);

  Disk& disk_;
  Executor& executor_;
  const Clock& clock_;
  Random random_;
  Logger& logger_;
  const std::string dir_;
  const std::uint64_t segment_bytes_;
  const std::vector<std::string> leftovers_;
  Handlers handlers_;

  std::map<std::uint32_t, Tail::Segment> segments_;  // allocated; consecutive
  std::uint32_t recovered_tail_;  // last segment of the life before, until it is cut; 0 = none
  std::uint32_t allocated_;       // highest segment that may be written to
  std::uint32_t current_;
  bool current_is_open_ = false;  // of this life, so it may take more records
  std::uint64_t end_ = 0;         // of the last record in current_
  const std::uint64_t recovered_sequence_;
  std::uint64_t last_sequence_;
  std::uint64_t durable_sequence_;
  std::uint64_t sync_sequence_ = 0;  // of the last record that must become durable
  std::uint64_t pending_bytes_ = 0;
  std::deque<Queued> queue_;  // the front ones are in the job in flight
  std::deque<Drop> drops_;

  Activity start_;
  Activity allocate_;
  Activity write_;
  Activity remove_;
  bool allocating_ = false;
  bool writing_ = false;
  bool removing_ = false;
  Status failure_;
  // Completions and timers hold it weakly: they may outlive the writer.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace etalon::log
