// A scenario: one story in a simulated world, drawn from one seed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace etalon::sim {

struct Outcome {
  std::string failure = {};        // empty: all invariants held
  std::uint64_t trace = 0;         // equal for equal runs
  std::uint64_t acknowledged = 0;  // writes
  // Numbers of the situations this run was in; see Scenario::situations.
  std::vector<int> reached = {};
  std::string summary = {};
};

inline Outcome Failed(std::string why) { return {.failure = std::move(why)}; }

struct Scenario {
  const char* name;
  const char* about;
  // Of a hundred seeds asked for, so many are run when all scenarios are.
  int share;
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

extern const int kSplitSituations;
std::string SplitSituation(int number);
Outcome RunSplit(std::uint64_t seed, bool verbose);
Outcome RunRebalance(std::uint64_t seed, bool verbose);
Outcome RunMoney(std::uint64_t seed, bool verbose);
Outcome RunRetire(std::uint64_t seed, bool verbose);
Outcome RunRecover(std::uint64_t seed, bool verbose);
Outcome RunProperty(std::uint64_t seed, bool verbose);
Outcome RunMaps(std::uint64_t seed, bool verbose);

}  // namespace etalon::sim
