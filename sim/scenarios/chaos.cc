#include "sim/scenarios/chaos.h"

namespace etalon::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Clocks that are each wrong by so much are within what a lease allows for.
constexpr std::int64_t kWorstDriftPpm = 40'000;

}  // namespace

void RoughNetwork(SimWorld& world) {
  NetworkOptions& net = world.net().options();
  Random& random = world.random();
  net.loss_permille = static_cast<std::uint32_t>(random.Below(30));
  net.duplicate_permille = static_cast<std::uint32_t>(random.Below(30));
  net.slow_permille = static_cast<std::uint32_t>(random.Below(20));
  net.slow_max = milliseconds(20 + random.Below(300));
  net.reorder = random.Chance(3, 4);
  if (random.Chance(1, 4)) {
    net.slow_permille = 2;
    net.slow_max = seconds(1 + random.Below(8));
  }
}

std::int64_t RoughClocks(SimWorld& world) {
  return world.random().Chance(1, 3) ? kWorstDriftPpm : 100;
}

Chaos::Chaos(Cluster& cluster, Duration every) : cluster_(cluster), every_(every) {
  cluster_.OnFatal([this](const NodeName& name, const Status& status) {
    if (failing_.erase(name) == 0 || status.code() != Code::kDataLoss) return false;
    cluster_.world().After(milliseconds(1), [this, name] { Kill(name); });
    return true;
  });
}

void Chaos::Later(int life) {
  SimWorld& world = cluster_.world();
  world.After(world.random().Between(every_ / 2, every_ * 2), [this, life] {
    if (life != life_) return;
    Strike();
    Later(life);
  });
}

void Chaos::Kill(const NodeName& name) {
  if (!cluster_.IsUp(name)) return;
  ++kills_;
  SimWorld& world = cluster_.world();
  if (failing_.erase(name) > 0) world.disk(name).FailSync(0);
  cluster_.Crash(name, world.random().Chance(2, 3) ? CrashKind::kPower : CrashKind::kProcess);
  world.After(world.random().Between(milliseconds(100), seconds(3)), [this, name] {
    if (!cluster_.IsUp(name)) cluster_.Restart(name);
  });
}

void Chaos::Strike() {
  SimWorld& world = cluster_.world();
  Random& random = world.random();
  ++strikes_;
  const NodeName name = cluster_.storages()[random.Below(cluster_.storages().size())];
  const int shard = cluster_.ShardOf(name);
  switch (random.Below(10)) {
    case 0:
    case 1:
      return Kill(name);
    case 2:
      return Kill(cluster_.AnyRouter());
    case 3:
      world.net().Isolate(name);
      world.After(random.Between(milliseconds(200), seconds(3)),
                  [&world, name] { world.net().Join(name); });
      return;
    case 4: {
      const NodeName other = cluster_.storages()[random.Below(cluster_.storages().size())];
      world.net().CutOneWay(name, other);
      world.After(random.Between(milliseconds(200), seconds(3)),
                  [&world, name, other] { world.net().Heal(name, other); });
      return;
    }
    case 5:
      return CutFromFollowers(shard);
    case 6:
      if (cluster_.IsUp(name))
        world.Pause(name, random.Between(milliseconds(50), milliseconds(1500)));
      return;
    case 7:
      return SlowDisk(name);
    case 8:
      if (!cluster_.IsUp(name)) return;
      failing_.insert(name);
      return world.disk(name).FailSync();
    case 9:
      return HandOver(shard);
  }
}

void Chaos::CutFromFollowers(int shard) {
  const auto leader = cluster_.LeaderOf(shard);
  if (!leader) return;
  SimWorld& world = cluster_.world();
  const Duration until = world.random().Between(milliseconds(500), seconds(4));
  for (const NodeName& follower : cluster_.StoragesOf(shard)) {
    if (follower == *leader) continue;
    world.net().Cut(*leader, follower);
    world.After(until, [&world, leader, follower] { world.net().Heal(*leader, follower); });
  }
}

void Chaos::SlowDisk(const NodeName& name) {
  SimWorld& world = cluster_.world();
  world.disk(name).SetLatency(milliseconds(1),
                              world.random().Between(milliseconds(5), milliseconds(300)));
  world.After(world.random().Between(milliseconds(200), seconds(2)),
              [&world, name] { world.disk(name).SetLatency(microseconds(20), microseconds(200)); });
}

void Chaos::HandOver(int shard) {
  const auto leader = cluster_.LeaderOf(shard);
  if (!leader) return;
  v1::AdminRequest request;
  request.mutable_transfer_leader();
  cluster_.Admin(*leader, request, [](const v1::AdminResponse&) {});
}

}  // namespace etalon::sim
