// A whole cluster in one thread: nodes with their clocks, executors, disks and network, driven by
// one heap of events. Deterministic: the same seed and the same calls give the same history, and
// trace() tells whether they did.
//
// A node's crash is the destruction of the node's object by its owner, together with Crash(name)
// (in either order, nothing in between): tasks, timers, disk completions and messages under way to
// the old life never run. Restart(name) begins the next life on the same disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/random.h"
#include "env/env.h"
#include "sim/world/disk.h"
#include "sim/world/events.h"
#include "sim/world/network.h"
#include "sim/world/node_env.h"

namespace etalon::sim {

enum class CrashKind : unsigned char {
  kPower,    // the machine stops: the disk keeps what was synced, and of the rest what it likes
  kProcess,  // the process dies: all that it wrote is there, though not durable
};

class SimWorld {
 public:
  explicit SimWorld(std::uint64_t seed);

  struct ClockOptions {
    Duration skew{};
    std::int64_t drift_ppm = 0;
  };
  // A new name. Without options the clock is skewed by up to an hour and drifts by up to 100 ppm.
  // The Env is good until Crash; its references outlive it.
  Env AddNode(const NodeName& name);
  Env AddNode(const NodeName& name, ClockOptions clock);
  void SetReceiver(const NodeName& name, Network::Receiver receiver);
  void Crash(const NodeName& name, CrashKind kind = CrashKind::kPower);
  Env Restart(const NodeName& name);
  bool IsUp(const NodeName& name) const;
  // The node does nothing for that long (its process stands still; time and messages go on).
  void Pause(const NodeName& name, Duration duration);

  SimDisk& disk(const NodeName& name) { return *At(name).disk; }
  Network& net() { return net_; }

  SteadyTime now() const { return events_.now(); }
  Random& random() { return random_; }
  // An event of the world itself; no crash drops it.
  void After(Duration delay, Task task);

  // Runs events until `done` holds, which is asked before the first and after each; false when
  // `limit` passes before. Ends the process when very many events happen at one moment: a timer
  // that is set to a time that has come, again and again.
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  void RunFor(Duration duration);

  // Asked after each event, before `done` is.
  void SetObserver(std::function<void()> observer) { observer_ = std::move(observer); }

  // Mixes something that must be equal in equal runs.
  void Mix(std::uint64_t value) { events_.Mix(value); }
  std::uint64_t trace() const { return events_.trace(); }
  // Log lines of the nodes go to standard error.
  void SetEcho(bool echo) { echo_ = echo; }

 private:
  struct Node {
    Events::Owner owner;
    std::unique_ptr<SimClock> clock;
    std::unique_ptr<SimExecutor> executor;
    std::unique_ptr<SimTransport> transport;
    std::unique_ptr<SimDisk> disk;
    std::unique_ptr<SimLogger> logger;
    bool up = true;
  };

  Node& At(const NodeName& name);
  Env EnvOf(Node& node);

  Events events_;
  Random random_;
  Network net_;
  std::map<NodeName, Node> nodes_;
  std::function<void()> observer_;
  bool echo_ = false;

  static constexpr std::uint64_t kSpinning = 1'000'000;
  std::uint64_t at_once_ = 0;  // events since time last went on
};

}  // namespace etalon::sim
