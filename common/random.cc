#include "common/random.h"

#include <algorithm>

namespace etalon {

namespace {
std::uint64_t SplitMix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}
std::uint64_t Rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
}  // namespace

Random::Random(std::uint64_t seed) {
  for (auto& word : s_) word = SplitMix(seed);
}

std::uint64_t Random::Next() {
  const std::uint64_t result = Rotate(s_[1] * 5, 7) * 9;
  const std::uint64_t t = s_[1] << 17;
  s_[2] ^= s_[0];
  s_[3] ^= s_[1];
  s_[1] ^= s_[2];
  s_[0] ^= s_[3];
  s_[2] ^= t;
  s_[3] = Rotate(s_[3], 45);
  return result;
}

std::uint64_t Random::Below(std::uint64_t bound) {
  // Rejects the few values that would make the remainder uneven.
  const std::uint64_t reject = (0 - bound) % bound;
  std::uint64_t value = Next();
  while (value < reject) value = Next();
  return value % bound;
}

Duration Random::Between(Duration low, Duration high) {
  return low + Duration(static_cast<Duration::rep>(
                   Below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

std::uint64_t Random::NextId() {
  std::uint64_t id = Next();
  while (id == 0) id = Next();
  return id;
}

Duration Backoff::Next(Random& random) {
  const Duration wait = random.Between(base_ / 2, next_);
  next_ = std::min(cap_, next_ * 2);
  return wait;
}

}  // namespace etalon
