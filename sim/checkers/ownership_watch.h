// Who owns which bucket, event by event, over a whole run: what every shard has decided so far,
// that is, the applied state of whichever replica is or was furthest. A crash does not take back
// what was decided.
//
// Holds as long as no shard loses a majority of its disks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

class OwnershipWatch {
 public:
  explicit OwnershipWatch(Cluster& cluster) : cluster_(cluster) {}

  // To be called after each event. What is violated; empty: nothing. Violations are
  // * a bucket that two shards have decided to be writable with them;
  // * an epoch that two shards had a bucket at, or one that went back;
  // * a switch index of a split that changed, or a committed split that was taken back.
  std::string Check();

 private:
  struct Owned {
    std::uint32_t number;
    Epoch epoch;
    auto operator<=>(const Owned&) const = default;
  };
  struct Decided {
    LogIndex index;
    std::uint8_t level = 0;
    std::vector<Owned> owned;
    std::map<std::string, bucket::SplitTask> splits;
  };
  struct Last {
    Epoch epoch;
    int shard;
  };

  bool Advance(int shard, std::string* violated);
  std::string Compare();
  std::string CheckSplits(int shard, const std::map<std::string, bucket::SplitTask>& now);

  Cluster& cluster_;
  std::map<int, Decided> decided_;
  std::uint8_t level_ = 0;                 // of the numbers below
  std::map<std::uint32_t, Last> highest_;  // every owner there was: the one of the highest epoch
};

}  // namespace etalon::sim
