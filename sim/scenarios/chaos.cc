#include "sim/scenarios/chaos.h"

#include "sim/checkers/invariants.h"

namespace etalon::sim {

namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
}  // namespace

void RoughNetwork(SimWorld& world) {
  NetworkOptions& net = world.net().options();
  Random& random = world.random();
  net.loss_permille = static_cast<std::uint32_t>(random.Below(30));
  net.duplicate_permille = static_cast<std::uint32_t>(random.Below(30));
  net.slow_permille = static_cast<std::uint32_t>(random.Below(20));
  net.slow_max = milliseconds(20 + random.Below(300));
  net.reorder = random.Chance(3, 4);
}

void Chaos::Later() {
  SimWorld& world = cluster_.world();
  world.After(world.random().Between(every_ / 2, every_ * 2), [this] {
    if (stopped_) return;
    Strike();
    Later();
  });
}

void Chaos::Kill(const NodeName& name) {
  if (!cluster_.IsUp(name)) return;
  ++kills_;
  SimWorld& world = cluster_.world();
  cluster_.Crash(name);
  world.After(world.random().Between(milliseconds(100), seconds(3)), [this, name] {
    if (!cluster_.IsUp(name)) cluster_.Restart(name);
  });
}

void Chaos::Strike() {
  SimWorld& world = cluster_.world();
  Random& random = world.random();
  const NodeName name = cluster_.storages()[random.Below(cluster_.storages().size())];
  switch (random.Below(4)) {
    case 0:
      return Kill(name);
    case 1:
      world.net().Isolate(name);
      world.After(random.Between(milliseconds(200), seconds(3)),
                  [&world, name] { world.net().Join(name); });
      return;
    case 2: {
      const NodeName other = cluster_.storages()[random.Below(cluster_.storages().size())];
      world.net().CutOneWay(name, other);
      world.After(random.Between(milliseconds(200), seconds(3)),
                  [&world, name, other] { world.net().Heal(name, other); });
      return;
    }
    case 3:
      if (cluster_.IsUp(name))
        world.Pause(name, random.Between(milliseconds(50), milliseconds(1500)));
      return;
  }
}

std::string RunChecked(Cluster& cluster, const std::function<bool()>& done, Duration limit,
                       bool* reached) {
  SimWorld& world = cluster.world();
  const SteadyTime end = world.now() + limit;
  SteadyTime next_check = world.now();
  std::string violated;
  const bool stopped = world.RunUntil(
      [&] {
        if (world.now() >= next_check) {
          next_check = world.now() + milliseconds(5);
          violated = CheckOwnership(cluster);
          if (!cluster.fatal().empty()) violated = cluster.fatal().front();
        }
        return !violated.empty() || done();
      },
      end - world.now());
  if (reached != nullptr) *reached = stopped && violated.empty();
  return violated;
}

std::function<bool()> Every(SimWorld& world, Duration gap, std::function<bool()> predicate) {
  return [&world, gap, predicate = std::move(predicate), next = world.now()]() mutable {
    if (world.now() < next) return false;
    next = world.now() + gap;
    return predicate();
  };
}

std::string Conclude(Cluster& cluster, Chains& chains) {
  SimWorld& world = cluster.world();
  world.net().HealAll();
  for (const NodeName& name : cluster.storages()) world.net().Join(name);
  world.net().options().loss_permille = 0;
  for (const NodeName& name : cluster.storages()) {
    if (!cluster.IsUp(name)) cluster.Restart(name);
  }
  std::string why;
  bool reached = false;
  const auto every = [&](std::function<bool()> predicate) {
    return Every(world, milliseconds(20), std::move(predicate));
  };
  if (auto v = RunChecked(cluster, every([&] { return IsSettled(cluster, &why); }), seconds(90),
                          &reached);
      !v.empty()) {
    return v;
  }
  if (!reached) return "does not settle: " + why;
  chains.Stop();
  if (auto v = RunChecked(
          cluster, [&] { return chains.idle(); }, seconds(30), &reached);
      !v.empty())
    return v;
  if (!reached) return "calls are never answered";
  if (!chains.failures().empty()) return chains.failures().front();
  if (!chains.Verify(seconds(30)))
    return chains.failures().empty() ? "verification ends in no time" : chains.failures().front();
  if (auto v = RunChecked(
          cluster, every([&] { return IsSettled(cluster, &why) && ReplicasEqual(cluster, &why); }),
          seconds(60), &reached);
      !v.empty()) {
    return v;
  }
  return reached ? "" : "replicas differ: " + why;
}

}  // namespace etalon::sim
