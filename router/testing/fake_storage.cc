#include "router/testing/fake_storage.h"

#include <algorithm>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::router::testing {

namespace {

constexpr Duration kHeartbeat = std::chrono::milliseconds(200);

v1::FeedBucket Describe(const FakeShard& shard, std::uint32_t bucket) {
  v1::FeedBucket out;
  out.set_bucket(bucket);
  if (const auto it = shard.owned.find(bucket); it != shard.owned.end()) {
    out.set_epoch(it->second);
    out.set_readable_only(shard.sending.contains(bucket));
    return out;
  }
  out.set_gone(true);
  if (const auto it = shard.gone.find(bucket); it != shard.gone.end()) {
    out.set_epoch(it->second.epoch);
    out.set_destination(it->second.to.value());
  }
  return out;
}

}  // namespace

void FakeShard::Own(std::uint32_t bucket, std::uint64_t epoch, bool silent) {
  owned[bucket] = epoch;
  gone.erase(bucket);
  ++index;
  if (!silent) Publish({bucket});
}

void FakeShard::Leave(std::uint32_t bucket, ShardUid to, std::uint64_t epoch_there, bool silent) {
  owned.erase(bucket);
  gone[bucket] = {epoch_there, to};
  ++index;
  if (!silent) Publish({bucket});
}

void FakeShard::Rebase(std::uint32_t to_level, bool silent) {
  while (level < to_level) {
    const auto halves = [modulus = Modulus()](auto& map) {
      for (const auto& [bucket, value] : std::map(map)) map[bucket + modulus] = value;
    };
    halves(owned);
    halves(gone);
    ++level;
  }
  ++index;
  if (silent) return;
  std::set<std::uint32_t> all;
  for (const auto& [bucket, epoch] : owned) all.insert(bucket);
  for (const auto& [bucket, left] : gone) all.insert(bucket);
  Publish(std::move(all));
}

void FakeShard::Publish(std::set<std::uint32_t> buckets) {
  v1::FeedMessage delta;
  for (std::uint32_t bucket : buckets) *delta.add_buckets() = Describe(*this, bucket);
  for (FakeReplica* replica : replicas) {
    if (replica->leads()) replica->SendFeed(delta);
  }
}

FakeReplica::FakeReplica(sim::SimWorld& world, NodeName name, FakeShard& shard)
    : env_(world.AddNode(name)), name_(std::move(name)), shard_(shard) {
  shard_.replicas.push_back(this);
  world.SetReceiver(
      name_, [this](const NodeName& from, Lane, std::string bytes) { OnMessage(from, bytes); });
  Beat();
}

void FakeReplica::Send(const NodeName& to, v1::NodeMessage message) {
  message.set_collection(7);
  (void)env_.net.Send(to, Lane::kControl, message.SerializeAsString());
}

void FakeReplica::Release() {
  hold_replies = false;
  for (auto& [to, message] : std::exchange(held_, {})) Send(to, std::move(message));
}

void FakeReplica::Beat() {
  if (leads() && !mute) {
    v1::FeedMessage beat;
    beat.set_heartbeat(true);
    SendFeed(beat);
  }
  env_.core.PostAt(env_.clock.Now() + kHeartbeat, [this] { Beat(); });
}

void FakeReplica::SendFeed(v1::FeedMessage message) {
  message.set_shard(shard_.uid.value());
  message.set_term(shard_.term);
  message.set_level(shard_.level);
  message.set_index(shard_.index);
  if (topology) message.set_topology_version(topology->version());
  for (auto& [router, subscriber] : subscribers_) {
    message.set_subscription(subscriber.subscription);
    message.set_previous_index(subscriber.last);
    subscriber.last = shard_.index;
    v1::NodeMessage out;
    *out.mutable_feed() = message;
    Send(router, std::move(out));
  }
}

void FakeReplica::SendRaw(v1::FeedMessage message) {
  for (const auto& [router, subscriber] : subscribers_) {
    message.set_subscription(subscriber.subscription);
    v1::NodeMessage out;
    *out.mutable_feed() = message;
    Send(router, std::move(out));
  }
}

void FakeReplica::Subscribe(const NodeName& from, const v1::FeedSubscribe& request) {
  if (request.cancel()) {
    subscribers_.erase(from);
    return;
  }
  ++subscriptions_;
  if (mute_feed) return;
  v1::NodeMessage out;
  v1::FeedMessage& feed = *out.mutable_feed();
  feed.set_subscription(request.subscription());
  feed.set_shard(shard_.uid.value());
  if (!leads()) {
    Hint hint;
    hint.leader = shard_.leader;
    hint.term = Term(shard_.term);
    *feed.mutable_status() = ToProto(Unavailable(Reason::kNonMaster, "ask the leader", hint));
    return Send(from, std::move(out));
  }
  feed.set_full(true);
  feed.set_term(shard_.term);
  feed.set_level(shard_.level);
  feed.set_index(shard_.index);
  for (const auto& [bucket, epoch] : shard_.owned) *feed.add_buckets() = Describe(shard_, bucket);
  for (const auto& [bucket, left] : shard_.gone) *feed.add_buckets() = Describe(shard_, bucket);
  subscribers_[from] = {request.subscription(), shard_.index};
  Send(from, std::move(out));
}

