// The source's transfers from OPEN to the end: what each state of the rows calls for.
#include <utility>

#include "common/check.h"
#include "engine/transfer/source.h"
#include "engine/transfer/source_state.h"
#include "proto/wire.h"

namespace etalon::transfer {
namespace {

SourceRow RowOf(bucket::RowStatus status) {
  switch (status) {
    case bucket::RowStatus::kActive:
      return SourceRow::kOpen;
    case bucket::RowStatus::kSending:
      return SourceRow::kSending;
    case bucket::RowStatus::kSent:
      return SourceRow::kSent;
    case bucket::RowStatus::kGarbage:
      return SourceRow::kGarbage;
    case bucket::RowStatus::kPinned:
    case bucket::RowStatus::kReceiving:
    case bucket::RowStatus::kQuarantined:
      break;
  }
  ETALON_CHECK(false, "a row of an outgoing transfer is ACTIVE, SENDING, SENT or GARBAGE");
}

}  // namespace

void Source::DriveTransfers() {
  for (auto it = transfers_.begin(); it != transfers_.end();) {
    if (state_.outgoing().count(it->first) != 0) {
      ++it;
      continue;
    }
    Vanished(it->first, it->second);
    it = transfers_.erase(it);
  }
  for (const auto& [id, x] : state_.outgoing()) Drive(x, transfers_[id]);

  if (const std::uint64_t doubled = state_.counts().quarantined(); doubled > 0) {
    alerts_.Raise(kAlertDoubled, "quarantined",
                  std::to_string(doubled) +
                      " buckets met proof of a newer owner elsewhere. Compare both copies, then "
                      "release each to ACTIVE or GARBAGE",
                  &out_);
  } else {
    alerts_.Clear(kAlertDoubled, "quarantined", &out_);
  }
}

void Source::Vanished(const TransferId& id, Transfer& t) {
  const bool committed = t.seen && !bucket::IsReadable(t.row);
  if (t.draining) StopDraining(t);
  Release(id, t, committed ? std::optional(t.target) : std::nullopt);
  alerts_.ClearAll(ToString(id), &out_);
  if (t.reported) return;
  Status why = !t.refusal.ok()        ? t.refusal
               : !t.cancelled.empty() ? Aborted(Reason::kStaleTopology, t.cancelled)
                                      : Aborted(Reason::kNone, "the transfer was aborted");
  if (committed) why = OkStatus();
  if (!t.split_task.empty() && !committed) SplitFailed(t.split_task, why);
  if (t.order != 0) {
    out_.actions.push_back(
        OrderFinished{t.order, id, std::move(why), t.stream ? t.stream->bytes_cut() : 0});
  }
}

void Source::Drive(const bucket::Outgoing& x, Transfer& t) {
  const bucket::Row* row = state_.FindRow(x.set.front().bucket);
  ETALON_CHECK(row != nullptr && row->transfer == x.id, "a transfer's rows carry it");
  if (!t.seen || t.row != row->status) {
    if (!t.seen) {
      t.target = x.target;
      t.level = x.level;
      t.buckets = Numbers(x.set);
      t.split_task = x.split_task;
    }
    t.seen = true;
    t.row = row->status;
    t.since = t.progress_at = t.send_at = now_;
    t.says = TargetSays::kNothing;
    t.first_question = next_number_;
    t.answers.clear();
    t.backoff.Reset();
  }
  switch (RowOf(t.row)) {
    case SourceRow::kOpen:
      return DriveOpen(x, t);
    case SourceRow::kSending:
      return DriveSending(x, t);
    case SourceRow::kSent:
      return DriveSent(x, t);
    case SourceRow::kGarbage:
      t.stream.reset();
      return ProposeStep(x.id, t, v1::TransferStep::REMOVE);
  }
}

void Source::DriveOpen(const bucket::Outgoing& x, Transfer& t) {
  SourceFacts facts{SourceRow::kOpen, t.stream != nullptr, t.says,
                    now_ - t.progress_at >= options_.progress_timeout};
  if (IsRemoved(state_.topology(), x.target)) facts.says = TargetSays::kRemoved;
  if (facts.expired && t.refusal.ok()) {
    t.refusal = Unavailable(Reason::kUnreachableReplicaset, "the target makes no progress");
  }
  const bool locked = Locked(x.split_task);
  if (locked) {
    t.refusal = FailedPrecondition(Reason::kReplicasetIsLocked, "this shard was locked meanwhile");
  }
  if (locked || !t.cancelled.empty() || ResolveSource(facts) == SourceVerdict::kAbort) {
    // SENDING that is on its way comes first; what then remains to be done is seen after it.
    if (t.draining && t.pending == 0) StopDraining(t);
    return ProposeStep(x.id, t, v1::TransferStep::ABORT,
                       !t.cancelled.empty() ? t.cancelled : t.refusal.message());
  }
  WakeBy(t.progress_at + options_.progress_timeout);
  if (t.had) return ContinueCopy(x, t);
  // Another OPEN of the same apply group is being answered: which reservation this one has is told
  // next, and a Start without it would be refused its own slot.
  if (t.reservation == 0) return;
  if (now_ >= t.send_at) {
    SendStart(x, t);
    t.send_at = now_ + t.backoff.Next(random_);
  }
  WakeBy(t.send_at);
}

void Source::ContinueCopy(const bucket::Outgoing& x, Transfer& t) {
  const Duration freeze = MaxFreeze();
  PumpStream(x, t, t.pending == 0 && !t.draining && !t.stream->NearEnd(freeze));
  if (t.says == TargetSays::kRefused || t.pending != 0) return;  // a failed store is seen next
  const bool near = t.stream->NearEnd(freeze);
  if (t.draining && (!near || now_ >= t.drain_until)) {
    StopDraining(t);
    if (near && ++t.drains >= options_.drain_attempts) {
      t.says = TargetSays::kRefused;
      t.refusal = Aborted(Reason::kBucketIsLocked,
                          "stored functions keep writing to the bucket; tried " +
                              std::to_string(t.drains) + " times to wait for them");
      return WakeBy(now_);
    }
    t.drain_at = now_ + random_.Between(options_.drain_timeout, 2 * options_.drain_timeout);
  }
  if (!near) return WakeBy(t.stream->next_at(now_, budget_));
  if (now_ - t.heard_at > options_.freeze_timeout / 2) {
    // A freeze that a silent target lets run out would stop writes for nothing, and end a split
    // task.
    if (now_ >= t.send_at) {
      SendStart(x, t);
      t.send_at = now_ + t.backoff.Next(random_);
    }
    return WakeBy(t.send_at);
  }
  t.progress_at = now_;  // from here on it is we who wait
  if (!t.draining) {
    if (now_ < t.drain_at) return WakeBy(t.drain_at);
    t.draining = true;
    t.drain_until = now_ + options_.drain_timeout;
    refs_.CloseRw(t.level, t.buckets);
  }
  if (!refs_.Drained(t.level, t.buckets)) return WakeBy(t.drain_until);
  if (now_ < t.propose_at) return WakeBy(t.propose_at);
  out_.actions.push_back(HoldWrites{x.id, t.level, t.buckets});
  t.holding = true;
  ProposeStep(x.id, t, v1::TransferStep::SENDING);
}

void Source::PumpStream(const bucket::Outgoing& x, Transfer& t, bool may_begin_round) {
  Result<std::vector<v1::Chunk>> chunks = t.stream->Pump(now_, budget_, may_begin_round, random_);
  if (!chunks.ok()) {
    t.says = TargetSays::kRefused;
    t.refusal = chunks.status();
    return WakeBy(now_);
  }
  for (v1::Chunk& chunk : *chunks) {
    v1::TransferMessage message;
    *message.mutable_chunk()->mutable_chunk() = std::move(chunk);
    Emit(x.target, std::move(message), Lane::kBulk);
  }
  if (!budget_.MaySend(now_)) t.progress_at = now_;  // it is we who wait
  WakeBy(t.stream->next_at(now_, budget_));
}

void Source::StopDraining(Transfer& t) {
  t.draining = false;
  refs_.OpenRw(t.level, t.buckets);
}

void Source::DriveSending(const bucket::Outgoing& x, Transfer& t) {
  if (t.stream) {
    t.stream->Finish();
    PumpStream(x, t, true);
  }
  const SourceVerdict verdict = ResolveSource({SourceRow::kSending, t.stream != nullptr, t.says,
                                               now_ - t.since >= options_.freeze_timeout});
  if (verdict == SourceVerdict::kCommit) return ProposeStep(x.id, t, v1::TransferStep::SENT);
  if (verdict == SourceVerdict::kWait) return WakeBy(t.since + options_.freeze_timeout);
  ETALON_CHECK(verdict == SourceVerdict::kAbort, "SENDING goes to SENT or back");
  if (t.refusal.ok()) {
    t.refusal = t.stream ? Unavailable(Reason::kUnreachableReplicaset,
                                       "the target did not confirm the last round in time")
                         : Aborted(Reason::kNonMaster, "the leader that opened it is gone");
  }
  ProposeStep(x.id, t, v1::TransferStep::ABORT, t.refusal.message());
}

void Source::DriveSent(const bucket::Outgoing& x, Transfer& t) {
  const std::string key = ToString(x.id);
  if (t.draining) StopDraining(t);
  if (IsRemoved(state_.topology(), x.target) && t.says != TargetSays::kOwns) JudgeRemoved(x, t);
  const SourceVerdict verdict =
      ResolveSource({SourceRow::kSent, t.stream != nullptr, t.says, false});
  if (verdict == SourceVerdict::kGarbage) {
    alerts_.ClearAll(key, &out_);
    Release(x.id, t, x.target);
    if (!t.reported) {
      t.reported = true;
      if (t.order != 0) {
        out_.actions.push_back(
            OrderFinished{t.order, x.id, OkStatus(), t.stream ? t.stream->bytes_cut() : 0});
      }
    }
    return ProposeStep(x.id, t, v1::TransferStep::SOURCE_GARBAGE);
  }
  if (verdict == SourceVerdict::kHold) {
    alerts_.Raise(kAlertLost, key,
                  "buckets were sent to " + NameOf(state_.topology(), x.target) +
                      ", which knows nothing of them; the data is kept here",
                  &out_);
  } else if (verdict == SourceVerdict::kActivate) {
    alerts_.Clear(kAlertLost, key, &out_);
  }
  const SteadyTime let_go = t.since + options_.hold_after_sent;
  if (now_ >= let_go) {
    Release(x.id, t, x.target);
  } else if (t.holding) {
    WakeBy(let_go);
  }
  const SteadyTime stuck = t.since + options_.stuck_after;
  if (now_ >= stuck) {
    alerts_.Raise(kAlertStuck, key,
                  "waits for " + NameOf(state_.topology(), x.target) +
                      " to confirm that it owns the buckets sent to it",
                  &out_);
  } else {
    WakeBy(stuck);
  }
  if (now_ >= t.send_at) {
    AskAboutSent(x, t);
    t.send_at = now_ + t.backoff.Next(random_);
  }
  WakeBy(t.send_at);
}

void Source::AskAboutSent(const bucket::Outgoing& x, Transfer& t) {
  if (IsRemoved(state_.topology(), x.target)) {
    for (const v1::ShardInfo& shard : state_.topology().shards()) {
      if (shard.uid() == state_.shard().value() || t.answers.count(ShardUid(shard.uid())) != 0) {
        continue;
      }
      Ask(ShardUid(shard.uid()), &x.id, t.level, t.buckets);
    }
    // Nobody is left to be asked: everybody again, it may have changed.
    if (t.says == TargetSays::kRemovedUnowned) t.answers.clear();
    return;
  }
  SendActivate(x);
  // The first time the target has had no time to do anything.
  if (t.sends++ > 0) Ask(x.target, &x.id, t.level, t.buckets);
}

void Source::JudgeRemoved(const bucket::Outgoing& x, Transfer& t) {
  if (SomebodyOwnsEach(t.answers, x, state_.bucket_count())) {
    t.says = TargetSays::kRemovedOwned;
    return;
  }
  bool everybody = true;
  for (const v1::ShardInfo& shard : state_.topology().shards()) {
    const ShardUid uid(shard.uid());
    everybody &= uid == state_.shard() || t.answers.count(uid) != 0;
  }
  if (everybody) {
    t.says = TargetSays::kRemovedUnowned;
  } else if (t.says != TargetSays::kRemovedUnowned) {
    t.says = TargetSays::kRemoved;
  }
}

void Source::Release(const TransferId& id, Transfer& t, std::optional<ShardUid> moved) {
  if (!t.holding) return;
  t.holding = false;
  out_.actions.push_back(ReleaseWrites{id, moved});
}

void Source::CheckDoubled(const v1::Answer& answer) {
  if (answer.level() > 32) return;
  std::map<std::uint32_t, std::uint64_t> proofs;  // our bucket -> highest own elsewhere
  for (const v1::BucketAnswer& b : answer.buckets()) {
    const std::uint64_t modulus = std::uint64_t{state_.bucket_count()} << answer.level();
    // A coarser answer than our level names several of our rows; questions are asked at our level,
    // so there is none.
    if (modulus < state_.modulus()) return;
    const auto bucket = static_cast<std::uint32_t>(b.bucket() % state_.modulus());
    const bucket::Row* row = state_.FindRow(bucket);
    if (row == nullptr || !bucket::IsReadable(row->status)) continue;
    if (b.marks().own() <= row->epoch.value()) continue;
    std::uint64_t& proof = proofs[bucket];
    proof = std::max(proof, b.marks().own());
  }
  for (const auto& [bucket, own] : proofs) {
    v1::Control control;
    v1::Quarantine& quarantine = *control.mutable_quarantine();
    quarantine.set_bucket(bucket);
    quarantine.set_level(state_.level());
    quarantine.set_epoch(state_.FindRow(bucket)->epoch.value());
    quarantine.set_own_seen(own);
    ProposeControl(std::move(control));
  }
}

std::vector<v1::TransferInfo> Source::Describe() const {
  std::vector<v1::TransferInfo> all;
  for (const auto& [id, t] : transfers_) {
    if (!t.seen) continue;
    v1::TransferInfo& info = all.emplace_back();
    *info.mutable_id() = ToProto(id);
    info.set_outgoing(true);
    info.set_peer(t.target.value());
    info.set_level(t.level);
    info.mutable_buckets()->Add(t.buckets.begin(), t.buckets.end());
    info.set_bytes(t.stream ? t.stream->bytes_cut() : 0);
    const std::string peer = NameOf(state_.topology(), t.target);
    switch (RowOf(t.row)) {
      case SourceRow::kOpen:
        info.set_phase(!t.had ? "starting" : t.draining ? "draining" : "copying");
        info.set_waiting_for(!t.had       ? peer + " to take it"
                             : t.draining ? "stored functions to end"
                                          : peer + " to apply what is sent");
        break;
      case SourceRow::kSending:
        info.set_phase("sending");
        info.set_waiting_for(peer + " to apply the last round");
        break;
      case SourceRow::kSent:
        info.set_phase("sent");
        info.set_waiting_for(peer + " to confirm that it serves");
        break;
      case SourceRow::kGarbage:
        info.set_phase("removing");
        break;
    }
  }
  return all;
}

}  // namespace etalon::transfer
