#include "engine/transfer/source.h"

#include <utility>

#include "engine/transfer/source_state.h"
#include "proto/wire.h"

namespace etalon::transfer {
namespace {

constexpr std::uint32_t kDefaultMaxSending = 4;
constexpr Duration kDefaultMaxFreeze = std::chrono::milliseconds(5);
constexpr std::size_t kMaxSuspicions = 64;
constexpr Duration kReserveRetry = std::chrono::milliseconds(200);
constexpr Duration kReserveRetryCap = std::chrono::seconds(1);

}  // namespace

Source::Source(const bucket::StateMachine& state, const store::Store& store, RefCounter& refs,
               RebaseGate& gate, Random random, SourceOptions options)
    : state_(state), store_(store), refs_(refs), gate_(gate), random_(random), options_(options) {}

Source::~Source() = default;

Output Source::Step(SteadyTime now, const Input& input) {
  now_ = now;
  confirmed_ = input.confirmed;
  out_ = Output();
  std::visit([&](const auto& event) { Handle(event); }, input.event);
  if (ready()) {
    budget_.SetRate(state_.settings().max_transfer_bytes_per_second(), now_);
    DriveTransfers();
    DriveSplits();
    DriveJobs();
  }
  return std::exchange(out_, {});
}

void Source::OnOpened(const bucket::Outgoing& transfer) {
  if (!leader_ || transfer.id.term != term_) return;
  Transfer& t = transfers_[transfer.id];
  t.stream = std::make_unique<Stream>(state_, store_, transfer, options_.stream);
}

void Source::OnDataKey(std::uint32_t bucket, std::string_view store_key) {
  if (!leader_) return;
  const bucket::Row* row = state_.FindRow(bucket);
  if (row == nullptr || !row->transfer) return;
  const auto it = transfers_.find(row->transfer);
  if (it != transfers_.end() && it->second.stream) it->second.stream->NoteKey(store_key);
}

std::uint32_t Source::slots_in_use() const {
  std::size_t used = jobs_.size();
  for (const auto& [id, x] : state_.outgoing()) {
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    // What is only waiting for the target's word must not keep others from being sent.
    if (row != nullptr && bucket::IsReadable(row->status)) ++used;
  }
  return static_cast<std::uint32_t>(used);
}

bool Source::Locked(std::string_view split_task) const {
  return state_.locked() || (split_task.empty() && state_.busy_with_split());
}

Duration Source::MaxFreeze() const {
  const std::uint32_t millis = state_.settings().max_freeze_millis();
  return millis == 0 ? kDefaultMaxFreeze : Duration(std::chrono::milliseconds(millis));
}

// ---- events -------------------------------------------------------------------------------------

void Source::Handle(const RoleChanged& role) {
  if (role.leader == leader_ && role.term == term_) return;
  const Status gone = Unavailable(Reason::kNonMaster, "this replica no longer leads its shard");
  for (auto it = jobs_.begin(); it != jobs_.end();) it = FinishJob(it, gone);
  for (auto& [id, t] : transfers_) {
    if (t.draining) StopDraining(t);
    Release(id, t, std::nullopt);
    if (t.order != 0 && !t.reported) out_.actions.push_back(OrderFinished{t.order, id, gone, 0});
  }
  transfers_.clear();
  splits_.clear();
  suspicions_.clear();
  peers_.Clear();
  alerts_.Reset(&out_);
  leader_ = role.leader;
  term_ = role.term;
}

void Source::Handle(const Message& input) {
  if (!ready()) return;
  const v1::TransferMessage& m = input.message;
  const ShardUid from(m.from_shard());
  if (m.has_not_leader()) return OnNotLeader(from);
  if (!peers_.Admit(from, Term(m.from_term()))) return;
  if (m.has_reserve_reply()) OnReserveReply(from, m.reserve_reply());
  if (m.has_progress()) OnProgress(from, m.progress());
  if (m.has_answer() && confirmed_) OnAnswer(from, m.answer());
}

void Source::OnReserveReply(ShardUid from, const v1::ReserveReply& reply) {
  const auto it = jobs_.find(reply.number());
  if (it == jobs_.end() || it->second.order.target != from || it->second.open != 0) return;
  Job& job = it->second;
  if (Status refused = FromProto(reply.status()); !refused.ok()) {
    // It has these buckets, or had them later: perhaps it is their owner, and not this shard.
    if (refused.reason() == Reason::kStaleEpoch ||
        refused.reason() == Reason::kTransferIsInProgress) {
      Suspect(from, job.order.level, job.order.buckets);
    }
    FinishJob(it, std::move(refused));
    return;
  }
  if (Status bad = CheckOrder(job.order, job.split_task, &job); !bad.ok()) {
    FinishJob(it, std::move(bad));
    return;
  }
  v1::Control control;
  v1::Open& open = *control.mutable_open();
  open.set_target(job.order.target.value());
  open.set_level(job.order.level);
  FillSet(job.set, open.mutable_set());
  open.set_split_task(job.split_task);
  open.set_settings_version(job.order.settings_version.value());
  open.set_issuer(job.order.issuer.value());
  open.set_issuer_term(job.order.issuer_term.value());
  job.open = ProposeControl(std::move(control));
}

void Source::OnProgress(ShardUid from, const v1::Progress& progress) {
  const TransferId id = FromProto(progress.id());
  const auto it = transfers_.find(id);
  if (it == transfers_.end() || !it->second.seen || it->second.target != from) return;
  Transfer& t = it->second;
  t.heard_at = now_;
  const bool before_sent = bucket::IsReadable(t.row);
  const auto refused = [&](Status why) {
    if (!before_sent) return;
    t.says = TargetSays::kRefused;
    t.refusal = std::move(why);
  };
  switch (progress.state()) {
    case v1::Progress::REFUSED: {
      Status why = FromProto(progress.status());
      if (before_sent && why.reason() == Reason::kStaleEpoch) {
        // The target owned these buckets later than we: either the transfer is an old one, or we
        // are.
        Suspect(from, t.level, t.buckets);
      }
      refused(std::move(why));
      break;
    }
    case v1::Progress::RECEIVING:
    case v1::Progress::PREPARED:
      if (!t.had) t.progress_at = now_;
      t.had = true;
      if (t.stream && t.stream->OnAcknowledged(progress.next_number(), now_)) t.progress_at = now_;
      if (progress.state() == v1::Progress::PREPARED && t.says != TargetSays::kOwns) {
        t.says = TargetSays::kPrepared;
      }
      break;
    case v1::Progress::ACTIVE:
      if (t.row == bucket::RowStatus::kSent) t.says = TargetSays::kOwns;
      break;
    case v1::Progress::GONE:
      if (before_sent && t.had) {
        refused(Aborted(Reason::kUnknownTransfer, "the target no longer has the transfer"));
      } else if (t.row == bucket::RowStatus::kSent) {
        t.send_at = std::min(t.send_at, now_ + std::chrono::milliseconds(20));  // ask
      }
      break;
    default:  // of a newer program
      break;
  }
}

void Source::OnAnswer(ShardUid from, const v1::Answer& answer) {
  if (Term(answer.asker_term()) != term_ || answer.shard() != from.value()) return;
  if (!answer.has_id()) {
    const auto it = suspicions_.find(answer.number());
    if (it == suspicions_.end() || it->second != from) return;
    suspicions_.erase(it);
    CheckDoubled(answer);
    return;
  }
  const TransferId id = FromProto(answer.id());
  const auto it = transfers_.find(id);
  const auto x = state_.outgoing().find(id);
  if (it == transfers_.end() || x == state_.outgoing().end() || !it->second.seen) return;
  Transfer& t = it->second;
  if (answer.number() < t.first_question || t.row != bucket::RowStatus::kSent) return;
  CheckDoubled(answer);
  if (IsRemoved(state_.topology(), t.target)) {
    t.answers[from] = answer;
    return;
  }
  if (from != t.target || t.says == TargetSays::kOwns) return;
  t.says = ReadTargetAnswer(answer, x->second, state_.bucket_count());
}

void Source::OnNotLeader(ShardUid peer) {
  const SteadyTime soon = now_ + std::chrono::milliseconds(20);
  for (auto& [number, job] : jobs_) {
    if (job.order.target == peer) job.send_at = std::min(job.send_at, soon);
  }
  for (auto& [id, t] : transfers_) {
    if (t.target != peer) continue;
    t.send_at = std::min(t.send_at, soon);
    if (t.stream) t.stream->ResendSoon(now_);
  }
}

void Source::Handle(const Proposed& proposed) {
  for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
    if (it->second.open != proposed.token) continue;
    if (!proposed.status.ok()) {
      FinishJob(it, proposed.status);
      return;
    }
    const TransferId id{state_.shard(), proposed.term, proposed.index};
    Transfer& t = transfers_[id];
    t.order = it->second.order.order;
    t.reservation = it->first;
    t.from_rebalancer = static_cast<bool>(it->second.order.issuer);
    t.split_task = it->second.split_task;
    if (t.order != 0) out_.actions.push_back(OrderOpened{t.order, id});
    jobs_.erase(it);
    return;
  }
  for (auto& [id, t] : transfers_) {
    if (t.pending != proposed.token) continue;
    t.pending = 0;
    if (proposed.status.ok()) return;
    t.propose_at = now_ + RetryPause(random_);
    if (t.pending_kind == v1::TransferStep::SENDING) Release(id, t, std::nullopt);
    return;
  }
  for (auto& [task, driver] : splits_) {
    if (driver.rebase == proposed.token) {
      driver.rebase = 0;
      if (!proposed.status.ok()) driver.try_at = now_ + RetryPause(random_);
    }
    if (driver.abort == proposed.token) driver.abort = 0;
  }
}

