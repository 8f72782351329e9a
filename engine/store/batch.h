#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace etalon::store {

// Changes of a store that take effect together. They act in the order of the calls: a later one
// sees what earlier ones of the same batch did (a DeleteRange removes what was put before it, not
// what is put after it).
class Batch {
 public:
  enum class Kind : unsigned char { kPut, kDelete, kDeleteRange };
  struct Op {
    Kind kind;
    std::string key;    // kDeleteRange: the first key that goes
    std::string value;  // kPut: the value; kDeleteRange: the first key that stays
  };

  void Put(std::string key, std::string value) {
    Add({Kind::kPut, std::move(key), std::move(value)});
  }
  // No such key is no error.
  void Delete(std::string key) { Add({Kind::kDelete, std::move(key), {}}); }
  // Removes [begin, end). A range that is empty or upside down removes nothing; there is no "to the
  // end of all keys".
  void DeleteRange(std::string begin, std::string end) {
    if (begin < end) Add({Kind::kDeleteRange, std::move(begin), std::move(end)});
  }

  bool empty() const { return ops_.empty(); }
  // Bytes of keys and values, plus a few for each change: what the batch costs in a queue.
  std::size_t bytes() const { return bytes_; }
  const std::vector<Op>& ops() const { return ops_; }
  // Gives the changes away; the batch is empty then.
  std::vector<Op> Take() {
    bytes_ = 0;
    return std::exchange(ops_, {});
  }
  // Empties the batch and keeps its memory for the next one.
  void clear() {
    ops_.clear();
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kOverhead = 16;

  void Add(Op op) {
    bytes_ += op.key.size() + op.value.size() + kOverhead;
    ops_.push_back(std::move(op));
  }

  std::vector<Op> ops_;
  std::size_t bytes_ = 0;
};

}  // namespace etalon::store
