#include "engine/log/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "engine/log/recovery.h"

namespace etalon::log {

using consensus::Entry;
using consensus::HardState;
using consensus::Persist;
using consensus::Snapshot;

namespace {
// What one request for old entries may bring into memory, and how many requests wait at a time.
constexpr std::uint64_t kFetchBytes = 1u << 20;
constexpr std::size_t kMaxWanted = 8;
}  // namespace

SegmentedLog::SegmentedLog(Disk& disk, Executor& executor, Logger& logger, Options options)
    : disk_(disk), executor_(executor), logger_(logger), options_(std::move(options)) {}

SegmentedLog::~SegmentedLog() = default;

Result<std::unique_ptr<SegmentedLog>> SegmentedLog::Open(Disk& disk, Executor& executor,
                                                         const Clock& clock, Random random,
                                                         Logger& logger, Options options) {
  if (options.dir.empty() || options.segment_bytes < 4096 ||
      options.segment_bytes > UINT32_MAX / 2) {
    return InvalidArgument("a log needs a directory and segments of 4 KiB to 2 GiB",
                           Reason::kInvalidCfg);
  }
  std::unique_ptr<SegmentedLog> log(new SegmentedLog(disk, executor, logger, std::move(options)));
  ETALON_ASSIGN_OR_RETURN(
      Found found, Recover(disk, log->options_.dir,
                           [&](Position record, const Content& content, std::string_view payload) {
                             return log->Replay(record, content, payload);
                           }));
  ETALON_RETURN_IF_ERROR(log->FinishReplay(found.torn_bytes));
  log->writer_ =
      std::make_unique<SegmentWriter>(disk, executor, clock, random, logger, log->options_.dir,
                                      log->options_.segment_bytes, std::move(found.tail));
  return log;
}

Status SegmentedLog::Replay(Position record, const Content& content, std::string_view payload) {
  if (const auto& start = content.start) {
    if (recovered_.blank || start->reset) {
      slots_.clear();
      base_index_ = start->base_index;
      base_term_ = start->base_term;
      recovered_.snapshot = start->reset;
    } else if (start->base_index != Last() || start->base_term != TermAt(Last()) ||
               start->hard_state.term != hard_state_.term ||
               start->hard_state.vote != hard_state_.vote) {
      return DataLoss("the segment does not go on from the one before it");
    }
    hard_state_ = start->hard_state;
    recovered_.blank = false;
  }
  if (content.hard_state) hard_state_ = *content.hard_state;
  if (!content.entries.empty()) {
    const LogIndex before(content.entries.front().index.value() - 1);
    if (before > Last()) return DataLoss("entries are missing before this record");
    if (before < base_index_) {
      // Overwrites entries of a segment that was trimmed away since: what is kept starts here.
      if (recovered_.snapshot)
        return DataLoss("an entry below the snapshot that the log starts at");
      slots_.clear();
      base_index_ = before;
      base_term_ = content.prev_term;
    }
    if (TermAt(before) != content.prev_term)
      return DataLoss("the entry before this record has another term");
  }
  Remember(record, std::string(payload));
  Index(content.entries, record, EntriesOffset(content));
  Evict();
  return OkStatus();
}

Status SegmentedLog::FinishReplay(std::uint64_t torn_bytes) {
  // Every record with entries or a vote was written together with, or after, the hard state that it
  // needs.
  if (hard_state_.term < *TermAt(Last()) || hard_state_.commit > Last()) {
    return DataLoss(
        fmt::format("{}: the vote record (term {}, commit {}) does not fit the last entry (index "
                    "{}, term {}); this disk counts as lost",
                    options_.dir, hard_state_.term.value(), hard_state_.commit.value(),
                    Last().value(), TermAt(Last())->value()));
  }
  // Only committed entries are trimmed; the record that said so may have been one without sync.
  hard_state_.commit = std::max(hard_state_.commit, base_index_);
  recovered_.hard_state = hard_state_;
  recovered_.first = First();
  recovered_.last = Last();
  recovered_.torn_bytes = torn_bytes;
  if (torn_bytes != 0)
    logger_.Info("log_torn_tail_cut", {{"dir", options_.dir}, {"bytes", torn_bytes}});
  return OkStatus();
}

void SegmentedLog::SetCallbacks(Callbacks callbacks) {
  callbacks_ = std::move(callbacks);
  ETALON_CHECK(callbacks_.ready && callbacks_.durable && callbacks_.fetched && callbacks_.failed,
               "a log without callbacks");
  writer_->Start({.ready = [this] { callbacks_.ready(); },
                  .written =
                      [this](std::uint64_t number) {
                        Evict();
                        if (number != 0) callbacks_.durable(number);
                      },
                  .failed = [this](const Status& status) { callbacks_.failed(status); }});
}

std::optional<Term> SegmentedLog::TermAt(LogIndex index) const {
  if (index == base_index_) return base_term_;
  if (index < base_index_ || index > Last()) return std::nullopt;
  return SlotAt(index).term;
}

void SegmentedLog::Append(const Persist& persist) {
  if (!persist.sync && !persist.hard_state && !persist.snapshot && persist.entries.empty()) return;
  Content content;
  Content::Start start{Last(), *TermAt(Last()), hard_state_, persist.snapshot};
  if (persist.hard_state) hard_state_ = *persist.hard_state;
  content.hard_state = persist.hard_state;
  if (const auto& snapshot = persist.snapshot) {
    start.base_index = base_index_ = snapshot->index;
    start.base_term = base_term_ = snapshot->term;
    slots_.clear();
  }
  if (!persist.entries.empty()) {
    const LogIndex first = persist.entries.front().index;
    ETALON_CHECK(first > base_index_ && first <= Last().Next(),
                 "entries that do not follow the log");
    content.prev_term = *TermAt(LogIndex(first.value() - 1));
    content.entries.assign(persist.entries.begin(), persist.entries.end());
  }
  std::string payload = EncodeContent(content);
  const bool roll = persist.snapshot || writer_->MustRoll(payload.size());
  if (roll) {
    content.start = std::move(start);
    payload = EncodeContent(content);
  }
  // The writer keeps a pointer to the payload; a deque does not move its elements.
  Remember({}, std::move(payload));
  const Position record =
      writer_->Append(&cache_.back().payload, roll, persist.sync, persist.number);
  cache_.back().record = record;
  Index(content.entries, record, EntriesOffset(content));
  ETALON_CHECK(*TermAt(Last()) <= hard_state_.term, "an entry of a term above the hard state's");
  if (persist.snapshot) writer_->DropBelow(record.segment, record);
  Evict();
}

void SegmentedLog::Index(std::span<const Entry> entries, Position record, std::uint32_t offset) {
  if (entries.empty()) return;
  slots_.resize(entries.front().index.value() -
                First().value());  // the suffix from there on is replaced
  for (const Entry& entry : entries) {
    ETALON_CHECK(entry.index == Last().Next(), "entries that are not consecutive");
    const auto size = static_cast<std::uint32_t>(entry.data.size());
    offset += kEntryHeaderBytes;
    slots_.push_back({entry.term, record, offset, size, entry.kind});
    offset += size;
  }
}

void SegmentedLog::Trim(LogIndex up_to) {
  if (up_to <= base_index_) return;
  ETALON_CHECK(up_to <= Last(), "a trim beyond the end of the log");
  const std::uint32_t keep =
      up_to < Last() ? SlotAt(up_to.Next()).record.segment : writer_->current();
  while (!slots_.empty() && slots_.front().record.segment < keep) {
    base_index_ = base_index_.Next();
    base_term_ = slots_.front().term;
    slots_.pop_front();
  }
  // What is kept must stand on its own before the rest goes: the start of its first segment, and
  // its first entry, which may have overwritten one that is going.
  Position after{keep, kSegmentHeaderBytes};
  if (!slots_.empty()) after = std::max(after, slots_.front().record);
  writer_->DropBelow(keep, after);
  Evict();
}

// Memory.

void SegmentedLog::Remember(Position record, std::string payload) {
  cached_bytes_ += sizeof(Cached) + payload.size();
  cache_.push_back({record, std::move(payload)});
}

void SegmentedLog::Evict() {
  while (!cache_.empty()) {
    const Cached& oldest = cache_.front();
    if (writer_ && !writer_->IsWritten(oldest.record)) return;
    const bool useless = slots_.empty() || oldest.record < slots_.front().record;
    if (cached_bytes_ <= options_.cache_bytes && !useless) return;
    cached_bytes_ -= sizeof(Cached) + oldest.payload.size();
    cache_.pop_front();
  }
}

const std::string* SegmentedLog::InMemory(Position record) const {
  const auto it =
      std::lower_bound(cache_.begin(), cache_.end(), record,
                       [](const Cached& cached, Position p) { return cached.record < p; });
  if (it != cache_.end() && it->record == record) return &it->payload;
  const auto fetched = fetched_.find(record);
  return fetched == fetched_.end() ? nullptr : &fetched->second;
}

Result<std::string> SegmentedLog::ReadPayload(Position record) {
  const std::string path = writer_->Path(record.segment);
  const std::uint32_t salt_crc = writer_->SaltCrcOf(record.segment);
  ETALON_ASSIGN_OR_RETURN(const std::string bytes,
                          disk_.Read(path, record.offset, kRecordHeaderBytes));
  if (const auto header = DecodeRecordHeader(bytes, salt_crc)) {
    ETALON_ASSIGN_OR_RETURN(
        std::string payload,
        disk_.Read(path, record.offset + kRecordHeaderBytes, header->payload_size));
    if (PayloadMatches(*header, payload, salt_crc)) return payload;
  }
  return DataLoss(fmt::format("{} at offset {}: a damaged record; this disk counts as lost", path,
                              record.offset));
}

consensus::Log::Answer SegmentedLog::Read(LogIndex low, LogIndex high, std::uint64_t max_bytes,
                                          bool with_data, bool may_wait, std::vector<Entry>* out) {
  read_now_.clear();
  if (low <= base_index_) return Answer::kCompacted;
  if (high > Last().Next()) return Answer::kAbsent;
  std::uint64_t bytes = 0;
  for (LogIndex index = low; index < high; index = index.Next()) {
    const Slot& slot = SlotAt(index);
    bytes += slot.data_size;
    if (index != low && bytes > max_bytes) break;
    Entry entry{index, slot.term, slot.kind, {}};
    if (with_data && slot.data_size != 0) {
      const std::string* payload = InMemory(slot.record);
      if (payload == nullptr && may_wait) {
        if (index != low) break;
        Want({low, high, max_bytes});
        return Answer::kNotNow;
      }
      if (payload == nullptr) {
        auto it = read_now_.find(slot.record);
        if (it == read_now_.end()) {
          Result<std::string> read = ReadPayload(slot.record);
          if (!read.ok()) {
            FailLater(read.status());
            return Answer::kAbsent;
          }
          it = read_now_.emplace(slot.record, std::move(*read)).first;
        }
        payload = &it->second;
      }
      entry.data = std::string_view(*payload).substr(slot.data_offset, slot.data_size);
    }
    out->push_back(entry);
  }
  return Answer::kOk;
}

void SegmentedLog::Want(const Wanted& wanted) {
  if (wanted_.empty()) {
    executor_.Post([this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) Fetch();
    });
  }
  const auto same = [&](const Wanted& other) { return other.low == wanted.low; };
  std::erase_if(wanted_, same);
  if (wanted_.size() < kMaxWanted)
    wanted_.push_back(wanted);  // else it is asked for again after fetched()
}

