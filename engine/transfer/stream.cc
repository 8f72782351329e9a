#include "engine/transfer/stream.h"

#include <algorithm>
#include <utility>

#include "common/crc32c.h"
#include "engine/transfer/peers.h"
#include "proto/wire.h"

namespace etalon::transfer {

Stream::Stream(const bucket::StateMachine& state, const store::Store& store,
               const bucket::Outgoing& transfer, StreamOptions options)
    : state_(state),
      store_(store),
      options_(options),
      id_(transfer.id),
      reader_(std::make_unique<ChunkReader>(
          store.NewSnapshot(),
          RangesOf(transfer.level, Numbers(transfer.set), state.bucket_count()), state.log_time())),
      meter_(options.assumed_rate),
      resend_(options.resend_after, options.resend_cap) {}

void Stream::NoteKey(std::string_view store_key) {
  if (overflow_) return;
  if (dirty_.find(store_key) != dirty_.end()) return;
  dirty_key_bytes_ += store_key.size();
  if (dirty_key_bytes_ > options_.dirty_bytes) {
    overflow_ = true;
    dirty_.clear();
    return;
  }
  dirty_.emplace(store_key);
}

std::uint64_t Stream::DirtyBytes() const {
  if (dirty_.empty()) return 0;
  // Keys are known; values are taken to be as large as those sent lately.
  const std::uint64_t records = round_records_ > 0 ? round_records_ : records_;
  const std::uint64_t bytes = round_records_ > 0 ? round_bytes_ : bytes_;
  const std::uint64_t average = records > 0 ? bytes / records : 0;
  return std::max<std::uint64_t>(dirty_key_bytes_, dirty_.size() * average);
}

Status Stream::BeginRound() {
  if (overflow_) {
    return ResourceExhausted("more keys were written during the copy than can be remembered");
  }
  if (rounds_ > 0) {  // the snapshot is no measure for the first round
    flat_ = round_bytes_ * 5 > previous_round_bytes_ * 4 ? flat_ + 1 : 0;
  }
  if (!finishing_ && (flat_ >= options_.flat_rounds || rounds_ >= options_.max_rounds)) {
    return ResourceExhausted("the bucket is written faster than it can be copied: the last of " +
                             std::to_string(rounds_) + " rounds had " +
                             std::to_string(round_bytes_) + " bytes");
  }
  previous_round_bytes_ = round_bytes_;
  round_bytes_ = 0;
  round_records_ = 0;
  ++rounds_;
  last_round_ = finishing_;
  reader_ = std::make_unique<ChunkReader>(store_.NewSnapshot(), std::exchange(dirty_, {}),
                                          state_.log_time());
  dirty_key_bytes_ = 0;
  return OkStatus();
}

Status Stream::Cut() {
  ETALON_ASSIGN_OR_RETURN(std::optional<Piece> piece, reader_->Next());
  const bool last = last_round_ && reader_->exhausted();
  if (reader_->exhausted()) reader_.reset();
  if (!piece) {
    if (!last) return OkStatus();
    piece.emplace();  // the last chunk carries the totals, with or without records
  }
  v1::Chunk chunk;
  *chunk.mutable_id() = ToProto(id_);
  chunk.set_number(next_number_++);
  chunk.set_crc(Crc32c(piece->payload));
  records_ += piece->records;
  round_records_ += piece->records;
  bytes_ += piece->bytes;
  round_bytes_ += piece->bytes;
  unacknowledged_bytes_ += piece->payload.size();
  hash_ = bucket::ChainChunk(hash_, chunk.number(), chunk.crc());
  chunk.set_payload(std::move(piece->payload));
  if (last) {
    chunk.set_last(true);
    chunk.set_hash(hash_);
    chunk.set_records(records_);
    chunk.set_bytes(bytes_);
    finished_ = true;
  }
  unacknowledged_.push_back({std::move(chunk), {}});
  ++unsent_;
  return OkStatus();
}

Result<std::vector<v1::Chunk>> Stream::Pump(SteadyTime now, ByteBudget& budget,
                                            bool may_begin_round, Random& random) {
  std::vector<v1::Chunk> out;
  if (now >= resend_at_) {
    unsent_ = unacknowledged_.size();
    resend_at_ = SteadyTime::max();
  }
  while (true) {
    if (unsent_ == 0) {
      if (finished_) break;
      if (!unacknowledged_.empty() && unacknowledged_bytes_ >= options_.window_bytes) break;
      if (!finishing_ && !budget.MaySend(now)) break;
      if (reader_ == nullptr) {
        const bool begin =
            may_begin_round && unacknowledged_.empty() && (!dirty_.empty() || overflow_);
        if (!finishing_ && !begin) break;
        ETALON_RETURN_IF_ERROR(BeginRound());
      }
      ETALON_RETURN_IF_ERROR(Cut());
      continue;
    }
    // The last round is not held up by the limit: it stops writes, and it is short.
    if (!finishing_ && !budget.MaySend(now)) break;
    Unacknowledged& next = unacknowledged_[unacknowledged_.size() - unsent_];
    budget.Spend(next.chunk.payload().size());
    next.sent = meter_.OnSent(now);
    out.push_back(next.chunk);
    --unsent_;
  }
  if (!out.empty() && resend_at_ == SteadyTime::max()) resend_at_ = now + resend_.Next(random);
  return out;
}

bool Stream::OnAcknowledged(std::uint64_t next_number, SteadyTime now) {
  std::uint64_t bytes = 0;
  RateMeter::Mark sent;
  while (!unacknowledged_.empty() && unacknowledged_.front().chunk.number() < next_number) {
    if (unsent_ == unacknowledged_.size()) --unsent_;  // it was to be sent again
    bytes += unacknowledged_.front().chunk.payload().size();
    sent = unacknowledged_.front().sent;
    unacknowledged_.pop_front();
  }
  if (next_number <= acknowledged_) return false;
  acknowledged_ = next_number;
  unacknowledged_bytes_ -= bytes;
  if (bytes > 0) meter_.OnAcknowledged(bytes, sent, now);
  resend_.Reset();
  resend_at_ = unacknowledged_.size() > unsent_ ? now + options_.resend_after : SteadyTime::max();
  return true;
}

void Stream::ResendSoon(SteadyTime now) {
  if (unacknowledged_.size() > unsent_) {
    resend_at_ = std::min(resend_at_, now + options_.resend_after / 10);
  }
}

bool Stream::NearEnd(Duration freeze) const {
  // One round at least tells how large the records are that are written now.
  return reader_ == nullptr && !overflow_ && (dirty_.empty() || rounds_ > 0) &&
         meter_.TimeFor(unacknowledged_bytes_ + DirtyBytes()) <= freeze;
}

void Stream::Finish() { finishing_ = true; }

SteadyTime Stream::next_at(SteadyTime now, const ByteBudget& budget) const {
  SteadyTime at = resend_at_;
  const bool window = unacknowledged_.empty() || unacknowledged_bytes_ < options_.window_bytes;
  if (unsent_ > 0 || (window && reader_ != nullptr)) at = std::min(at, budget.NextAt(now));
  return at;
}

}  // namespace etalon::transfer
