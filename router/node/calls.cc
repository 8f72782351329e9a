#include "router/node/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"
#include "router/call/verdict.h"

namespace etalon::router {

namespace {

// A wire ID is the call's number and the number of the try: an answer to an earlier try of the same
// call is not taken for one to the present.
constexpr unsigned kTryBits = 8;
constexpr std::uint64_t kOverhead = 64;  // of a call beside its arguments

std::uint32_t MillisLeft(SteadyTime now, SteadyTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 1, 0xffffffff));
}

}  // namespace

void Calls::Refuse(const NodeName& client, std::uint64_t request, const v1::ClientCall& call,
                   const Status& why) {
  counters_.Finished(call.mode(), call.function(), why.code(), Duration::zero());
  v1::ClientResponse response;
  response.set_id(request);
  response.mutable_call()->set_id(call.id());
  *response.mutable_call()->mutable_status() = ToProto(why);
  host_.Reply(client, response);
}

void Calls::Admit(SteadyTime now, const NodeName& client, std::uint64_t request,
                  v1::ClientCall call, RoutingValue value, std::uint32_t bucket_count) {
  if (IsWrite(call.function()) && call.mode() != v1::MODE_RW) {
    return Refuse(client, request, call,
                  InvalidArgument(call.function() + " changes records: use mode rw"));
  }
  if (!v1::Mode_IsValid(call.mode())) {
    return Refuse(client, request, call, InvalidArgument("this version does not know that mode"));
  }
  const std::uint64_t cost = call.args().size() + call.function().size() + kOverhead;
  const auto known = client_bytes_.find(client);
  const std::uint64_t mine = known == client_bytes_.end() ? 0 : known->second;
  if ((mine != 0 && mine + cost > options_.client_bytes) ||
      (bytes_ != 0 && bytes_ + cost > options_.total_bytes)) {
    return Refuse(client, request, call,
                  ResourceExhausted("too many bytes of calls are unanswered: back off"));
  }

  CallMachine::Traits traits;
  traits.value = value;
  traits.mode = call.mode();
  traits.read = IsRead(call.function()) || call.mode() != v1::MODE_RW;
  traits.safe = traits.read || call.request().client() != 0;
  traits.deadline =
      now + (call.timeout_millis() == 0 ? options_.default_timeout
                                        : std::chrono::milliseconds(call.timeout_millis()));
  auto pending = std::make_unique<Pending>(traits, options_.call);
  pending->client = client;
  pending->request = request;
  pending->call = std::move(call);
  pending->started = now;
  pending->base_bucket = static_cast<std::uint32_t>(value.value() % bucket_count);
  pending->cost = cost;
  auto output = pending->machine.Start(now, host_, host_.random());
  if (const auto* send = std::get_if<CallMachine::Send>(&output.action);
      send != nullptr && !outbox_.HasRoom(send->to, cost)) {
    return Refuse(
        client, request, pending->call,
        ResourceExhausted(send->to + " has too many bytes of unanswered calls: back off"));
  }
  client_bytes_[client] += cost;
  bytes_ += cost;
  // Random, so that what storages still answer to an earlier life of this router does not match.
  if (last_ == 0) last_ = host_.random().NextId() >> 16;
  const Number number = ++last_;
  calls_.emplace(number, std::move(pending));
  Perform(now, number, std::move(output));
}

void Calls::Perform(SteadyTime now, Number number, CallMachine::Output output) {
  Pending& pending = *calls_.at(number);
  for (;;) {
    switch (output.ask) {
      case CallMachine::Ask::kNothing:
        break;
      case CallMachine::Ask::kOwners:
        host_.AskOwners(output.shard);
        break;
      case CallMachine::Ask::kReplicas:
        host_.AskReplicas(output.shard);
        break;
      case CallMachine::Ask::kTopology:
        host_.AskTopology();
        break;
    }
    if (const auto* finish = std::get_if<CallMachine::Finish>(&output.action)) {
      return Finish(now, number, finish->status, {});
    }
    if (const auto* wait = std::get_if<CallMachine::Wait>(&output.action)) {
      return Wait(number, pending, *wait);
    }
    const auto send = std::get<CallMachine::Send>(output.action);
    if (Send(now, number, pending, send)) return;
    output = pending.machine.OnNotSent(
        now, ResourceExhausted(send.to + " has too many bytes of unanswered calls"), host_,
        host_.random());
  }
}