void Source::Handle(const CancelOrders& cancel) {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    // With OPEN on its way it is cancelled when it comes back.
    if (it->second.order.issuer && it->second.open == 0) {
      it = FinishJob(it, Aborted(Reason::kStaleTopology, cancel.why));
    } else {
      ++it;
    }
  }
  for (auto& [id, t] : transfers_) {
    if (t.from_rebalancer) t.cancelled = cancel.why;
  }
}

void Source::Handle(const Suspicion& suspicion) {
  if (!ready() || suspicion.peer == state_.shard()) return;
  Suspect(suspicion.peer, suspicion.bucket.level, {suspicion.bucket.number});
}

void Source::Suspect(ShardUid peer, std::uint8_t level, const std::vector<std::uint32_t>& buckets) {
  if (suspicions_.size() >= kMaxSuspicions) suspicions_.erase(suspicions_.begin());
  suspicions_[Ask(peer, nullptr, level, buckets)] = peer;
}

// ---- orders -------------------------------------------------------------------------------------

void Source::Handle(const StartTransfer& order) { AddJob(order, {}); }

Status Source::CheckOrder(const StartTransfer& order, std::string_view split_task,
                          const Job* self) const {
  if (!ready()) return Unavailable(Reason::kNonMaster, "this replica does not lead its shard yet");
  if (state_.retired()) return FailedPrecondition(Reason::kShardRetired, "this shard is retired");
  const v1::Topology& topology = state_.topology();
  if (!topology.complete()) {
    return FailedPrecondition(Reason::kCollectionIncomplete,
                              "not every shard is formed; nothing moves before that");
  }
  if (order.target == state_.shard()) {
    return FailedPrecondition(Reason::kMoveToSelf, "the buckets are here already");
  }
  if (!IsKnown(topology, order.target) || IsRemoved(topology, order.target)) {
    return FailedPrecondition(Reason::kNoSuchReplicaset,
                              "shard " + ToHex(order.target.value()) + " is not in topology " +
                                  std::to_string(topology.version()) +
                                  "; name a shard of it, or apply the newer topology");
  }
  if (Locked(split_task)) {
    return FailedPrecondition(Reason::kReplicasetIsLocked,
                              state_.locked() ? "this shard is locked: it sends nothing"
                                              : "this shard is being split: it sends nothing else");
  }
  if (order.settings_version && order.settings_version.value() < state_.settings().version()) {
    return Aborted(Reason::kStaleTopology, "the order is of older settings");
  }
  if (gate_.Wanted(state_.level(), now_)) {
    return Unavailable(Reason::kTransferPending, "the modulus is about to be doubled");
  }
  if (order.level != state_.level()) {
    return Aborted(Reason::kBucketOutOfRange, "the order is of another level");
  }
  if (order.buckets.empty()) return InvalidArgument("an order of no buckets");
  const std::uint32_t limit = state_.settings().max_sending();
  if (self == nullptr && split_task.empty() &&
      slots_in_use() >= (limit == 0 ? kDefaultMaxSending : limit)) {
    return ResourceExhausted("all send slots are in use; try again when a transfer has ended");
  }
  for (const std::uint32_t bucket : order.buckets) {
    const bucket::Row* row = state_.FindRow(bucket);
    const std::string name = "bucket " + ToString(BucketId{order.level, bucket});
    if (row == nullptr) return Aborted(Reason::kWrongBucket, name + " is not here");
    if (row->status == bucket::RowStatus::kPinned) {
      return FailedPrecondition(Reason::kBucketIsPinned, name + " is pinned; unpin it first");
    }
    if (row->transfer) {
      return Unavailable(Reason::kTransferIsInProgress, name + " is being moved already");
    }
    if (row->status != bucket::RowStatus::kActive) {
      return FailedPrecondition(Reason::kBucketInvalidUpdate, name + " is not ACTIVE");
    }
    for (const auto& [number, job] : jobs_) {
      if (&job != self &&
          std::binary_search(job.order.buckets.begin(), job.order.buckets.end(), bucket)) {
        return Unavailable(Reason::kTransferIsInProgress, name + " is being moved already");
      }
    }
  }
  return OkStatus();
}

