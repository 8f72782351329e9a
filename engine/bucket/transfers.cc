// Transfers, step by step: docs/protocols/transfer.md has the protocol, the judging of it is
// engine/transfer's. Here is what each step needs and does at apply.
#include <algorithm>
#include <optional>
#include <utility>

#include "common/check.h"
#include "common/crc32c.h"
#include "engine/bucket/commands.h"
#include "proto/wire.h"

namespace etalon::bucket {
namespace {

Status InvalidUpdate(const TransferId& id, std::string_view what) {
  return FailedPrecondition(Reason::kBucketInvalidUpdate,
                            "transfer " + ToString(id) + ": " + std::string(what),
                            {.text = ToString(id)});
}

Status Retired() {
  return FailedPrecondition(Reason::kShardRetired, "this shard is retired and takes no buckets");
}

// Sorted by bucket; every bucket once, below the modulus, with an epoch that can grow.
template <class Repeated>
Result<std::vector<BucketEpoch>> ParseSet(const Repeated& in, std::uint64_t modulus) {
  std::vector<BucketEpoch> set;
  set.reserve(static_cast<std::size_t>(in.size()));
  for (const v1::BucketEpoch& member : in) {
    if (member.bucket() >= modulus || member.epoch() == 0 || member.epoch() >= kEpochEnd - 1) {
      return InvalidArgument("a set names bucket " + std::to_string(member.bucket()) +
                             " with epoch " + std::to_string(member.epoch()) + " of modulus " +
                             std::to_string(modulus));
    }
    set.push_back({member.bucket(), Epoch(member.epoch())});
  }
  const auto by_bucket = [](const BucketEpoch& a, const BucketEpoch& b) {
    return a.bucket < b.bucket;
  };
  std::sort(set.begin(), set.end(), by_bucket);
  const auto twice = std::adjacent_find(
      set.begin(), set.end(),
      [](const BucketEpoch& a, const BucketEpoch& b) { return a.bucket == b.bucket; });
  if (set.empty() || twice != set.end()) {
    return InvalidArgument("a set names at least one bucket, each once");
  }
  return set;
}

}  // namespace

Status Commands::Open(const v1::Open& command, Position at) {
  if (state_.retired()) return Retired();
  if (!state_.topology().complete()) {
    return FailedPrecondition(Reason::kCollectionIncomplete,
                              "not every shard is formed; nothing moves before that");
  }
  ETALON_RETURN_IF_ERROR(CheckTarget(ShardUid(command.target())));
  if (state_.locked()) {
    return FailedPrecondition(Reason::kReplicasetIsLocked,
                              "this shard is locked: it sends nothing");
  }
  if (command.settings_version() != 0 && command.settings_version() < state_.settings().version()) {
    return FailedPrecondition(
        Reason::kStaleTopology,
        "the order is of older settings than " + std::to_string(state_.settings().version()),
        {.number = state_.settings().version()});
  }
  if (command.level() != state_.level()) {
    return FailedPrecondition(Reason::kBucketOutOfRange,
                              "the order is of level " + std::to_string(command.level()) +
                                  ", this shard stands at " + std::to_string(state_.level()));
  }
  ETALON_RETURN_IF_ERROR(CheckSplitOpens(command));
  Outgoing transfer;
  transfer.id = {state_.shard(), at.term, at.index};
  transfer.target = ShardUid(command.target());
  transfer.level = state_.level();
  transfer.split_task = command.split_task();
  ETALON_ASSIGN_OR_RETURN(transfer.set, ParseSet(command.set(), state_.modulus()));
  for (const BucketEpoch& member : transfer.set) {
    const Row* row = state_.FindRow(member.bucket);
    const std::string name = "bucket " + ToString(BucketId{state_.level(), member.bucket});
    if (row != nullptr && row->status == RowStatus::kPinned) {
      return FailedPrecondition(Reason::kBucketIsPinned, name + " is pinned");
    }
    if (row != nullptr && row->status == RowStatus::kActive && row->transfer) {
      return FailedPrecondition(Reason::kTransferPending,
                                name + " is being moved by " + ToString(row->transfer),
                                {.text = ToString(row->transfer)});
    }
    if (row == nullptr || row->status != RowStatus::kActive) {
      return InvalidUpdate(transfer.id, name + " is not ACTIVE here");
    }
    if (row->epoch != member.epoch) {
      return FailedPrecondition(Reason::kStaleEpoch,
                                name + " has epoch " + std::to_string(row->epoch.value()),
                                {.epoch = row->epoch});
    }
  }
  for (const BucketEpoch& member : transfer.set) {
    Row row = *state_.FindRow(member.bucket);
    row.transfer = transfer.id;
    state_.SetRow(member.bucket, row);
  }
  SplitOpened(transfer);
  state_.SetOutgoing(std::move(transfer));
  return OkStatus();
}

Status Commands::Receive(const v1::Receiving& command) {
  const TransferId id = etalon::FromProto(command.id());
  if (state_.retired()) return Retired();
  if (!id || !id.index) return InvalidArgument("a transfer has an ID");
  if (id.source == state_.shard()) {
    return FailedPrecondition(Reason::kMoveToSelf, "a shard cannot receive from itself");
  }
  if (!state_.topology().complete()) {
    return FailedPrecondition(Reason::kCollectionIncomplete,
                              "not every shard is formed; nothing moves before that");
  }
  if (IsRemoved(id.source)) {
    return FailedPrecondition(Reason::kNoSuchReplicaset,
                              "shard " + ToHex(id.source.value()) + " is removed");
  }
  if (state_.locked()) {
    return FailedPrecondition(Reason::kReplicasetIsLocked,
                              "this shard is locked: it takes nothing");
  }
  if (command.level() > state_.level()) {
    return FailedPrecondition(Reason::kTransferPending,
                              "the set is of level " + std::to_string(command.level()) +
                                  ": this shard must rebase to it first",
                              {.number = command.level()});
  }
  Incoming transfer;
  transfer.id = id;
  transfer.level = static_cast<std::uint8_t>(command.level());
  ETALON_ASSIGN_OR_RETURN(transfer.set, ParseSet(command.set(), std::uint64_t{state_.bucket_count()}
                                                                    << command.level()));
  const std::vector<BucketEpoch> here = state_.Expand(transfer.set, transfer.level);
  for (const BucketEpoch& member : here) {
    const std::string name = "bucket " + ToString(BucketId{state_.level(), member.bucket});
    if (const Row* row = state_.FindRow(member.bucket)) {
      return InvalidUpdate(id,
                           name + " is " + std::string(RowStatusName(row->status)) + " already");
    }
    // Without this a delayed order would take a bucket that has moved on.
    if (const Epoch own = state_.FindMarks(member.bucket).own; own > member.epoch) {
      return FailedPrecondition(Reason::kStaleEpoch,
                                name + " was here at epoch " + std::to_string(own.value()) +
                                    "; the order is of epoch " +
                                    std::to_string(member.epoch.value()),
                                {.epoch = own});
    }
  }
  DeleteRanges(here);
  for (const BucketEpoch& member : here) {
    state_.SetRow(member.bucket,
                  {.status = RowStatus::kReceiving, .epoch = member.epoch.Next(), .transfer = id});
  }
  state_.AddIncoming(std::move(transfer));
  return OkStatus();
}

Status Commands::CheckRecords(const v1::ChunkPayload& payload, const TransferId& id) const {
  for (const v1::ChunkRecord& record : payload.records()) {
    const auto parts = store::ParseDataKey(record.key(), state_.bucket_count());
    if (!parts.ok()) return parts.status();
    const Row* row = state_.FindRow(state_.BucketAt(parts->value));
    if (row == nullptr || row->transfer != id)
      return DataLoss("a record is of no bucket of the set");
    if (parts->space == store::kNoSpace) return DataLoss("a record is of no space");
    if (parts->space != store::kRequestSpace) continue;
    std::string_view result;
    if (!ParseRequestKey(record.key())) return DataLoss("the key of a request ID is damaged");
    if (record.tombstone()) continue;
    ETALON_RETURN_IF_ERROR(ParseRequestValue(record.value(), &result).status());
    v1::RequestResult parsed;
    if (!parsed.ParseFromArray(result.data(), static_cast<int>(result.size()))) {
      return DataLoss("the result of a request ID is damaged");
    }
  }
  return OkStatus();
}

void Commands::PutRecords(v1::ChunkPayload payload) {
  for (v1::ChunkRecord& record : *payload.mutable_records()) {
    if (const std::optional<RequestKey> request = ParseRequestKey(record.key())) {
      if (record.tombstone() || record.life_millis() == 0) {
        requests_.Erase(*request, changes_);
        continue;
      }
      std::string_view result;
      ETALON_CHECK(ParseRequestValue(record.value(), &result).ok(), "records are checked before");
      // Life goes on in our own log time.
      requests_.Put(*request, EndOfLife(state_.log_time(), record.life_millis()), result, changes_);
    } else if (record.tombstone()) {
      changes_.batch().Delete(std::move(*record.mutable_key()));
    } else {
      changes_.batch().Put(std::move(*record.mutable_key()), std::move(*record.mutable_value()));
    }
  }
}

Status Commands::Take(const v1::Chunk& command) {
  const TransferId id = etalon::FromProto(command.id());
  const auto it = state_.incoming().find(id);
  if (it == state_.incoming().end()) {
    return FailedPrecondition(Reason::kUnknownTransfer,
                              "transfer " + ToString(id) + " is not arriving here");
  }
  Incoming next = it->second;
  if (command.number() != 0 && command.number() < next.next_number) return OkStatus();  // again
  // All rows of a set have one status.
  const Row& row = *state_.FindRow(next.set.front().bucket);
  if (row.status != RowStatus::kReceiving || next.prepared) {
    return InvalidUpdate(id, "takes no more chunks");
  }
  const auto mismatch = [&](std::string_view what) {
    return DataLoss("transfer " + ToString(id) + ": chunk " + std::to_string(command.number()) +
                    ": " + std::string(what));
  };
  if (next.mismatch) return mismatch("what came before is not what the source sent");
  if (command.number() != next.next_number) {
    return FailedPrecondition(
        Reason::kTransferPending,
        "transfer " + ToString(id) + " needs chunk " + std::to_string(next.next_number) + " next",
        {.number = next.next_number});
  }
  // Damaged on its way: the source's bytes may be right.
  if (Crc32c(command.payload()) != command.crc()) return mismatch("its checksum is wrong");

  // From here on the same bytes would come again, so a fault is remembered.
  const auto remember = [&](std::string_view what) {
    next = it->second;
    next.mismatch = true;
    state_.UpdateIncoming(next);
    return mismatch(what);
  };
  v1::ChunkPayload payload;
  if (!payload.ParseFromString(command.payload())) return remember("it cannot be parsed");
  if (const Status bad = CheckRecords(payload, id); !bad.ok()) return remember(bad.message());
  ++next.next_number;
  next.hash = ChainChunk(next.hash, command.number(), command.crc());
  next.records += static_cast<std::uint64_t>(payload.records_size());
  for (const v1::ChunkRecord& record : payload.records()) {
    next.bytes += record.key().size() + record.value().size();
  }
  if (command.last()) {
    if (command.hash() != next.hash || command.records() != next.records ||
        command.bytes() != next.bytes) {
      return remember("the hash or the counts of the whole are not the source's");
    }
    next.prepared = true;
  }
  PutRecords(std::move(payload));
  state_.UpdateIncoming(next);
  return OkStatus();
}

Status Commands::Step(const v1::TransferStep& command, Position at) {
  const TransferId id = etalon::FromProto(command.id());
  if (const auto it = state_.outgoing().find(id); it != state_.outgoing().end()) {
    return StepAtSource(command, at, it->second);
  }
  if (const auto it = state_.incoming().find(id); it != state_.incoming().end()) {
    return StepAtTarget(command, it->second);
  }
  return InvalidUpdate(id, "no row carries it");
}

Status Commands::StepAtSource(const v1::TransferStep& command, Position at,
                              const Outgoing& transfer) {
  const TransferId id = transfer.id;
  const std::vector<BucketEpoch> set = transfer.set;
  const auto move = [&](RowStatus to) {
    for (const BucketEpoch& member : set) {
      Row row = *state_.FindRow(member.bucket);
      row.status = to;
      state_.SetRow(member.bucket, row);
    }
  };
  Outgoing next = transfer;
  const auto kind = command.kind();
  if (kind == v1::TransferStep::SENDING && AllAre(set, id, RowStatus::kActive)) {
    move(RowStatus::kSending);
    next.sending_index = at.index;
    SplitSending(next);
    state_.SetOutgoing(std::move(next));
    return OkStatus();
  }
  if (kind == v1::TransferStep::SENT && AllAre(set, id, RowStatus::kSending)) {
    for (const BucketEpoch& member : set) {
      Marks marks = state_.FindMarks(member.bucket);
      marks.left_epoch = member.epoch;
      marks.left = id;
      marks.left_to = transfer.target;
      state_.SetMarks(member.bucket, marks);
    }
    move(RowStatus::kSent);
    SplitSent(next);
    state_.SetOutgoing(std::move(next));
    return OkStatus();
  }
  if (kind == v1::TransferStep::ABORT &&
      (AllAre(set, id, RowStatus::kActive) || AllAre(set, id, RowStatus::kSending))) {
    Abort(id, command.why());
    return OkStatus();
  }
  if (kind == v1::TransferStep::SOURCE_GARBAGE && AllAre(set, id, RowStatus::kSent)) {
    move(RowStatus::kGarbage);
    state_.SetOutgoing(std::move(next));
    return OkStatus();
  }
  if (kind == v1::TransferStep::REMOVE && AllAre(set, id, RowStatus::kGarbage)) {
    RemoveRows(set);
    state_.EraseOutgoing(id);
    return OkStatus();
  }
  return InvalidUpdate(
      id, v1::TransferStep::Kind_Name(command.kind()) + " does not fit the state of its buckets");
}

Status Commands::StepAtTarget(const v1::TransferStep& command, const Incoming& transfer) {
  const TransferId id = transfer.id;
  const std::vector<BucketEpoch> here = state_.Expand(transfer.set, transfer.level);
  const auto kind = command.kind();
  if (kind == v1::TransferStep::ACTIVATE && AllAre(here, id, RowStatus::kReceiving) &&
      transfer.prepared) {
    for (const BucketEpoch& member : here) {
      Marks marks = state_.FindMarks(member.bucket);
      marks.own = member.epoch.Next();
      state_.SetMarks(member.bucket, marks);
      state_.SetRow(member.bucket, {.status = RowStatus::kActive, .epoch = marks.own});
    }
    state_.EraseIncoming(id);
    return OkStatus();
  }
  // One that was judged on "not prepared" must find it so.
  if (kind == v1::TransferStep::TARGET_GARBAGE && AllAre(here, id, RowStatus::kReceiving) &&
      !(command.only_unprepared() && transfer.prepared)) {
    for (const BucketEpoch& member : here) {
      Row row = *state_.FindRow(member.bucket);
      row.status = RowStatus::kGarbage;
      state_.SetRow(member.bucket, row);
    }
    state_.UpdateIncoming(transfer);
    return OkStatus();
  }
  if (kind == v1::TransferStep::REMOVE && AllAre(here, id, RowStatus::kGarbage)) {
    RemoveRows(here);
    state_.EraseIncoming(id);
    return OkStatus();
  }
  return InvalidUpdate(
      id, v1::TransferStep::Kind_Name(command.kind()) + " does not fit the state of its buckets");
}

void Commands::Abort(const TransferId& id, std::string_view why) {
  const Outgoing transfer = state_.outgoing().at(id);
  bool frozen = false;
  for (const BucketEpoch& member : transfer.set) {
    Row row = *state_.FindRow(member.bucket);
    frozen = row.status == RowStatus::kSending;
    row.status = RowStatus::kActive;
    row.transfer = {};
    state_.SetRow(member.bucket, row);
  }
  state_.EraseOutgoing(id);
  SplitAborted(transfer, frozen, why);
}

void Commands::RemoveRows(const std::vector<BucketEpoch>& set) {
  for (const BucketEpoch& member : set) state_.EraseRow(member.bucket);
  DeleteRanges(set);
}

void Commands::DeleteRanges(const std::vector<BucketEpoch>& set) {
  std::vector<store::KeyRange> ranges;
  ranges.reserve(set.size());
  for (const BucketEpoch& member : set) {
    ranges.push_back(
        store::BucketRange(BucketId{state_.level(), member.bucket}, state_.bucket_count()));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const store::KeyRange& a, const store::KeyRange& b) { return a.begin < b.begin; });
  // Neighbours become one range: each delete costs every later read of the store a little.
  std::size_t kept = 0;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin == ranges[kept].end) {
      ranges[kept].end = std::move(ranges[i].end);
    } else if (++kept != i) {
      ranges[kept] = std::move(ranges[i]);
    }
  }
  ranges.resize(kept + 1);
  for (store::KeyRange& range : ranges) {
    requests_.Forget(range, changes_);
    changes_.batch().DeleteRange(std::move(range.begin), std::move(range.end));
  }
}

}  // namespace etalon::bucket
