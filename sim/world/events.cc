#include "sim/world/events.h"

#include <algorithm>
#include <vector>

namespace etalon::sim {

Events::Id Events::Schedule(SteadyTime when, Owner owner, EventKind kind, Task task) {
  const Id id = next_id_++;
  const SteadyTime at = std::max(when, now_);
  heap_.emplace(Key{at, at, id}, Event{owner, kind, std::move(task)});
  keys_.emplace(id, Key{at, at, id});
  return id;
}

void Events::Cancel(Id id) {
  const auto it = keys_.find(id);
  if (it == keys_.end()) return;
  const auto event = heap_.extract(it->second);  // destroyed last: see Drop
  keys_.erase(it);
}

void Events::Drop(Owner owner) {
  std::vector<Event> dropped;  // destroyed last: what a task owns may cancel others when it goes
  for (auto it = heap_.begin(); it != heap_.end();) {
    if (it->second.owner != owner) {
      ++it;
      continue;
    }
    keys_.erase(it->first.id);
    dropped.push_back(std::move(it->second));
    it = heap_.erase(it);
  }
  paused_.erase(owner);
}

void Events::Pause(Owner owner, SteadyTime until) {
  SteadyTime& pause = paused_[owner];
  pause = std::max(pause, until);
}

bool Events::RunOne(SteadyTime limit) {
  while (!heap_.empty() && heap_.begin()->first.when <= limit) {
    auto node = heap_.extract(heap_.begin());
    const Key key = node.key();
    if (const auto pause = paused_.find(node.mapped().owner); pause != paused_.end()) {
      if (key.when < pause->second) {
        node.key().when = keys_[key.id].when = pause->second;
        heap_.insert(std::move(node));
        continue;
      }
      paused_.erase(pause);
    }
    now_ = key.when;
    keys_.erase(key.id);
    Event event = std::move(node.mapped());
    Mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    Mix(static_cast<std::uint64_t>(event.kind) << 32 | event.owner);
    event.task();
    return true;
  }
  now_ = std::max(now_, limit);
  return false;
}

void Events::Mix(std::uint64_t value) {
  trace_ = (trace_ ^ value) * 0xD6E8FEB86659FD93u;
  trace_ ^= trace_ >> 32;
}

}  // namespace etalon::sim
