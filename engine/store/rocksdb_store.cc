#include "engine/store/rocksdb_store.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdarg>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/store/checkpoint_queue.h"
#include "engine/store/worker.h"

namespace etalon::store {
namespace {

// Ranges dropped and not yet compacted; more than these are left to RocksDB's own compactions.
constexpr std::size_t kReclaimRanges = 4096;
// A flush that was begun ends sooner, or the disk is stuck.
constexpr std::chrono::seconds kFlushPatience{60};

rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

Status FromRocks(const rocksdb::Status& status, const std::string& dir) {
  if (status.ok()) return OkStatus();
  if (status.IsNoSpace()) {
    return ResourceExhausted("the disk of the store in " + dir + " is full: free space on it",
                             Reason::kDiskFull);
  }
  if (status.IsIncomplete() || status.IsBusy() || status.IsTimedOut()) {
    return ResourceExhausted("the disk of the store in " + dir + " does not keep up (" +
                                 status.ToString() + "): try again later",
                             Reason::kOverloaded);
  }
  if (status.IsCorruption() || status.IsNotFound() || status.IsPathNotFound() ||
      status.IsInvalidArgument()) {
    return DataLoss("the store in " + dir + " is damaged (" + status.ToString() +
                    "): this disk counts as lost, the replica is to be built anew from the others "
                    "of its shard");
  }
  return Internal("the store in " + dir + " cannot work with its files (" + status.ToString() +
                  "): look at the disk and start this replica again");
}

// An open database. Snapshots and iterators share it, so that they may outlive the store.
struct Database {
  std::string dir;
  std::unique_ptr<rocksdb::DB> db;

  // Damage that was met once stands, whoever met it: a retry may find a copy of the block in
  // memory.
  Status Convert(const rocksdb::Status& status) const {
    Status converted = FromRocks(status, dir);
    if (converted.code() == Code::kDataLoss) {
      const std::lock_guard lock(mutex);
      if (damage.ok()) damage = converted;
    }
    return converted;
  }
  Status Damage() const {
    const std::lock_guard lock(mutex);
    return damage;
  }

  mutable std::mutex mutex;
  mutable Status damage;

  Result<std::optional<std::string>> Get(const rocksdb::ReadOptions& options,
                                         std::string_view key) const {
    std::string value;
    const rocksdb::Status status =
        db->Get(options, db->DefaultColumnFamily(), ToSlice(key), &value);
    if (status.IsNotFound()) return std::optional<std::string>();
    if (!status.ok()) return Convert(status);
    return std::optional<std::string>(std::move(value));
  }
};

class RocksIterator final : public Iterator {
 public:
  RocksIterator(std::shared_ptr<const Database> database, const rocksdb::Snapshot* snapshot,
                std::string_view begin, std::string_view end)
      : database_(std::move(database)), begin_(begin), end_(end), end_slice_(end_) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    iterator_.reset(database_->db->NewIterator(options));
    iterator_->Seek(begin_);
  }

  bool Valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return ToView(iterator_->key()); }
  std::string_view value() const override { return ToView(iterator_->value()); }
  void Next() override { iterator_->Next(); }
  void Seek(std::string_view key) override {
    iterator_->Seek(ToSlice(std::max<std::string_view>(key, begin_)));
  }
  Status status() const override { return database_->Convert(iterator_->status()); }

 private:
  const std::shared_ptr<const Database> database_;
  const std::string begin_;
  const std::string end_;
  const rocksdb::Slice end_slice_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
};

class RocksSnapshot final : public Snapshot {
 public:
  explicit RocksSnapshot(std::shared_ptr<const Database> database)
      : database_(std::move(database)), snapshot_(database_->db->GetSnapshot()) {}
  ~RocksSnapshot() override { database_->db->ReleaseSnapshot(snapshot_); }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_;
    return database_->Get(options, key);
  }
  std::unique_ptr<Iterator> NewIterator(std::string_view begin,
                                        std::string_view end) const override {
    return std::make_unique<RocksIterator>(database_, snapshot_, begin, end);
  }

 private:
  const std::shared_ptr<const Database> database_;
  const rocksdb::Snapshot* const snapshot_;
};