void SegmentedLog::Fetch() {
  fetched_.clear();
  for (const Wanted& wanted : std::exchange(wanted_, {})) {
    const std::uint64_t limit = std::min(wanted.max_bytes, kFetchBytes);
    std::uint64_t bytes = 0;
    for (LogIndex index = std::max(wanted.low, First());
         index < wanted.high && index <= Last() && bytes <= limit; index = index.Next()) {
      const Slot& slot = SlotAt(index);
      bytes += slot.data_size;
      if (InMemory(slot.record) != nullptr) continue;
      Result<std::string> payload = ReadPayload(slot.record);
      if (!payload.ok()) return writer_->Fail(payload.status());
      fetched_.emplace(slot.record, std::move(*payload));
    }
  }
  callbacks_.fetched();
}

void SegmentedLog::FailLater(Status status) {
  executor_.Post([this, alive = std::weak_ptr<bool>(alive_), status = std::move(status)] {
    if (!alive.expired()) writer_->Fail(status);
  });
}

std::optional<Snapshot> SegmentedLog::SnapshotFor(MemberId to, LogIndex at_least) {
  if (!callbacks_.snapshot_provider) return std::nullopt;
  return callbacks_.snapshot_provider(to, at_least);
}

void SegmentedLog::Warn(std::string_view text) { logger_.Warning("consensus", {{"text", text}}); }

}  // namespace etalon::log
