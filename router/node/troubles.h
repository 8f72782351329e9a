// Buckets that calls were refused for: moving without an end, or quarantined. Bounded; for alerts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/reason.h"
#include "common/time.h"

namespace etalon::router {

class Troubles {
 public:
  static constexpr std::size_t kMax = 1024;
  // What was not met again for so long is forgotten.
  static constexpr Duration kMemory = std::chrono::seconds(30);

  void Note(BucketId bucket, Reason reason, SteadyTime now) {
    if (const auto it = troubles_.find(bucket);
        it != troubles_.end() && it->second.reason == reason) {
      it->second.last = now;
    } else if (it != troubles_.end() || troubles_.size() < kMax) {
      troubles_[bucket] = {reason, now, now};
    }
  }
  void Clear(BucketId bucket) { troubles_.erase(bucket); }
  void Forget(SteadyTime now) {
    for (auto it = troubles_.begin(); it != troubles_.end();) {
      it = now - it->second.last >= kMemory ? troubles_.erase(it) : std::next(it);
    }
  }
  // Met first at least `age` ago.
  std::vector<std::string> List(Reason reason, Duration age, SteadyTime now) const {
    std::vector<std::string> out;
    for (const auto& [bucket, trouble] : troubles_) {
      if (trouble.reason == reason && now - trouble.since >= age) out.push_back(ToString(bucket));
    }
    return out;
  }
  bool empty() const { return troubles_.empty(); }

 private:
  struct Trouble {
    Reason reason;
    SteadyTime since;
    SteadyTime last;
  };
  std::map<BucketId, Trouble> troubles_;
};

}  // namespace etalon::router
