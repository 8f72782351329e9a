#include "engine/bucket/commands.h"

#include <algorithm>
#include <set>

#include "common/check.h"
#include "engine/bucket/state_machine.h"
#include "proto/wire.h"

namespace etalon::bucket {

Status Commands::Apply(const v1::Control& control, Position at) {
  switch (control.command_case()) {
    case v1::Control::kOpen:
      return Open(control.open(), at);
    case v1::Control::kReceiving:
      return Receive(control.receiving());
    case v1::Control::kChunk:
      return Take(control.chunk());
    case v1::Control::kStep:
      return Step(control.step(), at);
    case v1::Control::kPin:
      return SetPinned(control.pin());
    case v1::Control::kRebase:
      return Rebase(control.rebase());
    case v1::Control::kSplit:
      return BeginSplit(control.split());
    case v1::Control::kAbortSplit:
      return AbortSplit(control.abort_split());
    case v1::Control::kTopology:
      return SetTopology(control.topology());
    case v1::Control::kSettings:
      return SetSettings(control.settings());
    case v1::Control::kRetire:
      return Retire();
    case v1::Control::kQuarantine:
      return Quarantine(control.quarantine());
    case v1::Control::kRelease:
      return Release(control.release(), at);
    case v1::Control::kBump:
      return Bump(control.bump());
    case v1::Control::COMMAND_NOT_SET:
      break;
  }
  ETALON_CHECK(false, "an unknown command stops the replica before it comes here");
}

Result<std::vector<std::uint32_t>> Commands::Name(std::uint32_t bucket, std::uint32_t level) const {
  if (level > state_.level()) {
    return FailedPrecondition(Reason::kBucketOutOfRange,
                              "buckets of level " + std::to_string(level) +
                                  " are named, this shard stands at level " +
                                  std::to_string(state_.level()));
  }
  if (bucket >= std::uint64_t{state_.bucket_count()} << level) {
    return InvalidArgument(
        "there is no bucket " + std::to_string(bucket) + " at level " + std::to_string(level),
        Reason::kBucketOutOfRange);
  }
  return state_.Expand(bucket, static_cast<std::uint8_t>(level));
}

bool Commands::IsRemoved(ShardUid shard) const {
  const auto& removed = state_.topology().removed_shards();
  return std::find(removed.begin(), removed.end(), shard.value()) != removed.end();
}

Status Commands::CheckTarget(ShardUid target) const {
  if (target == state_.shard()) {
    return FailedPrecondition(Reason::kMoveToSelf, "a shard cannot send buckets to itself");
  }
  const auto& shards = state_.topology().shards();
  const bool known = std::any_of(shards.begin(), shards.end(), [&](const v1::ShardInfo& shard) {
    return shard.uid() == target.value();
  });
  if (!known || IsRemoved(target)) {
    return FailedPrecondition(Reason::kNoSuchReplicaset,
                              "shard " + ToHex(target.value()) + " is not in topology " +
                                  std::to_string(state_.topology().version()),
                              {.number = state_.topology().version()});
  }
  return OkStatus();
}

bool Commands::AllAre(const std::vector<BucketEpoch>& set, const TransferId& id,
                      RowStatus status) const {
  return std::all_of(set.begin(), set.end(), [&](const BucketEpoch& member) {
    const Row* row = state_.FindRow(member.bucket);
    return row != nullptr && row->transfer == id && row->status == status;
  });
}

Status Commands::SetPinned(const v1::Pin& command) {
  std::set<std::uint32_t> buckets;
  for (const std::uint32_t named : command.buckets()) {
    ETALON_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> halves, Name(named, command.level()));
    buckets.insert(halves.begin(), halves.end());
  }
  for (const std::uint32_t bucket : buckets) {
    const Row* row = state_.FindRow(bucket);
    const std::string name = ToString(BucketId{state_.level(), bucket});
    if (row == nullptr || !IsWritable(row->status)) {
      return FailedPrecondition(
          Reason::kBucketInvalidUpdate,
          "bucket " + name + " is " +
              (row == nullptr ? "not on this shard" : std::string(RowStatusName(row->status))) +
              "; only an ACTIVE one can be pinned and a PINNED one unpinned");
    }
    if (row->transfer) {
      return FailedPrecondition(Reason::kTransferPending, "bucket " + name + " is being moved by " +
                                                              ToString(row->transfer) +
                                                              "; pin it when it stays");
    }
  }
  const RowStatus wanted = command.unpin() ? RowStatus::kActive : RowStatus::kPinned;
  for (const std::uint32_t bucket : buckets) {
    Row row = *state_.FindRow(bucket);
    if (row.status == wanted) continue;
    row.status = wanted;
    state_.SetRow(bucket, row);
  }
  return OkStatus();
}

