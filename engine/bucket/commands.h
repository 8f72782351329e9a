// Control commands: what each may do, and when (PROTOCOLS in docs/protocols/). A refused command
// changes nothing; every check is made before the first change.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "engine/bucket/changes.h"
#include "engine/bucket/request_ids.h"
#include "engine/bucket/shard_state.h"
#include "etalon/v1/log.pb.h"

namespace etalon::bucket {

// Where the entry of a command stands.
struct Position {
  LogIndex index;
  Term term;
};

class Commands {
 public:
  Commands(ShardState& state, Changes& changes, RequestIds& requests)
      : state_(state), changes_(changes), requests_(requests) {}

  // The command must be set.
  Status Apply(const v1::Control& control, Position at);

 private:
  // commands.cc
  Status SetPinned(const v1::Pin& command);
  Status Rebase(const v1::Rebase& command);
  Status Retire();
  Status Quarantine(const v1::Quarantine& command);
  Status Release(const v1::ReleaseQuarantine& command, Position at);
  Status Bump(const v1::VersionBump& command);

  // transfers.cc
  Status Open(const v1::Open& command, Position at);
  Status Receive(const v1::Receiving& command);
  Status Take(const v1::Chunk& command);
  Status Step(const v1::TransferStep& command, Position at);
  Status StepAtSource(const v1::TransferStep& command, Position at, const Outgoing& transfer);
  Status StepAtTarget(const v1::TransferStep& command, const Incoming& transfer);
  // A transfer before SENT is undone: its rows are ACTIVE again.
  void Abort(const TransferId& id, std::string_view why);
  void PutRecords(v1::ChunkPayload payload);
  Status CheckRecords(const v1::ChunkPayload& payload, const TransferId& id) const;
  // Removes all records of these buckets of our level.
  void DeleteRanges(const std::vector<BucketEpoch>& set);
  void RemoveRows(const std::vector<BucketEpoch>& set);

  // splits.cc
  Status BeginSplit(const v1::Split& command);
  Status AbortSplit(const v1::AbortSplit& command);
  Status CheckSplitOpens(const v1::Open& command) const;
  Status CheckDivisible() const;
  void SplitOpened(const Outgoing& transfer);
  void SplitSending(const Outgoing& transfer);
  void SplitSent(const Outgoing& transfer);
  void SplitAborted(const Outgoing& transfer, bool frozen, std::string_view why);
  void CloseSplits(const v1::Settings& settings);

  // topology.cc
  Status SetTopology(const v1::Topology& topology);
  Status SetSettings(const v1::Settings& settings);

  // Whether a bucket of that level can be named to us, and which ones it is.
  Result<std::vector<std::uint32_t>> Name(std::uint32_t bucket, std::uint32_t level) const;
  // A shard that buckets can go to.
  Status CheckTarget(ShardUid target) const;
  bool IsRemoved(ShardUid shard) const;
  // Whether all rows of the set carry the transfer in that status.
  bool AllAre(const std::vector<BucketEpoch>& set, const TransferId& id, RowStatus status) const;

  ShardState& state_;
  Changes& changes_;
  RequestIds& requests_;
};

}  // namespace etalon::bucket
