#include "sim/world/world.h"

#include "common/check.h"

namespace etalon::sim {

SimWorld::SimWorld(std::uint64_t seed) : random_(seed), net_(events_, random_.Fork()) {}

Env SimWorld::AddNode(const NodeName& name) {
  const Duration skew = random_.Between(Duration::zero(), std::chrono::hours(1));
  const auto drift_ppm = static_cast<std::int64_t>(random_.Below(201)) - 100;
  return AddNode(name, {skew, drift_ppm});
}

Env SimWorld::AddNode(const NodeName& name, ClockOptions clock) {
  ETALON_CHECK(!nodes_.count(name), "a node of that name is in the world");
  Node& node = nodes_[name];
  node.owner = static_cast<Events::Owner>(nodes_.size());
  node.clock = std::make_unique<SimClock>(events_, clock.skew, clock.drift_ppm);
  node.executor = std::make_unique<SimExecutor>(events_, *node.clock, node.owner);
  node.transport = std::make_unique<SimTransport>(net_, name);
  node.disk = std::make_unique<SimDisk>(events_, node.owner, random_.Fork());
  node.logger = std::make_unique<SimLogger>(events_, name, echo_);
  net_.Register(name, node.owner);
  return EnvOf(node);
}

SimWorld::Node& SimWorld::At(const NodeName& name) {
  const auto it = nodes_.find(name);
  ETALON_CHECK(it != nodes_.end(), "no such node in the world");
  return it->second;
}

Env SimWorld::EnvOf(Node& node) {
  return Env{*node.clock, *node.executor, *node.transport,
             *node.disk,  random_.Fork(), *node.logger};
}

void SimWorld::SetReceiver(const NodeName& name, Network::Receiver receiver) {
  ETALON_CHECK(At(name).up, "a receiver for a node that is down");
  net_.SetReceiver(name, std::move(receiver));
}

void SimWorld::Crash(const NodeName& name, CrashKind kind) {
  Node& node = At(name);
  ETALON_CHECK(node.up, "a crash of a node that is down");
  node.up = false;
  node.executor->Switch(false);
  events_.Drop(node.owner);
  net_.Down(name, kind == CrashKind::kProcess);
  node.disk->DropJobs();
  if (kind == CrashKind::kPower) node.disk->LosePower();
  events_.Mix(node.owner);
}

Env SimWorld::Restart(const NodeName& name) {
  Node& node = At(name);
  ETALON_CHECK(!node.up, "a start of a node that is up");
  events_.Drop(node.owner);  // messages sent to it while it was down
  net_.Down(name, true);
  node.up = true;
  node.executor->Switch(true);
  return EnvOf(node);
}

bool SimWorld::IsUp(const NodeName& name) const {
  const auto it = nodes_.find(name);
  return it != nodes_.end() && it->second.up;
}

void SimWorld::Pause(const NodeName& name, Duration duration) {
  events_.Pause(At(name).owner, now() + duration);
}

void SimWorld::After(Duration delay, Task task) {
  events_.Schedule(now() + delay, 0, EventKind::kWorld, std::move(task));
}

bool SimWorld::RunUntil(const std::function<bool()>& done, Duration limit) {
  const SteadyTime end = now() + limit;
  while (!done()) {
    const SteadyTime before = now();
    if (!events_.RunOne(end)) return false;
    if (observer_) observer_();
    if (now() != before) {
      at_once_ = 0;
    } else {
      ETALON_CHECK(++at_once_ < kSpinning, "the world stands still: something spins");
    }
  }
  return true;
}

void SimWorld::RunFor(Duration duration) {
  (void)RunUntil([] { return false; }, duration);
}

}  // namespace etalon::sim
