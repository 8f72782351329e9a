#include "engine/consensus/snapshot_stream.h"

#include <algorithm>
#include <utility>

#include "common/crc32c.h"

namespace etalon::consensus {

SnapshotSender::SnapshotSender(Snapshot snapshot, std::unique_ptr<SnapshotSource> source,
                               SteadyTime now, const SnapshotStreamOptions& options)
    : snapshot_(std::move(snapshot)), source_(std::move(source)), options_(options), heard_(now) {}

Result<std::vector<v1::SnapshotChunk>> SnapshotSender::OnPull(const v1::SnapshotPull& pull,
                                                              SteadyTime now) {
  heard_ = now;
  while (!kept_.empty() && kept_.front().number() < pull.next()) kept_.pop_front();
  std::vector<v1::SnapshotChunk> out;
  if (pull.again()) out.assign(kept_.begin(), kept_.end());
  // A pull that was overtaken by a later one names a chunk that is gone: it asks for nothing new.
  const std::uint64_t end = pull.next() + std::min(pull.credit(), options_.credit);
  while (next_ < end && !ended_) {
    ETALON_ASSIGN_OR_RETURN(std::optional<std::string> data,
                            source_->NextChunk(options_.chunk_bytes));
    v1::SnapshotChunk chunk;
    chunk.set_number(next_++);
    chunk.set_last(!data);
    if (data) chunk.set_data(*std::move(data));
    chunk.set_crc(Crc32c(chunk.data()));
    ended_ = chunk.last();
    kept_.push_back(chunk);
    out.push_back(std::move(chunk));
  }
  return out;
}

SnapshotReceiver::SnapshotReceiver(std::unique_ptr<SnapshotSink> sink, SteadyTime now,
                                   const SnapshotStreamOptions& options)
    : sink_(std::move(sink)), options_(options), heard_(now), pulled_(now) {}

v1::SnapshotPull SnapshotReceiver::Pull(bool again) const {
  v1::SnapshotPull pull;
  pull.set_next(next_);
  pull.set_credit(complete() ? 0 : options_.credit);
  pull.set_again(again);
  return pull;
}

Result<bool> SnapshotReceiver::OnChunk(v1::SnapshotChunk chunk, SteadyTime now) {
  if (complete() || chunk.number() < next_ || chunk.number() >= next_ + options_.credit)
    return false;
  if (Crc32c(chunk.data()) != chunk.crc()) {
    return DataLoss("chunk " + std::to_string(chunk.number()) +
                    " of a snapshot has a wrong checksum");
  }
  heard_ = now;
  early_.insert_or_assign(chunk.number(), std::move(chunk));
  bool moved = false;
  while (!early_.empty() && early_.begin()->first == next_) {
    v1::SnapshotChunk due = std::move(early_.extract(early_.begin()).mapped());
    ++next_;
    moved = true;
    if (due.last()) {
      complete_at_ = now;
      early_.clear();
    } else {
      ETALON_RETURN_IF_ERROR(sink_->Add(std::move(*due.mutable_data())));
    }
  }
  if (moved) pulled_ = now;
  return moved;
}

Result<bool> SnapshotReceiver::OnTime(SteadyTime now) {
  if (complete()) {
    if (now - *complete_at_ >= options_.finish_within)
      return DeadlineExceeded("the snapshot is not durable in time");
  } else if (now - heard_ >= options_.give_up) {
    return DeadlineExceeded("the sender of the snapshot is silent");
  }
  if (now - pulled_ < options_.pull_every) return false;
  pulled_ = now;
  return true;
}

}  // namespace etalon::consensus
