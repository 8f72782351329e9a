#include "router/node/counters.h"

#include <algorithm>

namespace etalon::router {

namespace {

std::string ModeName(v1::Mode mode) {
  switch (mode) {
    case v1::MODE_RW:
      return "rw";
    case v1::MODE_RO:
      return "ro";
    case v1::MODE_RE:
      return "re";
    case v1::MODE_BRO:
      return "bro";
    case v1::MODE_BRE:
      return "bre";
    case v1::Mode_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Mode_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return "unknown";
}

}  // namespace

bool IsRead(const std::string& function) { return function == "get" || function == "scan"; }

bool IsWrite(const std::string& function) {
  return function == "put" || function == "insert" || function == "update" ||
         function == "delete" || function == "txn";
}

void Counters::Finished(v1::Mode mode, const std::string& function, Code code, Duration took) {
  const std::string name = IsRead(function) || IsWrite(function) ? function : "other";
  ++calls_[{mode, name, code}];
  const double seconds = std::chrono::duration<double>(took).count();
  sum_ += seconds;
  ++histogram_[static_cast<std::size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), seconds) -
                                        kBounds.begin())];
}

void Counters::FillIn(v1::RouterInfoResponse* info) const {
  for (const auto& [key, count] : calls_) {
    v1::CallCounter& out = *info->add_calls();
    out.set_mode(ModeName(std::get<0>(key)));
    out.set_function(std::get<1>(key));
    out.set_code(std::string(CodeName(std::get<2>(key))));
    out.set_count(count);
  }
  for (const auto& [reason, count] : retries_) (*info->mutable_retries())[reason] = count;
  v1::Histogram& seconds = *info->mutable_call_seconds();
  for (double bound : kBounds) seconds.add_bounds(bound);
  for (std::uint64_t count : histogram_) seconds.add_counts(count);
  seconds.set_sum(sum_);
}

}  // namespace etalon::router
