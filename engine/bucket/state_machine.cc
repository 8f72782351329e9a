#include "engine/bucket/state_machine.h"

#include <utility>

#include "common/check.h"
#include "common/crc32c.h"
#include "engine/bucket/calls.h"
#include "engine/bucket/changes.h"
#include "engine/bucket/commands.h"
#include "engine/bucket/meta_codec.h"
#include "engine/bucket/request_ids.h"
#include "engine/bucket/shard_state.h"
#include "engine/store/keys.h"

namespace etalon::bucket {
namespace {

// Results of request IDs that one entry may remove: more than it can add, so that they come to an
// end.
std::size_t ExpiriesOf(int calls) { return 64 + 2 * static_cast<std::size_t>(calls); }

Status NewerFormat(const std::string& what) {
  return FailedPrecondition(Reason::kNewerFormat,
                            what + " is not known to this program. Run the newer one");
}

}  // namespace

class StateMachine::Impl {
 public:
  Impl(store::Store& store, Observer& observer) : store_(store), observer_(observer) {}

  Status Load() {
    ETALON_RETURN_IF_ERROR(state_.Load(store_));
    ETALON_RETURN_IF_ERROR(requests_.Load(store_));
    written_ = LogIndex(state_.header().applied_index());
    written_term_ = Term(state_.header().applied_term());
    return OkStatus();
  }

  Result<std::vector<EntryOutcome>> Apply(std::span<const consensus::Entry> entries,
                                          const MembersAfter& members_after);

  const ShardState& state() const { return state_; }
  const store::Store& store() const { return store_; }
  LogIndex written() const { return written_; }
  Term written_term() const { return written_term_; }
  std::size_t live_request_ids() const { return requests_.size(); }

 private:
  // Whether this program can apply the entry; parses it. `malformed`: it is of a known kind, but
  // its bytes are not.
  Status Understand(const consensus::Entry& entry, bool* malformed);
  // True if the entry ends the write.
  Result<bool> ApplyOne(const consensus::Entry& entry, const MembersAfter& members_after);
  // Brings all that is pending into the store and tells the observer.
  Status Write();
  void Tell(const Event& event);

