#include "engine/transfer/chunks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "engine/bucket/request_ids.h"
#include "etalon/v1/log.pb.h"

namespace etalon::transfer {

// Walks what is to be sent; a deleted key has no value.
class ChunkReader::Cursor {
 public:
  virtual ~Cursor() = default;
  // Stands on a record, or is at the end; not OK: the store failed.
  virtual Result<bool> Valid() = 0;
  virtual std::string_view key() const = 0;
  virtual std::optional<std::string_view> value() const = 0;
  virtual void Next() = 0;
};

class ChunkReader::RangeCursor final : public Cursor {
 public:
  RangeCursor(std::unique_ptr<store::Snapshot> snapshot, std::vector<store::KeyRange> ranges)
      : snapshot_(std::move(snapshot)), ranges_(std::move(ranges)) {}

  Result<bool> Valid() override {
    while (true) {
      if (iterator_ != nullptr) {
        if (iterator_->Valid()) return true;
        ETALON_RETURN_IF_ERROR(iterator_->status());
      }
      if (next_range_ == ranges_.size()) return false;
      const store::KeyRange& range = ranges_[next_range_++];
      iterator_ = snapshot_->NewIterator(range.begin, range.end);
    }
  }
  std::string_view key() const override { return iterator_->key(); }
  std::optional<std::string_view> value() const override { return iterator_->value(); }
  void Next() override { iterator_->Next(); }

 private:
  std::unique_ptr<store::Snapshot> snapshot_;
  std::vector<store::KeyRange> ranges_;
  std::size_t next_range_ = 0;
  std::unique_ptr<store::Iterator> iterator_;
};

class ChunkReader::KeyCursor final : public Cursor {
 public:
  KeyCursor(std::unique_ptr<store::Snapshot> snapshot, std::set<std::string, std::less<>> keys)
      : snapshot_(std::move(snapshot)), keys_(std::move(keys)) {}

  Result<bool> Valid() override {
    if (keys_.empty()) return false;
    if (!read_) {
      ETALON_ASSIGN_OR_RETURN(value_, snapshot_->Get(*keys_.begin()));
      read_ = true;
    }
    return true;
  }
  std::string_view key() const override { return *keys_.begin(); }
  std::optional<std::string_view> value() const override { return value_; }
  void Next() override {
    keys_.erase(keys_.begin());
    read_ = false;
  }

 private:
  std::unique_ptr<store::Snapshot> snapshot_;
  std::set<std::string, std::less<>> keys_;
  bool read_ = false;
  std::optional<std::string> value_;
};

ChunkReader::ChunkReader(std::unique_ptr<store::Snapshot> snapshot,
                         std::vector<store::KeyRange> ranges, LogTime log_time)
    : log_time_(log_time),
      cursor_(std::make_unique<RangeCursor>(std::move(snapshot), std::move(ranges))) {}

ChunkReader::ChunkReader(std::unique_ptr<store::Snapshot> snapshot,
                         std::set<std::string, std::less<>> keys, LogTime log_time)
    : log_time_(log_time),
      cursor_(std::make_unique<KeyCursor>(std::move(snapshot), std::move(keys))) {}

ChunkReader::~ChunkReader() = default;

Result<std::optional<Piece>> ChunkReader::Next() {
  v1::ChunkPayload payload;
  std::size_t bytes = 0;
  for (;; cursor_->Next()) {
    ETALON_ASSIGN_OR_RETURN(const bool valid, cursor_->Valid());
    if (!valid) {
      exhausted_ = true;
      break;
    }
    const std::string_view key = cursor_->key();
    std::optional<std::string_view> value = cursor_->value();
    std::uint64_t life = 0;
    if (value && bucket::ParseRequestKey(key)) {
      std::string_view result;
      ETALON_ASSIGN_OR_RETURN(const LogTime end, bucket::ParseRequestValue(*value, &result));
      if (end > log_time_) {
        life = end.value() - log_time_.value();
      } else {
        value.reset();  // dead: gone, as far as the target is concerned
      }
    }
    const std::size_t size = key.size() + (value ? value->size() : 0);
    if (payload.records_size() > 0 && bytes + size > kChunkBytes) break;
    v1::ChunkRecord& record = *payload.add_records();
    record.set_key(key.data(), key.size());
    if (value) {
      record.set_value(value->data(), value->size());
      record.set_life_millis(life);
    } else {
      record.set_tombstone(true);
    }
    bytes += size;
  }
  if (payload.records_size() == 0) return std::optional<Piece>();
  return std::optional<Piece>(Piece{payload.SerializeAsString(),
                                    static_cast<std::uint64_t>(payload.records_size()), bytes});
}

std::vector<store::KeyRange> RangesOf(std::uint8_t level, const std::vector<std::uint32_t>& buckets,
                                      std::uint32_t bucket_count) {
  std::vector<store::KeyRange> ranges;
  ranges.reserve(buckets.size());
  for (std::uint32_t number : buckets) {
    ranges.push_back(store::BucketRange(BucketId{level, number}, bucket_count));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<store::KeyRange> joined;
  for (store::KeyRange& range : ranges) {
    if (!joined.empty() && joined.back().end == range.begin) {
      joined.back().end = std::move(range.end);
    } else {
      joined.push_back(std::move(range));
    }
  }
  return joined;
}

}  // namespace etalon::transfer
