// etalon-sim: runs scenarios over seeds. A failing seed prints the command that runs it again.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sim/scenarios/scenario.h"

namespace {

using etalon::sim::Outcome;
using etalon::sim::Scenario;

struct Flags {
  std::uint64_t seeds = 300;
  std::uint64_t first = 1;
  std::uint64_t jobs = 2;
  std::uint64_t twice_every = 10;  // every n-th seed runs twice, its traces are compared; 0: none
  std::string scenario;
  bool verbose = false;
};

constexpr int kMaxSituations = 128;
// Shared with the worker processes.
struct Tally {
  std::uint64_t runs, failures, acknowledged, twice;
  std::uint64_t reached[kMaxSituations];
};

int Usage() {
  std::fprintf(stderr,
               "etalon-sim [--scenario NAME] [--seeds N] [--first-seed S] [--jobs N] "
               "[--twice-every N] [--verbose]\n"
               "scenarios (default: all of them, each its share of the seeds):\n");
  for (const Scenario& s : etalon::sim::Scenarios())
    std::fprintf(stderr, "  %-10s %s\n", s.name, s.about);
  return 2;
}

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--verbose") {
      flags->verbose = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const std::string value = argv[++i];
    if (name == "--scenario") {
      flags->scenario = value;
      continue;
    }
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0') return false;
    if (name == "--seeds")
      flags->seeds = number;
    else if (name == "--first-seed")
      flags->first = number;
    else if (name == "--jobs")
      flags->jobs = number == 0 ? 1 : number;
    else if (name == "--twice-every")
      flags->twice_every = number;
    else
      return false;
  }
  return true;
}

void RunOne(const Scenario& scenario, std::uint64_t seed, const Flags& flags, Tally* tally) {
  Outcome outcome = scenario.run(seed, flags.verbose);
  if (outcome.failure.empty() && flags.twice_every != 0 && seed % flags.twice_every == 0) {
    __atomic_fetch_add(&tally->twice, 1, __ATOMIC_RELAXED);
    if (scenario.run(seed, false).trace != outcome.trace)
      outcome.failure = "two runs of one seed differ";
  }
  __atomic_fetch_add(&tally->runs, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&tally->acknowledged, outcome.acknowledged, __ATOMIC_RELAXED);
  for (int number : outcome.reached)
    __atomic_fetch_add(&tally->reached[number], 1, __ATOMIC_RELAXED);
  if (!outcome.failure.empty()) {
    __atomic_fetch_add(&tally->failures, 1, __ATOMIC_RELAXED);
    std::printf(
        "FAILED %s seed %llu: %s\n  run it again: etalon-sim --scenario %s --seeds 1 --first-seed "
        "%llu\n",
        scenario.name, static_cast<unsigned long long>(seed), outcome.failure.c_str(),
        scenario.name, static_cast<unsigned long long>(seed));
  } else if (flags.seeds <= 20) {
    std::printf("%s seed %llu: ok, %s\n", scenario.name, static_cast<unsigned long long>(seed),
                outcome.summary.c_str());
  }
  std::fflush(stdout);
}

// True: all seeds passed, and enough of them reached every situation.
bool RunScenario(const Scenario& scenario, std::uint64_t seeds, const Flags& flags) {
  auto* tally = static_cast<Tally*>(
      mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::memset(tally, 0, sizeof(Tally));
  std::fflush(stdout);  // or every worker would print it again
  const std::uint64_t jobs = std::min(flags.jobs, seeds);
  std::vector<pid_t> workers;
  for (std::uint64_t j = 0; j < jobs; ++j) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (std::uint64_t i = j; i < seeds; i += jobs)
        RunOne(scenario, flags.first + i, flags, tally);
      _exit(0);
    }
    workers.push_back(pid);
  }
  bool ok = true;
  for (pid_t pid : workers) {
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
      std::printf("FAILED %s: a worker ended badly (status %d); --jobs 1 shows at which seed\n",
                  scenario.name, status);
      ok = false;
    }
  }
  ok = ok && tally->runs == seeds && tally->failures == 0;
  int missing = 0;
  // Each seed aims at one situation, in turn; a few tries may miss it.
  const bool enough = seeds >= static_cast<std::uint64_t>(scenario.situations) * 4;
  for (int i = 0; i < scenario.situations; ++i) {
    if (tally->reached[i] > 0) continue;
    ++missing;
    if (enough)
      std::printf("FAILED %s: never reached: %s\n", scenario.name, scenario.situation(i).c_str());
  }
  if (enough && missing > 0) ok = false;
  std::printf("%s: %llu seeds from %llu, %llu failed, %llu run twice, %llu writes acknowledged",
              scenario.name, static_cast<unsigned long long>(tally->runs),
              static_cast<unsigned long long>(flags.first),
              static_cast<unsigned long long>(tally->failures),
              static_cast<unsigned long long>(tally->twice),
              static_cast<unsigned long long>(tally->acknowledged));
  if (scenario.situations > 0)
    std::printf(", %d of %d situations reached", scenario.situations - missing,
                scenario.situations);
  std::printf("\n");
  munmap(tally, sizeof(Tally));
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  if (!Parse(argc, argv, &flags)) return Usage();
  bool ok = true;
  bool found = false;
  for (const Scenario& scenario : etalon::sim::Scenarios()) {
    if (!flags.scenario.empty() && flags.scenario != scenario.name) continue;
    found = true;
    const std::uint64_t share =
        flags.scenario.empty() ? static_cast<std::uint64_t>(scenario.share) : 100;
    ok = RunScenario(scenario, std::max<std::uint64_t>(1, flags.seeds * share / 100), flags) && ok;
  }
  if (!found) return Usage();
  return ok ? 0 : 1;
}
