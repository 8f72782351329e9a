// Random histories, valid and not: replicas that apply them in groups of different sizes, restart
// in the middle and stand on different stores must agree at every index, and the records must be
// those of a model that knows nothing of batches and levels.
#include <algorithm>
#include <mutex>

#include "common/random.h"
#include "engine/bucket/history_model.h"
#include "engine/bucket/testing.h"
#ifdef ETALON_ROCKSDB
#include "engine/store/rocksdb_store.h"
#include "env/posix/temp_dir.h"
#endif

namespace etalon::bucket::testing {
namespace {

constexpr std::uint32_t kManyBuckets = 8;

std::string Words(const Status& status) {
  std::string words = status.ok() ? "NONE" : std::string(ReasonName(status.reason()));
  if (status.reason() == Reason::kConditionFailed) {
    words += " " + std::to_string(status.hint().number.value_or(999));
  }
  return words;
}

// "open", "pin", ...; steps by their kind.
std::string NameOf(const v1::Control& control) {
  if (control.has_step()) return v1::TransferStep::Kind_Name(control.step().kind());
  return control.GetDescriptor()->FindFieldByNumber(control.command_case())->name();
}

// ---- random entries ----

class Generator {
 public:
  Generator(Random random, const Shard& shard) : random_(random), shard_(shard) {}

  v1::LogEntry Next() {
    v1::LogEntry entry;
    entry.set_version(kStateVersion);
    now_ += random_.Below(40);
    if (random_.Chance(1, 50)) now_ += 700;
    entry.set_log_time_millis(now_);
    if (random_.Chance(1, 40)) return entry;
    if (random_.Chance(1, 2)) {
      for (std::uint64_t n = random_.Below(6); n > 0; --n) {
        if (random_.Chance(1, 100)) {
          entry.add_calls("\xff garbage");
        } else {
          entry.add_calls(Call().SerializeAsString());
        }
      }
    } else {
      *entry.mutable_control() = Command();
    }
    return entry;
  }

 private:
  std::uint64_t Value() { return random_.Below(64); }
  std::string Key() { return std::string(1, static_cast<char>('a' + random_.Below(3))); }
  std::string Space() { return random_.Chance(1, 3) ? "accounts" : "orders"; }
  std::string Data() { return std::to_string(random_.Below(4)); }
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[random_.Below(from.size())];
  }

  v1::Call Call() {
    v1::Call call;
    call.set_routing_value(Value());
    if (random_.Chance(1, 4)) {
      v1::TxnArgs args;
      // Mostly of one bucket at every level.
      const auto value = [&](auto* item) {
        if (random_.Chance(1, 3)) {
          item->set_routing_value(random_.Chance(1, 8) ? Value() : call.routing_value());
        }
      };
      for (std::uint64_t n = random_.Below(3); n > 0; --n) {
        v1::Condition& condition = *args.add_conditions();
        condition.set_space(Space());
        condition.set_key(Key());
        condition.set_kind(static_cast<v1::Condition::Kind>(random_.Below(3)));
        condition.set_value(Data());
        value(&condition);
      }
      for (std::uint64_t n = random_.Below(3); n > 0; --n) {
        v1::Mutation& mutation = *args.add_mutations();
        mutation.set_space(Space());
        mutation.set_key(Key());
        if (random_.Chance(1, 3)) {
          mutation.set_delete_(true);
        } else {
          mutation.set_put(Data());
        }
        value(&mutation);
      }
      call.set_function("txn");
      call.set_args(args.SerializeAsString());
    } else {
      v1::PutArgs args;
      args.set_space(random_.Chance(1, 60) ? "nowhere" : Space());
      args.set_key(Key());
      args.set_value(Data());
      call.set_function(Pick<std::string>({"put", "put", "insert", "update", "delete"}));
      if (random_.Chance(1, 60)) call.set_function("get");
      if (call.function() == "delete") args.clear_value();
      call.set_args(args.SerializeAsString());
    }
    if (random_.Chance(1, 10)) call.set_epoch(random_.Below(4));
    if (random_.Chance(1, 3)) {
      call.mutable_request()->set_client(1 + random_.Below(3));
      call.mutable_request()->set_sequence(random_.Below(20));
      call.mutable_request()->set_ttl_millis(static_cast<std::uint32_t>(random_.Below(3) * 300));
    }
    return call;
  }

