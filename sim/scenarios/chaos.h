// Faults that come and go by themselves, and the end of a run: everything healed, settled and
// compared.
#pragma once

#include <functional>
#include <string>

#include "sim/cluster/cluster.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

// Loss, duplicates and slow messages, by the seed.
void RoughNetwork(SimWorld& world);

// From now until `Stop`, now and then: a storage crashes and comes back, or is cut off, or stands
// still.
class Chaos {
 public:
  Chaos(Cluster& cluster, Duration every) : cluster_(cluster), every_(every) {}
  void Start() { Later(); }
  void Stop() { stopped_ = true; }
  // Crashes a storage and brings it back after a while.
  void Kill(const NodeName& name);
  int kills() const { return kills_; }

 private:
  void Later();
  void Strike();

  Cluster& cluster_;
  const Duration every_;
  bool stopped_ = false;
  int kills_ = 0;
};

// Runs until `done`, checking after every few milliseconds that no bucket is writable twice. The
// violation, or "".
std::string RunChecked(Cluster& cluster, const std::function<bool()>& done, Duration limit,
                       bool* reached);

// `predicate`, but asked at most once in `gap` of the world's time: what reads the whole collection
// is not asked after each event.
std::function<bool()> Every(SimWorld& world, Duration gap, std::function<bool()> predicate);

// Heals the network, restarts what is down, waits until nothing is in flight, stops the writers and
// checks everything.
std::string Conclude(Cluster& cluster, Chains& chains);

}  // namespace etalon::sim
