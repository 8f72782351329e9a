// Latencies of a window of time, in buckets of about 4 %.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <mutex>

namespace etalon::show {

class Latency {
 public:
  void Add(std::chrono::nanoseconds d) {
    const double us = std::max(1.0, std::chrono::duration<double, std::micro>(d).count());
    const auto i =
        std::min<std::size_t>(kSlots - 1, static_cast<std::size_t>(std::log(us) / kStep));
    std::lock_guard lock(mutex_);
    ++slots_[i];
    ++count_;
    longest_ = std::max(longest_, d);
  }
  std::uint64_t count() const {
    std::lock_guard lock(mutex_);
    return count_;
  }
  double longest_ms() const {
    std::lock_guard lock(mutex_);
    return std::chrono::duration<double, std::milli>(longest_).count();
  }
  // 0 when nothing was measured. `share` in (0, 1].
  double PercentileMs(double share) const {
    std::lock_guard lock(mutex_);
    const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kSlots && count_ > 0; ++i) {
      seen += slots_[i];
      if (seen >= wanted) return std::exp(static_cast<double>(i + 1) * kStep) / 1000;
    }
    return 0;
  }
  void Reset() {
    std::lock_guard lock(mutex_);
    slots_.fill(0);
    count_ = 0;
    longest_ = {};
  }

 private:
  static constexpr std::size_t kSlots = 500;
  static constexpr double kStep = 0.04;
  mutable std::mutex mutex_;
  std::array<std::uint64_t, kSlots> slots_{};
  std::uint64_t count_ = 0;
  std::chrono::nanoseconds longest_{};
};

}  // namespace etalon::show