// RocksDB's log of itself. It must not go to the disk of the store: once that is full, RocksDB 7.8
// built with its assertions (as Debian does) ends the process at the second line that it cannot
// write.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// What RocksDB's background work met last, and how far it has flushed. RocksDB must not heal itself
// behind our back: that is left to Checkpoint.
class Progress final : public rocksdb::EventListener {
 public:
  void OnBackgroundError(rocksdb::BackgroundErrorReason, rocksdb::Status* error) override {
    SetError(*error);
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
  // The table and its entry in the manifest are durable by now.
  void OnFlushCompleted(rocksdb::DB*, const rocksdb::FlushJobInfo& info) override {
    SetFlushed(info.largest_seqno);
  }

  void SetError(const rocksdb::Status& error) {
    const std::lock_guard lock(mutex_);
    error_ = error;
    changed_.notify_all();
  }
  rocksdb::Status error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  void SetFlushed(rocksdb::SequenceNumber sequence) {
    const std::lock_guard lock(mutex_);
    flushed_ = std::max(flushed_, sequence);
    changed_.notify_all();
  }
  void Stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  // Until all up to `sequence` is flushed, or an error came up.
  rocksdb::Status AwaitFlushed(rocksdb::SequenceNumber sequence) {
    std::unique_lock lock(mutex_);
    const bool ended = changed_.wait_for(lock, kFlushPatience, [this, sequence] {
      return flushed_ >= sequence || !error_.ok() || stopped_;
    });
    if (flushed_ >= sequence) return rocksdb::Status::OK();
    if (!error_.ok()) return error_;
    return ended ? rocksdb::Status::ShutdownInProgress() : rocksdb::Status::TimedOut();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  rocksdb::Status error_;
  rocksdb::SequenceNumber flushed_ = 0;
  bool stopped_ = false;
};

// Ranges that were dropped, merged where they touch, with about how many bytes they held.
class DroppedRanges {
 public:
  using Ranges = std::map<std::string, std::string>;  // begin -> end

  void Add(const std::string& begin, const std::string& end, std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes == 0 || ranges_.size() >= kReclaimRanges) return;
    std::string from = begin;
    std::string to = end;
    auto it = ranges_.upper_bound(from);
    if (it != ranges_.begin() && std::prev(it)->second >= from) --it;
    while (it != ranges_.end() && it->first <= to) {
      from = std::min(from, it->first);
      to = std::max(to, it->second);
      it = ranges_.erase(it);
    }
    ranges_.emplace(std::move(from), std::move(to));
  }
  std::uint64_t bytes() const { return bytes_; }
  Ranges Take() {
    bytes_ = 0;
    return std::exchange(ranges_, {});
  }

 private:
  Ranges ranges_;
  std::uint64_t bytes_ = 0;
};

class RocksDbStore final : public Store {
 public:
  RocksDbStore(Executor& core, const RocksDbOptions& options, std::shared_ptr<Database> database,
               std::shared_ptr<Progress> progress)
      : core_(core),
        range_deletes_per_flush_(options.range_deletes_per_flush),
        reclaim_bytes_(options.reclaim_bytes),
        database_(std::move(database)),
        progress_(std::move(progress)),
        checkpoints_([this] { BeginCheckpoint(); }) {}

  ~RocksDbStore() override {
    stopping_ = true;  // ends a compaction of ours
    progress_->Stop();
    // Ends a running flush without finishing it, and waits for RocksDB's own threads: no file is
    // made any more, though snapshots may keep the database open.
    rocksdb::CancelAllBackgroundWork(database_->db.get(), /*wait=*/true);
    flusher_.Stop();
    reclaimer_.Stop();
  }