  std::vector<std::pair<std::uint32_t, std::uint64_t>> SomeRows() {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> set;
    for (const auto& [bucket, row] : shard_.sm->rows()) {
      const bool fits = row.status == RowStatus::kActive && !row.transfer;
      if (random_.Chance(1, fits ? 4 : 60)) set.emplace_back(bucket, row.epoch.value());
    }
    return set;
  }

  TransferId SomeTransfer() {
    std::vector<TransferId> ids = {{kB, Term(1), LogIndex(4)}};
    for (const auto& [id, transfer] : shard_.sm->outgoing()) ids.push_back(id);
    for (const auto& [id, transfer] : shard_.sm->incoming()) ids.push_back(id);
    return Pick(ids);
  }

  v1::Control Command() {
    const StateMachine& sm = *shard_.sm;
    const std::uint64_t kind = random_.Below(100);
    const std::uint32_t level = random_.Chance(1, 20) ? sm.level() + 1u : sm.level();
    const auto bucket = static_cast<std::uint32_t>(random_.Below(sm.modulus()));
    if (kind < 12) {
      std::string task;
      if (random_.Chance(1, 2)) {
        for (const auto& [name, open] : sm.splits()) {
          if (open.state == SplitState::kPreparing) task = name;
        }
      }
      return OpenCommand(random_.Chance(1, 8)   ? kA
                         : random_.Chance(1, 4) ? kC
                                                : kB,
                         level, SomeRows(), task);
    }
    if (kind < 22) return Receiving();
    if (kind < 42) return Chunk();
    if (kind < 82) {
      v1::Control control =
          StepCommand(static_cast<v1::TransferStep::Kind>(1 + random_.Below(7)), SomeTransfer());
      if (random_.Chance(3, 4)) control = SensibleStep();
      control.mutable_step()->set_only_unprepared(random_.Chance(1, 2));
      return control;
    }
    if (kind < 86) return PinCommand({bucket}, random_.Chance(2, 3), level);
    if (kind < 88) return RebaseCommand(static_cast<std::uint32_t>(random_.Below(4)));
    if (kind < 90) {
      const Row* row = sm.FindRow(bucket);
      return QuarantineCommand(bucket, row ? row->epoch.value() : 1, random_.Below(6), level);
    }
    if (kind < 93) {
      for (const auto& [at, row] : sm.rows()) {
        if (row.status == RowStatus::kQuarantined) {
          return ReleaseCommand(at, random_.Chance(1, 2), level);
        }
      }
      return ReleaseCommand(bucket, true, level);
    }
    const std::string task = "t" + std::to_string(random_.Below(200));
    if (kind < 95) return SplitCommand(task, random_.Chance(1, 5) ? kA : kB);
    if (kind < 96) {
      for (const auto& [name, open] : sm.splits()) {
        if (random_.Chance(1, 4)) return AbortSplitCommand(name);
      }
      return AbortSplitCommand(task);
    }
    if (kind < 97) {
      v1::Topology topology = sm.topology();
      topology.set_version(topology.version() + random_.Below(2));
      topology.set_collection_name(Data());
      return TopologyCommand(topology);
    }
    if (kind < 99) {
      v1::Settings settings;
      settings.set_version(sm.settings().version() + random_.Below(3));
      for (const auto& [name, open] : sm.splits()) settings.add_closed_splits(name);
      settings.add_shards()->set_uid(kA.value());
      settings.mutable_shards(0)->set_locked(random_.Chance(1, 12));
      return SettingsCommand(settings);
    }
    v1::Control control;
    if (random_.Chance(1, 2)) {
      control.mutable_retire();
    } else {
      control.mutable_bump()->set_version(kStateVersion);
    }
    return control;
  }

  v1::Control SensibleStep() {
    using Step = v1::TransferStep;
    const TransferId id = SomeTransfer();
    for (const auto& [bucket, row] : shard_.sm->rows()) {
      if (row.transfer != id) continue;
      switch (row.status) {
        case RowStatus::kActive:
          return StepCommand(Step::SENDING, id);
        case RowStatus::kSending:
          return StepCommand(random_.Chance(1, 4) ? Step::ABORT : Step::SENT, id);
        case RowStatus::kSent:
          return StepCommand(Step::SOURCE_GARBAGE, id);
        case RowStatus::kReceiving:
          return StepCommand(random_.Chance(1, 3) ? Step::TARGET_GARBAGE : Step::ACTIVATE, id);
        case RowStatus::kGarbage:
          return StepCommand(Step::REMOVE, id);
        case RowStatus::kPinned:
        case RowStatus::kQuarantined:
          break;
      }
    }
    return StepCommand(Step::ABORT, id);
  }

