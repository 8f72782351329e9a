// What a router counts about its calls, for Info and the metrics made from it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "common/status.h"
#include "common/time.h"
#include "etalon/v1/router.pb.h"

namespace etalon::router {

class Counters {
 public:
  // A finished call. Names of functions that are not built in are counted as "other": clients
  // choose them, and every name is a series.
  void Finished(v1::Mode mode, const std::string& function, Code code, Duration took);
  void Retried(Reason reason) { ++retries_[std::string(ReasonName(reason))]; }
  void FillIn(v1::RouterInfoResponse* info) const;

 private:
  static constexpr std::array<double, 14> kBounds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 10};
  std::map<std::tuple<v1::Mode, std::string, Code>, std::uint64_t> calls_;
  std::map<std::string, std::uint64_t> retries_;
  std::array<std::uint64_t, kBounds.size() + 1> histogram_{};
  double sum_ = 0;
};

// Built in and changing nothing.
bool IsRead(const std::string& function);
// Built in and changing something.
bool IsWrite(const std::string& function);

}  // namespace etalon::router
