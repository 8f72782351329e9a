// For tests: an observer that writes down what it is told, and a shard of one
// replica that compares its memory with its store after every group.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/crc32c.h"
#include "engine/bucket/map_store.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/keys.h"
#include "proto/wire.h"

namespace etalon::bucket::testing {

class Recorder final : public Observer {
 public:
  void OnRow(std::uint32_t bucket, const Row* row) override {
    told.push_back("row " + std::to_string(bucket) + " " +
                   (row ? std::string(RowStatusName(row->status)) : "gone"));
  }
  void OnRebase(std::uint8_t level) override { told.push_back("rebase " + std::to_string(level)); }
  void OnOpened(const Outgoing& transfer) override {
    told.push_back("opened " + ToString(transfer.id));
    if (on_opened) on_opened(transfer);
  }
  void OnOutgoingChanged(const TransferId& id) override {
    told.push_back("outgoing " + ToString(id));
  }
  void OnIncomingChanged(const TransferId& id) override {
    told.push_back("incoming " + ToString(id));
  }
  void OnDataKey(std::uint32_t bucket, std::string_view key) override {
    told.push_back("key " + std::to_string(bucket));
    keys.emplace_back(key);
  }
  void OnSplit(const SplitTask& task) override {
    told.push_back("split " + task.task + " " + std::to_string(static_cast<int>(task.state)));
  }
  void OnTopology() override { told.push_back("topology"); }
  void OnSettings() override { told.push_back("settings"); }

  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  std::vector<std::string> keys;
  std::function<void(const Outgoing&)> on_opened;
};

inline constexpr std::uint32_t kBuckets = 4;
inline constexpr std::uint64_t kCollection = 77;
inline constexpr ShardUid kA{0xa};
inline constexpr ShardUid kB{0xb};
inline constexpr ShardUid kC{0xc};

inline v1::Topology TestTopology(std::uint32_t bucket_count = kBuckets) {
  v1::Topology topology;
  topology.set_version(1);
  topology.set_collection(kCollection);
  topology.set_bucket_count(bucket_count);
  topology.set_complete(true);
  for (const ShardUid uid : {kA, kB, kC}) {
    v1::ShardInfo& shard = *topology.add_shards();
    shard.set_uid(uid.value());
    shard.set_name("shard-" + ToHex(uid.value()));
  }
  std::uint32_t number = 0;
  for (const char* name : {"orders", "accounts"}) {
    v1::Space& space = *topology.add_spaces();
    space.set_name(name);
    space.set_number(++number);
  }
  return topology;
}

inline v1::FormRequest TestForm(ShardUid shard, std::uint32_t bucket_count = kBuckets) {
  v1::FormRequest request;
  request.set_collection(kCollection);
  request.set_shard(shard.value());
  *request.mutable_topology() = TestTopology(bucket_count);
  v1::MemberInfo& member = *request.add_members();
  member.set_member(1);
  member.set_name("replica-0");
  if (shard == kA) request.add_ranges()->set_last(bucket_count - 1);
  return request;
}

// ---- calls ----

inline v1::Call PutCall(std::uint64_t value, std::string key, std::string data,
                        std::string function = "put") {
  v1::PutArgs args;
  args.set_space("orders");
  args.set_key(std::move(key));
  args.set_value(std::move(data));
  v1::Call call;
  call.set_routing_value(value);
  call.set_function(std::move(function));
  call.set_args(args.SerializeAsString());
  return call;
}

inline v1::Call DeleteCall(std::uint64_t value, std::string key) {
  v1::DeleteArgs args;
  args.set_space("orders");
  args.set_key(std::move(key));
  v1::Call call;
  call.set_routing_value(value);
  call.set_function("delete");
  call.set_args(args.SerializeAsString());
  return call;
}

inline v1::Call TxnCall(std::uint64_t value, const v1::TxnArgs& args) {
  v1::Call call;
  call.set_routing_value(value);
  call.set_function("txn");
  call.set_args(args.SerializeAsString());
  return call;
}

inline v1::Call WithId(v1::Call call, std::uint64_t client, std::uint64_t sequence,
                       std::uint32_t ttl = 0) {
  call.mutable_request()->set_client(client);
  call.mutable_request()->set_sequence(sequence);
  call.mutable_request()->set_ttl_millis(ttl);
  return call;
}

// ---- commands ----

template <class Set>
void AddSet(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& set, Set* out) {
  for (const auto& [bucket, epoch] : set) {
    auto* member = out->Add();
    member->set_bucket(bucket);
    member->set_epoch(epoch);
  }
}

inline v1::Control OpenCommand(ShardUid target, std::uint32_t level,
                               std::vector<std::pair<std::uint32_t, std::uint64_t>> set,
                               std::string split_task = "") {
  v1::Control control;
  control.mutable_open()->set_target(target.value());
  control.mutable_open()->set_level(level);
  control.mutable_open()->set_split_task(std::move(split_task));
  AddSet(set, control.mutable_open()->mutable_set());
  return control;
}

inline v1::Control ReceivingCommand(const TransferId& id, std::uint32_t level,
                                    std::vector<std::pair<std::uint32_t, std::uint64_t>> set) {
  v1::Control control;
  *control.mutable_receiving()->mutable_id() = ToProto(id);
  control.mutable_receiving()->set_level(level);
  AddSet(set, control.mutable_receiving()->mutable_set());
  return control;
}

inline v1::Control StepCommand(v1::TransferStep::Kind kind, const TransferId& id) {
  v1::Control control;
  control.mutable_step()->set_kind(kind);
  *control.mutable_step()->mutable_id() = ToProto(id);
  return control;
}

inline v1::Control PinCommand(std::vector<std::uint32_t> buckets, bool unpin = false,
                              std::uint32_t level = 0) {
  v1::Control control;
  control.mutable_pin()->mutable_buckets()->Add(buckets.begin(), buckets.end());
  control.mutable_pin()->set_unpin(unpin);
  control.mutable_pin()->set_level(level);
  return control;
}

inline v1::Control RebaseCommand(std::uint32_t level) {
  v1::Control control;
  control.mutable_rebase()->set_level(level);
  return control;
}

inline v1::Control QuarantineCommand(std::uint32_t bucket, std::uint64_t epoch, std::uint64_t seen,
                                     std::uint32_t level = 0) {
  v1::Control control;
  control.mutable_quarantine()->set_bucket(bucket);
  control.mutable_quarantine()->set_level(level);
  control.mutable_quarantine()->set_epoch(epoch);
  control.mutable_quarantine()->set_own_seen(seen);
  return control;
}

inline v1::Control ReleaseCommand(std::uint32_t bucket, bool to_active, std::uint32_t level = 0) {
  v1::Control control;
  control.mutable_release()->set_bucket(bucket);
  control.mutable_release()->set_level(level);
  control.mutable_release()->set_to_active(to_active);
  return control;
}

inline v1::Control SplitCommand(std::string task, ShardUid target) {
  v1::Control control;
  control.mutable_split()->set_task(std::move(task));
  control.mutable_split()->set_target(target.value());
  return control;
}

inline v1::Control AbortSplitCommand(std::string task, std::string why = "wish") {
  v1::Control control;
  control.mutable_abort_split()->set_task(std::move(task));
  control.mutable_abort_split()->set_why(std::move(why));
  return control;
}

inline v1::Control TopologyCommand(const v1::Topology& topology) {
  v1::Control control;
  *control.mutable_topology() = topology;
  return control;
}

inline v1::Control SettingsCommand(const v1::Settings& settings) {
  v1::Control control;
  *control.mutable_settings() = settings;
  return control;
}

// Cuts the chunks of one transfer.
class ChunkCutter {
 public:
  explicit ChunkCutter(TransferId id) : id_(id) {}