  v1::Control Receiving() {
    const StateMachine& sm = *shard_.sm;
    const std::uint32_t level = random_.Chance(1, 10)
                                    ? sm.level() + 1u
                                    : static_cast<std::uint32_t>(random_.Below(sm.level() + 1u));
    const std::uint64_t modulus = std::uint64_t{sm.bucket_count()} << level;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> set;
    for (std::uint32_t bucket = 0; bucket < modulus; ++bucket) {
      bool free = true;
      std::uint64_t own = 0;
      for (std::uint64_t b = bucket; b < sm.modulus(); b += modulus) {
        free = free && sm.FindRow(static_cast<std::uint32_t>(b)) == nullptr;
        own = std::max(own, sm.FindMarks(static_cast<std::uint32_t>(b)).own.value());
      }
      if (random_.Chance(1, free ? 3 : 100)) {
        set.emplace_back(bucket, random_.Chance(1, 10) ? 1 : own + 1);
      }
    }
    return ReceivingCommand({kC, Term(1), LogIndex(++foreign_)}, level, set);
  }

  v1::Control Chunk() {
    const StateMachine& sm = *shard_.sm;
    if (sm.incoming().empty()) return ChunkCutter(SomeTransfer()).Cut(v1::ChunkPayload());
    auto it = sm.incoming().begin();
    std::advance(it, random_.Below(sm.incoming().size()));
    const Incoming& x = it->second;
    v1::ChunkPayload payload;
    std::uint64_t bytes = x.bytes;
    for (std::uint64_t n = random_.Below(4); n > 0; --n) {
      const BucketEpoch& member = Pick(x.set);
      const std::uint64_t step = std::uint64_t{sm.bucket_count()} << x.level;
      const std::uint64_t value =
          random_.Chance(1, 200) ? Value() : member.bucket + step * random_.Below(4);
      v1::ChunkRecord& record = *payload.add_records();
      record.set_key(store::DataKey(RoutingValue(value), sm.bucket_count(),
                                    SpaceId(static_cast<std::uint16_t>(1 + random_.Below(2))),
                                    Key()));
      if (random_.Chance(1, 4)) {
        record.set_tombstone(true);
      } else {
        record.set_value(Data());
      }
      bytes += record.key().size() + record.value().size();
    }
    v1::Control control;
    v1::Chunk& chunk = *control.mutable_chunk();
    *chunk.mutable_id() = ToProto(x.id);
    chunk.set_number(x.next_number + (random_.Chance(1, 12) ? random_.Below(3) - 1 : 0));
    chunk.set_payload(payload.SerializeAsString());
    chunk.set_crc(Crc32c(chunk.payload()) + (random_.Chance(1, 50) ? 1 : 0));
    if (random_.Chance(1, 4)) {
      chunk.set_last(true);
      chunk.set_hash(ChainChunk(x.hash, chunk.number(), chunk.crc()) +
                     (random_.Chance(1, 20) ? 1 : 0));
      chunk.set_records(x.records + static_cast<std::uint64_t>(payload.records_size()));
      chunk.set_bytes(bytes);
    }
    return control;
  }

