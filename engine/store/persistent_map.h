// An ordered map whose copies are free: copies share what is equal, and a change copies only the
// path to it.
//
// A treap: a search tree by key that is a heap by a random priority, so its depth is logarithmic
// whatever the keys are, and cutting a range out is two splits and a merge.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.h"

namespace etalon::store {

// Copies are independent of each other. Threads: one, for a map and all of its copies.
class PersistentMap {
 public:
  PersistentMap() = default;

  void Put(std::string key, std::string value);
  void Erase(std::string_view key);
  // [begin, end)
  void EraseRange(std::string_view begin, std::string_view end);

  // Null when absent. Good until the next change of this map.
  const std::string* Find(std::string_view key) const;
  // Bytes of keys and values in [begin, end); an empty `end` means no end.
  std::uint64_t Bytes(std::string_view begin, std::string_view end) const;

 private:
  struct Record {
    std::string key;
    std::string value;
  };
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Node {
    std::shared_ptr<const Record> record;  // shared by the copies of a node
    std::uint64_t priority;
    std::uint64_t bytes;  // of the whole subtree
    NodePtr left;
    NodePtr right;

    const std::string& key() const { return record->key; }
    void Recount();
  };
  struct Halves {
    NodePtr below;
    NodePtr rest;
  };

  static NodePtr Own(NodePtr node);
  static Halves Split(NodePtr node, std::string_view key);
  static NodePtr Merge(NodePtr left, NodePtr right);
  static NodePtr Insert(NodePtr node, NodePtr fresh);
  static NodePtr Replace(NodePtr node, std::shared_ptr<const Record> record);
  static NodePtr Remove(NodePtr node, std::string_view key);
  std::uint64_t BytesBelow(std::string_view key) const;

  NodePtr root_;
  Random random_{0x657461};  // only shapes the tree

 public:
  // Walks a map as it is at the making of the cursor.
  class Cursor {
   public:
    explicit Cursor(const PersistentMap& map) : root_(map.root_) {}

    // To the first key at or after `key`. A new cursor stands nowhere.
    void Seek(std::string_view key);
    bool Valid() const { return !path_.empty(); }
    const std::string& key() const { return path_.back()->record->key; }
    const std::string& value() const { return path_.back()->record->value; }
    void Next();

   private:
    void Descend(const Node* node);

    std::shared_ptr<const Node> root_;  // keeps every node of path_ alive
    std::vector<const Node*>
        path_;  // the current node, and below it those to visit after its subtree
  };
};

}  // namespace etalon::store