  store::Store& store_;
  Observer& observer_;
  Changes changes_;
  ShardState state_{changes_};
  RequestIds requests_;
  Commands commands_{state_, changes_, requests_};
  Calls calls_{state_, store_, changes_, requests_};
  LogIndex written_;  // what the store holds
  Term written_term_;
  std::vector<EntryOutcome> outcomes_;  // of the group under way
  Status stopped_;                      // why nothing can be applied any more
  v1::LogEntry entry_;                  // reused: it keeps its memory
};

Status StateMachine::Impl::Understand(const consensus::Entry& entry, bool* malformed) {
  *malformed = false;
  if (entry.kind == consensus::EntryKind::kMembers) return OkStatus();
  if (entry.kind != consensus::EntryKind::kCommands) {
    return NewerFormat("an entry of kind " +
                       std::to_string(static_cast<std::uint32_t>(entry.kind)));
  }
  if (!entry_.ParseFromArray(entry.data.data(), static_cast<int>(entry.data.size()))) {
    entry_.Clear();
    *malformed = true;
    return OkStatus();
  }
  if (entry_.version() > kStateVersion || entry_.control().bump().version() > kStateVersion) {
    return NewerFormat(
        "version " + std::to_string(std::max(entry_.version(), entry_.control().bump().version())) +
        " of the state machine");
  }
  if (entry_.has_control() && entry_.control().command_case() == v1::Control::COMMAND_NOT_SET) {
    return NewerFormat("a control command");
  }
  return OkStatus();
}

Result<bool> StateMachine::Impl::ApplyOne(const consensus::Entry& entry,
                                          const MembersAfter& members_after) {
  EntryOutcome outcome{entry.index, entry.term, {}, std::nullopt};
  state_.SetApplied(entry.index, entry.term);
  bool ends_write = false;
  if (entry.kind == consensus::EntryKind::kMembers) {
    state_.SetMembers(members_after(entry));
  } else {
    state_.AdvanceTime(LogTime(entry_.log_time_millis()));
    requests_.Expire(state_.log_time(), ExpiriesOf(entry_.calls_size()), changes_);
    outcome.calls.reserve(static_cast<std::size_t>(entry_.calls_size()));
    for (const std::string& call : entry_.calls()) {
      ETALON_ASSIGN_OR_RETURN(CallOutcome done, calls_.Apply(call));
      outcome.calls.push_back(std::move(done));
    }
    if (entry_.has_control()) {
      outcome.control = commands_.Apply(entry_.control(), {entry.index, entry.term});
      ends_write = true;
    }
  }
  outcomes_.push_back(std::move(outcome));
  return ends_write;
}

Result<std::vector<EntryOutcome>> StateMachine::Impl::Apply(
    std::span<const consensus::Entry> entries, const MembersAfter& members_after) {
  if (!stopped_.ok()) return stopped_;
  ETALON_RETURN_IF_ERROR(Write());  // what the store refused last time
  while (outcomes_.size() < entries.size()) {
    const consensus::Entry& entry = entries[outcomes_.size()];
    ETALON_CHECK(entry.index.value() == state_.header().applied_index() + 1,
                 "entries are applied in order, each once");
    bool malformed = false;
    if (Status unknown = Understand(entry, &malformed); !unknown.ok()) {
      ETALON_RETURN_IF_ERROR(Write());
      stopped_ = unknown;
      return stopped_;
    }
    const Result<bool> ends_write = ApplyOne(entry, members_after);
    if (!ends_write.ok()) {
      // A read failed in the middle of an entry: the rest of it must not reach the store.
      stopped_ = ends_write.status();
      return stopped_;
    }
    if (malformed) {
      outcomes_.back().control = InvalidArgument("an entry of the log cannot be parsed");
    }
    if (ends_write.value()) ETALON_RETURN_IF_ERROR(Write());
  }
  ETALON_RETURN_IF_ERROR(Write());
  return std::exchange(outcomes_, {});
}

Status StateMachine::Impl::Write() {
  const LogIndex applied(state_.header().applied_index());
  if (applied == written_) return OkStatus();
  state_.PutHeader();
  ETALON_RETURN_IF_ERROR(store_.Write(std::move(changes_.batch())));
  changes_.Written();
  written_ = applied;
  written_term_ = Term(state_.header().applied_term());
  for (const Event& event : changes_.TakeEvents()) Tell(event);
  return OkStatus();
}

void StateMachine::Impl::Tell(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kRow:
      return observer_.OnRow(event.bucket, state_.FindRow(event.bucket));
    case Event::Kind::kRebase:
      return observer_.OnRebase(state_.level());
    case Event::Kind::kOpened:
      return observer_.OnOpened(state_.outgoing().at(event.transfer));
    case Event::Kind::kOutgoing:
      return observer_.OnOutgoingChanged(event.transfer);
    case Event::Kind::kIncoming:
      return observer_.OnIncomingChanged(event.transfer);
    case Event::Kind::kDataKey:
      return observer_.OnDataKey(event.bucket, event.text);
    case Event::Kind::kSplit:
      return observer_.OnSplit(state_.splits().at(event.text));
    case Event::Kind::kTopology:
      return observer_.OnTopology();
    case Event::Kind::kSettings:
      return observer_.OnSettings();
  }
}

// ---- the surface ----

StateMachine::StateMachine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StateMachine::~StateMachine() = default;

Result<std::unique_ptr<StateMachine>> StateMachine::Load(store::Store& store, Observer& observer) {
  auto impl = std::make_unique<Impl>(store, observer);
  ETALON_RETURN_IF_ERROR(impl->Load());
  return std::unique_ptr<StateMachine>(new StateMachine(std::move(impl)));
}

Result<std::vector<EntryOutcome>> StateMachine::Apply(std::span<const consensus::Entry> entries,
                                                      const MembersAfter& members_after) {
  return impl_->Apply(entries, members_after);
}

