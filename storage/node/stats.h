// Counters of one storage process, shown by Admin.Info. Core executor only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/status.h"
#include "common/time.h"
#include "etalon/v1/admin.pb.h"

namespace etalon::storage {

// Bounds double from 50 us on; the last counts everything above.
class LatencyHistogram {
 public:
  static constexpr std::size_t kBounds = 20;  // 50 us ... 26 s
  void Add(Duration d);
  v1::Histogram ToProto() const;
  std::uint64_t count() const { return count_; }

 private:
  std::array<std::uint64_t, kBounds + 1> counts_{};
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

struct Stats {
  LatencyHistogram call_seconds;
  LatencyHistogram freeze_seconds;
  std::map<std::tuple<std::string, std::string, Code>, std::uint64_t>
      calls;  // mode, function, code
  std::map<std::string, std::uint64_t> counters;

  void Count(const std::string& name, std::uint64_t n = 1) { counters[name] += n; }
};

}  // namespace etalon::storage
