#include "engine/transfer/target.h"

#include <utility>

#include "common/crc32c.h"
#include "engine/transfer/target_state.h"
#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::transfer {
namespace {

constexpr std::uint32_t kDefaultMaxReceiving = 16;
constexpr std::size_t kMaxReservations = 1024;

}  // namespace

Target::Target(const bucket::StateMachine& state, std::function<std::uint64_t()> headroom,
               RebaseGate& gate, Random random, TargetOptions options)
    : state_(state),
      headroom_(std::move(headroom)),
      gate_(gate),
      random_(random),
      options_(options) {}

Target::~Target() = default;

Output Target::Step(SteadyTime now, const Input& input) {
  now_ = now;
  confirmed_ = input.confirmed;
  out_ = Output();
  std::visit([&](const auto& event) { Handle(event); }, input.event);
  if (ready()) {
    DriveArrivals();
    DriveRebase();
  }
  return std::exchange(out_, {});
}

void Target::Handle(const RoleChanged& role) {
  if (role.leader == leader_ && role.term == term_) return;
  reservations_.clear();
  arrivals_.clear();
  starting_.clear();
  rebase_ = 0;
  peers_.Clear();
  alerts_.Reset(&out_);
  leader_ = role.leader;
  term_ = role.term;
}

void Target::Handle(const Message& input) {
  if (!ready()) return;
  const v1::TransferMessage& m = input.message;
  const ShardUid from(m.from_shard());
  if (m.has_question()) {  // answered whoever asks: the answer names the question
    if (confirmed_) OnQuestion(from, m.question());
    return;
  }
  if (m.has_not_leader()) {
    for (auto& [id, a] : arrivals_) {
      if (id.source == from) a.ask_at = std::min(a.ask_at, now_ + options_.ask_after / 10);
    }
    return;
  }
  if (!peers_.Admit(from, Term(m.from_term()))) return;
  const Term term(m.from_term());
  if (m.has_reserve()) OnReserve(from, term, m.reserve());
  if (m.has_start()) OnStart(from, term, m.start());
  if (m.has_chunk()) OnChunk(from, m.chunk().chunk());
  if (m.has_activate()) OnActivate(from, m.activate());
  if (m.has_answer() && confirmed_) OnAnswer(from, m.answer());
}

Status Target::CheckRoom(ShardUid from, std::uint32_t level,
                         const std::vector<bucket::BucketEpoch>& set, std::uint64_t bytes,
                         std::uint64_t limit, const ReservationId& own) {
  if (state_.retired()) {
    return FailedPrecondition(Reason::kShardRetired, "this shard is retired and takes no buckets");
  }
  if (!state_.topology().complete()) {
    return FailedPrecondition(Reason::kCollectionIncomplete,
                              "not every shard is formed; nothing moves before that");
  }
  if (IsRemoved(state_.topology(), from)) {
    return FailedPrecondition(Reason::kNoSuchReplicaset,
                              "shard " + ToHex(from.value()) + " is removed");
  }
  if (state_.locked() || state_.busy_with_split()) {
    return FailedPrecondition(Reason::kReplicasetIsLocked,
                              state_.locked()
                                  ? "this shard is locked: it takes nothing"
                                  : "this shard is part of a split: it takes nothing else");
  }
  if (level > state_.level()) {
    // Nothing else begins here until it is done, or the wish is not repeated.
    gate_.Want(static_cast<std::uint8_t>(level), now_ + options_.reservation_life);
  }
  if (gate_.Wanted(state_.level(), now_)) {
    return Unavailable(Reason::kTransferPending,
                       "the modulus of this shard is about to be doubled");
  }
  const std::uint64_t halves = std::uint64_t{1} << (state_.level() - level);
  for (const bucket::BucketEpoch& b : set) {
    for (std::uint64_t n = 0; n < halves; ++n) {
      const auto bucket = static_cast<std::uint32_t>(
          b.bucket + n * (std::uint64_t{state_.bucket_count()} << level));
      if (state_.FindRow(bucket) != nullptr) {
        return Unavailable(Reason::kTransferIsInProgress,
                           "bucket " + ToString(BucketId{state_.level(), bucket}) +
                               " is here already, or not all gone yet");
      }
      if (const Epoch last = state_.FindMarks(bucket).own; last > b.epoch) {
        return FailedPrecondition(Reason::kStaleEpoch,
                                  "bucket " + ToString(BucketId{state_.level(), bucket}) +
                                      " was here at epoch " + std::to_string(last.value()),
                                  {.epoch = last});
      }
    }
  }
  std::size_t taken = state_.incoming().size() + starting_.size();
  std::uint64_t promised = 0;
  const v1::BucketCounts counts = state_.counts();
  std::uint64_t held = counts.active() + counts.pinned() + counts.sending() + counts.quarantined() +
                       counts.receiving();
  for (const auto& [id, starting] : starting_) held += starting.buckets;
  for (auto it = reservations_.begin(); it != reservations_.end();) {
    if (now_ >= it->second.expires) {
      it = reservations_.erase(it);
      continue;
    }
    if (it->first != own && !it->second.used) {
      ++taken;
      promised += it->second.bytes;
      held += it->second.buckets;
    }
    ++it;
  }
  const std::uint32_t slots = state_.settings().max_receiving();
  if (taken >= std::min<std::size_t>(slots == 0 ? kDefaultMaxReceiving : slots, kMaxReservations)) {
    return ResourceExhausted("all receive slots are in use", Reason::kTooManyReceiving);
  }
  if (limit != 0 && held + set.size() * halves > limit * halves) {
    return ResourceExhausted("this shard has, or is about to have, as many buckets as it should",
                             Reason::kTooManyReceiving);
  }
  if (const std::uint64_t room = headroom_(); room < promised || room - promised < bytes) {
    return ResourceExhausted("the disk has no head-room for " + std::to_string(bytes) + " bytes",
                             Reason::kNoSpaceForTransfer);
  }
  return OkStatus();
}

