// How long the rebalancer and the router spend on arithmetic.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/random.h"
#include "placement/etalon.h"
#include "placement/hash.h"
#include "placement/moves.h"
#include "placement/routing_table.h"

namespace etalon::placement {
namespace {

// `buckets` over `shards` shards of random weights, in equal parts: about half of the shards give,
// half take.
std::vector<ShardLoad> Loads(std::uint64_t buckets, std::uint64_t shards) {
  Random random(1);
  std::vector<ShardLoad> loads;
  for (std::uint64_t i = 0; i < shards; ++i) {
    ShardLoad load;
    load.name = "shard-" + std::to_string(i);
    load.weight = random.Between(1, 1000);
    load.buckets = buckets / shards;
    loads.push_back(load);
  }
  return loads;
}

// All buckets on one shard: the plan with the most moves.
std::vector<ShardLoad> Heap(std::uint64_t buckets, std::uint64_t shards) {
  std::vector<ShardLoad> loads = Loads(buckets, shards);
  for (ShardLoad& load : loads) load.buckets = 0;
  loads.front().buckets = buckets;
  return loads;
}

std::vector<MoveShard> WithEtalons(const std::vector<ShardLoad>& loads) {
  std::vector<MoveShard> shards;
  for (const ShardEtalon& e : ComputeEtalon(loads).shards) {
    MoveShard shard;
    shard.name = e.name;
    shard.buckets = e.buckets;
    shard.etalon = e.etalon;
    shards.push_back(shard);
  }
  return shards;
}

void Plan(benchmark::State& state, const std::vector<ShardLoad>& loads) {
  std::uint64_t moves = 0;
  for (auto _ : state) {
    moves = 0;
    for (const Route& route : PlanRoutes(WithEtalons(loads), MoveLimits())) moves += route.count;
  }
  state.counters["moves"] = static_cast<double>(moves);
}

void BM_PlanMillionBuckets(benchmark::State& state) { Plan(state, Loads(1'000'000, 1000)); }
BENCHMARK(BM_PlanMillionBuckets)->Unit(benchmark::kMillisecond);

void BM_PlanMillionBucketsFromOneShard(benchmark::State& state) {
  Plan(state, Heap(1'000'000, 1000));
}
BENCHMARK(BM_PlanMillionBucketsFromOneShard)->Unit(benchmark::kMillisecond);

void BM_StartableMoves(benchmark::State& state) {
  const auto shards = WithEtalons(Loads(1'000'000, 1000));
  for (auto _ : state) benchmark::DoNotOptimize(StartableMoves(shards, MoveLimits()));
}
BENCHMARK(BM_StartableMoves)->Unit(benchmark::kMicrosecond);

void BM_DeriveTable(benchmark::State& state) {
  const auto modulus = static_cast<std::uint64_t>(state.range(0));
  DescribeAnswer answer;
  answer.modulus = modulus;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    answer.shard_names.push_back("shard-" + std::to_string(i));
    answer.infos.push_back({answer.shard_names.back(), ShardState::kNormal, {}});
  }
  for (std::uint64_t r = 0; r < modulus; ++r) answer.infos[r % 1000].residues.push_back(r);
  for (auto _ : state) benchmark::DoNotOptimize(RoutingTable::Derive(answer).ok());
}
BENCHMARK(BM_DeriveTable)->Arg(3000)->Arg(1 << 20)->Unit(benchmark::kMicrosecond);

void BM_HashInt64(benchmark::State& state) {
  std::int64_t key = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(HashKey(KeyType::kInt64, HashFunction::kMurmur3, ++key).ok());
}
BENCHMARK(BM_HashInt64);

void BM_HashString(benchmark::State& state) {
  const std::string key(16, 'k');
  const auto function = static_cast<HashFunction>(state.range(0));
  state.SetLabel(std::string(HashFunctionName(function)));
  for (auto _ : state) benchmark::DoNotOptimize(HashKey(KeyType::kString, function, key).ok());
}
BENCHMARK(BM_HashString)->DenseRange(0, 2);

}  // namespace
}  // namespace etalon::placement

BENCHMARK_MAIN();
