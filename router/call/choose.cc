#include "router/call/choose.h"

#include <algorithm>
#include <tuple>

namespace etalon::router {

std::optional<std::size_t> ChooseReplica(const std::vector<Candidate>& candidates, v1::Mode mode,
                                         std::uint64_t turn, const std::vector<NodeName>& tried) {
  const bool balanced = mode == v1::MODE_BRO || mode == v1::MODE_BRE;
  const bool spare_leader = mode == v1::MODE_RE || mode == v1::MODE_BRE;
  // Turns are counted over those who take part, or the one after a left-out one would be hit twice.
  std::uint64_t takers = 0;
  for (const Candidate& c : candidates) {
    if (c.fitness != Fitness::kDown && !(spare_leader && c.leader)) ++takers;
  }
  using Key = std::tuple<Fitness, bool, std::uint64_t, bool, std::size_t>;
  std::optional<Key> best;
  std::uint64_t place = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& c = candidates[i];
    if (c.fitness == Fitness::kDown) continue;
    const bool last = spare_leader && c.leader;
    std::uint64_t cost = c.distance;
    if (balanced) cost = last ? 0 : (place + takers - turn % takers) % takers;
    if (!last) ++place;
    if (std::find(tried.begin(), tried.end(), c.name) != tried.end()) continue;
    const Key key{c.fitness, last, cost, !c.leader, i};
    if (!best || key < *best) best = key;
  }
  if (!best) return std::nullopt;
  return std::get<4>(*best);
}

}  // namespace etalon::router
