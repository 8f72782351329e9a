#include "engine/store/memory_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/store/checkpoint_queue.h"
#include "engine/store/memory_checkpoint.h"
#include "engine/store/persistent_map.h"

namespace etalon::store {
namespace {

constexpr std::size_t kWritePiece = 1u << 20;
// Written bytes are synced this often, so that no sync is long: the replica's log waits behind it.
constexpr std::uint64_t kSyncEvery = 8u << 20;

class MemoryIterator final : public Iterator {
 public:
  MemoryIterator(const PersistentMap& map, std::string_view begin, std::string_view end)
      : cursor_(map), begin_(begin), end_(end) {
    cursor_.Seek(begin_);
  }

  bool Valid() const override { return cursor_.Valid() && (end_.empty() || cursor_.key() < end_); }
  std::string_view key() const override { return cursor_.key(); }
  std::string_view value() const override { return cursor_.value(); }
  void Next() override { cursor_.Next(); }
  void Seek(std::string_view key) override {
    cursor_.Seek(std::max<std::string_view>(key, begin_));
  }
  Status status() const override { return OkStatus(); }

 private:
  PersistentMap::Cursor cursor_;
  const std::string begin_;
  const std::string end_;
};

std::optional<std::string> Lookup(const PersistentMap& map, std::string_view key) {
  const std::string* value = map.Find(key);
  return value == nullptr ? std::nullopt : std::optional<std::string>(*value);
}

class MemorySnapshot final : public Snapshot {
 public:
  explicit MemorySnapshot(const PersistentMap& map) : map_(map) {}

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return Lookup(map_, key);
  }
  std::unique_ptr<Iterator> NewIterator(std::string_view begin,
                                        std::string_view end) const override {
    return std::make_unique<MemoryIterator>(map_, begin, end);
  }

 private:
  const PersistentMap map_;
};

class MemoryStore final : public Store {
 public:
  MemoryStore(Disk& disk, std::string dir, PersistentMap map, bool on_disk)
      : disk_(disk),
        dir_(std::move(dir)),
        map_(std::move(map)),
        on_disk_(on_disk),
        checkpoints_([this] { BeginCheckpoint(); }) {}

  Status Write(Batch&& batch) override {
    for (Batch::Op& op : batch.Take()) {
      switch (op.kind) {
        case Batch::Kind::kPut:
          map_.Put(std::move(op.key), std::move(op.value));
          break;
        case Batch::Kind::kDelete:
          map_.Erase(op.key);
          break;
        case Batch::Kind::kDeleteRange:
          map_.EraseRange(op.key, op.value);
          break;
      }
    }
    return OkStatus();
  }

  Result<std::optional<std::string>> Get(std::string_view key) const override {
    return Lookup(map_, key);
  }

  std::unique_ptr<Snapshot> NewSnapshot() const override {
    return std::make_unique<MemorySnapshot>(map_);
  }

  void Checkpoint(Done done) override { checkpoints_.Add(std::move(done)); }

  std::uint64_t ApproximateBytes(std::string_view begin, std::string_view end) const override {
    return map_.Bytes(begin, end);
  }

  Status Verify() override {
    return on_disk_ ? ReadCheckpoint(disk_, FilePath(dir_)).status() : OkStatus();
  }

  Status Health() const override { return health_; }

  static std::string FilePath(std::string_view dir) { return std::string(dir) + "/CHECKPOINT"; }

 private:
  std::string TemporaryPath() const { return FilePath(dir_) + ".new"; }

  void BeginCheckpoint() {
    encoder_.emplace(map_);
    offset_ = 0;
    Submit({DiskOp::Remove(TemporaryPath())});
  }

  // One piece at a time: other users of the disk get their turn between them, and the pieces of a
  // large store do not gather in memory.
  void NextPiece() {
    const std::string bytes = encoder_->Next(kWritePiece);
    DiskJob job;
    if (bytes.empty()) {
      job.push_back(DiskOp::Sync(TemporaryPath()));
      job.push_back(DiskOp::Rename(TemporaryPath(), FilePath(dir_)));
      job.push_back(DiskOp::SyncDir(dir_));
      encoder_.reset();
      Submit(std::move(job));
      return;
    }
    const std::uint64_t synced = offset_ / kSyncEvery;
    for (std::size_t at = 0; at < bytes.size(); at += kWritePiece) {
      std::string piece = bytes.substr(at, kWritePiece);
      const std::uint64_t size = piece.size();
      job.push_back(DiskOp::Write(TemporaryPath(), offset_, std::move(piece)));
      offset_ += size;
    }
    if (offset_ / kSyncEvery != synced) job.push_back(DiskOp::Sync(TemporaryPath()));
    Submit(std::move(job));
  }

  void Submit(DiskJob job) {
    disk_.Submit(std::move(job), [this, alive = std::weak_ptr<void>(alive_)](Status status) {
      if (!alive.expired()) JobDone(std::move(status));
    });
  }

  void JobDone(Status status) {
    if (status.ok() && encoder_) return NextPiece();
    if (status.ok()) {
      on_disk_ = true;
    } else {
      encoder_.reset();
      // Gives the space back; if that fails too, the next checkpoint begins with it.
      disk_.Submit({DiskOp::Remove(TemporaryPath())}, [](const Status&) {});
      status = status.Annotate("checkpoint of the store in " + dir_);
    }
    health_ = status;
    checkpoints_.Finish(status);
  }

  Disk& disk_;
  const std::string dir_;
  PersistentMap map_;
  bool on_disk_;  // a checkpoint is there
  Status health_;
  std::optional<CheckpointEncoder> encoder_;  // of the running checkpoint, until its last job
  std::uint64_t offset_ = 0;
  CheckpointQueue checkpoints_;
  std::shared_ptr<void> alive_ = std::make_shared<char>();
};

}  // namespace

Result<std::unique_ptr<Store>> MemoryStoreFactory::Open(std::string_view dir, OpenMode mode) {
  PersistentMap map;
  if (mode == OpenMode::kExisting) {
    auto read = ReadCheckpoint(disk_, MemoryStore::FilePath(dir));
    if (!read.ok() && read.status().code() == Code::kNotFound) {
      return DataLoss("the store in " + std::string(dir) +
                      " has lost its checkpoint: build this replica anew from the others");
    }
    ETALON_ASSIGN_OR_RETURN(map, std::move(read));
  }
  std::unique_ptr<Store> store = std::make_unique<MemoryStore>(
      disk_, std::string(dir), std::move(map), mode == OpenMode::kExisting);
  return store;
}

}  // namespace etalon::store
