#include "sim/scenarios/scenario.h"

namespace etalon::sim {

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> kScenarios = {
      {"transfer", "moves both ways; leaders die before and after each log entry",
       kTransferSituations, TransferSituation, RunTransfer},
      {"split", "a shard is split while everything fails", 0, nullptr, RunSplit},
      {"rebalance", "weights and locks change while everything fails", 0, nullptr, RunRebalance},
  };
  return kScenarios;
}

}  // namespace etalon::sim