LogIndex StateMachine::applied_index() const { return impl_->written(); }
Term StateMachine::applied_term() const { return impl_->written_term(); }
LogTime StateMachine::log_time() const { return impl_->state().log_time(); }
std::uint32_t StateMachine::version() const { return impl_->state().header().version(); }
CollectionId StateMachine::collection() const {
  return CollectionId(impl_->state().header().collection());
}
ShardUid StateMachine::shard() const { return impl_->state().shard(); }
bool StateMachine::retired() const { return impl_->state().retired(); }
const std::vector<v1::MemberInfo>& StateMachine::members() const {
  return impl_->state().members();
}
const v1::Topology& StateMachine::topology() const { return impl_->state().topology(); }
const v1::Settings& StateMachine::settings() const { return impl_->state().settings(); }
std::uint32_t StateMachine::bucket_count() const { return impl_->state().bucket_count(); }
std::uint8_t StateMachine::level() const { return impl_->state().level(); }
const Row* StateMachine::FindRow(std::uint32_t bucket) const {
  return impl_->state().FindRow(bucket);
}
Marks StateMachine::FindMarks(std::uint32_t bucket) const {
  return impl_->state().FindMarks(bucket);
}
const std::map<std::uint32_t, Row>& StateMachine::rows() const { return impl_->state().rows(); }
const std::map<std::uint32_t, Marks>& StateMachine::marks() const { return impl_->state().marks(); }
const std::map<TransferId, Outgoing>& StateMachine::outgoing() const {
  return impl_->state().outgoing();
}
const std::map<TransferId, Incoming>& StateMachine::incoming() const {
  return impl_->state().incoming();
}
const std::map<std::string, SplitTask>& StateMachine::splits() const {
  return impl_->state().splits();
}
bool StateMachine::locked() const { return impl_->state().locked(); }
std::size_t StateMachine::live_request_ids() const { return impl_->live_request_ids(); }

v1::BucketCounts StateMachine::counts() const {
  const ShardState& state = impl_->state();
  v1::BucketCounts counts;
  counts.set_active(state.CountOf(RowStatus::kActive));
  counts.set_pinned(state.CountOf(RowStatus::kPinned));
  counts.set_sending(state.CountOf(RowStatus::kSending));
  counts.set_sent(state.CountOf(RowStatus::kSent));
  counts.set_receiving(state.CountOf(RowStatus::kReceiving));
  counts.set_garbage(state.CountOf(RowStatus::kGarbage));
  counts.set_quarantined(state.CountOf(RowStatus::kQuarantined));
  return counts;
}

bool StateMachine::busy_with_split() const {
  if (impl_->state().OpenSplit() != nullptr) return true;
  for (const auto& [id, transfer] : incoming()) {
    if (transfer.set.size() > 1) return true;
  }
  return false;
}

Status StateMachine::CheckWrite(RoutingValue v, Epoch named) const {
  return impl_->state().CheckWrite(v, named);
}
Status StateMachine::CheckRead(RoutingValue v, Epoch named) const {
  return impl_->state().CheckRead(v, named);
}
Status StateMachine::CheckLevel(const v1::Call& call) const {
  return impl_->state().CheckLevel(call);
}
Status StateMachine::CheckArguments(const v1::Call& call) const {
  return Compile(call, impl_->state()).status();
}
Result<SpaceId> StateMachine::FindSpace(std::string_view name) const {
  return impl_->state().FindSpace(name);
}
std::string_view StateMachine::SpaceName(SpaceId space) const {
  return impl_->state().SpaceName(space);
}

Result<v1::GetResult> StateMachine::Get(RoutingValue v, const v1::GetArgs& args) const {
  ETALON_ASSIGN_OR_RETURN(const SpaceId space, FindSpace(args.space()));
  ETALON_ASSIGN_OR_RETURN(std::optional<std::string> value,
                          impl_->store().Get(store::DataKey(v, bucket_count(), space, args.key())));
  v1::GetResult result;
  result.set_found(value.has_value());
  if (value) result.set_value(std::move(*value));
  return result;
}

Result<v1::ChecksumResponse> StateMachine::Checksum() const {
  const auto snapshot = impl_->store().NewSnapshot();
  v1::ChecksumResponse response;
  response.set_applied_index(applied_index().value());
  std::uint64_t hash = 0;
  for (const store::KeyRange& range : {StateKeys(), store::DataRange()}) {
    std::uint64_t records = 0;
    const auto it = snapshot->NewIterator(range.begin, range.end);
    for (; it->Valid(); it->Next()) {
      hash = ChainChunk(hash, Crc32c(it->key()), Crc32c(it->value()));
      ++records;
    }
    ETALON_RETURN_IF_ERROR(it->status());
    response.set_records(records);  // the last range has the records
  }
  response.set_checksum(hash);
  return response;
}

}  // namespace etalon::bucket
