#include "engine/bucket/shard_state.h"

#include <algorithm>
#include <optional>

#include "common/check.h"
#include "engine/bucket/meta_codec.h"
#include "engine/bucket/transitions.h"

namespace etalon::bucket {

const Row* ShardState::FindRow(std::uint32_t bucket) const {
  const auto it = rows_.find(bucket);
  return it == rows_.end() ? nullptr : &it->second;
}

Marks ShardState::FindMarks(std::uint32_t bucket) const {
  const auto it = marks_.find(bucket);
  return it == marks_.end() ? Marks{} : it->second;
}

const SplitTask* ShardState::OpenSplit() const {
  for (const auto& [name, task] : splits_) {
    if (task.state != SplitState::kDone && task.state != SplitState::kAborted) return &task;
  }
  return nullptr;
}

Result<SpaceId> ShardState::FindSpace(std::string_view name) const {
  const auto it = spaces_.find(name);
  if (it != spaces_.end()) return it->second;
  std::string names;
  for (const auto& [known, number] : spaces_) names.append(names.empty() ? "" : ", ").append(known);
  return InvalidArgument("there is no space \"" + std::string(name.substr(0, 64)) +
                             "\"; there are: " + (names.empty() ? "none" : names) +
                             ". Declare it in spec.spaces",
                         Reason::kUnknownSpace);
}

std::string_view ShardState::SpaceName(SpaceId space) const {
  const auto it = space_names_.find(space);
  return it == space_names_.end() ? std::string_view() : it->second;
}

std::vector<std::uint32_t> ShardState::Expand(std::uint32_t bucket, std::uint8_t at) const {
  ETALON_CHECK(at <= level(), "only a bucket of a lower level can be expanded");
  std::vector<std::uint32_t> out;
  const std::uint64_t step = std::uint64_t{bucket_count()} << at;
  for (std::uint64_t b = bucket; b < modulus(); b += step) {
    out.push_back(static_cast<std::uint32_t>(b));
  }
  return out;
}

std::vector<BucketEpoch> ShardState::Expand(const std::vector<BucketEpoch>& set,
                                            std::uint8_t at) const {
  std::vector<BucketEpoch> out;
  out.reserve(set.size() << (level() - at));
  for (const BucketEpoch& member : set) {
    for (const std::uint32_t bucket : Expand(member.bucket, at)) {
      out.push_back({bucket, member.epoch});
    }
  }
  std::sort(out.begin(), out.end(),
            [](const BucketEpoch& a, const BucketEpoch& b) { return a.bucket < b.bucket; });
  return out;
}

Status ShardState::Elsewhere(std::uint32_t bucket) const {
  Hint hint;
  const Marks marks = FindMarks(bucket);
  if (marks.left_to && marks.left_epoch >= marks.own) {
    hint.destination = marks.left_to;
    hint.epoch = marks.left_epoch.Next();
  }
  return Aborted(Reason::kWrongBucket,
                 "bucket " + ToString(BucketId{level(), bucket}) + " is not on this shard",
                 std::move(hint));
}

Status ShardState::CheckEpoch(std::uint32_t bucket, Epoch here, Epoch named) const {
  if (!named || named == here) return OkStatus();
  const std::string text = "bucket " + ToString(BucketId{level(), bucket}) + " has epoch " +
                           std::to_string(here.value()) + " here, the call names " +
                           std::to_string(named.value());
  // The caller knows of a newer owner than us.
  if (named > here) return Aborted(Reason::kWrongBucket, text);
  return Aborted(Reason::kStaleEpoch, text, {.destination = shard(), .epoch = here});
}

Status ShardState::CheckWrite(RoutingValue v, Epoch named) const {
  const std::uint32_t bucket = BucketAt(v);
  const Row* row = FindRow(bucket);
  if (row == nullptr) return Elsewhere(bucket);
  switch (row->status) {
    case RowStatus::kActive:
    case RowStatus::kPinned:
      return CheckEpoch(bucket, row->epoch, named);
    case RowStatus::kSending:
      return Unavailable(Reason::kTransferIsInProgress,
                         "bucket " + ToString(BucketId{level(), bucket}) +
                             " is at the end of a move; its writes wait");
    case RowStatus::kSent:
    case RowStatus::kReceiving:
    case RowStatus::kGarbage:
    case RowStatus::kQuarantined:
      break;
  }
  return CheckRead(v, named);  // neither reads nor writes, for one reason
}

Status ShardState::CheckRead(RoutingValue v, Epoch named) const {
  const std::uint32_t bucket = BucketAt(v);
  const Row* row = FindRow(bucket);
  if (row == nullptr) return Elsewhere(bucket);
  switch (row->status) {
    case RowStatus::kActive:
    case RowStatus::kPinned:
    case RowStatus::kSending:
      return CheckEpoch(bucket, row->epoch, named);
    case RowStatus::kSent:
    case RowStatus::kGarbage:
      return Elsewhere(bucket);
    case RowStatus::kReceiving:
      return Unavailable(Reason::kTransferIsInProgress,
                         "bucket " + ToString(BucketId{level(), bucket}) + " is arriving");
    case RowStatus::kQuarantined:
      break;
  }
  return FailedPrecondition(Reason::kQuarantined,
                            "bucket " + ToString(BucketId{level(), bucket}) +
                                " is quarantined: another shard has owned it at epoch " +
                                std::to_string(row->own_seen.value()) +
                                ". Compare both copies, then release or drop this one");
}

Status ShardState::CheckLevel(const v1::Call& call) const {
  if (!call.has_level() || level() <= call.level()) return OkStatus();
  return Aborted(Reason::kBucketOutOfRange,
                 "the call means a bucket of level " + std::to_string(call.level()) +
                     ", this shard has risen to level " + std::to_string(level()),
                 {.number = level()});
}

void ShardState::SetApplied(LogIndex index, Term term) {
  header_.set_applied_index(index.value());
  header_.set_applied_term(term.value());
}

void ShardState::AdvanceTime(LogTime now) {
  if (now > log_time()) header_.set_log_time_millis(now.value());
}

void ShardState::SetMembers(std::vector<v1::MemberInfo> members) { members_ = std::move(members); }

void ShardState::PutHeader() {
  v1::StateHeader header = header_;
  for (const v1::MemberInfo& member : members_) *header.add_members() = member;
  changes_.batch().Put(HeaderKey(), header.SerializeAsString());
}

void ShardState::PutRow(std::uint32_t bucket, const Row& row) {
  changes_.batch().Put(RowKey(bucket), ToProto(bucket, row).SerializeAsString());
}

void ShardState::PutMarks(std::uint32_t bucket, const Marks& marks) {
  changes_.batch().Put(MarksKey(bucket), ToProto(bucket, marks).SerializeAsString());
}

void ShardState::SetRow(std::uint32_t bucket, const Row& row) {
  const auto [it, added] = rows_.try_emplace(bucket, row);
  const std::optional<RowStatus> from =
      added ? std::nullopt : std::optional<RowStatus>(it->second.status);
  ETALON_CHECK(from == row.status || MayBecome(from, row.status),
               "a row changes by the table of bucket states only");
  if (from) Count(*from, -1);
  Count(row.status, 1);
  it->second = row;
  PutRow(bucket, row);
  changes_.Tell({.kind = Event::Kind::kRow, .bucket = bucket});
}

void ShardState::EraseRow(std::uint32_t bucket) {
  const auto it = rows_.find(bucket);
  ETALON_CHECK(it != rows_.end() && MayBecome(it->second.status, std::nullopt),
               "a row goes by the table of bucket states only");
  Count(it->second.status, -1);
  rows_.erase(it);
  changes_.batch().Delete(RowKey(bucket));
  changes_.Tell({.kind = Event::Kind::kRow, .bucket = bucket});
}

void ShardState::SetMarks(std::uint32_t bucket, const Marks& marks) {
  marks_[bucket] = marks;
  PutMarks(bucket, marks);
}

void ShardState::SetOutgoing(Outgoing transfer) {
  const TransferId id = transfer.id;
  const bool opened = transfer.target && !outgoing_.contains(id);
  changes_.batch().Put(OutgoingKey(id), ToProto(transfer).SerializeAsString());
  outgoing_[id] = std::move(transfer);
  changes_.Tell({.kind = opened ? Event::Kind::kOpened : Event::Kind::kOutgoing, .transfer = id});
}

void ShardState::EraseOutgoing(const TransferId& id) {
  outgoing_.erase(id);
  changes_.batch().Delete(OutgoingKey(id));
  changes_.Tell({.kind = Event::Kind::kOutgoing, .transfer = id});
}

void ShardState::AddIncoming(Incoming transfer) {
  const TransferId id = transfer.id;
  changes_.batch().Put(IncomingSetKey(id), SetToProto(transfer).SerializeAsString());
  const auto [it, added] = incoming_.emplace(id, std::move(transfer));
  ETALON_CHECK(added, "a transfer arrives once");
  UpdateIncoming(it->second);
}

void ShardState::UpdateIncoming(const Incoming& transfer) {
  const auto it = incoming_.find(transfer.id);
  ETALON_CHECK(it != incoming_.end(), "only a known transfer can change");
  it->second.next_number = transfer.next_number;
  it->second.hash = transfer.hash;
  it->second.records = transfer.records;
  it->second.bytes = transfer.bytes;
  it->second.prepared = transfer.prepared;
  it->second.mismatch = transfer.mismatch;
  changes_.batch().Put(IncomingKey(transfer.id), ProgressToProto(transfer).SerializeAsString());
  changes_.Tell({.kind = Event::Kind::kIncoming, .transfer = transfer.id});
}

void ShardState::EraseIncoming(const TransferId& id) {
  incoming_.erase(id);
  changes_.batch().Delete(IncomingKey(id));
  changes_.batch().Delete(IncomingSetKey(id));
  changes_.Tell({.kind = Event::Kind::kIncoming, .transfer = id});
}

void ShardState::SetSplit(SplitTask task) {
  const std::string name = task.task;
  changes_.batch().Put(SplitKey(name), ToProto(task).SerializeAsString());
  splits_[name] = std::move(task);
  changes_.Tell({.kind = Event::Kind::kSplit, .text = name});
}

void ShardState::SetTopology(v1::Topology topology) {
  topology_ = std::move(topology);
  IndexTopology();
  changes_.batch().Put(TopologyKey(), topology_.SerializeAsString());
  changes_.Tell({.kind = Event::Kind::kTopology});
}

void ShardState::IndexTopology() {
  spaces_.clear();
  space_names_.clear();
  for (const v1::Space& space : topology_.spaces()) {
    const SpaceId number(static_cast<std::uint16_t>(space.number()));
    spaces_[space.name()] = number;
    space_names_[number] = space.name();
  }
}

void ShardState::SetSettings(v1::Settings settings) {
  settings_ = std::move(settings);
  IndexSettings();
  changes_.batch().Put(SettingsKey(), settings_.SerializeAsString());
  changes_.Tell({.kind = Event::Kind::kSettings});
}

void ShardState::IndexSettings() {
  locked_ = std::any_of(
      settings_.shards().begin(), settings_.shards().end(),
      [this](const v1::ShardSettings& s) { return s.uid() == header_.shard() && s.locked(); });
}

void ShardState::Rebase(std::uint8_t to) {
  const std::uint64_t old_modulus = modulus();
  const std::uint64_t new_modulus = std::uint64_t{bucket_count()} << to;
  ETALON_CHECK(to > level() && new_modulus <= kModulusCap, "a rebase goes up, to the cap");
  // The copies come after the last original in the order of the map.
  const std::vector<std::pair<std::uint32_t, Row>> rows(rows_.begin(), rows_.end());
  const std::vector<std::pair<std::uint32_t, Marks>> marks(marks_.begin(), marks_.end());
  for (std::uint64_t shift = old_modulus; shift < new_modulus; shift += old_modulus) {
    for (const auto& [bucket, row] : rows) {
      const auto copy = static_cast<std::uint32_t>(bucket + shift);
      rows_.emplace_hint(rows_.end(), copy, row);
      Count(row.status, 1);
      PutRow(copy, row);
    }
    for (const auto& [bucket, mark] : marks) {
      const auto copy = static_cast<std::uint32_t>(bucket + shift);
      marks_.emplace_hint(marks_.end(), copy, mark);
      PutMarks(copy, mark);
    }
  }
  header_.set_level(to);
  changes_.Tell({.kind = Event::Kind::kRebase});
}

void ShardState::Form(CollectionId collection, ShardUid shard, std::uint32_t version) {
  header_.set_collection(collection.value());
  header_.set_shard(shard.value());
  header_.set_version(version);
}

}  // namespace etalon::bucket
