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

// Bytes per second that a stream gets through. What was acknowledged between the sending of a piece
// and its own acknowledgement, over that time: so a burst of acknowledgements is not taken for
// speed. Only samples of enough bytes count, as the others tell the latency; until the first one a
// rate is assumed.
class RateMeter {
 public:
  struct Mark {
    SteadyTime sent_at;
    std::uint64_t delivered = 0;
  };
  explicit RateMeter(double assumed) : rate_(assumed) {}
  Mark OnSent(SteadyTime now) const { return {now, delivered_}; }
  // `bytes` were acknowledged; `mark` is that of the last piece of them.
  void OnAcknowledged(std::uint64_t bytes, const Mark& mark, SteadyTime now);
  Duration TimeFor(std::uint64_t bytes) const;
  double bytes_per_second() const { return rate_; }

 private:
  static constexpr std::uint64_t kEnough = 64 << 10;

  double rate_;
  bool measured_ = false;
  std::uint64_t delivered_ = 0;
};

}  // namespace etalon::transfer
