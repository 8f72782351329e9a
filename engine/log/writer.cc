#include "engine/log/writer.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace etalon::log {

namespace {
// A group is cut here, so that a long backlog is not copied at once and the first of it need not
// wait for the last.
constexpr std::uint64_t kGroupBytes = 8u << 20;
}  // namespace

SegmentWriter::SegmentWriter(Disk& disk, Executor& executor, const Clock& clock, Random random,
                             Logger& logger, std::string dir, std::uint64_t segment_bytes,
                             Tail tail)
    : disk_(disk),
      executor_(executor),
      clock_(clock),
      random_(random),
      logger_(logger),
      dir_(std::move(dir)),
      segment_bytes_(segment_bytes),
      leftovers_(std::move(tail.leftovers)),
      segments_(std::move(tail.segments)),
      recovered_tail_(segments_.empty() ? 0 : segments_.rbegin()->first),
      allocated_(recovered_tail_),
      current_(recovered_tail_),
      recovered_sequence_(tail.last_sequence),
      last_sequence_(tail.last_sequence),
      durable_sequence_(tail.last_sequence) {}

void SegmentWriter::Start(Handlers handlers) {
  handlers_ = std::move(handlers);
  allocating_ = true;  // not before there is a directory
  Run(
      start_, [this] { return BuildStart(); },
      [this] {
        allocating_ = false;
        Allocate();
        handlers_.ready();
      });
}

DiskJob SegmentWriter::BuildStart() const {
  DiskJob job;
  job.push_back(DiskOp::MakeDir(dir_));
  for (std::string_view dir = dir_; !dir.empty();) {
    dir = ParentOf(dir);
    job.push_back(DiskOp::SyncDir(std::string(dir)));
  }
  if (recovered_tail_ != 0) job.push_back(DiskOp::Sync(Path(recovered_tail_)));
  for (const std::string& path : leftovers_) job.push_back(DiskOp::Remove(path));
  return job;
}

void SegmentWriter::Run(Activity& activity, UniqueFunction<DiskJob()> build,
                        UniqueFunction<void()> done) {
  DiskJob job = build();
  disk_.Submit(std::move(job),
               [this, alive = std::weak_ptr<bool>(alive_), &activity, build = std::move(build),
                done = std::move(done)](Status status) mutable {
                 if (alive.expired()) return;
                 Completed(activity, std::move(build), std::move(done), status);
               });
}

void SegmentWriter::Completed(Activity& activity, UniqueFunction<DiskJob()> build,
                              UniqueFunction<void()> done, const Status& status) {
  if (!failure_.ok()) return;
  if (!status.ok() && status.reason() != Reason::kDiskFull) return Fail(status);
  if (status.ok()) {
    if (!activity.status.ok()) logger_.Info("log_disk_has_space_again", {{"dir", dir_}});
    activity.status = OkStatus();
    activity.backoff.Reset();
    done();
    return;
  }
  if (activity.status.ok())
    logger_.Warning("log_disk_full", {{"dir", dir_}, {"status", status.ToString()}});
  activity.status = status;
  executor_.PostAt(clock_.Now() + activity.backoff.Next(random_),
                   [this, alive = std::weak_ptr<bool>(alive_), &activity, build = std::move(build),
                    done = std::move(done)]() mutable {
                     if (alive.expired() || !failure_.ok()) return;
                     Run(activity, std::move(build), std::move(done));
                   });
}

void SegmentWriter::Fail(const Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  logger_.Error("log_failed", {{"dir", dir_}, {"status", status.ToString()}});
  handlers_.failed(status);
}

Status SegmentWriter::health() const {
  for (const Status* status :
       {&failure_, &start_.status, &allocate_.status, &write_.status, &remove_.status}) {
    if (!status->ok()) return *status;
  }
  return OkStatus();
}

std::uint64_t SegmentWriter::size_bytes() const {
  std::uint64_t sum = pending_bytes_;
  for (const auto& [number, segment] : segments_) sum += segment.end;
  return sum;
}

std::uint32_t SegmentWriter::SaltCrcOf(std::uint32_t segment) const {
  const auto it = segments_.find(segment);
  ETALON_CHECK(it != segments_.end(), "a log segment that is not there");
  return SaltCrc({.number = segment, .salt = it->second.salt});
}

// Allocation: always one segment ahead of the current one.

void SegmentWriter::Allocate() {
  if (allocating_ || allocated_ > current_ || !failure_.ok()) return;
  allocating_ = true;
  const std::uint32_t number = allocated_ + 1;
  const std::uint64_t salt = random_.NextId();
  Run(
      allocate_, [this, number, salt] { return BuildSegment(number, salt); },
      [this, number, salt] {
        allocating_ = false;
        allocated_ = number;
        segments_[number] = {salt, 0};
        Allocate();
        Pump();
      });
}

