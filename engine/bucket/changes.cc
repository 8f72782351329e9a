#include "engine/bucket/changes.h"

#include "common/check.h"

namespace etalon::bucket {

const store::Batch::Op* Changes::Find(std::string_view key) {
  const auto& ops = batch_.ops();
  for (; indexed_ < ops.size(); ++indexed_) {
    ETALON_CHECK(ops[indexed_].kind != store::Batch::Kind::kDeleteRange,
                 "a range delete ends its batch");
    const auto position = static_cast<std::uint32_t>(indexed_);
    index_.erase(position);  // an earlier change of the same key
    index_.insert(position);
  }
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &ops[*found];
}

void Changes::Written() {
  index_.clear();
  batch_.clear();
  indexed_ = 0;
}

}  // namespace etalon::bucket