void Source::AddJob(StartTransfer order, std::string split_task) {
  std::sort(order.buckets.begin(), order.buckets.end());
  const std::uint64_t number = next_number_++;
  Job job{std::move(order),
          std::move(split_task),
          {},
          0,
          now_ + options_.reserve_timeout,
          now_,
          Backoff(kReserveRetry, kReserveRetryCap)};
  const Status status = CheckOrder(job.order, job.split_task, nullptr);
  const auto it = jobs_.emplace(number, std::move(job)).first;
  if (!status.ok()) {
    FinishJob(it, status);
    return;
  }
  Job& added = it->second;
  for (const std::uint32_t bucket : added.order.buckets) {
    added.set.push_back({bucket, state_.FindRow(bucket)->epoch});
  }
  constexpr std::size_t kAskEach = 64;
  if (added.set.size() <= kAskEach) {
    for (const store::KeyRange& range :
         RangesOf(added.order.level, added.order.buckets, state_.bucket_count())) {
      added.bytes += store_.ApproximateBytes(range.begin, range.end);
    }
  } else {  // their share of everything
    const store::KeyRange all = store::DataRange();
    added.bytes =
        store_.ApproximateBytes(all.begin, all.end) / state_.rows().size() * added.set.size();
  }
}

Source::Jobs::iterator Source::FinishJob(Jobs::iterator it, Status status) {
  if (!it->second.split_task.empty()) SplitFailed(it->second.split_task, status);
  if (it->second.order.order != 0) {
    out_.actions.push_back(OrderFinished{it->second.order.order, {}, std::move(status), 0});
  }
  return jobs_.erase(it);
}

