// The network between simulated nodes: late, lossy, doubled, reordered, cut.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "common/random.h"
#include "env/transport.h"
#include "sim/world/events.h"

namespace etalon::sim {

struct NetworkOptions {
  Duration latency_min = std::chrono::microseconds(100);
  Duration latency_max = std::chrono::milliseconds(1);
  // The tail: that share of messages takes up to slow_max.
  std::uint32_t slow_permille = 5;
  Duration slow_max = std::chrono::milliseconds(40);
  std::uint32_t loss_permille = 0;
  std::uint32_t duplicate_permille = 0;
  // False: messages of one sender, receiver and lane arrive in their order, as on a stream.
  bool reorder = true;
  // Bytes under way from one sender to one receiver, per lane.
  std::array<std::uint64_t, 2> lane_bytes = {8u << 20, 16u << 20};
};

class Network {
 public:
  using Receiver = std::function<void(const NodeName& from, Lane lane, std::string bytes)>;

  Network(Events& events, Random random) : events_(events), random_(random) {}

  NetworkOptions& options() { return options_; }

  void CutOneWay(const NodeName& from, const NodeName& to) { cuts_.emplace(from, to); }
  void Cut(const NodeName& a, const NodeName& b);
  void Heal(const NodeName& a, const NodeName& b);
  // Cuts the node from all others, or lets it back (pair cuts stay).
  void Isolate(const NodeName& node) { isolated_.insert(node); }
  void Join(const NodeName& node) { isolated_.erase(node); }
  void HealAll();
  // A stream that does not break: what goes from it or to it is never lost nor doubled, only late.
  void SetReliable(const NodeName& node) { reliable_.insert(node); }

  // Used by SimWorld and SimTransport.
  void Register(const NodeName& node, Events::Owner owner) { owners_[node] = owner; }
  void SetReceiver(const NodeName& node, Receiver receiver) {
    receivers_[node] = std::move(receiver);
  }
  // `node` hears when a process that it sent to has ended, as it would from a broken connection: at
  // once, or when the machine is up again. What it sent and has no answer to is lost. It does not
  // hear it when the way between them is cut just then.
  using EndWatcher = std::function<void(const NodeName& peer)>;
  void SetEndWatcher(const NodeName& node, EndWatcher watcher) {
    end_watchers_[node] = std::move(watcher);
  }
  // The node is down: its receiver goes, and so does what is under way to it. `told`: somebody is
  // left at its address who says so.
  void Down(const NodeName& node, bool told);
  SendResult Send(const NodeName& from, const NodeName& to, Lane lane, std::string bytes);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t delivered() const { return delivered_; }

 private:
  using Channel = std::tuple<NodeName, NodeName, Lane>;

  bool Blocked(const NodeName& from, const NodeName& to) const;
  void TellEnd(const NodeName& node, const NodeName& down);
  void Carry(const Channel& channel, std::string bytes, bool lost);

  Events& events_;
  Random random_;
  NetworkOptions options_;
  std::map<NodeName, Events::Owner> owners_;
  std::map<NodeName, Receiver> receivers_;
  std::map<NodeName, EndWatcher> end_watchers_;
  std::set<std::pair<NodeName, NodeName>> cuts_;
  std::set<NodeName> isolated_;
  std::set<NodeName> reliable_;
  std::map<Channel, std::uint64_t> under_way_;  // bytes
  std::map<Channel, SteadyTime> last_arrival_;
  std::uint64_t sent_ = 0;
  std::uint64_t delivered_ = 0;
};

class SimTransport final : public Transport {
 public:
  SimTransport(Network& network, NodeName self) : network_(network), self_(std::move(self)) {}
  SendResult Send(const NodeName& to, Lane lane, std::string bytes) override {
    return network_.Send(self_, to, lane, std::move(bytes));
  }
  void SetAddress(const NodeName&, std::string_view) override {
  }  // every node of the world is reachable by name

 private:
  Network& network_;
  const NodeName self_;
};

}  // namespace etalon::sim
