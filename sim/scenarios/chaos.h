// Faults that come and go by themselves.
#pragma once

#include <map>
#include <set>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

// Clocks, loss, duplicates and late messages (in some seeds very late ones), by the seed.
void RoughNetwork(SimWorld& world);
std::int64_t RoughClocks(SimWorld& world);  // for ClusterOptions::drift_ppm

// From now until `Stop`, now and then one of
// * a storage crashes, with its machine or alone, and comes back; a router too;
// * a storage is cut off, or cannot hear one other; a leader is cut off from its followers, but not
//   from routers and other shards;
// * a storage stands still;
// * a disk is slow, or a sync of it fails, which ends the process;
// * a leader hands over.
class Chaos {
 public:
  Chaos(Cluster& cluster, Duration every);
  // Lives as long as its world runs.
  void Start() { Later(++life_); }
  void Stop() { ++life_; }
  // Crashes a node and brings it back after a while.
  void Kill(const NodeName& name);
  int kills() const { return kills_; }
  int strikes() const { return strikes_; }

 private:
  void Later(int life);
  void Strike();
  void CutFromFollowers(int shard);
  void SlowDisk(const NodeName& name);
  void HandOver(int shard);

  Cluster& cluster_;
  const Duration every_;
  int life_ = 0;  // between a Start and its Stop
  int kills_ = 0;
  int strikes_ = 0;
  std::set<NodeName> failing_;  // disks whose next sync fails
};

}  // namespace etalon::sim
