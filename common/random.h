// Random numbers from a seed: xoshiro256** by Blackman and Vigna, seeded by splitmix64. The same
// seed gives the same numbers everywhere (the distributions of the standard library do not). Not
// for secrets.
#pragma once

#include <cstdint>

#include "common/time.h"

namespace etalon {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t Next();
  // Uniform in [0, bound); bound must not be 0.
  std::uint64_t Below(std::uint64_t bound);
  // Uniform in [low, high].
  std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
    return low + Below(high - low + 1);
  }
  // True with a probability of n in `of`.
  bool Chance(std::uint64_t n, std::uint64_t of) { return Below(of) < n; }
  Duration Between(Duration low, Duration high);
  // A child generator whose numbers do not depend on how many are drawn from this one later.
  Random Fork() { return Random(Next()); }
  // Never 0: for identifiers.
  std::uint64_t NextId();

 private:
  std::uint64_t s_[4];
};

// Exponential backoff with full jitter above a floor: the n-th wait is uniform in [base/2, min(cap,
// base * 2^n)].
class Backoff {
 public:
  Backoff(Duration base, Duration cap) : base_(base), cap_(cap), next_(base) {}
  Duration Next(Random& random);
  void Reset() { next_ = base_; }

 private:
  Duration base_;
  Duration cap_;
  Duration next_;
};

}  // namespace etalon
