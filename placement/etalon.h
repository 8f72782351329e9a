// The etalon: how many buckets each shard should hold.
//
// Shares are proportional to the weights of the unlocked shards, by largest remainder: everybody
// gets the whole part of total * weight / sum of weights, and what is left goes one by one to the
// largest remainders, ties by shard name. The arithmetic is exact, so every host computes the same.
// A shard whose pinned buckets exceed its share keeps exactly those and leaves the computation with
// them; the rest is shared again, until nobody leaves.
//
// A locked shard does not exist here: neither its weight nor its buckets count, its etalon is what
// it holds.
//
// Counts must be comparable: the caller counts every bucket at the highest level that any shard has
// (a bucket of level k counts 2^(highest - k)).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"

namespace etalon::placement {

struct ShardLoad {
  std::string name;  // unique
  ShardUid uid;
  std::uint64_t weight = 100;
  bool locked = false;
  std::uint64_t pinned = 0;   // of `buckets`; a larger number counts as `buckets`
  std::uint64_t buckets = 0;  // pinned ones included
};

struct ShardEtalon {
  std::string name;
  ShardUid uid;
  std::uint64_t buckets = 0;
  std::uint64_t etalon = 0;
  double disbalance_percent = 0;  // 0 for a locked shard
};

enum class EtalonState : std::uint8_t {
  kOk,
  kAllWeightsZero,  // no unlocked shard has a weight: nothing can be computed, everybody keeps what
                    // it holds
  kAllLocked,       // no unlocked shard at all: the same
};

struct EtalonResult {
  EtalonState state = EtalonState::kOk;
  std::vector<ShardEtalon> shards;    // by name
  double max_disbalance_percent = 0;  // over the unlocked shards
};

// Over the unlocked shards the etalons sum up to the buckets, always. The order of the input does
// not matter.
EtalonResult ComputeEtalon(std::vector<ShardLoad> shards);

// |etalon - buckets| / etalon * 100; infinite when the etalon is 0 and buckets remain; 0 when both
// are 0.
double DisbalancePercent(std::uint64_t buckets, std::uint64_t etalon);

// Buckets [first, first + count) of level 0.
struct BucketRange {
  std::string shard;
  ShardUid uid;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// The first placement of a collection: contiguous ranges that tile [0, bucket_count), in the order
// of `shards` as given, as long as the etalon says; `pinned` and `buckets` are not read. A shard
// whose share is 0 (locked ones too) gets no range. With bucket_count equal shards, shard i owns
// {i}. FAILED_PRECONDITION / INVALID_CFG when nobody may take a bucket; INVALID_ARGUMENT for
// bucket_count 0.
Result<std::vector<BucketRange>> PlanBootstrap(const std::vector<ShardLoad>& shards,
                                               std::uint32_t bucket_count);

}  // namespace etalon::placement
