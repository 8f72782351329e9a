// For tests: a store in a map, whose writes and reads can be counted and made to fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "engine/store/store.h"

namespace etalon::bucket::testing {

using Map = std::map<std::string, std::string>;

class MapIterator final : public store::Iterator {
 public:
  MapIterator(std::shared_ptr<const Map> map, std::string_view begin, std::string_view end)
      : map_(std::move(map)), begin_(begin), end_(end), it_(map_->lower_bound(begin_)) {}
  bool Valid() const override { return it_ != map_->end() && (end_.empty() || it_->first < end_); }
  std::string_view key() const override { return it_->first; }
  std::string_view value() const override { return it_->second; }
  void Next() override { ++it_; }
  void Seek(std::string_view key) override {
    it_ = map_->lower_bound(std::string(std::max<std::string_view>(key, begin_)));
  }
  Status status() const override { return OkStatus(); }

 private:
  std::shared_ptr<const Map> map_;
  std::string begin_;
  std::string end_;
  Map::const_iterator it_;
};

class MapSnapshot final : public store::Snapshot {
 public:
  explicit MapSnapshot(std::shared_ptr<const Map> map) : map_(std::move(map)) {}
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    const auto it = map_->find(std::string(key));
    if (it == map_->end()) return std::optional<std::string>();
    return std::optional<std::string>(it->second);
  }
  std::unique_ptr<store::Iterator> NewIterator(std::string_view begin,
                                               std::string_view end) const override {
    return std::make_unique<MapIterator>(map_, begin, end);
  }

 private:
  std::shared_ptr<const Map> map_;
};

class MapStore final : public store::Store {
 public:
  Status Write(store::Batch&& batch) override {
    if (failing.contains(++attempts)) return ResourceExhausted("full", Reason::kDiskFull);
    ++writes;
    for (store::Batch::Op& op : batch.Take()) {
      switch (op.kind) {
        case store::Batch::Kind::kPut:
          map[op.key] = op.value;
          break;
        case store::Batch::Kind::kDelete:
          map.erase(op.key);
          break;
        case store::Batch::Kind::kDeleteRange:
          map.erase(map.lower_bound(op.key), map.lower_bound(op.value));
          break;
      }
    }
    return OkStatus();
  }
  Result<std::optional<std::string>> Get(std::string_view key) const override {
    ++reads;
    if (fail_reads) return DataLoss("bad block");
    const auto it = map.find(std::string(key));
    if (it == map.end()) return std::optional<std::string>();
    return std::optional<std::string>(it->second);
  }
  std::unique_ptr<store::Snapshot> NewSnapshot() const override {
    return std::make_unique<MapSnapshot>(std::make_shared<const Map>(map));
  }
  void Checkpoint(Done) override {}
  std::uint64_t ApproximateBytes(std::string_view, std::string_view) const override { return 0; }
  Status Verify() override { return OkStatus(); }
  Status Health() const override { return OkStatus(); }

  Map map;
  int attempts = 0;       // of Write
  std::set<int> failing;  // which of them fail
  bool fail_reads = false;
  int writes = 0;
  mutable int reads = 0;
};

}  // namespace etalon::bucket::testing
