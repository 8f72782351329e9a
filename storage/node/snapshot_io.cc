#include "storage/node/snapshot_io.h"

#include <deque>
#include <optional>
#include <utility>

#include "common/bytes.h"

namespace etalon::storage {

namespace {

using consensus::SnapshotSink;
using consensus::SnapshotSource;

// A chunk is pairs of (le32 size of the key, le32 size of the value, key, value).
class StoreSource final : public SnapshotSource {
 public:
  explicit StoreSource(std::unique_ptr<store::Snapshot> snapshot)
      : snapshot_(std::move(snapshot)), it_(snapshot_->NewIterator("", "")) {}

  Result<std::optional<std::string>> NextChunk(std::size_t max_bytes) override {
    std::string chunk;
    for (; it_->Valid(); it_->Next()) {
      const std::size_t size = 8 + it_->key().size() + it_->value().size();
      if (!chunk.empty() && chunk.size() + size > max_bytes) break;
      PutLe32(&chunk, static_cast<std::uint32_t>(it_->key().size()));
      PutLe32(&chunk, static_cast<std::uint32_t>(it_->value().size()));
      chunk.append(it_->key());
      chunk.append(it_->value());
    }
    ETALON_RETURN_IF_ERROR(it_->status());
    if (chunk.empty()) return std::optional<std::string>();
    return std::optional<std::string>(std::move(chunk));
  }

 private:
  std::unique_ptr<store::Snapshot> snapshot_;
  std::unique_ptr<store::Iterator> it_;
};

class StoreSink final : public SnapshotSink {
 public:
  StoreSink(store::StoreSet& stores, std::string generation) : stores_(stores) {
    stores_.CreateFresh(std::move(generation),
                        [this, alive = std::weak_ptr<bool>(alive_)](Result<store::Store*> fresh) {
                          if (alive.expired()) return;
                          if (!fresh.ok()) {
                            failure_ = fresh.status();
                          } else {
                            store_ = *fresh;
                            while (failure_.ok() && !waiting_.empty()) {
                              failure_ = Put(waiting_.front());
                              waiting_.pop_front();
                            }
                          }
                          if (finish_) Complete();
                        });
  }

  Status Add(std::string chunk) override {
    ETALON_RETURN_IF_ERROR(failure_);
    if (store_ == nullptr) {
      waiting_.push_back(std::move(chunk));
      return OkStatus();
    }
    failure_ = Put(chunk);
    return failure_;
  }

  void Finish(UniqueFunction<void(Status)> done) override {
    finish_ = std::move(done);
    if (store_ != nullptr) Complete();
  }

 private:
  Status Put(std::string_view in) {
    store::Batch batch;
    while (!in.empty()) {
      std::uint32_t key = 0, value = 0;
      if (!GetLe32(&in, &key) || !GetLe32(&in, &value) || in.size() < std::size_t{key} + value) {
        return DataLoss("a chunk of a snapshot is malformed");
      }
      batch.Put(std::string(in.substr(0, key)), std::string(in.substr(key, value)));
      in.remove_prefix(std::size_t{key} + value);
    }
    return store_->Write(std::move(batch));
  }

  // Never from within Finish: the store answers later.
  void Complete() {
    if (!failure_.ok() || store_ == nullptr) {
      auto done = std::exchange(finish_, nullptr);
      return done(failure_);
    }
    store_->Checkpoint([this, alive = std::weak_ptr<bool>(alive_)](Status status) {
      if (alive.expired()) return;
      auto done = std::exchange(finish_, nullptr);
      done(std::move(status));
    });
  }

  store::StoreSet& stores_;
  store::Store* store_ = nullptr;
  Status failure_;
  std::deque<std::string> waiting_;
  UniqueFunction<void(Status)> finish_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<SnapshotSource> MakeSnapshotSource(std::unique_ptr<store::Snapshot> snapshot) {
  return std::make_unique<StoreSource>(std::move(snapshot));
}

std::unique_ptr<SnapshotSink> MakeSnapshotSink(store::StoreSet& stores, std::string generation) {
  return std::make_unique<StoreSink>(stores, std::move(generation));
}

}  // namespace etalon::storage
