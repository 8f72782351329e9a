// What the Target remembers of one incoming transfer, beside the applied state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "engine/transfer/target.h"

namespace etalon::transfer {

struct Target::Arrival {
  // The state of its rows as the source was last told, and since when this leader has seen it.
  bool seen = false;
  bucket::RowStatus row = bucket::RowStatus::kReceiving;
  bool prepared = false;
  bool mismatch = false;
  std::uint64_t next_number = 0;
  SteadyTime since;

  std::map<std::uint64_t, v1::Chunk> queue;  // by number; not proposed yet
  std::size_t queue_bytes = 0;
  std::uint64_t propose_next = 1;
  std::map<Token, std::size_t> in_log;  // chunks: payload bytes
  std::size_t bytes_in_log = 0;
  bool again = false;  // a chunk was not taken: begin again from the applied state once the log is
                       // empty of ours

  bool told = false;  // the source says SENT
  Token step = 0;
  v1::TransferStep::Kind step_kind = v1::TransferStep::UNKNOWN;
  SteadyTime propose_at;

  SteadyTime ask_at;
  Backoff backoff;
  std::uint64_t first_question = 0;  // answers to older ones are about an earlier state

  explicit Arrival(const TargetOptions& options) : backoff(options.ask_after, options.ask_cap) {}
};

}  // namespace etalon::transfer
