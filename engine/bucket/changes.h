// What entries changed and the store does not hold yet: one batch, and whom to tell after it is
// written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "engine/store/batch.h"

namespace etalon::bucket {

// One call of the Observer to come. A control command ends the write, so the state that a call
// finds is the one of its own entry.
struct Event {
  enum class Kind : unsigned char {
    kRow,
    kRebase,
    kOpened,
    kOutgoing,
    kIncoming,
    kDataKey,
    kSplit,
    kTopology,
    kSettings,
  };
  Kind kind;
  std::uint32_t bucket = 0;  // kRow, kDataKey
  TransferId transfer = {};  // kOpened, kOutgoing, kIncoming
  std::string text = {};     // kDataKey: the store key; kSplit: the task
};

class Changes {
 public:
  Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  store::Batch& batch() { return batch_; }
  void Tell(Event event) { events_.push_back(std::move(event)); }
  std::vector<Event> TakeEvents() { return std::exchange(events_, {}); }

  // What the batch does last to this key; null: nothing. Whoever only writes pays nothing for it:
  // the batch is indexed when somebody asks. Not to be asked after a DeleteRange.
  const store::Batch::Op* Find(std::string_view key);

  // After the batch was written.
  void Written();

 private:
  // Members of the index are positions in the batch: its strings move when it grows.
  struct Hash {
    using is_transparent = void;
    const store::Batch* batch;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>()(key);
    }
    std::size_t operator()(std::uint32_t position) const {
      return (*this)(std::string_view(batch->ops()[position].key));
    }
  };
  struct Equal {
    using is_transparent = void;
    const store::Batch* batch;
    std::string_view Key(std::string_view key) const { return key; }
    std::string_view Key(std::uint32_t position) const { return batch->ops()[position].key; }
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return Key(a) == Key(b);
    }
  };

  store::Batch batch_;
  std::vector<Event> events_;
  std::size_t indexed_ = 0;  // so many changes of the batch are in the index
  std::unordered_set<std::uint32_t, Hash, Equal> index_{0, Hash{&batch_}, Equal{&batch_}};
};

}  // namespace etalon::bucket
