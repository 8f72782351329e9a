// The snapshots of a Replica: what it sends as a leader, and the one that it receives.
#include <algorithm>
#include <utility>

#include "engine/consensus/replica.h"

namespace etalon::consensus {

// ---- the leader's end ----

// Called by consensus, through the log: nothing here may call back into it.
std::optional<Snapshot> Replica::ProvideSnapshot(MemberId to, LogIndex at_least) {
  if (outgoing_.contains(to)) {
    stale_.push_back(to);  // consensus has forgotten that stream: it led, lost it and leads again
    return std::nullopt;
  }
  if (outgoing_.size() >= options_.outgoing_snapshots) return std::nullopt;
  if (const auto wait = retry_at_.find(to); wait != retry_at_.end()) {
    if (env_.clock.Now() < wait->second) return std::nullopt;
    retry_at_.erase(wait);
  }
  AppliedState meta;
  std::unique_ptr<SnapshotSource> source = owner_.StartSnapshot(&meta);
  const auto names = [to](const std::vector<MemberId>& ids) {
    return std::find(ids.begin(), ids.end(), to) != ids.end();
  };
  if (!source || meta.index < at_least ||
      !(names(meta.members.voters) || names(meta.members.learners))) {
    return std::nullopt;
  }
  Snapshot snapshot{meta.index, meta.term, meta.members,
                    "g-" + ToHex(options_.self.value()) + "." + ToHex(life_) + "." +
                        std::to_string(next_snapshot_++)};
  outgoing_.emplace(
      to, SnapshotSender(snapshot, std::move(source), env_.clock.Now(), options_.snapshot));
  env_.log.Info(
      "snapshot_offered",
      {{"to", ToHex(to.value())}, {"index", snapshot.index.value()}, {"name", snapshot.name}});
  return snapshot;
}

// Consensus is told exactly once for each snapshot message, however it ends.
void Replica::EndOutgoing(MemberId to, bool arrived) {
  const auto sender = outgoing_.find(to);
  if (sender == outgoing_.end()) return;
  env_.log.Info("snapshot_ended", {{"name", sender->second.snapshot().name}, {"arrived", arrived}});
  outgoing_.erase(sender);
  const Duration base = options_.snapshot.retry_after;
  if (!arrived) retry_at_[to] = env_.clock.Now() + random_.Between(base, 2 * base);
  consensus_->SnapshotDone(to, arrived);
}

void Replica::OnPull(MemberId from, const v1::SnapshotMessage& message) {
  const auto sender = outgoing_.find(from);
  if (sender == outgoing_.end() || sender->second.snapshot().name != message.name()) {
    return SendEnd(from, message.name(), false, "no such stream");
  }
  Result<std::vector<v1::SnapshotChunk>> chunks =
      sender->second.OnPull(message.pull(), env_.clock.Now());
  if (!chunks.ok()) {
    SendEnd(from, message.name(), false, chunks.status().message());
    return EndOutgoing(from, false);
  }
  for (v1::SnapshotChunk& chunk : *chunks) {
    v1::SnapshotMessage answer;
    answer.set_name(message.name());
    *answer.mutable_chunk() = std::move(chunk);
    // What finds no room counts as lost: the receiver asks again.
    if (SendSnapshot(from, Lane::kBulk, answer) != SendResult::kQueued) break;
  }
}

// ---- the receiver's end ----

void Replica::OnOffer(Offer offer) {
  if (incoming_) {
    const Snapshot& current = incoming_->offer.snapshot;
    const bool newer = offer.snapshot.name != current.name && offer.snapshot.index >= current.index;
    // A complete one is installed whoever leads: what it holds is committed.
    if (!newer || incoming_->receiver.complete()) return;
    AbandonIncoming("another snapshot is offered");
  }
  std::unique_ptr<SnapshotSink> sink = owner_.StartRestore(offer.snapshot);
  if (!sink)
    return SendEnd(offer.from, offer.snapshot.name, false, "the receiver has no place for it now");
  incoming_ = std::make_unique<Incoming>(Incoming{
      std::move(offer), SnapshotReceiver(std::move(sink), env_.clock.Now(), options_.snapshot)});
  SendPull(false);
}

void Replica::OnChunk(v1::SnapshotChunk chunk) {
  const Result<bool> moved = incoming_->receiver.OnChunk(std::move(chunk), env_.clock.Now());
  if (!moved.ok()) return AbandonIncoming(moved.status().message());
  if (!*moved) return;
  SendPull(false);
  if (!incoming_->receiver.complete()) return;
  incoming_->phase = Incoming::Phase::kFinishing;
  incoming_->receiver.sink().Finish([this](Status status) {
    if (!status.ok()) return AbandonIncoming(status.message());
    incoming_->phase = Incoming::Phase::kFinished;
    InstallIncoming();
  });
}

// The new state is durable beside the old one. Now the log, by way of consensus.
void Replica::InstallIncoming() {
  if (!consensus_->Install(incoming_->offer)) return;  // no leader is known: again at the next tick
  incoming_->phase = Incoming::Phase::kInstalling;
  ObserveLease();
  Schedule();
}

// Consensus has handed the snapshot to the log.
void Replica::OnRestoring(std::uint64_t persist_number) {
  incoming_->phase = Incoming::Phase::kPersisting;
  incoming_->persist_number = persist_number;
}

// Nothing more is to be taken: had consensus accepted the snapshot, it would have handed it to the
// log.
void Replica::OnDrained() {
  if (!incoming_ || incoming_->phase != Incoming::Phase::kInstalling) return;
  SendEnd(incoming_->offer.from, incoming_->offer.snapshot.name, true,
          "");  // the log got there in another way
  incoming_.reset();
}

// The log begins at the snapshot, durably: the new state takes over.
void Replica::OnPersisted() {
  if (!incoming_ || incoming_->phase != Incoming::Phase::kPersisting ||
      durable_ < incoming_->persist_number)
    return;
  const std::unique_ptr<Incoming> in = std::move(incoming_);
  const Snapshot& snapshot = in->offer.snapshot;
  members_ = snapshot.members;
  applied_ = snapshot.index;
  owner_.OnRestored(snapshot, in->receiver.TakeSink());
  consensus_->Applied(applied_);
  SendEnd(in->offer.from, snapshot.name, true, "");
  env_.log.Info("snapshot_restored", {{"name", snapshot.name}, {"index", snapshot.index.value()}});
}

void Replica::AbandonIncoming(std::string_view why) {
  const std::unique_ptr<Incoming> in = std::move(incoming_);
  env_.log.Warning("snapshot_abandoned", {{"name", in->offer.snapshot.name}, {"why", why}});
  SendEnd(in->offer.from, in->offer.snapshot.name, false, why);
}

// ---- both ----

void Replica::OnSnapshotMessage(MemberId from, v1::SnapshotMessage message) {
  const bool receiving = incoming_ && incoming_->offer.from == from &&
                         incoming_->offer.snapshot.name == message.name() &&
                         incoming_->phase == Incoming::Phase::kReceiving;
  switch (message.body_case()) {
    case v1::SnapshotMessage::kPull:
      return OnPull(from, message);
    case v1::SnapshotMessage::kChunk:
      if (receiving) OnChunk(std::move(*message.mutable_chunk()));
      return;
    case v1::SnapshotMessage::kEnd: {
      if (receiving) incoming_.reset();
      const auto sender = outgoing_.find(from);
      if (sender != outgoing_.end() && sender->second.snapshot().name == message.name()) {
        EndOutgoing(from, message.end().arrived());
      }
      return;
    }
    case v1::SnapshotMessage::BODY_NOT_SET:
      return;
  }
}

void Replica::WatchSnapshots(SteadyTime now) {
  for (MemberId to : std::exchange(stale_, {})) EndOutgoing(to, false);
  std::vector<MemberId> silent;
  for (const auto& [to, sender] : outgoing_) {
    if (sender.SilentTooLong(now)) silent.push_back(to);
  }
  for (MemberId to : silent) EndOutgoing(to, false);

  if (!incoming_) return;
  const Result<bool> due = incoming_->receiver.OnTime(now);
  // From kInstalling on the snapshot is the log's: there is no way back.
  const bool bound = incoming_->phase >= Incoming::Phase::kInstalling;
  if (!due.ok() && !bound) return AbandonIncoming(due.status().message());
  if (due.ok() && *due) SendPull(incoming_->phase == Incoming::Phase::kReceiving);
  if (incoming_->phase == Incoming::Phase::kFinished) InstallIncoming();
}

void Replica::SendPull(bool again) {
  v1::SnapshotMessage message;
  message.set_name(incoming_->offer.snapshot.name);
  *message.mutable_pull() = incoming_->receiver.Pull(again);
  (void)SendSnapshot(incoming_->offer.from, Lane::kControl, message);
}

void Replica::SendEnd(MemberId to, const std::string& name, bool arrived, std::string_view why) {
  v1::SnapshotMessage message;
  message.set_name(name);
  message.mutable_end()->set_arrived(arrived);
  message.mutable_end()->set_why(std::string(why));
  (void)SendSnapshot(to, Lane::kControl, message);
}

SendResult Replica::SendSnapshot(MemberId to, Lane lane, const v1::SnapshotMessage& message) {
  std::string payload(1, kSnapshotPayload);
  message.AppendToString(&payload);
  return owner_.SendToMember(to, lane, std::move(payload));
}

}  // namespace etalon::consensus