bool Calls::Send(SteadyTime now, Number number, Pending& pending, const CallMachine::Send& send) {
  const v1::ClientCall& client = pending.call;
  v1::Call call;
  pending.wire_id = (number << kTryBits) | (pending.machine.tries() & ((1u << kTryBits) - 1));
  call.set_id(pending.wire_id);
  call.set_routing_value(pending.machine.traits().value.value());
  call.set_epoch(send.owner.epoch.value());
  call.set_mode(client.mode());
  call.set_function(client.function());
  call.set_args(client.args());
  if (client.request().client() != 0) *call.mutable_request() = client.request();
  // A read that is given up goes elsewhere; a write goes on until it is known what became of it.
  const SteadyTime until =
      pending.machine.traits().read ? send.until : pending.machine.traits().deadline;
  call.set_timeout_millis(MillisLeft(now, until));
  call.set_max_staleness_millis(client.max_staleness_millis());
  std::string bytes = call.SerializeAsString();
  if (!outbox_.HasRoom(send.to, bytes.size())) return false;
  pending.queued_bytes = bytes.size();
  if (outbox_.empty()) host_.ScheduleFlush();
  outbox_.Queue(send.to, pending.wire_id, std::move(bytes));
  alarms_.Set(number, send.until);
  return true;
}

void Calls::Wait(Number number, Pending& pending, const CallMachine::Wait& wait) {
  pending.waits = wait.what;
  pending.waits_shard = wait.shard;
  switch (wait.what) {
    case CallMachine::WaitFor::kBackoff:
      break;
    case CallMachine::WaitFor::kOwner:
    case CallMachine::WaitFor::kBucket:
      by_bucket_.emplace(pending.base_bucket, number);
      break;
    case CallMachine::WaitFor::kReplica:
      by_shard_.emplace(wait.shard, number);
      break;
    case CallMachine::WaitFor::kTopology:
      by_topology_.insert(number);
      break;
  }
  alarms_.Set(number, wait.until);
}

void Calls::StopWaiting(Number number, Pending& pending) {
  by_bucket_.erase({pending.base_bucket, number});
  by_shard_.erase({pending.waits_shard, number});
  by_topology_.erase(number);
}

void Calls::EndTry(Pending& pending) {
  if (pending.queued_bytes == 0) return;
  outbox_.Release(pending.machine.peer(), pending.queued_bytes);
  pending.queued_bytes = 0;
}

void Calls::Finish(SteadyTime now, Number number, const Status& status, std::string result) {
  const auto it = calls_.find(number);
  Pending& pending = *it->second;
  alarms_.Clear(number);
  counters_.Finished(pending.call.mode(), pending.call.function(), status.code(),
                     now - pending.started);
  v1::ClientResponse response;
  response.set_id(pending.request);
  v1::ClientReply& reply = *response.mutable_call();
  reply.set_id(pending.call.id());
  if (!status.ok()) *reply.mutable_status() = ToProto(status);
  reply.set_result(std::move(result));
  host_.Reply(pending.client, response);
  bytes_ -= pending.cost;
  const auto client = client_bytes_.find(pending.client);
  client->second -= pending.cost;
  if (client->second == 0) client_bytes_.erase(client);
  calls_.erase(it);
}

void Calls::OnReplies(SteadyTime now, const NodeName& from, const std::string& frame) {
  v1::ReplyFrame replies;
  if (!replies.ParseFromString(frame)) return;
  for (const std::string& bytes : replies.replies()) {
    v1::CallReply reply;
    if (!reply.ParseFromString(bytes)) continue;
    const Number number = reply.id() >> kTryBits;
    const auto it = calls_.find(number);
    if (it == calls_.end()) continue;
    Pending& pending = *it->second;
    // Late, twice, or of an earlier life of this router.
    if (pending.queued_bytes == 0 || pending.wire_id != reply.id() ||
        pending.machine.peer() != from) {
      continue;
    }
    EndTry(pending);
    const Status status = FromProto(reply.status());
    if (Judge(status) == Verdict::kFinal) {
      host_.TakeHints(pending.machine, status);
      Finish(now, number, status, std::move(*reply.mutable_result()));
      continue;
    }
    counters_.Retried(status.reason());
    host_.TakeHints(pending.machine, status);
    Perform(now, number, pending.machine.OnReply(now, status, host_, host_.random()));
  }
}

