#include "sim/scenarios/run.h"

#include <utility>

#include "sim/checkers/invariants.h"

namespace etalon::sim {

namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr Duration kCheckEvery = milliseconds(5);
constexpr Duration kAlarmsEvery = milliseconds(100);
constexpr Duration kAfterHealing = milliseconds(500);  // clients go on for that long
}  // namespace

CheckedRun::CheckedRun(Cluster& cluster, Disks disks)
    : cluster_(cluster), disks_(disks), watch_(cluster) {
  cluster_.world().SetObserver([this] { Check(); });
}

bool CheckedRun::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  return false;
}

// What is cheap after each event, the rest every few milliseconds.
void CheckedRun::Check() {
  if (!failure_.empty()) return;
  if (disks_ == Disks::kKept) {
    if (std::string why = watch_.Check(); !why.empty()) Fail(std::move(why));
  }
  if (cluster_.world().now() < next_check_) return;
  next_check_ = cluster_.world().now() + kCheckEvery;
  CheckNow();
}

void CheckedRun::CheckNow() {
  if (!cluster_.fatal().empty()) Fail(cluster_.fatal().front());
  for (const Workload* workload : workloads_) {
    if (!workload->failures().empty()) Fail(workload->failures().front());
  }
  if (std::string why = CheckLeases(cluster_); !why.empty()) Fail(std::move(why));
  if (disks_ == Disks::kLossy) return;
  if (std::string why = CheckOwners(cluster_); !why.empty()) Fail(std::move(why));
  if (cluster_.world().now() < next_alarms_) return;
  next_alarms_ = cluster_.world().now() + kAlarmsEvery;
  if (std::string why = CheckAlarms(cluster_); !why.empty()) Fail(std::move(why));
}

bool CheckedRun::Until(const std::function<bool()>& done, Duration limit, bool* reached) {
  const bool stopped =
      cluster_.world().RunUntil([&] { return !failure_.empty() || done(); }, limit);
  if (reached != nullptr) *reached = stopped && failure_.empty();
  return failure_.empty();
}

bool CheckedRun::Until(const std::function<bool()>& done, Duration limit, const std::string& what) {
  bool reached = false;
  if (!Until(done, limit, &reached)) return false;
  return reached || Fail(what);
}

bool CheckedRun::For(Duration duration) {
  return Until([] { return false; }, duration, nullptr);
}

std::function<bool()> Every(SimWorld& world, Duration gap, std::function<bool()> predicate) {
  return [&world, gap, predicate = std::move(predicate), next = world.now()]() mutable {
    if (world.now() < next) return false;
    next = world.now() + gap;
    return predicate();
  };
}

bool CheckedRun::Conclude() {
  if (!failure_.empty()) return false;
  SimWorld& world = cluster_.world();
  world.net().HealAll();
  world.net().options() = NetworkOptions{};
  for (const NodeName& name : cluster_.storages()) {
    if (!cluster_.IsUp(name)) cluster_.Restart(name);
  }
  for (int r = 0; r < cluster_.options().routers; ++r) {
    if (!cluster_.IsUp(Cluster::RouterName(r))) cluster_.Restart(Cluster::RouterName(r));
  }
  if (!For(kAfterHealing)) return false;
  for (Workload* workload : workloads_) workload->Stop();
  for (const Workload* workload : workloads_) {
    if (!Until([&] { return workload->idle(); }, seconds(30), "calls are never answered"))
      return false;
  }
  std::string why;
  const auto every = [&](std::function<bool()> predicate) {
    return Every(world, milliseconds(20), std::move(predicate));
  };
  bool reached = false;
  if (!Until(every([&] { return IsSettled(cluster_, &why); }), seconds(90), &reached)) return false;
  if (!reached) return Fail("does not settle: " + why);
  for (Workload* workload : workloads_) {
    const bool equal = workload->Verify(seconds(60));
    CheckNow();
    if (!equal) return Fail("verification ends in no time");
  }
  const auto equal = [&] { return IsSettled(cluster_, &why) && ReplicasEqual(cluster_, &why); };
  if (!Until(every(equal), seconds(60), &reached)) return false;
  return reached || Fail("replicas differ: " + why);
}

}  // namespace etalon::sim
