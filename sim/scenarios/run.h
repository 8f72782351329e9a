// How scenarios let time pass: the invariants are checked all the while. And the end of a run:
// everything healed, settled and compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/checkers/ownership_watch.h"
#include "sim/cluster/cluster.h"
#include "sim/workloads/workload.h"

namespace etalon::sim {

class CheckedRun {
 public:
  // Disks may be lost, but of no shard a majority; kLossy: that too, so that only what is so at one
  // instant is checked.
  enum class Disks : unsigned char { kKept, kLossy };
  // From now on everything is checked after each event of the world.
  explicit CheckedRun(Cluster& cluster, Disks disks = Disks::kKept);
  ~CheckedRun() { cluster_.world().SetObserver(nullptr); }
  CheckedRun(const CheckedRun&) = delete;
  CheckedRun& operator=(const CheckedRun&) = delete;

  // Its failures are looked at too. It outlives this.
  void Add(Workload& workload) { workloads_.push_back(&workload); }

  // Until `done`, which is asked after each event, or until `limit` has passed, which is a failure
  // unless the caller asks for `reached`. False when anything is violated: failure() says what.
  bool Until(const std::function<bool()>& done, Duration limit, const std::string& what);
  bool Until(const std::function<bool()>& done, Duration limit, bool* reached);
  bool For(Duration duration);
  // Heals the network, restarts what is down, waits until nothing is in flight, stops the workloads
  // and checks everything.
  bool Conclude();

  const std::string& failure() const { return failure_; }
  bool Fail(std::string why);  // keeps the first one; false

 private:
  void Check();
  void CheckNow();

  Cluster& cluster_;
  const Disks disks_;
  OwnershipWatch watch_;
  std::vector<Workload*> workloads_;
  SteadyTime next_check_;
  SteadyTime next_alarms_;
  std::string failure_;
};

// `predicate`, but asked at most once in `gap` of the world's time: what reads the whole collection
// is not asked after each event.
std::function<bool()> Every(SimWorld& world, Duration gap, std::function<bool()> predicate);

}  // namespace etalon::sim
