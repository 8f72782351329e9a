// How fast data goes, and how fast it may go.
#pragma once

#include <cstdint>

#include "common/time.h"

namespace etalon::transfer {

// Token bucket in bytes. It may be overdrawn by one chunk, so a chunk of any size passes in the
// end.
class ByteBudget {
 public:
  // 0: no limit. Holds at most a tenth of a second.
  void SetRate(std::uint64_t bytes_per_second, SteadyTime now);
  bool MaySend(SteadyTime now);
  void Spend(std::uint64_t bytes);
  // When MaySend becomes true, if nothing is spent meanwhile.
  SteadyTime NextAt(SteadyTime now) const;

 private:
  void Refill(SteadyTime now);

  std::uint64_t rate_ = 0;
  double tokens_ = 0;
  SteadyTime at_;
};

// Bytes per second of one stream, over the time that something was in flight. Acknowledged bytes
// are gathered until there are enough to tell throughput from latency; before that a rate is
// assumed.
class RateMeter {
 public:
  explicit RateMeter(double assumed) : rate_(assumed) {}
  void OnSent(SteadyTime now);  // something is in flight now
  void OnAcknowledged(std::uint64_t bytes, bool idle,
                      SteadyTime now);  // `idle`: nothing is any more
  Duration TimeFor(std::uint64_t bytes) const;
  double bytes_per_second() const { return rate_; }

 private:
  static constexpr std::uint64_t kEnough = 64 << 10;

  double rate_;
  bool measured_ = false;
  bool busy_ = false;
  SteadyTime since_;
  Duration time_{};
  std::uint64_t bytes_ = 0;
};

}  // namespace etalon::transfer
