#pragma once

#include <cstdint>
#include <string>

#include "common/ids.h"
#include "common/time.h"
#include "engine/consensus/replica.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::storage {

struct NodeOptions {
  CollectionId collection;
  ShardUid shard;
  std::string replica;  // own node name

  // Where peers are before the first topology is applied (a blank disk that is to join). Optional.
  v1::Topology seed_topology;

  consensus::Replica::Options raft;  // `self` is filled in from the disk
  std::uint64_t log_segment_bytes = 16u << 20;
  // A checkpoint is taken after so many bytes of applied log, or after so long if anything was
  // applied.
  std::uint64_t checkpoint_bytes = 32u << 20;
  Duration checkpoint_every = std::chrono::seconds(60);
  // Writes are refused while the disk has less than this; transfers are refused below twice of it.
  std::uint64_t reserve_bytes = 64u << 20;
  Duration tick = std::chrono::milliseconds(50);
};

}  // namespace etalon::storage
