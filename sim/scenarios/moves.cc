#include "sim/scenarios/moves.h"

#include <vector>

namespace etalon::sim {

namespace {

template <typename F>
void ForEachLink(Cluster& cluster, int a, int b, F&& f) {
  for (const NodeName& x : cluster.StoragesOf(a)) {
    for (const NodeName& y : cluster.StoragesOf(b)) f(x, y);
  }
}

}  // namespace

std::optional<Move> PickMove(Cluster& cluster, int source, int target) {
  const auto* state = cluster.LeaderState(source);
  if (state == nullptr) return std::nullopt;
  std::vector<Move> moves;
  for (const auto& [number, row] : state->rows()) {
    if (row.status == bucket::RowStatus::kActive && !row.transfer)
      moves.push_back({source, target, number, state->level(), row.epoch});
  }
  if (moves.empty()) return std::nullopt;
  return moves[cluster.world().random().Below(moves.size())];
}

std::optional<Move> PickMove(Cluster& cluster) {
  Random& random = cluster.world().random();
  const auto& shards = cluster.shards();
  const std::uint64_t source = random.Below(shards.size());
  const std::uint64_t target = (source + 1 + random.Below(shards.size() - 1)) % shards.size();
  return PickMove(cluster, shards[source], shards[target]);
}

void Order(Cluster& cluster, const Move& move) {
  const auto leader = cluster.LeaderOf(move.source);
  if (!leader) return;
  v1::AdminRequest request;
  request.mutable_send()->set_bucket(move.bucket);
  request.mutable_send()->set_level(move.level);
  request.mutable_send()->set_target(Cluster::Uid(move.target).value());
  cluster.Admin(*leader, request, [](const v1::AdminResponse&) {});
}

void CutShards(Cluster& cluster, int a, int b) {
  ForEachLink(cluster, a, b,
              [&](const NodeName& x, const NodeName& y) { cluster.world().net().Cut(x, y); });
}

void HealShards(Cluster& cluster, int a, int b) {
  ForEachLink(cluster, a, b,
              [&](const NodeName& x, const NodeName& y) { cluster.world().net().Heal(x, y); });
}

}  // namespace etalon::sim