void Target::OnReserve(ShardUid from, Term term, const v1::Reserve& reserve) {
  const ReservationId id{from, term, reserve.number()};
  if (const auto it = reservations_.find(id);
      it != reservations_.end() && it->second.used && now_ < it->second.expires) {
    return;  // late: its Start was here
  }
  const auto set = ParseSet(reserve.set(), reserve.level(), state_.bucket_count());
  const Status status =
      set.ok() ? CheckRoom(from, reserve.level(), *set, reserve.bytes(), reserve.limit(), id)
               : set.status();
  if (status.ok()) {
    reservations_[id] = {now_ + options_.reservation_life, reserve.bytes(),
                         set->size() << (state_.level() - reserve.level()), false};
  } else {
    reservations_.erase(id);
  }
  v1::TransferMessage message;
  message.mutable_reserve_reply()->set_number(reserve.number());
  *message.mutable_reserve_reply()->mutable_status() = ToProto(status);
  Emit(from, std::move(message));
}

void Target::OnStart(ShardUid from, Term term, const v1::Start& start) {
  const TransferId id = FromProto(start.id());
  if (id.source != from || starting_.count(id) != 0) return;
  if (const auto it = state_.incoming().find(id); it != state_.incoming().end()) {
    return SendProgressOf(it->second);
  }
  const ReservationId reservation{from, term, start.reservation()};
  const auto set = ParseSet(start.set(), start.level(), state_.bucket_count());
  std::uint64_t bytes = 0;
  if (const auto it = reservations_.find(reservation); it != reservations_.end()) {
    bytes = it->second.bytes;
  }
  const Status status =
      set.ok() ? CheckRoom(from, start.level(), *set, bytes, 0, reservation) : set.status();
  reservations_[reservation] = {now_ + options_.reservation_life, 0, 0, true};
  if (!status.ok()) return SendProgress(id, v1::Progress::REFUSED, 0, status);
  v1::Control control;
  v1::Receiving& receiving = *control.mutable_receiving();
  *receiving.mutable_id() = start.id();
  receiving.set_level(start.level());
  *receiving.mutable_set() = start.set();
  const Token token = ProposeControl(std::move(control));
  starting_[id] = {token, set->size() << (state_.level() - start.level())};
}

void Target::OnChunk(ShardUid from, const v1::Chunk& chunk) {
  const TransferId id = FromProto(chunk.id());
  if (id.source != from) return;
  const auto x = state_.incoming().find(id);
  const auto it = arrivals_.find(id);
  if (x == state_.incoming().end() || it == arrivals_.end()) {
    if (starting_.count(id) == 0 && x == state_.incoming().end()) {
      SendProgress(id, v1::Progress::GONE);
    }
    return;
  }
  Arrival& a = it->second;
  if (chunk.number() < x->second.next_number || x->second.prepared || x->second.mismatch) {
    return SendProgressOf(x->second);
  }
  if (chunk.number() < a.propose_next && !a.again) return;  // in the log
  if (Crc32c(chunk.payload()) != chunk.crc()) return;       // damaged on its way: it comes again
  const std::size_t size = chunk.payload().size();
  if (a.queue_bytes + size > options_.queue_bytes && chunk.number() != x->second.next_number)
    return;
  if (a.queue.emplace(chunk.number(), chunk).second) a.queue_bytes += size;
}

void Target::OnActivate(ShardUid from, const v1::Activate& activate) {
  const TransferId id = FromProto(activate.id());
  if (id.source != from) return;
  const auto x = state_.incoming().find(id);
  const auto it = arrivals_.find(id);
  if (x == state_.incoming().end() || it == arrivals_.end()) {
    if (starting_.count(id) == 0) SendProgress(id, v1::Progress::GONE);
    return;
  }
  if (x->second.prepared) {
    it->second.told = true;
  } else {
    it->second.ask_at = now_;  // the source must have been told otherwise: judge it
  }
}

