#include "engine/bucket/meta_codec.h"

#include "common/bytes.h"
#include "proto/wire.h"

namespace etalon::bucket {
namespace {

constexpr std::string_view kRows = "state/row/";
constexpr std::string_view kMarks = "state/marks/";
constexpr std::string_view kOutgoing = "state/outgoing/";
constexpr std::string_view kIncoming = "state/incoming/";
constexpr std::string_view kIncomingSet = "state/incoming-set/";
constexpr std::string_view kSplits = "state/split/";

std::string NumberedKey(std::string_view kind, std::uint32_t number) {
  std::string key = store::MetaKey(kind);
  PutBe32(&key, number);
  return key;
}

std::string TransferKey(std::string_view kind, const TransferId& id) {
  std::string key = store::MetaKey(kind);
  PutBe64(&key, id.source.value());
  PutBe64(&key, id.term.value());
  PutBe64(&key, id.index.value());
  return key;
}

store::KeyRange KeysOf(std::string_view kind) {
  std::string begin = store::MetaKey(kind);
  std::string end = PrefixEnd(begin);
  return {std::move(begin), std::move(end)};
}

template <class Repeated>
void PutSet(const std::vector<BucketEpoch>& set, Repeated* out) {
  out->Reserve(static_cast<int>(set.size()));
  for (const BucketEpoch& member : set) {
    auto* added = out->Add();
    added->set_bucket(member.bucket);
    added->set_epoch(member.epoch.value());
  }
}

template <class Repeated>
std::vector<BucketEpoch> GetSet(const Repeated& set) {
  std::vector<BucketEpoch> out;
  out.reserve(static_cast<std::size_t>(set.size()));
  for (const auto& member : set) out.push_back({member.bucket(), Epoch(member.epoch())});
  return out;
}

}  // namespace

std::string HeaderKey() { return store::MetaKey("state/header"); }
std::string TopologyKey() { return store::MetaKey("state/topology"); }
std::string SettingsKey() { return store::MetaKey("state/settings"); }
std::string RowKey(std::uint32_t bucket) { return NumberedKey(kRows, bucket); }
std::string MarksKey(std::uint32_t bucket) { return NumberedKey(kMarks, bucket); }
std::string OutgoingKey(const TransferId& id) { return TransferKey(kOutgoing, id); }
std::string IncomingKey(const TransferId& id) { return TransferKey(kIncoming, id); }
std::string IncomingSetKey(const TransferId& id) { return TransferKey(kIncomingSet, id); }
std::string SplitKey(std::string_view task) {
  return store::MetaKey(std::string(kSplits).append(task));
}

store::KeyRange RowKeys() { return KeysOf(kRows); }
store::KeyRange MarksKeys() { return KeysOf(kMarks); }
store::KeyRange OutgoingKeys() { return KeysOf(kOutgoing); }
store::KeyRange IncomingKeys() { return KeysOf(kIncoming); }
store::KeyRange IncomingSetKeys() { return KeysOf(kIncomingSet); }
store::KeyRange SplitKeys() { return KeysOf(kSplits); }
store::KeyRange StateKeys() { return KeysOf("state/"); }

v1::Row ToProto(std::uint32_t bucket, const Row& row) {
  v1::Row out;
  out.set_bucket(bucket);
  out.set_status(static_cast<v1::BucketStatus>(row.status));
  out.set_epoch(row.epoch.value());
  if (row.transfer) *out.mutable_transfer() = ToProto(row.transfer);
  out.set_own_seen(row.own_seen.value());
  return out;
}

Row FromProto(const v1::Row& row) {
  return {.status = static_cast<RowStatus>(row.status()),
          .epoch = Epoch(row.epoch()),
          .transfer = etalon::FromProto(row.transfer()),
          .own_seen = Epoch(row.own_seen())};
}

v1::Marks ToProto(std::uint32_t bucket, const Marks& marks) {
  v1::Marks out;
  out.set_bucket(bucket);
  out.set_own(marks.own.value());
  out.set_left_epoch(marks.left_epoch.value());
  if (marks.left) *out.mutable_left() = ToProto(marks.left);
  out.set_left_to(marks.left_to.value());
  return out;
}

Marks FromProto(const v1::Marks& marks) {
  return {.own = Epoch(marks.own()),
          .left_epoch = Epoch(marks.left_epoch()),
          .left = etalon::FromProto(marks.left()),
          .left_to = ShardUid(marks.left_to())};
}

v1::OutgoingTransfer ToProto(const Outgoing& transfer) {
  v1::OutgoingTransfer out;
  *out.mutable_id() = ToProto(transfer.id);
  out.set_target(transfer.target.value());
  out.set_level(transfer.level);
  PutSet(transfer.set, out.mutable_set());
  out.set_split_task(transfer.split_task);
  out.set_sending_index(transfer.sending_index.value());
  return out;
}

Outgoing FromProto(const v1::OutgoingTransfer& transfer) {
  return {.id = etalon::FromProto(transfer.id()),
          .target = ShardUid(transfer.target()),
          .level = static_cast<std::uint8_t>(transfer.level()),
          .set = GetSet(transfer.set()),
          .split_task = transfer.split_task(),
          .sending_index = LogIndex(transfer.sending_index())};
}

v1::IncomingTransfer SetToProto(const Incoming& transfer) {
  v1::IncomingTransfer out;
  PutSet(transfer.set, out.mutable_set());
  return out;
}

v1::IncomingTransfer ProgressToProto(const Incoming& transfer) {
  v1::IncomingTransfer out;
  *out.mutable_id() = ToProto(transfer.id);
  out.set_level(transfer.level);
  out.set_next_number(transfer.next_number);
  out.set_hash(transfer.hash);
  out.set_records(transfer.records);
  out.set_bytes(transfer.bytes);
  out.set_prepared(transfer.prepared);
  out.set_mismatch(transfer.mismatch);
  return out;
}

Incoming FromProto(const v1::IncomingTransfer& transfer, const v1::IncomingTransfer& set) {
  return {.id = etalon::FromProto(transfer.id()),
          .level = static_cast<std::uint8_t>(transfer.level()),
          .set = GetSet(set.set()),
          .next_number = transfer.next_number(),
          .hash = transfer.hash(),
          .records = transfer.records(),
          .bytes = transfer.bytes(),
          .prepared = transfer.prepared(),
          .mismatch = transfer.mismatch()};
}

v1::SplitTask ToProto(const SplitTask& task) {
  v1::SplitTask out;
  out.set_task(task.task);
  out.set_target(task.target.value());
  out.set_state(static_cast<v1::SplitState>(task.state));
  out.set_t_switch(task.t_switch.value());
  out.set_fence(task.fence.value());
  if (task.transfer) *out.mutable_transfer() = ToProto(task.transfer);
  out.set_why(task.why);
  return out;
}

SplitTask FromProto(const v1::SplitTask& task) {
  return {.task = task.task(),
          .target = ShardUid(task.target()),
          .state = static_cast<SplitState>(task.state()),
          .t_switch = LogIndex(task.t_switch()),
          .fence = LogIndex(task.fence()),
          .transfer = etalon::FromProto(task.transfer()),
          .why = task.why()};
}

}  // namespace etalon::bucket