  Status Write(Batch&& batch) override {
    if (batch.empty()) return OkStatus();
    rocksdb::WriteBatch writes(batch.bytes() + batch.ops().size() * 8);
    std::size_t range_deletes = 0;
    for (const Batch::Op& op : batch.ops()) {
      rocksdb::Status added;
      switch (op.kind) {
        case Batch::Kind::kPut:
          added = writes.Put(op.key, op.value);
          break;
        case Batch::Kind::kDelete:
          added = writes.Delete(op.key);
          break;
        case Batch::Kind::kDeleteRange:
          added = writes.DeleteRange(op.key, op.value);
          ++range_deletes;
          break;
      }
      if (!added.ok()) return Convert(added);
    }
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    options.no_slowdown = true;  // the executor must not wait
    const rocksdb::Status written = database_->db->Write(options, &writes);
    if (!written.ok()) return Convert(written);
    if (range_deletes > 0) {
      range_deletes_ += range_deletes;
      for (const Batch::Op& op : batch.ops()) {
        if (op.kind != Batch::Kind::kDeleteRange) continue;
        dropped_.Add(op.key, op.value, Bytes(op.key, op.value, /*memory=*/false));
      }
      FlushManyRangeDeletes();
      Reclaim();
    }
    batch.clear();
    return OkStatus();
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return database_->Get(rocksdb::ReadOptions(), key);
  }

  std::unique_ptr<Snapshot> NewSnapshot() const override {
    return std::make_unique<RocksSnapshot>(database_);
  }

  void Checkpoint(Done done) override { checkpoints_.Add(std::move(done)); }

  std::uint64_t ApproximateBytes(std::string_view begin, std::string_view end) const override {
    if (end.empty()) {
      const std::string last = LastKey();
      return last < begin ? 0 : Bytes(begin, last + '\0', /*memory=*/true);
    }
    return begin < end ? Bytes(begin, end, /*memory=*/true) : 0;
  }

  Status Verify() override { return Convert(database_->db->VerifyChecksum()); }

  Status Health() const override {
    Status status = Convert(progress_->error());
    Status damage = database_->Damage();
    return damage.ok() ? status : damage;
  }

 private:
  Status Convert(const rocksdb::Status& status) const { return database_->Convert(status); }

  std::uint64_t Bytes(std::string_view begin, std::string_view end, bool memory) const {
    rocksdb::SizeApproximationOptions options;
    options.include_memtables = memory;
    options.include_files = true;
    const rocksdb::Range range(ToSlice(begin), ToSlice(end));
    std::uint64_t bytes = 0;
    const rocksdb::Status status = database_->db->GetApproximateSizes(
        options, database_->db->DefaultColumnFamily(), &range, 1, &bytes);
    return status.ok() ? bytes : 0;  // only an estimate; what failed is met again by a read
  }
  std::string LastKey() const {
    const std::unique_ptr<rocksdb::Iterator> it(database_->db->NewIterator(rocksdb::ReadOptions()));
    it->SeekToLast();
    return it->Valid() ? it->key().ToString() : std::string();
  }

  // Runs on the flusher. A failed flush leaves RocksDB stopped until Resume.
  rocksdb::Status Flush() {
    rocksdb::Status status = progress_->error();
    if (!status.ok()) {
      progress_->SetError(rocksdb::Status::OK());
      status = database_->db->Resume();
    }
    if (status.ok()) {
      const rocksdb::SequenceNumber written = database_->db->GetLatestSequenceNumber();
      rocksdb::FlushOptions options;
      options.wait = true;
      options.allow_write_stall = true;  // writes that meet a stall are answered OVERLOADED
      status = database_->db->Flush(options);
      // After an earlier failure to resume, Flush of RocksDB 7.8 may answer OK without waiting for
      // the flush (facebook/rocksdb#8046), so its word is not taken for it.
      if (status.ok()) status = progress_->AwaitFlushed(written);
    }
    if (!status.ok()) progress_->SetError(status);
    return status;
  }

  void BeginCheckpoint() {
    range_deletes_ = 0;
    flusher_.Post([this, alive = std::weak_ptr<void>(alive_)] {
      const rocksdb::Status status = Flush();
      core_.Post([this, alive, status] {
        if (!alive.expired()) checkpoints_.Finish(Convert(status));
      });
    });
  }

  void FlushManyRangeDeletes() {
    if (range_deletes_ < range_deletes_per_flush_ || tidying_flush_.exchange(true)) return;
    range_deletes_ = 0;
    flusher_.Post([this] {
      // Its failure is met by the next checkpoint, and Health shows it.
      const rocksdb::Status ignored = Flush();
      ignored.PermitUncheckedError();
      tidying_flush_ = false;
    });
  }

