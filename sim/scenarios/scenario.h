// A scenario: one story in a simulated world, drawn from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace etalon::sim {

struct Outcome {
  std::string failure;             // empty: all invariants held
  std::uint64_t trace = 0;         // equal for equal runs
  std::uint64_t acknowledged = 0;  // writes
  std::vector<int> reached;  // numbers of the situations this run was in; see Scenario::situations
  std::string summary;
};

struct Scenario {
  const char* name;
  const char* about;
  // How many situations there are; a run over enough seeds must reach every one. 0: none are
  // counted.
  int situations;
  std::string (*situation)(int);
  Outcome (*run)(std::uint64_t seed, bool verbose);
};

const std::vector<Scenario>& Scenarios();

Outcome RunTransfer(std::uint64_t seed, bool verbose);
std::string TransferSituation(int number);
extern const int kTransferSituations;

Outcome RunSplit(std::uint64_t seed, bool verbose);
Outcome RunRebalance(std::uint64_t seed, bool verbose);

}  // namespace etalon::sim