  v1::Control Cut(const v1::ChunkPayload& payload, bool last = false) {
    return Cut(payload.SerializeAsString(), payload, last);
  }
  v1::Control Cut(std::string bytes, const v1::ChunkPayload& counted, bool last) {
    v1::Control control;
    v1::Chunk& chunk = *control.mutable_chunk();
    *chunk.mutable_id() = ToProto(id_);
    chunk.set_number(++number_);
    chunk.set_crc(Crc32c(bytes));
    chunk.set_payload(std::move(bytes));
    hash_ = ChainChunk(hash_, number_, chunk.crc());
    records_ += static_cast<std::uint64_t>(counted.records_size());
    for (const v1::ChunkRecord& record : counted.records()) {
      bytes_ += record.key().size() + record.value().size();
    }
    if (last) {
      chunk.set_last(true);
      chunk.set_hash(hash_);
      chunk.set_records(records_);
      chunk.set_bytes(bytes_);
    }
    return control;
  }

 private:
  TransferId id_;
  std::uint64_t number_ = 0;
  std::uint64_t hash_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;
};

inline v1::BucketCounts Recount(const std::map<std::uint32_t, Row>& rows) {
  std::map<RowStatus, std::uint64_t> n;
  for (const auto& [bucket, row] : rows) ++n[row.status];
  v1::BucketCounts counts;
  counts.set_active(n[RowStatus::kActive]);
  counts.set_pinned(n[RowStatus::kPinned]);
  counts.set_sending(n[RowStatus::kSending]);
  counts.set_sent(n[RowStatus::kSent]);
  counts.set_receiving(n[RowStatus::kReceiving]);
  counts.set_garbage(n[RowStatus::kGarbage]);
  counts.set_quarantined(n[RowStatus::kQuarantined]);
  return counts;
}

// What memory holds must be what a restart would load.
inline void ExpectMirrored(const StateMachine& memory, store::Store& store) {
  Recorder nobody;
  auto loaded = StateMachine::Load(store, nobody);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  const StateMachine& disk = **loaded;
  EXPECT_EQ(memory.applied_index(), disk.applied_index());
  EXPECT_EQ(memory.applied_term(), disk.applied_term());
  EXPECT_EQ(memory.log_time(), disk.log_time());
  EXPECT_EQ(memory.version(), disk.version());
  EXPECT_EQ(memory.level(), disk.level());
  EXPECT_EQ(memory.retired(), disk.retired());
  EXPECT_EQ(memory.locked(), disk.locked());
  EXPECT_EQ(memory.rows(), disk.rows());
  EXPECT_EQ(memory.marks(), disk.marks());
  EXPECT_EQ(memory.outgoing(), disk.outgoing());
  EXPECT_EQ(memory.incoming(), disk.incoming());
  EXPECT_EQ(memory.splits(), disk.splits());
  EXPECT_EQ(memory.live_request_ids(), disk.live_request_ids());
  EXPECT_EQ(memory.topology().SerializeAsString(), disk.topology().SerializeAsString());
  EXPECT_EQ(memory.settings().SerializeAsString(), disk.settings().SerializeAsString());
  const std::string counted = Recount(memory.rows()).SerializeAsString();
  EXPECT_EQ(memory.counts().SerializeAsString(), counted);
  EXPECT_EQ(disk.counts().SerializeAsString(), counted);
}

inline std::vector<v1::MemberInfo> NoMembers(const consensus::Entry&) { return {}; }

// One replica of one shard.
class Shard {
 public:
  explicit Shard(ShardUid uid = kA, std::uint32_t bucket_count = kBuckets)
      : Shard(TestForm(uid, bucket_count)) {}
  explicit Shard(const v1::FormRequest& request) {
    auto batch = StateMachine::FormState(request);
    EXPECT_TRUE(batch.ok()) << batch.status().ToString();
    EXPECT_TRUE(store.Write(std::move(*batch)).ok());
    store.writes = 0;
    Restart();
  }