void Calls::Wake(SteadyTime now, const std::vector<Number>& numbers) {
  for (Number number : numbers) {
    Pending& pending = *calls_.at(number);
    StopWaiting(number, pending);
    Perform(now, number, pending.machine.OnNews(now, host_, host_.random()));
  }
}

void Calls::OnBucketNews(SteadyTime now, BucketId bucket, bool writable,
                         std::uint32_t bucket_count) {
  std::vector<Number> woken;
  const std::uint32_t base = bucket.number % bucket_count;
  for (auto it = by_bucket_.lower_bound({base, 0}); it != by_bucket_.end() && it->first == base;
       ++it) {
    const CallMachine::Traits& traits = calls_.at(it->second)->machine.traits();
    if (placement::BucketOf(traits.value, bucket_count, bucket.level) != bucket) continue;
    if (writable || traits.read) woken.push_back(it->second);
  }
  Wake(now, woken);
}

void Calls::OnReplicaNews(SteadyTime now, ShardUid shard, const NodeName& leader) {
  if (!leader.empty()) {
    for (const auto& [number, pending] : calls_) {
      CallMachine& machine = pending->machine;
      if (pending->queued_bytes == 0 || machine.traits().mode != v1::MODE_RW ||
          machine.asked().shard != shard || machine.peer() == leader || machine.deposed()) {
        continue;
      }
      alarms_.Set(number, machine.OnDeposed(now));
    }
  }
  std::vector<Number> woken;
  for (auto it = by_shard_.lower_bound({shard, 0}); it != by_shard_.end() && it->first == shard;
       ++it) {
    woken.push_back(it->second);
  }
  Wake(now, woken);
}

void Calls::OnTopologyNews(SteadyTime now) {
  Wake(now, std::vector<Number>(by_topology_.begin(), by_topology_.end()));
}

void Calls::OnPeerLost(SteadyTime now, const NodeName& peer, Loss why) {
  std::vector<Number> lost;
  for (const auto& [number, pending] : calls_) {
    if (pending->queued_bytes != 0 && pending->machine.peer() == peer) lost.push_back(number);
  }
  for (Number number : lost) {
    Pending& pending = *calls_.at(number);
    EndTry(pending);
    counters_.Retried(Reason::kUnreachableReplicaset);
    Perform(now, number, pending.machine.OnLost(now, why, host_, host_.random()));
  }
}

void Calls::OnWake(SteadyTime now) {
  for (Number number : alarms_.TakeDue(now)) {
    Pending& pending = *calls_.at(number);
    if (pending.queued_bytes != 0) {
      if (now < pending.machine.traits().deadline) {
        counters_.Retried(Reason::kUnreachableReplicaset);
        // One that does not lead any more may owe no answer.
        if (!pending.machine.deposed()) host_.NoteSilence(pending.machine.peer());
      }
      EndTry(pending);
    } else {
      StopWaiting(number, pending);
    }
    Perform(now, number, pending.machine.OnWake(now, host_, host_.random()));
  }
}

void Calls::Flush(SteadyTime now, std::uint64_t topology_version,
                  const std::function<SendResult(const NodeName&, std::string)>& send) {
  for (const Outbox::NotSent& failed : outbox_.Flush(topology_version, send)) {
    if (failed.why == SendResult::kUnknown) host_.NoteUnreachable(failed.peer);
    const Status why =
        failed.why == SendResult::kUnknown
            ? Unavailable(Reason::kUnreachableReplicaset, failed.peer + " cannot be reached")
            : ResourceExhausted("the way to " + failed.peer + " is full");
    for (std::uint64_t wire_id : failed.ids) {
      const Number number = wire_id >> kTryBits;
      const auto it = calls_.find(number);
      if (it == calls_.end() || it->second->wire_id != wire_id || it->second->queued_bytes == 0) {
        continue;
      }
      EndTry(*it->second);
      counters_.Retried(why.reason());
      Perform(now, number, it->second->machine.OnNotSent(now, why, host_, host_.random()));
    }
  }
}

}  // namespace etalon::router
