#include "sim/world/network.h"

#include <algorithm>

#include "common/crc32c.h"

namespace etalon::sim {

void Network::Cut(const NodeName& a, const NodeName& b) {
  CutOneWay(a, b);
  CutOneWay(b, a);
}

void Network::Heal(const NodeName& a, const NodeName& b) {
  cuts_.erase({a, b});
  cuts_.erase({b, a});
}

void Network::HealAll() {
  cuts_.clear();
  isolated_.clear();
}

bool Network::Blocked(const NodeName& from, const NodeName& to) const {
  if (from == to) return false;
  return cuts_.count({from, to}) || isolated_.count(from) || isolated_.count(to);
}

void Network::Down(const NodeName& node, bool told) {
  receivers_.erase(node);
  end_watchers_.erase(node);
  for (const auto& [other, watcher] : end_watchers_) {
    if (told && under_way_.contains({other, node, Lane::kControl})) TellEnd(other, node);
  }
  // The events that would have given the bytes back are gone with the node's life.
  const auto of_node = [&](const auto& item) { return std::get<1>(item.first) == node; };
  std::erase_if(under_way_, of_node);
  std::erase_if(last_arrival_, of_node);
}

void Network::TellEnd(const NodeName& node, const NodeName& down) {
  const SteadyTime when =
      events_.now() + random_.Between(options_.latency_min, options_.latency_max);
  events_.Schedule(when, owners_.at(node), EventKind::kMessage, [this, node, down] {
    const auto watcher = end_watchers_.find(node);
    if (watcher == end_watchers_.end() || Blocked(down, node)) return;
    const EndWatcher tell = watcher->second;
    tell(down);
  });
}

SendResult Network::Send(const NodeName& from, const NodeName& to, Lane lane, std::string bytes) {
  if (!owners_.count(to)) return SendResult::kUnknown;
  const Channel channel{from, to, lane};
  const std::uint64_t bound = options_.lane_bytes[static_cast<std::size_t>(lane)];
  if (under_way_[channel] + bytes.size() > bound) return SendResult::kFull;
  ++sent_;
  const bool reliable = reliable_.count(from) != 0 || reliable_.count(to) != 0;
  if (!reliable && random_.Chance(options_.duplicate_permille, 1000)) Carry(channel, bytes, false);
  const bool lost =
      (!reliable && random_.Chance(options_.loss_permille, 1000)) || Blocked(from, to);
  Carry(channel, std::move(bytes), lost);
  return SendResult::kQueued;
}

void Network::Carry(const Channel& channel, std::string bytes, bool lost) {
  const bool slow = random_.Chance(options_.slow_permille, 1000);
  SteadyTime arrival =
      events_.now() +
      random_.Between(options_.latency_min, slow ? options_.slow_max : options_.latency_max);
  if (!options_.reorder) {
    SteadyTime& last = last_arrival_[channel];
    arrival = last = std::max(last, arrival);
  }
  under_way_[channel] += bytes.size();
  // The event belongs to the receiver: a crash of it drops what is on the way to it.
  events_.Schedule(arrival, owners_.at(std::get<1>(channel)), EventKind::kMessage,
                   [this, channel, bytes = std::move(bytes), lost]() mutable {
                     const auto& [from, to, lane] = channel;
                     under_way_[channel] -= bytes.size();
                     const auto receiver = receivers_.find(to);
                     if (lost || Blocked(from, to) || receiver == receivers_.end()) return;
                     ++delivered_;
                     events_.Mix(Crc32c(bytes));
                     const Receiver call = receiver->second;  // it may replace itself
                     call(from, lane, std::move(bytes));
                   });
}

}  // namespace etalon::sim
