// Many alarms behind one timer: at most one for each key.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/time.h"

namespace etalon::router {

template <typename Key>
class Alarms {
 public:
  void Set(const Key& key, SteadyTime when) {
    const auto [it, added] = when_.try_emplace(key, when);
    if (!added) {
      if (it->second == when) return;
      order_.erase({it->second, key});
      it->second = when;
    }
    order_.emplace(when, key);
  }
  void Clear(const Key& key) {
    const auto it = when_.find(key);
    if (it == when_.end()) return;
    order_.erase({it->second, key});
    when_.erase(it);
  }
  // Those that are due, in the order of (time, key); they are cleared.
  std::vector<Key> TakeDue(SteadyTime now) {
    std::vector<Key> due;
    while (!order_.empty() && order_.begin()->first <= now) {
      due.push_back(order_.begin()->second);
      when_.erase(due.back());
      order_.erase(order_.begin());
    }
    return due;
  }
  SteadyTime next() const { return order_.empty() ? SteadyTime::max() : order_.begin()->first; }

 private:
  std::map<Key, SteadyTime> when_;
  std::set<std::pair<SteadyTime, Key>> order_;
};

}  // namespace etalon::router
