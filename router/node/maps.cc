#include "router/node/maps.h"

#include <algorithm>
#include <utility>

#include "proto/wire.h"

namespace etalon::router {

Status Maps::Admit(SteadyTime now, const NodeName& client, std::uint64_t request,
                   v1::MapCallRequest call, std::vector<std::uint32_t> buckets, std::uint8_t level,
                   std::uint8_t table_level, std::uint32_t bucket_count) {
  if (maps_.size() >= options_.max_running) {
    return ResourceExhausted("too many map calls are running: back off");
  }
  const SteadyTime deadline =
      now + (call.timeout_millis() == 0 ? options_.default_timeout
                                        : std::chrono::milliseconds(call.timeout_millis()));
  // Random, so that answers to an earlier life of this router do not match.
  if (last_run_ == 0) last_run_ = host_.random().NextId() >> 1;
  const Number number = ++last_;
  auto& running = maps_[number];
  running = std::make_unique<Running>(Running{client, request, deadline,
                                              MapMachine(std::move(call), std::move(buckets), level,
                                                         bucket_count, deadline, options_.map)});
  Perform(now, number, running->machine.Start(now, table_level, host_, host_.random()),
          table_level);
  return OkStatus();
}

void Maps::Perform(SteadyTime now, Number number, MapMachine::Output output, std::uint8_t level) {
  Running& running = *maps_.at(number);
  std::vector<MapMachine::Output> outputs;
  outputs.push_back(std::move(output));
  while (!outputs.empty()) {
    MapMachine::Output next = std::move(outputs.back());
    outputs.pop_back();
    if (next.ask_owners) host_.AskOwners(*next.ask_owners);
    if (next.ask_topology) host_.AskTopology();
    for (ShardUid shard : next.ask_replicas) host_.AskReplicas(shard);
    for (MapMachine::Run& run : next.runs) {
      const std::uint64_t id = ++last_run_;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(running.deadline - now);
      run.message.set_id(id);
      run.message.set_timeout_millis(
          static_cast<std::uint32_t>(std::clamp<std::int64_t>(left.count(), 1, 0xffffffff)));
      const SendResult sent = host_.SendMapRun(run.to, run.message);
      if (sent == SendResult::kQueued) {
        out_.emplace(id, Out{number, run.ticket, run.to});
        continue;
      }
      if (sent == SendResult::kUnknown) host_.NoteUnreachable(run.to);
      outputs.push_back(running.machine.OnNotSent(now, run.ticket, level, host_, host_.random()));
    }
    if (next.finished) {
      v1::ClientResponse response;
      response.set_id(running.request);
      *response.mutable_map_call() = std::move(*next.finished);
      host_.Reply(running.client, response);
      for (auto it = out_.begin(); it != out_.end();) {
        it = it->second.number == number ? out_.erase(it) : std::next(it);
      }
      alarms_.Clear(number);
      maps_.erase(number);
      return;
    }
  }
  alarms_.Set(number, running.machine.wake());
}

// True when the table changed.
bool Maps::TakeHints(const Out& out, const v1::MapRunReply& reply) {
  if (reply.status().code() != 0) host_.TakeReplicaHints(out.to, FromProto(reply.status()));
  bool news = false;
  for (const v1::BucketResult& rest : reply.rest()) {
    const BucketId bucket{static_cast<std::uint8_t>(reply.level()), rest.bucket()};
    const auto asked = maps_.at(out.number)->machine.Asked(out.ticket, bucket);
    if (asked) news = host_.TakeOwnerHint(bucket, *asked, FromProto(rest.status())) || news;
  }
  return news;
}

void Maps::OnReply(SteadyTime now, const NodeName& from, const v1::MapRunReply& reply,
                   std::uint8_t table_level) {
  const auto it = out_.find(reply.id());
  if (it == out_.end() || it->second.to != from) return;
  const Out out = it->second;
  out_.erase(it);
  MapMachine& machine = maps_.at(out.number)->machine;
  if (const Status s = host_.ReachLevel(reply.level()); !s.ok()) {
    // Whatever it did, its answer cannot be read.
    return Perform(
        now, out.number,
        machine.OnLost(now, out.ticket, Loss::kSilent, table_level, host_, host_.random()),
        table_level);
  }
  const auto level = static_cast<std::uint8_t>(std::max<std::uint32_t>(table_level, reply.level()));
  const bool news = TakeHints(out, reply);
  Perform(now, out.number,
          machine.OnReply(now, out.ticket, reply, level, news, host_, host_.random()), level);
}

void Maps::OnPeerLost(SteadyTime now, const NodeName& peer, Loss why, std::uint8_t table_level) {
  std::vector<std::uint64_t> lost;
  for (const auto& [id, out] : out_) {
    if (out.to == peer) lost.push_back(id);
  }
  for (std::uint64_t id : lost) {
    const auto it = out_.find(id);
    if (it == out_.end()) continue;
    const Out out = it->second;
    out_.erase(it);
    MapMachine& machine = maps_.at(out.number)->machine;
    Perform(now, out.number,
            machine.OnLost(now, out.ticket, why, table_level, host_, host_.random()), table_level);
  }
}

void Maps::OnLeader(SteadyTime now, ShardUid shard, const NodeName& leader) {
  if (leader.empty()) return;
  for (const auto& [number, running] : maps_) {
    if (running->machine.OnLeader(now, shard, leader)) {
      alarms_.Set(number, running->machine.wake());
    }
  }
}

void Maps::OnWake(SteadyTime now, std::uint8_t table_level) {
  for (Number number : alarms_.TakeDue(now)) {
    MapMachine& machine = maps_.at(number)->machine;
    Perform(now, number, machine.OnWake(now, table_level, host_, host_.random()), table_level);
  }
}

}  // namespace etalon::router
