#include <functional>
#include <optional>

#include "engine/bucket/meta_codec.h"
#include "engine/bucket/shard_state.h"
#include "engine/bucket/state_machine.h"
#include "proto/wire.h"

namespace etalon::bucket {
namespace {

Status Damaged(std::string_view what) {
  return DataLoss("the state beside the records is damaged: " + std::string(what) +
                  ". This replica must be built anew from the others");
}

// Whether a message was there.
template <class Message>
Result<bool> GetMessage(const store::Store& store, const std::string& key, std::string_view what,
                        Message* message) {
  ETALON_ASSIGN_OR_RETURN(const std::optional<std::string> bytes, store.Get(key));
  if (!bytes) return false;
  if (!message->ParseFromString(*bytes)) return Damaged(what);
  return true;
}

template <class Message>
Status ForEach(const store::Snapshot& snapshot, const store::KeyRange& range, std::string_view what,
               const std::function<bool(const Message&)>& take) {
  const auto it = snapshot.NewIterator(range.begin, range.end);
  Message message;
  for (; it->Valid(); it->Next()) {
    const std::string_view value = it->value();
    if (!message.ParseFromArray(value.data(), static_cast<int>(value.size())) || !take(message)) {
      return Damaged(what);
    }
  }
  return it->status();
}

}  // namespace

Status ShardState::Load(const store::Store& store) {
  ETALON_ASSIGN_OR_RETURN(const bool formed, GetMessage(store, HeaderKey(), "header", &header_));
  if (!formed) {
    return FailedPrecondition(Reason::kUnformed, "this store belongs to no shard yet");
  }
  if (header_.version() > kStateVersion) {
    return FailedPrecondition(Reason::kNewerFormat,
                              "the state has version " + std::to_string(header_.version()) +
                                  ", this program knows " + std::to_string(kStateVersion) +
                                  ". Run the newer program",
                              {.number = header_.version()});
  }
  members_.assign(header_.members().begin(), header_.members().end());
  header_.clear_members();
  ETALON_ASSIGN_OR_RETURN(const bool topology,
                          GetMessage(store, TopologyKey(), "topology", &topology_));
  ETALON_ASSIGN_OR_RETURN(const bool settings,
                          GetMessage(store, SettingsKey(), "settings", &settings_));
  if (!topology || !settings) return Damaged("no topology or no settings");
  if (topology_.bucket_count() == 0 || header_.level() > 20 || modulus() > kModulusCap) {
    return Damaged("the modulus");
  }
  IndexTopology();
  IndexSettings();

  const auto snapshot = store.NewSnapshot();
  ETALON_RETURN_IF_ERROR(
      ForEach<v1::Row>(*snapshot, RowKeys(), "a row", [this](const v1::Row& proto) {
        const Row row = FromProto(proto);
        if (row.status < RowStatus::kActive || row.status > RowStatus::kQuarantined) return false;
        Count(row.status, 1);
        rows_.emplace_hint(rows_.end(), proto.bucket(), row);
        return true;
      }));
  ETALON_RETURN_IF_ERROR(
      ForEach<v1::Marks>(*snapshot, MarksKeys(), "marks", [this](const v1::Marks& proto) {
        marks_.emplace_hint(marks_.end(), proto.bucket(), FromProto(proto));
        return true;
      }));
  ETALON_RETURN_IF_ERROR(ForEach<v1::OutgoingTransfer>(
      *snapshot, OutgoingKeys(), "a transfer", [this](const v1::OutgoingTransfer& proto) {
        Outgoing transfer = FromProto(proto);
        outgoing_.emplace(transfer.id, std::move(transfer));
        return true;
      }));
  ETALON_RETURN_IF_ERROR(ForEach<v1::IncomingTransfer>(
      *snapshot, IncomingKeys(), "a transfer", [&](const v1::IncomingTransfer& progress) {
        const TransferId id = etalon::FromProto(progress.id());
        v1::IncomingTransfer set;
        const auto found = GetMessage(store, IncomingSetKey(id), "a set", &set);
        incoming_.emplace(id, FromProto(progress, set));
        return found.ok() && *found;
      }));
  ETALON_RETURN_IF_ERROR(
      ForEach<v1::SplitTask>(*snapshot, SplitKeys(), "a split", [this](const v1::SplitTask& proto) {
        if (proto.state() < v1::SPLIT_PREPARING || proto.state() > v1::SPLIT_ABORTED) return false;
        splits_.emplace(proto.task(), FromProto(proto));
        return true;
      }));
  return CheckLoaded();
}

Status ShardState::CheckLoaded() const {
  for (const auto& [bucket, row] : rows_) {
    if (bucket >= modulus()) return Damaged("a row out of range");
    if (row.transfer && !outgoing_.contains(row.transfer) && !incoming_.contains(row.transfer)) {
      return Damaged("a row of a transfer that has no record");
    }
  }
  const auto carried = [this](const std::vector<BucketEpoch>& set, const TransferId& id) {
    for (const BucketEpoch& member : set) {
      const Row* row = FindRow(member.bucket);
      if (row == nullptr || row->transfer != id) return false;
    }
    return !set.empty();
  };
  for (const auto& [id, transfer] : outgoing_) {
    if (transfer.level != level() || !carried(transfer.set, id)) {
      return Damaged("a transfer whose rows do not carry it");
    }
  }
  for (const auto& [id, transfer] : incoming_) {
    if (transfer.level > level() || !carried(Expand(transfer.set, transfer.level), id)) {
      return Damaged("a transfer whose rows do not carry it");
    }
  }
  return OkStatus();
}

}  // namespace etalon::bucket
