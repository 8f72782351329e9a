#include "engine/transfer/rate.h"

#include <algorithm>
#include <cmath>

namespace etalon::transfer {
namespace {

double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

Duration FromSeconds(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

}  // namespace

void ByteBudget::SetRate(std::uint64_t bytes_per_second, SteadyTime now) {
  if (rate_ == bytes_per_second) return;
  Refill(now);
  rate_ = bytes_per_second;
  at_ = now;
  tokens_ = std::min(tokens_, static_cast<double>(rate_) / 10);
}

bool ByteBudget::MaySend(SteadyTime now) {
  Refill(now);
  return rate_ == 0 || tokens_ >= 0;
}

void ByteBudget::Spend(std::uint64_t bytes) {
  if (rate_ != 0) tokens_ -= static_cast<double>(bytes);
}

SteadyTime ByteBudget::NextAt(SteadyTime now) const {
  if (rate_ == 0 || tokens_ >= 0) return now;
  // Rounded up: a timer that fires a moment too early would only be set again.
  return std::max(now, at_ + FromSeconds(-tokens_ / static_cast<double>(rate_)) + Duration(1000));
}

void ByteBudget::Refill(SteadyTime now) {
  if (rate_ == 0 || now <= at_) return;
  const double rate = static_cast<double>(rate_);
  tokens_ = std::min(rate / 10, tokens_ + rate * Seconds(now - at_));
  at_ = now;
}

void RateMeter::OnAcknowledged(std::uint64_t bytes, const Mark& mark, SteadyTime now) {
  delivered_ += bytes;
  const std::uint64_t during = delivered_ - mark.delivered;
  if (during < kEnough || now <= mark.sent_at) return;
  const double sample = static_cast<double>(during) / Seconds(now - mark.sent_at);
  // The first pieces of a window say too little: up at once, down slowly.
  rate_ = measured_ ? std::max(sample, 0.75 * rate_ + 0.25 * sample) : sample;
  measured_ = true;
}

Duration RateMeter::TimeFor(std::uint64_t bytes) const {
  return FromSeconds(static_cast<double>(bytes) / rate_);
}

}  // namespace etalon::transfer
