#include "storage/node/stats.h"

#include <chrono>

namespace etalon::storage {

namespace {
double Bound(std::size_t i) { return 50e-6 * static_cast<double>(std::uint64_t{1} << i); }
}  // namespace

void LatencyHistogram::Add(Duration d) {
  const double seconds = std::chrono::duration<double>(d).count();
  std::size_t i = 0;
  while (i < kBounds && seconds > Bound(i)) ++i;
  ++counts_[i];
  ++count_;
  sum_ += seconds;
}

v1::Histogram LatencyHistogram::ToProto() const {
  v1::Histogram out;
  for (std::size_t i = 0; i < kBounds; ++i) out.add_bounds(Bound(i));
  for (std::uint64_t n : counts_) out.add_counts(n);
  out.set_sum(sum_);
  return out;
}

}  // namespace etalon::storage
