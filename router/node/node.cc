#include "router/node/node.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "proto/wire.h"
#include "router/call/verdict.h"

namespace etalon::router {

namespace {

constexpr Duration kHousekeeping = std::chrono::seconds(1);
constexpr std::size_t kToldDoubled = 64;  // buckets, in one housekeeping
constexpr Duration kFetchGap = std::chrono::milliseconds(200);
constexpr Duration kAskOwnersGap = std::chrono::milliseconds(50);

// Where a refusal says that the bucket is.
std::optional<Owner> OwnerNamed(const Owner& asked, const Status& status) {
  const Hint& hint = status.hint();
  const ShardUid at =
      hint.destination.value_or(status.reason() == Reason::kStaleEpoch ? asked.shard : ShardUid());
  if (!at || !hint.epoch) return std::nullopt;
  return Owner{at, *hint.epoch};
}

}  // namespace

Node::Node(Env env, Options options)
    : env_(env),
      options_(std::move(options)),
      health_(options_.health),
      calls_(options_.calls, *this, counters_),
      maps_(options_.maps, *this),
      self_(std::make_shared<Node*>(this)) {
  housekeeping_ = now() + kHousekeeping;
  if (options_.topology) {
    if (const Status s = ApplyTopology(*options_.topology); !s.ok()) {
      invalid_topology_ = s.message();
      env_.log.Error("router_topology_refused", {{"why", s.ToString()}});
    }
  }
  Settle();
}

Node::~Node() {
  *self_ = nullptr;
  if (timer_ != 0) env_.core.Cancel(timer_);
}

TopologyVersion Node::topology_version() const {
  return directory_ ? directory_->version() : TopologyVersion();
}

SendResult Node::Send(const NodeName& to, v1::NodeMessage message) {
  message.set_collection(directory_ ? directory_->collection().value()
                                    : options_.collection.value());
  return env_.net.Send(to, Lane::kControl, message.SerializeAsString());
}

void Node::OnMessage(const NodeName& from, Lane, std::string bytes) {
  v1::NodeMessage message;
  if (!message.ParseFromString(bytes)) {
    env_.log.Warning("router_malformed_message", {{"from", from}});
    return;
  }
  const CollectionId mine = directory_ ? directory_->collection() : options_.collection;
  if (message.collection() != 0 && mine && CollectionId(message.collection()) != mine) return;
  Dispatch(from, std::move(message));
  Settle();
}

void Node::OnDisconnect(const NodeName& peer) {
  if (!directory_) return;
  LosePeer(peer, Loss::kDisconnected);
  if (const Shard* shard = directory_->ShardOf(peer)) {
    Feed& feed = feeds_.at(shard->uid);
    TakeFeed(shard->uid, feed, feed.OnDisconnect(now(), peer, env_.random));
  }
  Settle();
}

void Node::LosePeer(const NodeName& peer, Loss why) {
  calls_.OnPeerLost(now(), peer, why);
  maps_.OnPeerLost(now(), peer, why, ownership_->table().level());
}

void Node::Dispatch(const NodeName& from, v1::NodeMessage message) {
  if (message.body_case() == v1::NodeMessage::kClientRequest) {
    return OnClient(from, message.client_request());
  }
  if (!directory_) return;
  switch (message.body_case()) {
    case v1::NodeMessage::kReplyFrame:
      return calls_.OnReplies(now(), from, message.reply_frame());
    case v1::NodeMessage::kFeed:
      return OnFeed(from, std::move(*message.mutable_feed()));
    case v1::NodeMessage::kPong:
      return OnPong(from, message.pong());
    case v1::NodeMessage::kMapRunReply:
      return maps_.OnReply(now(), from, message.map_run_reply(), ownership_->table().level());
    case v1::NodeMessage::kTopology:
      // Asked for by this node; what it cannot use raises an alert there.
      if (message.topology().version() > directory_->version().value()) {
        const Status s = ApplyTopology(message.topology());
        if (!s.ok()) invalid_topology_ = s.message();
      }
      return;
    case v1::NodeMessage::kClientRequest:
    case v1::NodeMessage::kRaft:
    case v1::NodeMessage::kTransfer:
    case v1::NodeMessage::kBalance:
    case v1::NodeMessage::kSubscribe:
    case v1::NodeMessage::kCallFrame:
    case v1::NodeMessage::kAdminCall:
    case v1::NodeMessage::kAdminReply:
    case v1::NodeMessage::kMapRun:
    case v1::NodeMessage::kFetchTopology:
    case v1::NodeMessage::kClientReply:
    case v1::NodeMessage::kPing:
    case v1::NodeMessage::kSuspicion:
    case v1::NodeMessage::BODY_NOT_SET:
      return;  // not for routers
  }
}

// ---- news and time
// --------------------------------------------------------------------------------

void Node::Settle() {
  for (;;) {
    if (!bucket_news_.empty()) {
      const auto news = std::exchange(bucket_news_, {});
      const std::uint32_t bucket_count = directory_->bucket_count();
      for (const BucketNews& n : news) {
        calls_.OnBucketNews(now(), n.bucket, n.writable, bucket_count);
      }
    } else if (!down_.empty()) {
      for (const NodeName& peer : std::exchange(down_, {})) {
        env_.log.Warning("router_replica_down", {{"replica", peer}});
        LosePeer(peer, Loss::kDown);
      }
    } else if (!replica_news_.empty()) {
      for (ShardUid shard : std::exchange(replica_news_, {})) {
        const router::Leader leader = health_.LeaderOf(shard);
        if (const auto it = feeds_.find(shard); it != feeds_.end() && !leader.name.empty()) {
          TakeFeed(shard, it->second,
                   it->second.OnLeader(now(), leader.name, leader.term, env_.random));
        }
        calls_.OnReplicaNews(now(), shard, leader.name);
        maps_.OnLeader(now(), shard, leader.name);
      }
    } else if (topology_news_) {
      topology_news_ = false;
      calls_.OnTopologyNews(now());
    } else {
      break;
    }
  }
  CheckReady();
  CheckStopped();
  Arm();
}

void Node::Arm() {
  SteadyTime next = std::min({calls_.wake(), maps_.wake(), syncs_.wake(), feed_alarms_.next(),
                              health_.wake(), housekeeping_});
  if (!ready_) next = std::min(next, ready_by_);
  if (stop_by_) next = std::min(next, *stop_by_);
  // A timer that is early does no harm: most of them are, since most calls are answered in time.
  if (next >= armed_) return;
  if (timer_ != 0) env_.core.Cancel(timer_);
  armed_ = next;
  timer_ = env_.core.PostAt(next, [self = self_] {
    if (*self != nullptr) (*self)->OnTimer();
  });
}

void Node::OnTimer() {
  timer_ = 0;
  armed_ = SteadyTime::max();
  const SteadyTime time = now();
  for (ShardUid shard : feed_alarms_.TakeDue(time)) {
    Feed& feed = feeds_.at(shard);
    TakeFeed(shard, feed, feed.OnWake(time, env_.random));
  }
  if (time >= health_.wake()) TakeHealth(health_.OnWake(time, env_.random));
  calls_.OnWake(time);
  if (maps_.size() != 0) maps_.OnWake(time, ownership_->table().level());
  if (!syncs_.empty() && time >= syncs_.wake()) {
    for (const Syncs::Done& done : syncs_.Check(time, *directory_, health_)) {
      v1::ClientResponse response;
      response.set_id(done.request);
      *response.mutable_sync()->mutable_status() = ToProto(done.status);
      Reply(done.client, response);
    }
  }
  if (time >= housekeeping_) Housekeep();
  Settle();
}

void Node::Housekeep() {
  housekeeping_ = now() + kHousekeeping;
  if (!ownership_) return;
  for (ShardUid shard : ownership_->TakeStaleClaims(now())) {
    if (const auto it = feeds_.find(shard); it != feeds_.end()) {
      TakeFeed(shard, it->second, it->second.Refresh(now(), env_.random));
    }
  }
  TellDoubled();
  troubles_.Forget(now());
  const bool all_heard = std::all_of(feeds_.begin(), feeds_.end(), [](const auto& feed) {
    return feed.second.state() == Feed::State::kLive;
  });
  if (ownership_->table().unknown() == 0 || !all_heard) {
    lost_since_.reset();
  } else if (!lost_since_) {
    lost_since_ = now();
  }
}

// The shard that has a bucket at the lower epoch cannot know of the newer owner by itself.
void Node::TellDoubled() {
  std::size_t told = 0;
  for (const auto& [bucket, shard] : ownership_->claims().Doubled(now())) {
    const auto owner = ownership_->table().At(bucket);
    const auto leader = Leader(shard);
    if (!owner || owner->shard == shard || !leader) continue;
    if (++told > kToldDoubled) return;
    v1::NodeMessage message;
    v1::Suspicion& suspicion = *message.mutable_suspicion();
    suspicion.set_shard(shard.value());
    suspicion.set_peer(owner->shard.value());
    *suspicion.mutable_bucket() = ToProto(BucketId{ownership_->table().level(), bucket});
    (void)Send(*leader, std::move(message));  // said again as long as it stands
  }
}

void Node::CheckReady() {
  if (ready_ || !directory_) return;
  const bool listed = std::all_of(feeds_.begin(), feeds_.end(), [](const auto& feed) {
    return feed.second.live_until().has_value();
  });
  if (!(health_.AllDialled() && listed) && now() < ready_by_) return;
  ready_ = true;
  env_.log.Info("router_ready", {{"topology", directory_->version().value()}});
}

void Node::Stop(Duration grace, UniqueFunction<void()> done) {
  ETALON_CHECK(done && !stop_by_, "Stop is called once, with what to do then");
  stop_by_ = now() + grace;
  stopped_ = std::move(done);
  Settle();
}

void Node::CheckStopped() {
  if (!stop_by_ || !stopped_) return;
  if ((calls_.size() != 0 || maps_.size() != 0) && now() < *stop_by_) return;
  stop_by_.emplace(SteadyTime::max());
  for (auto& [shard, feed] : feeds_) {
    feed_alarms_.Clear(shard);
    for (Feed::Send& send : feed.Stop().sends) {
      v1::NodeMessage message;
      *message.mutable_subscribe() = std::move(send.message);
      (void)Send(send.to, std::move(message));
    }
  }
  auto done = std::move(stopped_);
  stopped_ = nullptr;
  env_.core.Post(std::move(done));
}

// ---- storages
// -------------------------------------------------------------------------------------

void Node::TakeHealth(Health::Output output) {
  while (!output.pings.empty() || !output.down.empty() || !output.leaders.empty()) {
    down_.insert(down_.end(), output.down.begin(), output.down.end());
    replica_news_.insert(replica_news_.end(), output.leaders.begin(), output.leaders.end());
    const auto pings = std::move(output.pings);
    output = {};
    for (const auto& [replica, ping] : pings) {
      v1::NodeMessage message;
      *message.mutable_ping() = ping;
      if (Send(replica, std::move(message)) != SendResult::kUnknown) continue;
      for (NodeName& name : health_.OnUnreachable(now(), replica).down) {
        output.down.push_back(std::move(name));
      }
    }
  }
}

void Node::TakeFeed(ShardUid shard, Feed& feed, Feed::Output output) {
  for (Feed::Send& send : output.sends) {
    v1::NodeMessage message;
    *message.mutable_subscribe() = std::move(send.message);
    (void)Send(send.to, std::move(message));  // lost: the answer does not come in time
  }
  feed_alarms_.Set(shard, feed.wake());
}

void Node::OnFeed(const NodeName& from, v1::FeedMessage message) {
  const ShardUid shard(message.shard());
  const auto it = feeds_.find(shard);
  if (it == feeds_.end()) return;
  Feed& feed = it->second;
  Feed::Output output = feed.OnMessage(now(), from, std::move(message), env_.random);
  const std::vector<v1::FeedMessage> parts = std::move(output.apply);
  TakeFeed(shard, feed, std::move(output));
  if (parts.empty()) return;
  TakeHealth(health_.OnProof(from, Term(parts.back().term())));
  NoteTopologyVersion(from, parts.back().topology_version());
  const std::uint8_t level = ownership_->table().level();
  const bool wanted = calls_.AnyWaitsForBuckets();
  Status s;
  for (const v1::FeedMessage& part : parts) {
    s = ownership_->ApplyFeed(shard, part, now(), [this, wanted](BucketId bucket, bool writable) {
      if (writable && !troubles_.empty()) troubles_.Clear(bucket);
      if (wanted) bucket_news_.push_back({bucket, writable});
    });
    if (!s.ok()) break;
  }
  if (ownership_->table().level() != level) {
    env_.log.Info("router_modulus_grown", {{"modulus", ownership_->table().modulus()}});
  }
  if (s.ok()) {
    invalid_feeds_.erase(shard);
    return;
  }
  const Shard* known = directory_->Find(shard);
  invalid_feeds_[shard] = "shard " + (known == nullptr ? ToHex(shard.value()) : known->name) +
                          " speaks of buckets that this collection cannot have: " + s.message();
  TakeFeed(shard, feed, feed.OnUnusable(now(), env_.random));
}

void Node::OnPong(const NodeName& from, const v1::Pong& pong) {
  TakeHealth(health_.OnPong(now(), from, pong));
  NoteTopologyVersion(from, pong.topology_version());
  if (syncs_.empty()) return;
  for (const Syncs::Done& done : syncs_.Check(now(), *directory_, health_)) {
    v1::ClientResponse response;
    response.set_id(done.request);
    *response.mutable_sync()->mutable_status() = ToProto(done.status);
    Reply(done.client, response);
  }
}

void Node::NoteTopologyVersion(const NodeName& from, std::uint64_t version) {
  if (version <= directory_->version().value()) return;
  if (newer_topology_ <= directory_->version().value()) newer_since_ = now();
  newer_topology_ = std::max(newer_topology_, version);
  if (now() >= next_fetch_) FetchFrom(from);
}

void Node::FetchFrom(const NodeName& replica) {
  next_fetch_ = now() + env_.random.Between(kFetchGap / 2, kFetchGap);
  v1::NodeMessage message;
  message.mutable_fetch_topology()->set_have(directory_->version().value());
  (void)Send(replica, std::move(message));
}

// ---- what calls ask
// -------------------------------------------------------------------------------

std::optional<Owner> Node::Find(RoutingValue value) const {
  return ownership_->table().Find(value);
}

bool Node::Knows(ShardUid shard) const { return directory_->Find(shard) != nullptr; }

std::optional<NodeName> Node::Leader(ShardUid shard) const { return health_.UsableLeader(shard); }

std::optional<NodeName> Node::Reader(ShardUid shard, v1::Mode mode,
                                     const std::vector<NodeName>& tried) {
  const std::vector<Candidate>& candidates = health_.Candidates(shard);
  if (tried.empty()) ++turn_;
  const auto chosen = ChooseReplica(candidates, mode, turn_, tried);
  if (!chosen) return std::nullopt;
  return candidates[*chosen].name;
}

void Node::Reply(const NodeName& client, const v1::ClientResponse& response) {
  v1::NodeMessage message;
  message.set_client_reply(response.SerializeAsString());
  if (Send(client, std::move(message)) != SendResult::kQueued) {
    env_.log.Debug("router_reply_dropped", {{"client", client}});
  }
}

void Node::TakeHints(const CallMachine& call, const Status& status) {
  const RoutingValue value = call.traits().value;
  const BucketTable& table = ownership_->table();
  const BucketId bucket{table.level(), table.NumberOf(value)};
  if (status.ok()) {
    if (!troubles_.empty() && !call.traits().read) troubles_.Clear(bucket);
    return;
  }
  switch (Judge(status)) {
    case Verdict::kReroute:
      // A follower may be behind: what it does not have its leader may.
      if (call.traits().mode == v1::MODE_RW || OwnerNamed(call.asked(), status)) {
        TakeOwnerHint(bucket, call.asked(), status);
      }
      return;
    case Verdict::kMoving:
      return troubles_.Note(bucket, Reason::kTransferIsInProgress, now());
    case Verdict::kFinal:
      if (status.reason() == Reason::kQuarantined) {
        troubles_.Note(bucket, Reason::kQuarantined, now());
      }
      return;
    case Verdict::kNotLeader:
    case Verdict::kTopology:
      return TakeReplicaHints(call.peer(), status);
    case Verdict::kBusy:
    case Verdict::kUnknown:
      return;
  }
}

bool Node::TakeOwnerHint(BucketId bucket, const Owner& asked, const Status& status) {
  if (Judge(status) != Verdict::kReroute) return false;
  const auto named = OwnerNamed(asked, status);
  if (!named) {
    ownership_->Forget(bucket, asked);
    return false;
  }
  if (!ownership_->Hint(bucket, *named, now())) return false;
  bucket_news_.push_back({bucket, true});
  return true;
}

void Node::TakeReplicaHints(const NodeName& replica, const Status& status) {
  const Hint& hint = status.hint();
  switch (Judge(status)) {
    case Verdict::kNotLeader:
      return TakeHealth(health_.OnNotLeader(now(), replica, hint.leader, hint.term));
    case Verdict::kTopology:
      return NoteTopologyVersion(replica, hint.number.value_or(0));
    case Verdict::kReroute:
    case Verdict::kMoving:
    case Verdict::kFinal:
    case Verdict::kBusy:
    case Verdict::kUnknown:
      return;
  }
}

Status Node::ReachLevel(std::uint32_t level) {
  return ownership_->Reach({static_cast<std::uint8_t>(std::min<std::uint32_t>(level, 255)), 0});
}

void Node::AskOwners(ShardUid contradicted) {
  const bool all = now() >= next_ask_owners_;
  if (all) next_ask_owners_ = now() + kAskOwnersGap;
  for (auto& [shard, feed] : feeds_) {
    if (shard != contradicted && (!all || feed.state() == Feed::State::kLive)) continue;
    TakeFeed(shard, feed, feed.Refresh(now(), env_.random));
  }
}

void Node::AskReplicas(ShardUid shard) { TakeHealth(health_.Seek(now(), shard)); }

void Node::AskTopology() {
  if (now() < next_fetch_) return;
  std::vector<NodeName> answering;
  for (const auto& [uid, shard] : directory_->shards()) {
    for (const Candidate& c : health_.Candidates(uid)) {
      if (c.fitness != Fitness::kDown) answering.push_back(c.name);
    }
  }
  if (!answering.empty()) FetchFrom(answering[fetch_turn_++ % answering.size()]);
}

void Node::NoteSilence(const NodeName& replica) { TakeHealth(health_.OnSilence(now(), replica)); }

void Node::NoteUnreachable(const NodeName& replica) {
  TakeHealth(health_.OnUnreachable(now(), replica));
}

void Node::ScheduleFlush() {
  if (std::exchange(flush_posted_, true)) return;
  env_.core.Post([self = self_] {
    if (*self != nullptr) (*self)->Flush();
  });
}

void Node::Flush() {
  flush_posted_ = false;
  calls_.Flush(now(), directory_->version().value(),
               [this](const NodeName& peer, std::string frame) {
                 v1::NodeMessage message;
                 message.set_call_frame(std::move(frame));
                 return Send(peer, std::move(message));
               });
  Settle();
}

SendResult Node::SendMapRun(const NodeName& replica, const v1::MapRun& run) {
  v1::NodeMessage message;
  *message.mutable_map_run() = run;
  return Send(replica, std::move(message));
}

}  // namespace etalon::router