void Source::DriveJobs() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    Job& job = it->second;
    if (job.open != 0) {
      ++it;
      continue;
    }
    if (now_ >= job.give_up_at) {
      it = FinishJob(it, Unavailable(Reason::kUnreachableReplicaset,
                                     "shard " + NameOf(state_.topology(), job.order.target) +
                                         " does not answer"));
      continue;
    }
    if (now_ >= job.send_at) {
      v1::TransferMessage message;
      v1::Reserve& reserve = *message.mutable_reserve();
      reserve.set_number(it->first);
      reserve.set_level(job.order.level);
      FillSet(job.set, reserve.mutable_set());
      reserve.set_bytes(job.bytes);
      reserve.set_limit(job.order.limit);
      Emit(job.order.target, std::move(message));
      job.send_at = now_ + job.backoff.Next(random_);
    }
    WakeBy(std::min(job.send_at, job.give_up_at));
    ++it;
  }
}

// ---- sending ------------------------------------------------------------------------------------

Token Source::ProposeControl(v1::Control control) {
  const Token token = next_number_++;
  out_.actions.push_back(Propose{token, std::move(control)});
  return token;
}

void Source::ProposeStep(const TransferId& id, Transfer& t, v1::TransferStep::Kind kind,
                         std::string_view why) {
  if (t.pending != 0) return;
  if (now_ < t.propose_at) return WakeBy(t.propose_at);
  v1::Control control;
  v1::TransferStep& step = *control.mutable_step();
  step.set_kind(kind);
  *step.mutable_id() = ToProto(id);
  step.set_why(std::string(why));
  t.pending = ProposeControl(std::move(control));
  t.pending_kind = kind;
}

void Source::Emit(ShardUid to, v1::TransferMessage message, Lane lane) {
  message.set_from_shard(state_.shard().value());
  message.set_from_term(term_.value());
  message.set_to_shard(to.value());
  out_.actions.push_back(Send{to, lane, std::move(message)});
}

void Source::SendStart(const bucket::Outgoing& x, const Transfer& t) {
  v1::TransferMessage message;
  v1::Start& start = *message.mutable_start();
  *start.mutable_id() = ToProto(x.id);
  start.set_level(x.level);
  FillSet(x.set, start.mutable_set());
  start.set_reservation(t.reservation);
  Emit(x.target, std::move(message));
}

void Source::SendActivate(const bucket::Outgoing& x) {
  v1::TransferMessage message;
  *message.mutable_activate()->mutable_id() = ToProto(x.id);
  Emit(x.target, std::move(message));
}

std::uint64_t Source::Ask(ShardUid peer, const TransferId* id, std::uint8_t level,
                          const std::vector<std::uint32_t>& buckets) {
  v1::TransferMessage message;
  v1::Question& question = *message.mutable_question();
  if (id != nullptr) *question.mutable_id() = ToProto(*id);
  question.set_asker_term(term_.value());
  question.set_number(next_number_++);
  question.set_level(level);
  question.mutable_buckets()->Add(buckets.begin(), buckets.end());
  const std::uint64_t number = question.number();
  Emit(peer, std::move(message));
  return number;
}

}  // namespace etalon::transfer
