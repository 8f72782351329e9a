// Puts records into segment files: allocation ahead, group commit, removal of old segments, patience with a full disk.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

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
    UniqueFunction<void()> ready;                        // what was recovered is durable
    UniqueFunction<void(std::uint64_t number)> written;  // a group is durable; highest sync number in it, or 0
    UniqueFunction<void(Status)> failed;                 // once; nothing is written any more
  };

  SegmentWriter(Disk& disk, Executor& executor, const Clock& clock, Random random, Logger& logger, std::string dir,
                std::uint64_t segment_bytes, Tail tail);

  void Start(Handlers handlers);

  // Whether a payload of that size, of a segment's next record, needs a new segment (and so a Content::start).
  bool MustRoll(std::uint64_t payload_size) const;
  // Queues one record and returns its place. *payload lives until IsWritten. `number` is told by `written`, if `sync`.
  // Without sync the record waits for the next one that has it.
  Position Append(const std::string* payload, bool roll, bool sync, std::uint64_t number);
  bool IsWritten(Position record) const { return queue_.empty() || record < queue_.front().position; }

  // Segment that the last appended record is in; 0 when none.
  std::uint32_t current() const { return current_; }
  // Removes the segments below, oldest first, after all that was appended until now is durable.
  void DropBelow(std::uint32_t segment);

  Status health() const;
  void Fail(Status status);
  std::uint64_t pending_bytes() const { return pending_bytes_; }
  std::uint64_t size_bytes() const;

  std::string Path(std::uint32_t segment) const { return dir_ + "/" + SegmentName(segment); }
  std::uint32_t SaltCrcOf(std::uint32_t segment) const;

 private:
  struct Queued {
    std::uint64_t sequence;
    Position position;
    const std::string* payload;
    bool sync;
    std::uint64_t number;
  };
  struct Drop {
    std::uint32_t below;
    std::uint64_t after_sequence;
  };
  // One kind of job: its last failure, and how long to wait before it is tried again.
  struct Activity {
    Status status;
    Backoff backoff{std::chrono::milliseconds(100), std::chrono::seconds(5)};
  };

  void Run(Activity& activity, UniqueFunction<DiskJob()> build, UniqueFunction<void()> done);
  void Allocate();
  void Pump();
  DiskJob BuildGroup(std::size_t records) const;
  void GroupDone(std::size_t records);
  void CutRecoveredTail();
  void RemoveNext();

  Disk& disk_;
  Executor& executor_;
  const Clock& clock_;
  Random random_;
  Logger& logger_;
  const std::string dir_;
  const std::uint64_t segment_bytes_;
  Handlers handlers_;
  std::vector<std::string> leftovers_;

  std::map<std::uint32_t, Tail::Segment> segments_;  // with records, and allocated ones above them
  std::uint32_t recovered_tail_ = 0;  // last segment of the previous life, until it is cut; 0 = none
  std::uint32_t allocated_ = 0;       // highest segment that may be written to
  std::uint32_t current_ = 0;
  std::uint64_t end_ = 0;  // of the last appended record in current_
  bool current_open_ = false;  // current_ is of this life: it may take more records
  std::uint64_t last_sequence_ = 0;
  std::uint64_t durable_sequence_ = 0;
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
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // disk completions and timers hold it weakly
};

}  // namespace etalon::log