Status Commands::Rebase(const v1::Rebase& command) {
  if (command.level() <= state_.level()) return OkStatus();
  if (command.level() > 20 ||
      std::uint64_t{state_.bucket_count()} << command.level() > kModulusCap) {
    return FailedPrecondition(Reason::kModulusCap, "the modulus would be over " +
                                                       std::to_string(kModulusCap) + " buckets");
  }
  // Rows in flight are those of a transfer; a quarantined row has none and divides like any other.
  if (!state_.outgoing().empty() || !state_.incoming().empty()) {
    return FailedPrecondition(Reason::kTransferPending,
                              "buckets of this shard are being moved; its level can rise when none "
                              "is");
  }
  state_.Rebase(static_cast<std::uint8_t>(command.level()));
  return OkStatus();
}

Status Commands::Retire() {
  if (state_.retired()) return OkStatus();
  if (!state_.rows().empty() || !state_.incoming().empty()) {
    return FailedPrecondition(Reason::kNonEmpty,
                              "the shard still has " + std::to_string(state_.rows().size()) +
                                  " buckets; it retires when all are gone",
                              {.number = state_.rows().size()});
  }
  state_.SetRetired();
  return OkStatus();
}

Status Commands::Quarantine(const v1::Quarantine& command) {
  ETALON_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> buckets,
                          Name(command.bucket(), command.level()));
  if (command.own_seen() <= command.epoch() || command.own_seen() >= kEpochEnd - 1) {
    return InvalidArgument("a quarantine needs proof of a higher epoch");
  }
  for (const std::uint32_t bucket : buckets) {
    const Row* row = state_.FindRow(bucket);
    const std::string name = ToString(BucketId{state_.level(), bucket});
    if (row == nullptr || !IsReadable(row->status)) {
      return FailedPrecondition(
          Reason::kBucketInvalidUpdate,
          "only an ACTIVE, PINNED or SENDING bucket can be quarantined, not " + name);
    }
    if (row->epoch.value() != command.epoch()) {
      return FailedPrecondition(Reason::kStaleEpoch,
                                "bucket " + name + " has epoch " +
                                    std::to_string(row->epoch.value()) + ", the proof is for " +
                                    std::to_string(command.epoch()),
                                {.epoch = row->epoch});
    }
  }
  for (const std::uint32_t bucket : buckets) {
    if (const TransferId id = state_.FindRow(bucket)->transfer) {
      Abort(id, "a newer owner of a bucket was seen");
    }
    Row row = *state_.FindRow(bucket);
    row.status = RowStatus::kQuarantined;
    row.own_seen = Epoch(command.own_seen());
    state_.SetRow(bucket, row);
  }
  return OkStatus();
}

Status Commands::Release(const v1::ReleaseQuarantine& command, Position at) {
  ETALON_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> buckets,
                          Name(command.bucket(), command.level()));
  for (const std::uint32_t bucket : buckets) {
    const Row* row = state_.FindRow(bucket);
    if (row == nullptr || row->status != RowStatus::kQuarantined) {
      return FailedPrecondition(
          Reason::kBucketInvalidUpdate,
          "bucket " + ToString(BucketId{state_.level(), bucket}) + " is not quarantined");
    }
  }
  if (command.to_active()) {
    // The user decided for this copy: it must win over the owner that was seen, which then is the
    // one that learns of a newer owner.
    for (const std::uint32_t bucket : buckets) {
      Marks marks = state_.FindMarks(bucket);
      marks.own = state_.FindRow(bucket)->own_seen.Next();
      state_.SetMarks(bucket, marks);
      state_.SetRow(bucket, {.status = RowStatus::kActive, .epoch = marks.own});
    }
    return OkStatus();
  }
  // The rows go the way of every GARBAGE: as those of a transfer, here to nobody.
  Outgoing transfer;
  transfer.id = {state_.shard(), at.term, at.index};
  transfer.level = state_.level();
  for (const std::uint32_t bucket : buckets) {
    Row row = *state_.FindRow(bucket);
    row.status = RowStatus::kGarbage;
    row.transfer = transfer.id;
    transfer.set.push_back({bucket, row.epoch});
    state_.SetRow(bucket, row);
  }
  state_.SetOutgoing(std::move(transfer));
  return OkStatus();
}

Status Commands::Bump(const v1::VersionBump& command) {
  // A version that this program does not know stops the replica before it comes here.
  ETALON_CHECK(command.version() <= kStateVersion, "a bump goes to a known version");
  if (command.version() > state_.header().version()) state_.SetVersion(command.version());
  return OkStatus();
}

}  // namespace etalon::bucket
