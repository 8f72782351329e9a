#include "engine/store/persistent_map.h"

#include <utility>

namespace etalon::store {

void PersistentMap::Node::Recount() {
  bytes = record->key.size() + record->value.size() + (left ? left->bytes : 0) +
          (right ? right->bytes : 0);
}

// A node that only this map sees is changed in place.
PersistentMap::NodePtr PersistentMap::Own(NodePtr node) {
  return node.use_count() == 1 ? std::move(node) : std::make_shared<Node>(*node);
}

PersistentMap::Halves PersistentMap::Split(NodePtr node, std::string_view key) {
  if (!node) return {};
  node = Own(std::move(node));
  if (node->key() < key) {
    auto [below, rest] = Split(std::move(node->right), key);
    node->right = std::move(below);
    node->Recount();
    return {std::move(node), std::move(rest)};
  }
  auto [below, rest] = Split(std::move(node->left), key);
  node->left = std::move(rest);
  node->Recount();
  return {std::move(below), std::move(node)};
}

// Every key of `left` is below every key of `right`.
PersistentMap::NodePtr PersistentMap::Merge(NodePtr left, NodePtr right) {
  if (!left) return right;
  if (!right) return left;
  if (left->priority >= right->priority) {
    left = Own(std::move(left));
    left->right = Merge(std::move(left->right), std::move(right));
    left->Recount();
    return left;
  }
  right = Own(std::move(right));
  right->left = Merge(std::move(left), std::move(right->left));
  right->Recount();
  return right;
}

// The key of `fresh` is not in the tree.
PersistentMap::NodePtr PersistentMap::Insert(NodePtr node, NodePtr fresh) {
  if (!node || fresh->priority > node->priority) {
    auto [below, rest] = Split(std::move(node), fresh->key());
    fresh->left = std::move(below);
    fresh->right = std::move(rest);
    fresh->Recount();
    return fresh;
  }
  node = Own(std::move(node));
  NodePtr& child = fresh->key() < node->key() ? node->left : node->right;
  child = Insert(std::move(child), std::move(fresh));
  node->Recount();
  return node;
}

// The key of `record` is in the tree.
PersistentMap::NodePtr PersistentMap::Replace(NodePtr node, std::shared_ptr<const Record> record) {
  node = Own(std::move(node));
  const int order = record->key.compare(node->key());
  if (order == 0) {
    node->record = std::move(record);
  } else {
    NodePtr& child = order < 0 ? node->left : node->right;
    child = Replace(std::move(child), std::move(record));
  }
  node->Recount();
  return node;
}

// `key` is in the tree.
PersistentMap::NodePtr PersistentMap::Remove(NodePtr node, std::string_view key) {
  node = Own(std::move(node));
  const int order = key.compare(node->key());
  if (order == 0) return Merge(std::move(node->left), std::move(node->right));
  NodePtr& child = order < 0 ? node->left : node->right;
  child = Remove(std::move(child), key);
  node->Recount();
  return node;
}

void PersistentMap::Put(std::string key, std::string value) {
  const bool present = Find(key) != nullptr;
  auto record = std::make_shared<const Record>(Record{std::move(key), std::move(value)});
  if (present) {
    root_ = Replace(std::move(root_), std::move(record));
    return;
  }
  auto fresh = std::make_shared<Node>(Node{std::move(record), random_.Next(), 0, {}, {}});
  root_ = Insert(std::move(root_), std::move(fresh));
}

void PersistentMap::Erase(std::string_view key) {
  if (Find(key) != nullptr) root_ = Remove(std::move(root_), key);
}

void PersistentMap::EraseRange(std::string_view begin, std::string_view end) {
  Cursor cursor(*this);
  cursor.Seek(begin);
  if (!cursor.Valid() || cursor.key() >= end) return;  // nothing to copy a path for
  cursor = Cursor(PersistentMap());                    // it shares the tree otherwise
  auto [below, rest] = Split(std::move(root_), begin);
  auto [range, above] = Split(std::move(rest), end);
  root_ = Merge(std::move(below), std::move(above));
}

const std::string* PersistentMap::Find(std::string_view key) const {
  const Node* node = root_.get();
  while (node != nullptr) {
    const int order = key.compare(node->key());
    if (order == 0) return &node->record->value;
    node = (order < 0 ? node->left : node->right).get();
  }
  return nullptr;
}

std::uint64_t PersistentMap::BytesBelow(std::string_view key) const {
  std::uint64_t bytes = 0;
  const Node* node = root_.get();
  while (node != nullptr) {
    if (node->key() < key) {
      bytes += node->bytes - (node->right ? node->right->bytes : 0);
      node = node->right.get();
    } else {
      node = node->left.get();
    }
  }
  return bytes;
}

std::uint64_t PersistentMap::Bytes(std::string_view begin, std::string_view end) const {
  const std::uint64_t below_end = end.empty() ? (root_ ? root_->bytes : 0) : BytesBelow(end);
  const std::uint64_t below_begin = BytesBelow(begin);
  return below_end > below_begin ? below_end - below_begin : 0;
}

void PersistentMap::Cursor::Descend(const Node* node) {
  for (; node != nullptr; node = node->left.get()) path_.push_back(node);
}

void PersistentMap::Cursor::Seek(std::string_view key) {
  path_.clear();
  const Node* node = root_.get();
  while (node != nullptr) {
    if (node->key() < key) {
      node = node->right.get();
    } else {
      path_.push_back(node);
      node = node->left.get();
    }
  }
}

void PersistentMap::Cursor::Next() {
  const Node* node = path_.back();
  path_.pop_back();
  Descend(node->right.get());
}

}  // namespace etalon::store
