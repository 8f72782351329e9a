// The target's transfers from RECEIVING to the end: what each state of the rows calls for.
#include <utility>

#include "common/check.h"
#include "engine/transfer/target.h"
#include "engine/transfer/target_state.h"
#include "proto/wire.h"

namespace etalon::transfer {

void Target::DriveArrivals() {
  for (auto it = arrivals_.begin(); it != arrivals_.end();) {
    if (state_.incoming().count(it->first) != 0) {
      ++it;
      continue;
    }
    alerts_.ClearAll(ToString(it->first), &out_);
    // The step that ended it comes back later than what it did, if it does: the source must hear of
    // ACTIVE.
    it = it->second.step == 0 ? arrivals_.erase(it) : std::next(it);
  }
  for (const auto& [id, x] : state_.incoming()) {
    Drive(x, arrivals_.try_emplace(id, options_).first->second);
  }
}

void Target::Drive(const bucket::Incoming& x, Arrival& a) {
  const bucket::Row* row = state_.FindRow(x.set.front().bucket);
  ETALON_CHECK(row != nullptr && row->transfer == x.id, "a transfer's rows carry it");
  if (!a.seen || a.row != row->status || a.prepared != x.prepared || a.mismatch != x.mismatch ||
      a.next_number != x.next_number) {
    if (!a.seen || a.row != row->status || a.prepared != x.prepared) {
      a.first_question = next_number_;
    }
    a.seen = true;
    a.row = row->status;
    a.prepared = x.prepared;
    a.mismatch = x.mismatch;
    a.next_number = x.next_number;
    a.since = now_;
    a.ask_at = now_ + options_.ask_after;
    a.backoff.Reset();
    alerts_.Clear(kAlertStuck, ToString(x.id), &out_);
    if (a.row == bucket::RowStatus::kReceiving) SendProgressOf(x);
  } else if (a.again && a.in_log.empty()) {
    SendProgressOf(x);  // a chunk was not taken: the source shall send it again
  }
  switch (a.row) {
    case bucket::RowStatus::kReceiving:
      return DriveReceiving(x, a);
    case bucket::RowStatus::kGarbage:
      a.queue.clear();
      alerts_.ClearAll(ToString(x.id), &out_);
      return ProposeStep(x.id, a, v1::TransferStep::REMOVE);
    case bucket::RowStatus::kActive:
    case bucket::RowStatus::kPinned:
    case bucket::RowStatus::kSending:
    case bucket::RowStatus::kSent:
    case bucket::RowStatus::kQuarantined:
      break;
  }
  ETALON_CHECK(false, "a row of an incoming transfer is RECEIVING or GARBAGE");
}

void Target::DriveReceiving(const bucket::Incoming& x, Arrival& a) {
  if (a.told && x.prepared) return ProposeStep(x.id, a, v1::TransferStep::ACTIVATE);
  ProposeChunks(x, a);
  if (a.step == 0 && IsRemoved(state_.topology(), x.id.source)) {
    if (!confirmed_) {
      out_.want_confirmation = true;
      return;
    }
    return Carry(ResolveTarget(SourceSays::kRemoved, x.prepared), x, a, {});
  }
  const SteadyTime stuck = a.since + options_.stuck_after;
  if (now_ >= stuck) {
    alerts_.Raise(kAlertStuck, ToString(x.id),
                  "waits for " + NameOf(state_.topology(), x.id.source) +
                      (x.prepared ? " to give the buckets up, or to say that it has not"
                                  : " to send the rest, or to say that it has given up"),
                  &out_);
  } else {
    WakeBy(stuck);
  }
  if (now_ >= a.ask_at) {
    AskSource(x);
    a.ask_at = now_ + a.backoff.Next(random_);
  }
  WakeBy(a.ask_at);
}

void Target::ProposeChunks(const bucket::Incoming& x, Arrival& a) {
  if (a.again) {
    if (!a.in_log.empty()) return;
    a.again = false;
    a.propose_next = x.next_number;
  }
  a.propose_next = std::max(a.propose_next, x.next_number);
  while (!a.queue.empty() && a.queue.begin()->first < a.propose_next) {
    a.queue_bytes -= a.queue.begin()->second.payload().size();
    a.queue.erase(a.queue.begin());
  }
  while (!a.queue.empty() && a.queue.begin()->first == a.propose_next &&
         a.in_log.size() < options_.chunks_in_log &&
         (a.in_log.empty() || a.bytes_in_log < options_.chunk_bytes_in_log)) {
    const std::size_t size = a.queue.begin()->second.payload().size();
    v1::Control control;
    *control.mutable_chunk() = std::move(a.queue.begin()->second);
    a.queue.erase(a.queue.begin());
    a.queue_bytes -= size;
    a.in_log[ProposeControl(std::move(control))] = size;
    a.bytes_in_log += size;
    ++a.propose_next;
  }
}

void Target::Carry(TargetVerdict verdict, const bucket::Incoming& x, Arrival& a,
                   std::string_view why) {
  const std::string key = ToString(x.id);
  if (verdict != TargetVerdict::kHold) alerts_.Clear(kAlertHold, key, &out_);
  switch (verdict) {
    case TargetVerdict::kWait:
      return;
    case TargetVerdict::kActivate:
      a.told = true;
      return;
    case TargetVerdict::kGarbage:
      return ProposeStep(x.id, a, v1::TransferStep::TARGET_GARBAGE);
    case TargetVerdict::kGarbageIfUnprepared:
      return ProposeStep(x.id, a, v1::TransferStep::TARGET_GARBAGE, true);
    case TargetVerdict::kHold:
      alerts_.Raise(kAlertHold, key, std::string(why) + "; what was received is kept and not used",
                    &out_);
      return;
  }
}

void Target::AskSource(const bucket::Incoming& x) {
  v1::TransferMessage message;
  v1::Question& question = *message.mutable_question();
  *question.mutable_id() = ToProto(x.id);
  question.set_asker_term(term_.value());
  question.set_number(next_number_++);
  question.set_level(x.level);
  for (const bucket::BucketEpoch& b : x.set) question.add_buckets(b.bucket);
  Emit(x.id.source, std::move(message));
}

void Target::DriveRebase() {
  const std::optional<std::uint8_t> level = gate_.Wanted(state_.level(), now_);
  if (!level || rebase_ != 0) return;
  if (now_ < rebase_at_) return WakeBy(rebase_at_);
  // Transfers that run end by themselves; the applies that end them step this machine.
  if (!state_.incoming().empty() || !state_.outgoing().empty() || !starting_.empty()) return;
  v1::Control control;
  control.mutable_rebase()->set_level(*level);
  rebase_ = ProposeControl(std::move(control));
}

std::vector<v1::TransferInfo> Target::Describe() const {
  std::vector<v1::TransferInfo> all;
  for (const auto& [id, x] : state_.incoming()) {
    v1::TransferInfo& info = all.emplace_back();
    *info.mutable_id() = ToProto(id);
    info.set_peer(id.source.value());
    info.set_level(x.level);
    for (const bucket::BucketEpoch& b : x.set) info.add_buckets(b.bucket);
    info.set_bytes(x.bytes);
    const std::string peer = NameOf(state_.topology(), id.source);
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    if (row != nullptr && row->status == bucket::RowStatus::kGarbage) {
      info.set_phase("removing");
    } else {
      info.set_phase(x.prepared ? "prepared" : "receiving");
      info.set_waiting_for(x.prepared ? peer + " to give the buckets up" : peer + " to send more");
    }
  }
  return all;
}

}  // namespace etalon::transfer
