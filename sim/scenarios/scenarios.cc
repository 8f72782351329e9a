#include "sim/scenarios/scenario.h"

namespace etalon::sim {

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> kScenarios = {
      {"transfer", "moves both ways; leaders die before and after each log entry", 100,
       kTransferSituations, TransferSituation, RunTransfer},
      {"split", "a shard is split; leaders die in each state of the task", 15, kSplitSituations,
       SplitSituation, RunSplit},
      {"rebalance", "weights and locks change while everything fails", 7, 0, nullptr, RunRebalance},
      {"money", "transfers between accounts while their buckets move and everything fails", 20, 0,
       nullptr, RunMoney},
      {"retire", "a shard is drained, retires and is deleted", 5, 0, nullptr, RunRetire},
      {"recover", "a shard goes on after the loss of a majority's disks; quarantine", 5, 0, nullptr,
       RunRecover},
      {"property", "twelve rounds of moves, splits and doublings; 4,096 keys", 2, 0, nullptr,
       RunProperty},
      {"maps", "map calls while splits double the modulus", 20, 0, nullptr, RunMaps},
  };
  return kScenarios;
}

}  // namespace etalon::sim