  void Reclaim() {
    if (dropped_.bytes() < reclaim_bytes_ || reclaiming_.exchange(true)) return;
    reclaimer_.Post([this, ranges = dropped_.Take()] {
      rocksdb::CompactRangeOptions options;
      options.exclusive_manual_compaction = false;
      options.allow_write_stall = true;
      options.canceled = &stopping_;
      for (const auto& [begin, end] : ranges) {
        const rocksdb::Slice from(begin);
        const rocksdb::Slice to(end);
        // Only space is at stake: what fails here is left to RocksDB's own compactions.
        if (!database_->db->CompactRange(options, &from, &to).ok()) break;
      }
      reclaiming_ = false;
    });
  }

  Executor& core_;
  const std::size_t range_deletes_per_flush_;
  const std::uint64_t reclaim_bytes_;
  const std::shared_ptr<Database> database_;
  const std::shared_ptr<Progress> progress_;
  CheckpointQueue checkpoints_;
  DroppedRanges dropped_;
  std::size_t range_deletes_ = 0;  // since a flush began
  std::atomic<bool> tidying_flush_ = false;
  std::atomic<bool> reclaiming_ = false;
  std::atomic<bool> stopping_ = false;
  std::shared_ptr<void> alive_ = std::make_shared<char>();
  Worker flusher_;
  Worker reclaimer_;
};

rocksdb::Options ToRocks(const RocksDbOptions& options,
                         const std::shared_ptr<rocksdb::Cache>& cache, OpenMode mode) {
  rocksdb::Options out;
  if (options.env != nullptr) out.env = options.env;
  out.create_if_missing = mode == OpenMode::kFresh;
  out.error_if_exists = mode == OpenMode::kFresh;
  out.paranoid_checks = true;
  out.avoid_flush_during_shutdown = true;
  out.avoid_unnecessary_blocking_io = true;
  out.max_background_jobs = 2;
  out.max_bgerror_resume_count = 0;
  out.max_open_files = -1;

  // A write is refused rather than delayed, so the first limits are no use and the last ones are
  // far away.
  out.write_buffer_size = options.write_buffer_bytes;
  out.max_write_buffer_number = 4;
  out.level0_file_num_compaction_trigger = 4;
  out.level0_slowdown_writes_trigger = 64;
  out.level0_stop_writes_trigger = 64;
  out.soft_pending_compaction_bytes_limit = 0;
  out.hard_pending_compaction_bytes_limit = 0;
  out.level_compaction_dynamic_level_bytes = true;

  const auto supported = rocksdb::GetSupportedCompressions();
  const bool lz4 =
      std::find(supported.begin(), supported.end(), rocksdb::kLZ4Compression) != supported.end();
  out.compression = lz4 ? rocksdb::kLZ4Compression : rocksdb::kNoCompression;

  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.block_cache = cache;
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  out.info_log = std::make_shared<NoLog>();
  out.stats_dump_period_sec = 0;
  out.stats_persist_period_sec = 0;
  return out;
}

class RocksDbFactory final : public StoreFactory {
 public:
  RocksDbFactory(Executor& core, RocksDbOptions options)
      : core_(core),
        options_(std::move(options)),
        cache_(rocksdb::NewLRUCache(options_.block_cache_bytes)) {}

  Result<std::unique_ptr<Store>> Open(std::string_view dir, OpenMode mode) override {
    auto database = std::make_shared<Database>();
    auto progress = std::make_shared<Progress>();
    database->dir = options_.root + '/' + std::string(dir);
    rocksdb::Options rocks = ToRocks(options_, cache_, mode);
    rocks.listeners.push_back(progress);
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(rocks, database->dir, &db);
    database->db.reset(db);
    if (!opened.ok()) return database->Convert(opened);
    progress->SetFlushed(db->GetLatestSequenceNumber());
    std::unique_ptr<Store> store =
        std::make_unique<RocksDbStore>(core_, options_, std::move(database), std::move(progress));
    return store;
  }

 private:
  Executor& core_;
  const RocksDbOptions options_;
  const std::shared_ptr<rocksdb::Cache> cache_;
};

}  // namespace

std::unique_ptr<StoreFactory> NewRocksDbFactory(Executor& core, RocksDbOptions options) {
  return std::make_unique<RocksDbFactory>(core, std::move(options));
}

}  // namespace etalon::store