  void Restart() {
    auto loaded = StateMachine::Load(store, observer);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    sm = std::move(*loaded);
  }

  // Applies entries as one group.
  std::vector<EntryOutcome> Apply(const std::vector<v1::LogEntry>& group) {
    std::vector<std::string> bytes;
    for (const v1::LogEntry& entry : group) bytes.push_back(entry.SerializeAsString());
    auto outcomes = sm->Apply(Entries(bytes), NoMembers);
    EXPECT_TRUE(outcomes.ok()) << outcomes.status().ToString();
    ExpectMirrored(*sm, store);
    return outcomes.ok() ? std::move(*outcomes) : std::vector<EntryOutcome>();
  }

  std::vector<consensus::Entry> Entries(const std::vector<std::string>& bytes) const {
    std::vector<consensus::Entry> entries;
    for (const std::string& data : bytes) {
      entries.push_back({LogIndex(sm->applied_index().value() + entries.size() + 1), term,
                         consensus::EntryKind::kCommands, data});
    }
    return entries;
  }

  v1::LogEntry Entry() const {
    v1::LogEntry entry;
    entry.set_version(kStateVersion);
    entry.set_log_time_millis(now);
    return entry;
  }
  v1::LogEntry Entry(const v1::Control& control) const {
    v1::LogEntry entry = Entry();
    *entry.mutable_control() = control;
    return entry;
  }
  v1::LogEntry Entry(const std::vector<v1::Call>& calls) const {
    v1::LogEntry entry = Entry();
    for (const v1::Call& call : calls) entry.add_calls(call.SerializeAsString());
    return entry;
  }

  Status Do(const v1::Control& control) {
    const auto outcomes = Apply({Entry(control)});
    if (outcomes.size() != 1 || !outcomes[0].control) return Internal("no outcome");
    return *outcomes[0].control;
  }
  CallOutcome Do(const v1::Call& call) { return DoAll({call}).at(0); }
  std::vector<CallOutcome> DoAll(const std::vector<v1::Call>& calls) {
    return Apply({Entry(calls)}).at(0).calls;
  }

  std::optional<std::string> Get(std::uint64_t value, std::string key) const {
    v1::GetArgs args;
    args.set_space("orders");
    args.set_key(std::move(key));
    const auto got = sm->Get(RoutingValue(value), args);
    EXPECT_TRUE(got.ok());
    if (!got.ok() || !got->found()) return std::nullopt;
    return got->value();
  }

  // The ID of the transfer that the last entry opened.
  TransferId Opened() const { return {sm->shard(), term, sm->applied_index()}; }
  std::optional<RowStatus> StatusOf(std::uint32_t bucket) const {
    const Row* row = sm->FindRow(bucket);
    if (row == nullptr) return std::nullopt;
    return row->status;
  }
  // Records of these buckets, as a source sends them.
  v1::ChunkPayload Copy(std::vector<std::uint32_t> buckets) const {
    v1::ChunkPayload payload;
    for (const std::uint32_t bucket : buckets) {
      const store::KeyRange range = store::BucketRange({sm->level(), bucket}, sm->bucket_count());
      for (auto it = store.map.lower_bound(range.begin); it != store.map.lower_bound(range.end);
           ++it) {
        v1::ChunkRecord& record = *payload.add_records();
        record.set_key(it->first);
        record.set_value(it->second);
      }
    }
    return payload;
  }

  MapStore store;
  Recorder observer;
  std::unique_ptr<StateMachine> sm;
  Term term{1};
  std::uint64_t now = 1000;
};

}  // namespace etalon::bucket::testing
