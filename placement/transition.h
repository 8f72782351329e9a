// Whether a proposed routing table may follow the current one. A proposal is judged by its
// difference to the current table: it may contain exactly what its task does and nothing else.
// Moves of single buckets by the rebalancer are not tasks and are not judged here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "placement/routing_table.h"

namespace etalon::placement {

enum class TaskKind : std::uint8_t {
  kRebase,  // the modulus grows to a multiple, nobody's keys change
  kSplit,   // the source gives residues to shards that were not listed and start as Creating; the
            // modulus may grow with it
  kAdopt,   // these shards become Normal; a source in state Splitting leaves the list in the same
            // step
};

struct TableTask {
  TaskKind kind = TaskKind::kRebase;
  std::uint64_t modulus = 0;  // kRebase, kSplit: afterwards
  std::string source;         // kSplit, kAdopt
  Residues keeps;  // kSplit: what the source goes on owning. Empty: it becomes Splitting and owns
                   // nothing
  std::vector<Claim> targets;  // kSplit: the new shards; kAdopt: only their names count
};

enum class Verdict : std::uint8_t {
  kAlreadyApplied,  // success, nothing to do
  kApply,
  kAhead,   // retriable: contains later steps than the task's; the current copy lags behind
  kRefuse,  // permanent: malformed, behind, partial, or changing what the task does not
};

struct Judgement {
  Verdict verdict = Verdict::kRefuse;
  std::string why;  // a sentence; empty for kApply
};

// Equal tables (same shards, states, residues, modulus, and the same shard_by unless the proposal
// leaves it empty) are kAlreadyApplied whatever the task. The residues are compared too: a rebase
// leaves all states as they are. A shard_by, once set, never changes; an empty one may be filled.
Judgement JudgeTransition(const DescribeAnswer& current, const DescribeAnswer& proposed,
                          const TableTask& task, std::uint64_t max_modulus = kMaxModulus);

}  // namespace etalon::placement