void Target::OnQuestion(ShardUid from, const v1::Question& question) {
  Result<v1::Answer> answer = AnswerQuestion(state_, term_, question);
  if (!answer.ok()) return;
  v1::TransferMessage message;
  *message.mutable_answer() = std::move(*answer);
  Emit(from, std::move(message));
}

void Target::OnAnswer(ShardUid from, const v1::Answer& answer) {
  const TransferId id = FromProto(answer.id());
  const auto x = state_.incoming().find(id);
  const auto it = arrivals_.find(id);
  if (x == state_.incoming().end() || it == arrivals_.end() || id.source != from) return;
  Arrival& a = it->second;
  if (Term(answer.asker_term()) != term_ || answer.number() < a.first_question || !a.seen ||
      a.row != bucket::RowStatus::kReceiving || a.prepared != x->second.prepared ||
      answer.level() < x->second.level ||
      static_cast<std::size_t>(answer.buckets_size()) < x->second.set.size()) {
    return;
  }
  const SourceSays says = ReadSourceAnswer(answer, id, state_.shard());
  std::string_view why;
  switch (says) {
    case SourceSays::kSentToMe:
      why = "the source has sent the buckets, and not all of them arrived";
      break;
    case SourceSays::kSentElsewhere:
      why = "the source has sent the buckets to another shard";
      break;
    case SourceSays::kTookLeave:
      why = "the source was told that this shard owns the buckets, and it does not";
      break;
    case SourceSays::kNeverOpened:
      why = "the source has lost the end of its log, which opened this transfer";
      break;
    case SourceSays::kNothing:
    case SourceSays::kCarries:
    case SourceSays::kGone:
    case SourceSays::kRemoved:
      break;
  }
  Carry(ResolveTarget(says, x->second.prepared), x->second, a, why);
}

void Target::Handle(const Proposed& proposed) {
  if (proposed.token == rebase_) {
    rebase_ = 0;
    if (!proposed.status.ok()) rebase_at_ = now_ + RetryPause(random_);
    return;
  }
  for (auto it = starting_.begin(); it != starting_.end(); ++it) {
    if (it->second.token != proposed.token) continue;
    const TransferId id = it->first;
    starting_.erase(it);
    if (proposed.applied && !proposed.status.ok()) {
      SendProgress(id, v1::Progress::REFUSED, 0, proposed.status);
    }
    return;
  }
  for (auto& [id, a] : arrivals_) {
    if (const auto chunk = a.in_log.find(proposed.token); chunk != a.in_log.end()) {
      a.bytes_in_log -= chunk->second;
      a.in_log.erase(chunk);
      if (!proposed.status.ok()) a.again = true;
      return;
    }
    if (a.step != proposed.token) continue;
    a.step = 0;
    if (!proposed.status.ok()) {
      a.propose_at = now_ + RetryPause(random_);
      a.ask_at = std::min(a.ask_at, a.propose_at);
    } else if (a.step_kind == v1::TransferStep::ACTIVATE) {
      SendProgress(id, v1::Progress::ACTIVE);
    }
    return;
  }
}

// ---- sending ------------------------------------------------------------------------------------

Token Target::ProposeControl(v1::Control control) {
  const Token token = next_number_++;
  out_.actions.push_back(Propose{token, std::move(control)});
  return token;
}

void Target::ProposeStep(const TransferId& id, Arrival& a, v1::TransferStep::Kind kind,
                         bool only_unprepared) {
  if (a.step != 0) return;
  if (now_ < a.propose_at) return WakeBy(a.propose_at);
  v1::Control control;
  control.mutable_step()->set_kind(kind);
  *control.mutable_step()->mutable_id() = ToProto(id);
  control.mutable_step()->set_only_unprepared(only_unprepared);
  a.step = ProposeControl(std::move(control));
  a.step_kind = kind;
}

void Target::SendProgress(const TransferId& id, v1::Progress::State state,
                          std::uint64_t next_number, const Status& status) {
  v1::TransferMessage message;
  v1::Progress& progress = *message.mutable_progress();
  *progress.mutable_id() = ToProto(id);
  progress.set_state(state);
  progress.set_next_number(next_number);
  if (!status.ok()) *progress.mutable_status() = ToProto(status);
  Emit(id.source, std::move(message));
}

void Target::SendProgressOf(const bucket::Incoming& x) {
  if (x.mismatch) {
    return SendProgress(x.id, v1::Progress::REFUSED, x.next_number,
                        DataLoss("what arrived is not what the source sent"));
  }
  SendProgress(x.id, x.prepared ? v1::Progress::PREPARED : v1::Progress::RECEIVING, x.next_number);
}

void Target::Emit(ShardUid to, v1::TransferMessage message) {
  message.set_from_shard(state_.shard().value());
  message.set_from_term(term_.value());
  message.set_to_shard(to.value());
  out_.actions.push_back(Send{to, Lane::kControl, std::move(message)});
}

}  // namespace etalon::transfer
