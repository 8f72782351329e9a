// Shard: stepping the machines that move buckets, and carrying out what they ask for.

#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"
#include "storage/node/shard.h"

namespace etalon::storage {

namespace {
// Questions and answers wait so long for a read index; whoever asked asks again.
constexpr Duration kConfirmWithin = std::chrono::seconds(2);
}  // namespace

void Shard::Run(UniqueFunction<void()> work) {
  work_.push_back(std::move(work));
  if (working_) return;
  working_ = true;
  while (!work_.empty()) {
    auto next = std::move(work_.front());
    work_.pop_front();
    next();
  }
  working_ = false;
}

void Shard::StepTransfer(Machine machine, transfer::Input input) {
  Run([this, machine, input = std::move(input)] {
    if (!formed()) return;
    Carry(machine, machine == Machine::kSource ? engine_->source->Step(Now(), input)
                                               : engine_->target->Step(Now(), input));
  });
}

void Shard::StepBalance(Machine machine, balance::Input input) {
  Run([this, machine, input = std::move(input)] {
    if (!formed()) return;
    Carry(machine, machine == Machine::kRebalancer ? engine_->rebalancer->Step(Now(), input)
                                                   : engine_->orders->Step(Now(), input));
  });
}

void Shard::StepAll(const transfer::RoleChanged& role) {
  const bool confirmed = role.leader && replica_->HasLease();
  StepTransfer(Machine::kSource, {confirmed, role});
  StepTransfer(Machine::kTarget, {confirmed, role});
  StepBalance(Machine::kOrders, role);
  StepBalance(Machine::kRebalancer, role);
}

void Shard::AfterApply() {
  if (raft_.role != consensus::Role::kLeader) return;
  const bool confirmed = replica_->HasLease();
  StepTransfer(Machine::kSource, {confirmed, transfer::Applied{}});
  StepTransfer(Machine::kTarget, {confirmed, transfer::Applied{}});
  StepBalance(Machine::kOrders, balance::Applied{});
  StepBalance(Machine::kRebalancer, balance::Applied{});
}

void Shard::OnTransfer(const NodeName& from, const v1::TransferMessage& message) {
  if (!formed() || message.to_shard() != identity_.shard.value()) return;
  const ShardUid peer(message.from_shard());
  if (message.body_case() == v1::TransferMessage::kNotLeader) {
    peers_.LeaderHint(peer, message.not_leader().leader(), Term(message.not_leader().term()));
  } else {
    peers_.LeaderSeen(peer, from, Term(message.from_term()));
  }
  if (!is_leader()) {
    if (message.body_case() == v1::TransferMessage::kNotLeader) return;
    v1::NodeMessage out;
    v1::TransferMessage& answer = *out.mutable_transfer();
    answer.set_from_shard(identity_.shard.value());
    answer.set_from_term(raft_.term.value());
    answer.set_to_shard(message.from_shard());
    answer.mutable_not_leader()->set_leader(NotLeader().hint().leader);
    answer.mutable_not_leader()->set_term(raft_.term.value());
    return host_.Send(from, Lane::kControl, std::move(out));
  }
  const auto deliver = [this](const v1::TransferMessage& m, bool confirmed) {
    if (transfer::IsForSource(m, identity_.shard))
      StepTransfer(Machine::kSource, {confirmed, transfer::Message{m}});
    if (transfer::IsForTarget(m, identity_.shard))
      StepTransfer(Machine::kTarget, {confirmed, transfer::Message{m}});
  };
  if (!transfer::NeedsConfirmation(message) || replica_->HasLease())
    return deliver(message, replica_->HasLease());
  ReadBarrier(Deadline::After(Now(), kConfirmWithin), [deliver, message](Status status) {
    if (status.ok()) deliver(message, true);
  });
}

void Shard::OnSuspicion(const v1::Suspicion& suspicion) {
  const ShardUid peer(suspicion.peer());
  if (!is_leader() || !transfer::IsKnown(state().topology(), peer)) return;
  const BucketId bucket = FromProto(suspicion.bucket());
  if (!placement::CheckBucket(bucket, state().bucket_count()).ok()) return;
  StepTransfer(Machine::kSource, {replica_->HasLease(), transfer::Suspicion{peer, bucket}});
}

void Shard::OnBalance(const NodeName& from, const v1::BalanceMessage& message) {
  if (!formed() || message.to_shard() != identity_.shard.value()) return;
  const ShardUid peer(message.from_shard());
  if (message.body_case() == v1::BalanceMessage::kNotLeader) {
    return peers_.LeaderHint(peer, message.not_leader().leader(),
                             Term(message.not_leader().term()));
  }
  peers_.LeaderSeen(peer, from, Term(message.from_term()));
  if (!is_leader()) {
    v1::NodeMessage out;
    v1::BalanceMessage& answer = *out.mutable_balance();
    answer.set_from_shard(identity_.shard.value());
    answer.set_from_term(raft_.term.value());
    answer.set_to_shard(message.from_shard());
    answer.mutable_not_leader()->set_leader(NotLeader().hint().leader);
    answer.mutable_not_leader()->set_term(raft_.term.value());
    return host_.Send(from, Lane::kControl, std::move(out));
  }
  if (balance::IsForOrderTaker(message)) StepBalance(Machine::kOrders, balance::Message{message});
  if (balance::IsForRebalancer(message))
    StepBalance(Machine::kRebalancer, balance::Message{message});
}

void Shard::Carry(Machine machine, transfer::Output output) {
  for (auto& action : output.actions) Act(machine, std::move(action));
  WakeAt(machine, output.wake_at);
  if (output.want_confirmation) WantConfirmation(machine);
}

void Shard::Carry(Machine machine, balance::Output output) {
  for (auto& action : output.actions) Act(machine, std::move(action));
  WakeAt(machine, output.wake_at);
}

void Shard::Act(Machine machine, transfer::Action action) {
  if (auto* propose = std::get_if<transfer::Propose>(&action)) {
    ProposeFor(machine, std::move(*propose));
  } else if (auto* send = std::get_if<transfer::Send>(&action)) {
    SendTransfer(send->to, send->lane, send->message);
  } else if (auto* hold = std::get_if<transfer::HoldWrites>(&action)) {
    StartHold(*hold);
  } else if (auto* release = std::get_if<transfer::ReleaseWrites>(&action)) {
    EndHold(*release);
  } else if (auto* opened = std::get_if<transfer::OrderOpened>(&action)) {
    OrderEvent(*opened);
  } else if (auto* finished = std::get_if<transfer::OrderFinished>(&action)) {
    OrderEvent(*finished);
  } else if (auto* alert = std::get_if<transfer::Alert>(&action)) {
    OnAlert(*alert);
  }
}

void Shard::Act(Machine machine, balance::Action action) {
  if (auto* send = std::get_if<balance::Send>(&action)) {
    SendBalance(*send);
  } else if (auto* start = std::get_if<balance::StartTransfer>(&action)) {
    StepTransfer(Machine::kSource, {replica_->HasLease(), std::move(*start)});
  } else if (auto* cancel = std::get_if<balance::CancelOrders>(&action)) {
    StepTransfer(Machine::kSource, {replica_->HasLease(), std::move(*cancel)});
  } else if (auto* propose = std::get_if<balance::Propose>(&action)) {
    ProposeFor(machine, std::move(*propose));
  } else if (auto* alert = std::get_if<balance::Alert>(&action)) {
    OnAlert(*alert);
  }
}

void Shard::ProposeFor(Machine machine, transfer::Propose propose) {
  const auto tell = [this, machine](const transfer::Proposed& proposed) {
    if (machine == Machine::kSource || machine == Machine::kTarget) {
      StepTransfer(machine, {replica_->HasLease(), proposed});
    } else {
      StepBalance(machine, proposed);
    }
  };
  transfer::Proposed result;
  result.token = propose.token;
  if (!is_leader()) return;  // RoleChanged follows, and the machine forgets
  v1::LogEntry entry;
  *entry.mutable_control() = std::move(propose.control);
  auto proposed = ProposeEntry(&entry);
  if (!proposed.ok()) {
    result.status = proposed.status();
    return tell(result);
  }
  result.index = proposed->index;
  result.term = proposed->term;
  proposals_.Add(proposed->index, {proposed->term, {}, [tell, result](Status status) mutable {
                                     // Not known: leadership is gone, and the machine forgets.
                                     if (status.reason() == Reason::kOutcomeUnknown) return;
                                     result.applied = status.reason() != Reason::kNonMaster;
                                     result.status = std::move(status);
                                     tell(result);
                                   }});
}

void Shard::SendTransfer(ShardUid to, Lane lane, const v1::TransferMessage& message) {
  const auto name = peers_.LeaderOf(to);
  if (!name) return;  // the newer topology will name it, and the machine sends again
  v1::NodeMessage out;
  *out.mutable_transfer() = message;
  host_.Send(*name, lane, std::move(out));
}

void Shard::SendBalance(const balance::Send& send) {
  if (send.to == identity_.shard) {
    if (balance::IsForOrderTaker(send.message))
      StepBalance(Machine::kOrders, balance::Message{send.message});
    if (balance::IsForRebalancer(send.message))
      StepBalance(Machine::kRebalancer, balance::Message{send.message});
    return;
  }
  const auto name = peers_.LeaderOf(send.to);
  if (!name) return;
  v1::NodeMessage out;
  *out.mutable_balance() = send.message;
  host_.Send(*name, Lane::kControl, std::move(out));
}

void Shard::WakeAt(Machine machine, SteadyTime when) {
  if (auto it = wakes_.find(machine); it != wakes_.end()) {
    env_.core.Cancel(it->second);
    wakes_.erase(it);
  }
  if (when == SteadyTime::max()) return;
  wakes_[machine] = env_.core.PostAt(when, [this, machine] {
    wakes_.erase(machine);
    if (machine == Machine::kSource || machine == Machine::kTarget) {
      StepTransfer(machine, {is_leader() && replica_->HasLease(), transfer::Wake{}});
    } else {
      StepBalance(machine, balance::Wake{});
    }
  });
}

void Shard::WantConfirmation(Machine machine) {
  if (std::exchange(confirming_[machine], true)) return;
  ReadBarrier(Deadline::After(Now(), kConfirmWithin), [this, machine](Status status) {
    // Later: the barrier may answer within this call, and the machine asks again if it still has
    // to.
    Post([this, machine, ok = status.ok()] {
      confirming_[machine] = false;
      StepTransfer(machine, {ok && is_leader(), transfer::Wake{}});
    });
  });
}

void Shard::OnAlert(const transfer::Alert& alert) {
  const auto key = std::pair(std::string(alert.code), alert.key);
  if (alert.raised) {
    machine_alerts_[key] = alert.text;
    env_.log.Warning("alert", {{"code", alert.code}, {"about", alert.key}, {"text", alert.text}});
  } else {
    machine_alerts_.erase(key);
  }
}

void Shard::StartHold(const transfer::HoldWrites& hold) {
  for (std::uint32_t bucket : hold.buckets) calls_->StartHold(bucket);
  freezes_[hold.id] = {hold.buckets, Now()};
}

void Shard::EndHold(const transfer::ReleaseWrites& release) {
  auto it = freezes_.find(release.id);
  if (it == freezes_.end()) return;
  stats_.freeze_seconds.Add(Now() - it->second.since);
  const auto buckets = std::move(it->second.buckets);
  freezes_.erase(it);
  for (std::uint32_t bucket : buckets) calls_->EndHold(bucket);
}

void Shard::StartMove(const v1::SendRequest& request,
                      UniqueFunction<void(Result<TransferId>)> done) {
  if (!is_leader()) return done(NotLeader());
  if (request.level() != state().level()) {
    return done(InvalidArgument("bucket " + std::to_string(request.bucket()) +
                                " was named at level " + std::to_string(request.level()) +
                                ", the shard is at level " + std::to_string(state().level())));
  }
  transfer::StartTransfer order;
  order.order = next_order_++;
  order.target = ShardUid(request.target());
  order.level = state().level();
  order.buckets = {request.bucket()};
  moves_[order.order] = std::move(done);
  StepTransfer(Machine::kSource, {replica_->HasLease(), std::move(order)});
}

void Shard::OrderEvent(const transfer::OrderOpened& opened) {
  if (balance::IsOwnOrder(opened.order)) return StepBalance(Machine::kOrders, opened);
  auto it = moves_.find(opened.order);
  if (it == moves_.end()) return;
  auto done = std::move(it->second);
  moves_.erase(it);
  done(opened.id);
}

void Shard::OrderEvent(const transfer::OrderFinished& finished) {
  stats_.Count(finished.status.ok() ? "transfers_out_done" : "transfers_out_failed");
  stats_.Count("transfers_out_bytes", finished.bytes);
  if (balance::IsOwnOrder(finished.order)) return StepBalance(Machine::kOrders, finished);
  auto it = moves_.find(finished.order);
  if (it == moves_.end()) return;
  auto done = std::move(it->second);
  moves_.erase(it);
  finished.status.ok() ? done(finished.id) : done(finished.status);
}

}  // namespace etalon::storage