  Random random_;
  const Shard& shard_;
  std::uint64_t now_ = 0;
  std::uint64_t foreign_ = 0;
};

// ---- checks ----

// Brings the model to where the shard is after an entry, and compares outcomes of calls.
class ModelCheck {
 public:
  void Check(const v1::LogEntry& entry, const EntryOutcome& outcome,
             const std::map<std::uint32_t, Row>& before, const StateMachine& after) {
    ASSERT_EQ(outcome.calls.size(), static_cast<std::size_t>(entry.calls_size()));
    for (int i = 0; i < entry.calls_size(); ++i) {
      const Status& status = outcome.calls[static_cast<std::size_t>(i)].status;
      const std::string words = Words(status);
      ++seen[words];
      switch (status.reason()) {
        case Reason::kNone:
        case Reason::kKeyExists:
        case Reason::kKeyNotFound:
        case Reason::kConditionFailed:
          break;
        default:  // refused before it was looked at
          continue;
      }
      v1::Call call;
      ASSERT_TRUE(call.ParseFromString(entry.calls(i)));
      ASSERT_EQ(words, model.Run(call, after.log_time().value()));
    }
    if (!outcome.control) return;
    if (outcome.control->ok()) ++seen[NameOf(entry.control())];
    const std::uint64_t modulus = after.modulus();
    if (after.rows().size() != before.size() || entry.control().has_receiving()) {
      for (std::uint32_t bucket = 0; bucket < modulus; ++bucket) {
        const bool was = before.contains(bucket);
        const bool is = after.FindRow(bucket) != nullptr;
        if (was != is && !entry.control().has_rebase()) model.DropBucket(bucket, modulus);
      }
    }
    if (entry.control().has_chunk() && outcome.control->ok()) Take(entry.control().chunk(), after);
  }

  void CompareRecords(const Map& store) {
    std::map<Model::Key, std::string> records;
    const store::KeyRange range = store::DataRange();
    for (auto it = store.lower_bound(range.begin); it != store.lower_bound(range.end); ++it) {
      const auto parts = store::ParseDataKey(it->first, kManyBuckets);
      ASSERT_TRUE(parts.ok());
      if (parts->space == store::kRequestSpace) continue;
      records[{parts->value.value(), parts->space.value(), std::string(parts->key)}] = it->second;
    }
    EXPECT_EQ(records, model.records);
  }

  Model model;
  std::map<std::string, int> seen;

 private:
  void Take(const v1::Chunk& chunk, const StateMachine& after) {
    const TransferId id = FromProto(chunk.id());
    std::uint64_t& last = taken_[id];
    if (chunk.number() <= last) return;  // a duplicate
    last = chunk.number();
    v1::ChunkPayload payload;
    ASSERT_TRUE(payload.ParseFromString(chunk.payload()));
    for (const v1::ChunkRecord& record : payload.records()) {
      const auto parts = store::ParseDataKey(record.key(), kManyBuckets);
      ASSERT_TRUE(parts.ok());
      ASSERT_EQ(after.FindRow(after.BucketAt(parts->value))->transfer, id);
      const Model::Key key{parts->value.value(), parts->space.value(), std::string(parts->key)};
      if (record.tombstone()) {
        model.records.erase(key);
      } else {
        model.records[key] = record.value();
      }
    }
  }

  std::map<TransferId, std::uint64_t> taken_;
};

std::string Describe(const EntryOutcome& outcome) {
  std::string words = outcome.control ? outcome.control->ToString() : "";
  for (const CallOutcome& call : outcome.calls) words += "; " + call.status.ToString();
  return words;
}

#ifdef ETALON_ROCKSDB
// The store's completions are not waited for here.
class Ignored final : public Executor {
 public:
  void Post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  TimerId PostAt(SteadyTime, Task) override { return {}; }
  void Cancel(TimerId) override {}

 private:
  std::mutex mutex_;
  std::vector<Task> tasks_;
};
#endif

// A replica that follows the log in groups of its own sizes.
class Follower {
 public:
  Follower(store::Store& store, std::uint64_t largest) : store_(store), largest_(largest) {
    auto batch = StateMachine::FormState(TestForm(kA, kManyBuckets));
    EXPECT_TRUE(batch.ok());
    EXPECT_TRUE(store.Write(std::move(*batch)).ok());
    Load();
  }

  void Load() {
    auto loaded = StateMachine::Load(store_, observer_);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    sm_ = std::move(*loaded);
  }

  // The first entry of `log` has index 2.
  void CatchUp(const std::vector<std::string>& log, const std::vector<std::string>& outcomes,
               Random& random) {
    std::uint64_t next = sm_->applied_index().value() + 1;
    while (next < log.size() + 2) {
      std::vector<consensus::Entry> group;
      for (std::uint64_t n = 1 + random.Below(largest_); n > 0 && next < log.size() + 2; --n) {
        group.push_back({LogIndex(next), Term(1), consensus::EntryKind::kCommands, log[next - 2]});
        ++next;
      }
      const auto done = sm_->Apply(group, NoMembers);
      ASSERT_TRUE(done.ok()) << done.status().ToString();
      for (const EntryOutcome& outcome : *done) {
        ASSERT_EQ(Describe(outcome), outcomes[outcome.index.value() - 2]);
      }
    }
  }