// Under its name a segment is whole, durable and empty, or it is not there. A rest of an earlier
// life goes.
DiskJob SegmentWriter::BuildSegment(std::uint32_t number, std::uint64_t salt) const {
  const std::string path = Path(number);
  const std::string unfinished = path + std::string(kUnfinished);
  return {DiskOp::Allocate(unfinished, segment_bytes_),
          DiskOp::Write(unfinished, 0, EncodeSegmentHeader({number, salt, segment_bytes_})),
          DiskOp::Sync(unfinished), DiskOp::Rename(unfinished, path), DiskOp::SyncDir(dir_)};
}

// Group commit.

bool SegmentWriter::MustRoll(std::uint64_t payload_size) const {
  return !current_is_open_ || end_ + RecordBytes(payload_size) > segment_bytes_;
}

Position SegmentWriter::Append(const std::string* payload, bool roll, bool sync,
                               std::uint64_t number) {
  ETALON_CHECK(payload->size() <= kMaxPayloadBytes, "a log record over its limit");
  ETALON_CHECK(roll || current_is_open_, "a log record without a segment");
  if (roll) {
    ++current_;
    current_is_open_ = true;
    end_ = kSegmentHeaderBytes;
  }
  const Position position{current_, static_cast<std::uint32_t>(end_)};
  queue_.push_back({++last_sequence_, position, payload, sync, number});
  end_ = queue_.back().end();
  pending_bytes_ += RecordBytes(payload->size());
  if (sync) sync_sequence_ = last_sequence_;
  if (roll) Allocate();
  Pump();
  return position;
}

void SegmentWriter::Pump() {
  if (writing_ || sync_sequence_ <= durable_sequence_ || !failure_.ok()) return;
  std::size_t records = 0;
  std::uint64_t bytes = 0;
  for (const Queued& queued : queue_) {
    if (queued.position.segment > allocated_ || bytes >= kGroupBytes) break;
    bytes += RecordBytes(queued.payload->size());
    ++records;
  }
  if (records == 0) return;
  writing_ = true;
  Run(
      write_, [this, records] { return BuildGroup(records); },
      [this, records] { GroupDone(records); });
}

DiskJob SegmentWriter::BuildGroup(std::size_t records) const {
  DiskJob job;
  for (std::size_t i = 0; i < records; ++i) {
    const Queued& queued = queue_[i];
    const std::string path = Path(queued.position.segment);
    if (job.empty() || job.back().path != path) {
      // Recovery relies on it: a segment is durable as a whole before anything is in the next.
      if (!job.empty()) job.push_back(DiskOp::Sync(job.back().path));
      job.push_back(DiskOp::Write(path, queued.position.offset, {}));
    }
    AppendRecord(&job.back().bytes, SaltCrcOf(queued.position.segment), queued.sequence,
                 durable_sequence_, *queued.payload);
  }
  job.push_back(DiskOp::Sync(job.back().path));
  return job;
}

void SegmentWriter::GroupDone(std::size_t records) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < records; ++i) {
    const Queued& queued = queue_.front();
    if (queued.sync) number = std::max(number, queued.number);
    segments_[queued.position.segment].end = queued.end();
    pending_bytes_ -= RecordBytes(queued.payload->size());
    durable_sequence_ = queued.sequence;
    queue_.pop_front();
  }
  writing_ = false;
  Pump();
  RemoveNext();
  handlers_.written(number);
}

// Removal: one segment at a time, each durable before the next, so that what a crash leaves has no
// gap.

void SegmentWriter::DropBelow(std::uint32_t segment, Position after) {
  if (!drops_.empty() && drops_.back().below >= segment) return;
  drops_.push_back({segment, after});
  RemoveNext();
}

void SegmentWriter::RemoveNext() {
  if (removing_ || !failure_.ok()) return;
  if (recovered_tail_ != 0 && durable_sequence_ > recovered_sequence_) {
    const std::uint32_t tail = std::exchange(recovered_tail_, 0);
    return Release({DiskOp::Truncate(Path(tail), segments_.at(tail).end), DiskOp::Sync(Path(tail))},
                   0);
  }
  while (!drops_.empty() && IsWritten(drops_.front().after) &&
         segments_.begin()->first >= drops_.front().below) {
    drops_.pop_front();
  }
  if (drops_.empty() || !IsWritten(drops_.front().after)) return;
  const std::uint32_t oldest = segments_.begin()->first;
  Release({DiskOp::Remove(Path(oldest)), DiskOp::SyncDir(dir_)}, oldest);
}

void SegmentWriter::Release(DiskJob job, std::uint32_t removed) {
  removing_ = true;
  Run(
      remove_, [job = std::move(job)] { return job; },
      [this, removed] {
        removing_ = false;
        segments_.erase(removed);
        RemoveNext();
      });
}

}  // namespace etalon::log
