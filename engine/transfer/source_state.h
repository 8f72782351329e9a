// What the Source remembers of one transfer and of one split task, beside the applied state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/transfer/source.h"

namespace etalon::transfer {

struct Source::Transfer {
  // Set when it opened under this leader.
  std::unique_ptr<Stream> stream;  // null: of an earlier term
  OrderId order = 0;
  std::uint64_t reservation = 0;
  bool from_rebalancer = false;
  std::string cancelled;  // why; empty: it is not

  ShardUid target;
  std::uint8_t level = 0;
  std::vector<std::uint32_t> buckets;
  std::string split_task;

  // The state of its rows, and since when this leader has seen it.
  bool seen = false;
  bucket::RowStatus row = bucket::RowStatus::kActive;
  SteadyTime since;

  Token pending = 0;  // one proposal at a time
  v1::TransferStep::Kind pending_kind = v1::TransferStep::UNKNOWN;
  SteadyTime propose_at;  // not before

  bool had = false;  // the target had it
  TargetSays says = TargetSays::kNothing;
  Status refusal;
  SteadyTime progress_at;
  SteadyTime heard_at;  // of the target
  SteadyTime send_at;
  Backoff backoff{std::chrono::milliseconds(100), std::chrono::seconds(3)};
  int sends = 0;                           // of Activate, since SENT
  std::uint64_t first_question = 0;        // answers to older ones are about an earlier state
  std::map<ShardUid, v1::Answer> answers;  // of everybody, when the target is removed

  bool draining = false;
  SteadyTime drain_until;
  SteadyTime drain_at;  // not before
  int drains = 0;
  bool holding = false;
  bool reported = false;  // OrderFinished
};

struct Source::SplitDriver {
  Token rebase = 0;
  Token abort = 0;
  SteadyTime since;
  SteadyTime try_at;
  Backoff backoff{std::chrono::milliseconds(100), std::chrono::seconds(10)};
  std::string waits_for;
};

}  // namespace etalon::transfer