v1::CallReply FakeReplica::Answer(const v1::Call& call) {
  v1::CallReply reply;
  reply.set_id(call.id());
  const auto refuse_with = [&reply](const Status& status) {
    *reply.mutable_status() = ToProto(status);
    return reply;
  };
  if (refuse) {
    if (const auto status = refuse(call)) {
      if (!status->ok()) return refuse_with(*status);
      return reply;
    }
  }
  if (call.mode() == v1::MODE_RW && !leads()) {
    Hint hint;
    hint.leader = shard_.leader;
    hint.term = Term(shard_.term);
    return refuse_with(Unavailable(Reason::kNonMaster, "not the leader", hint));
  }
  const std::uint32_t bucket = static_cast<std::uint32_t>(call.routing_value() % shard_.Modulus());
  const auto row = shard_.owned.find(bucket);
  if (row == shard_.owned.end() || row->second != call.epoch()) {
    return refuse_with(WrongBucket(bucket));
  }
  const std::pair id(call.request().client(), call.request().sequence());
  if (id.first != 0) {
    if (const auto done = shard_.results.find(id); done != shard_.results.end()) {
      reply = done->second;
      reply.set_id(call.id());
      return reply;
    }
  }
  const std::string prefix = std::to_string(call.routing_value()) + "/";
  if (call.function() == "put") {
    v1::PutArgs args;
    args.ParseFromString(call.args());
    shard_.data[prefix + args.key()] = args.value();
    ++shard_.runs[prefix + args.key()];
  } else if (call.function() == "get") {
    v1::GetArgs args;
    args.ParseFromString(call.args());
    v1::GetResult result;
    if (const auto it = shard_.data.find(prefix + args.key()); it != shard_.data.end()) {
      result.set_found(true);
      result.set_value(it->second);
    }
    reply.set_result(result.SerializeAsString());
  }
  if (id.first != 0) shard_.results[id] = reply;
  return reply;
}

v1::MapRunReply FakeReplica::Run(const v1::MapRun& run) {
  if (map_run) {
    if (auto scripted = map_run(run)) {
      scripted->set_id(run.id());
      return *scripted;
    }
  }
  v1::MapRunReply reply;
  reply.set_id(run.id());
  if (!leads()) {
    *reply.mutable_status() = ToProto(Unavailable(Reason::kNonMaster, "not the leader"));
    return reply;
  }
  // Of a level that the shard does not have yet it owns the parts of what it owns; of a lower one
  // it answers for its own buckets.
  const auto at = static_cast<std::uint8_t>(std::max(run.level(), shard_.level));
  reply.set_level(at);
  for (const v1::BucketEpoch& named : run.buckets()) {
    const BucketId bucket{static_cast<std::uint8_t>(run.level()), named.bucket()};
    for (std::uint32_t part : placement::ExpandBucket(bucket, at, shard_.bucket_count)) {
      const std::uint32_t own = part % shard_.Modulus();
      const auto row = shard_.owned.find(own);
      if (row == shard_.owned.end() || row->second != named.epoch()) {
        v1::BucketResult& rest = *reply.add_rest();
        rest.set_bucket(part);
        *rest.mutable_status() = ToProto(WrongBucket(own));
        continue;
      }
      ++shard_.runs[std::to_string(part) + "@" + std::to_string(at)];
      v1::BucketResult& result = *reply.add_results();
      result.set_bucket(part);
      result.set_result(shard_.name);
    }
  }
  return reply;
}

Status FakeReplica::WrongBucket(std::uint32_t bucket) const {
  Hint hint;
  if (const auto left = shard_.gone.find(bucket); left != shard_.gone.end()) {
    hint.destination = left->second.to;
    hint.epoch = Epoch(left->second.epoch);
  }
  return Aborted(Reason::kWrongBucket, "not here", hint);
}

void FakeReplica::OnMessage(const NodeName& from, const std::string& bytes) {
  v1::NodeMessage message;
  if (mute || !message.ParseFromString(bytes)) return;
  v1::NodeMessage out;
  if (message.has_subscribe()) return Subscribe(from, message.subscribe());
  if (message.has_ping()) {
    v1::Pong& pong = *out.mutable_pong();
    pong.set_id(message.ping().id());
    pong.set_replica(name_);
    pong.set_shard(shard_.uid.value());
    pong.set_ready(ready);
    pong.set_leader(leads());
    pong.set_leader_name(shard_.leader);
    pong.set_term(shard_.term);
    pong.set_applied_index(applied);
    pong.set_lag_millis(lag_millis);
    if (topology) pong.set_topology_version(topology->version());
    return Send(from, std::move(out));
  }
  if (message.has_fetch_topology()) {
    ++fetches_;
    if (!topology || topology->version() <= message.fetch_topology().have()) return;
    *out.mutable_topology() = *topology;
    return Send(from, std::move(out));
  }
  if (message.has_suspicion()) {
    suspicions_.push_back(message.suspicion());
    return;
  }
  if (message.has_map_run()) {
    if (mute_calls) return;
    *out.mutable_map_run_reply() = Run(message.map_run());
    return Send(from, std::move(out));
  }
  if (!message.has_call_frame()) return;
  v1::CallFrame frame;
  frame.ParseFromString(message.call_frame());
  ++frames_;
  v1::ReplyFrame replies;
  for (const std::string& one : frame.calls()) {
    v1::Call call;
    call.ParseFromString(one);
    calls_.push_back({env_.clock.Now(), call.function(), call.routing_value(), call.epoch(),
                      call.mode(), call.request().client(), call.timeout_millis(), frames_});
    if (!mute_calls) replies.add_replies(Answer(call).SerializeAsString());
  }
  if (mute_calls) return;
  out.set_reply_frame(replies.SerializeAsString());
  if (hold_replies) {
    held_.emplace_back(from, std::move(out));
  } else {
    Send(from, std::move(out));
  }
}

}  // namespace etalon::router::testing
