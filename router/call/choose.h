// Which replica answers a read. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "env/transport.h"
#include "etalon/v1/call.pb.h"

namespace etalon::router {

// In the order of preference.
enum class Fitness : std::uint8_t {
  kHealthy,
  kUntried,  // not asked yet
  kLagging,  // answers, but from a state that is too old; better than nobody
  kDown,     // does not answer, or answers that it cannot serve
};

struct Candidate {
  NodeName name;
  Fitness fitness = Fitness::kUntried;
  std::uint32_t distance = 0;
  bool leader = false;
};

// The best candidate that is not kDown and not among `tried`; nullopt when there is none.
//   ro, rw   fitter first, then nearer, then the leader, then as listed
//   re       fitter first, then any but the leader, then nearer, then as listed
//   bro      fitter first, then in turns: turn `n` starts at the n-th; distances do not matter
//   bre      fitter first, then any but the leader in turns, then the leader
std::optional<std::size_t> ChooseReplica(const std::vector<Candidate>& candidates, v1::Mode mode,
                                         std::uint64_t turn, const std::vector<NodeName>& tried);

}  // namespace etalon::router