  const StateMachine& sm() const { return *sm_; }

 private:
  store::Store& store_;
  const std::uint64_t largest_;
  Recorder observer_;
  std::unique_ptr<StateMachine> sm_;
};

void RunHistory(std::uint64_t seed, store::Store* third_store, std::map<std::string, int>* seen) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  Shard first(kA, kManyBuckets);
  Generator generator(random.Fork(), first);
  ModelCheck check;
  MapStore second_store;
  MapStore spare;
  Follower second(second_store, 40);
  Follower third(third_store ? *third_store : spare, 7);
  std::vector<std::string> log;
  std::vector<std::string> outcomes;
  Map checkpoint = second_store.map;

  for (int block = 0; block < 25; ++block) {
    for (int i = 0; i < 40; ++i) {
      const v1::LogEntry entry = generator.Next();
      const std::map<std::uint32_t, Row> before = first.sm->rows();
      log.push_back(entry.SerializeAsString());
      const auto done = first.sm->Apply(first.Entries({log.back()}), NoMembers);
      ASSERT_TRUE(done.ok()) << done.status().ToString();
      outcomes.push_back(Describe(done->at(0)));
      check.Check(entry, done->at(0), before, *first.sm);
      if (::testing::Test::HasFatalFailure()) return;
    }
    ExpectMirrored(*first.sm, first.store);
    check.CompareRecords(first.store.map);
    if (random.Chance(1, 4)) {  // a crash: back to the last checkpoint
      second_store.map = checkpoint;
      second.Load();
    }
    second.CatchUp(log, outcomes, random);
    third.CatchUp(log, outcomes, random);
    if (random.Chance(1, 3)) checkpoint = second_store.map;
    if (random.Chance(1, 4)) third.Load();
    const auto sum = first.sm->Checksum();
    for (const Follower* follower : {&second, &third}) {
      const auto other = follower->sm().Checksum();
      ASSERT_EQ(other->applied_index(), sum->applied_index());
      ASSERT_EQ(other->checksum(), sum->checksum());
      ASSERT_EQ(other->records(), sum->records());
    }
    if (::testing::Test::HasFailure()) return;
  }
  for (const auto& [words, n] : check.seen) (*seen)[words] += n;
}

TEST(HistoryTest, ReplicasAgreeAndRecordsAreThoseOfTheModel) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RunHistory(seed, nullptr, &seen);
    if (HasFailure()) return;
  }
  // A history in which nothing happens would prove nothing.
  for (const char* words : {"NONE",
                            "KEY_EXISTS",
                            "KEY_NOT_FOUND",
                            "CONDITION_FAILED 0",
                            "CONDITION_FAILED 1",
                            "WRONG_BUCKET",
                            "STALE_EPOCH",
                            "TRANSFER_IS_IN_PROGRESS",
                            "QUARANTINED",
                            "UNKNOWN_SPACE",
                            "UNKNOWN_FUNCTION",
                            "MALFORMED",
                            "open",
                            "receiving",
                            "chunk",
                            "SENDING",
                            "SENT",
                            "ABORT",
                            "SOURCE_GARBAGE",
                            "ACTIVATE",
                            "TARGET_GARBAGE",
                            "REMOVE",
                            "pin",
                            "rebase",
                            "split",
                            "abort_split",
                            "topology",
                            "settings",
                            "quarantine",
                            "release",
                            "bump"}) {
    EXPECT_GT(seen[words], 10) << words;
  }
}

#ifdef ETALON_ROCKSDB
TEST(HistoryTest, OnRocksDb) {
  TempDir dir;
  Ignored executor;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 101; seed <= 103; ++seed) {
    store::RocksDbOptions options;
    options.root = dir.path();
    const auto factory = store::NewRocksDbFactory(executor, options);
    std::filesystem::create_directories(dir.path() + "/" + std::to_string(seed));
    auto store = factory->Open(std::to_string(seed), store::OpenMode::kFresh);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    RunHistory(seed, store->get(), &seen);
    if (HasFailure()) return;
  }
}
#endif

}  // namespace
}  // namespace etalon::bucket::testing
