// What clients, etalonctl and the operator ask of a node.
#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "proto/wire.h"
#include "router/call/target.h"
#include "router/node/node.h"
#include "router/table/describe.h"

namespace etalon::router {

namespace {

constexpr std::uint32_t kDefaultPage = 1000;
constexpr std::size_t kListedBuckets = 16;  // of one kind, in the texts of alerts

Status Disabled(const char* why) { return Unavailable(Reason::kRouterIsDisabled, why); }

std::string WhyUnfit(Fitness fitness) {
  switch (fitness) {
    case Fitness::kHealthy:
      return "";
    case Fitness::kUntried:
      return "not asked yet";
    case Fitness::kLagging:
      return "too far behind";
    case Fitness::kDown:
      return "does not answer or cannot serve";
  }
  return "";
}

}  // namespace

void Node::OnClient(const NodeName& client, const std::string& bytes) {
  v1::ClientRequest request;
  if (!request.ParseFromString(bytes)) {
    env_.log.Warning("router_malformed_request", {{"from", client}});
    return;
  }
  OnRequest(client, std::move(request));
}

void Node::OnRequest(const NodeName& client, v1::ClientRequest request) {
  v1::ClientResponse response;
  response.set_id(request.id());
  Status status;
  const bool serves_without_topology = request.has_info() || request.has_apply_topology();
  if (!directory_ && !serves_without_topology) {
    status = Disabled("this router has no topology yet: try another one");
  } else if (stop_by_ && !serves_without_topology) {
    status = Disabled("this router is about to stop: use another one");
  } else if (request.has_call()) {
    const auto value =
        RoutingValueOf(request.call().target(), *directory_, ownership_->table().modulus());
    if (value.ok()) {
      return calls_.Admit(now(), client, request.id(), std::move(*request.mutable_call()), *value,
                          directory_->bucket_count());
    }
    status = value.status();
  } else if (request.has_map_call()) {
    status = StartMap(client, request.id(), std::move(*request.mutable_map_call()));
    if (status.ok()) return;
  } else if (request.has_sync()) {
    const Duration timeout = request.sync().timeout_millis() == 0
                                 ? options_.calls.default_timeout
                                 : std::chrono::milliseconds(request.sync().timeout_millis());
    status = syncs_.Admit(now(), client, request.id(), timeout, health_);
    if (status.ok()) {
      for (const auto& [uid, shard] : directory_->shards()) AskReplicas(uid);
      return;
    }
  } else {
    status = Serve(request, &response);
  }
  if (!status.ok()) {
    // A call's failure stands where its clients look for it.
    v1::Status& place = request.has_call() ? *response.mutable_call()->mutable_status()
                                           : *response.mutable_status();
    place = ToProto(status);
    if (request.has_call()) response.mutable_call()->set_id(request.call().id());
  }
  Reply(client, response);
}

Status Node::Serve(const v1::ClientRequest& request, v1::ClientResponse* response) {
  switch (request.request_case()) {
    case v1::ClientRequest::kRoute:
      return RouteOf(request.route().target(), response->mutable_route());
    case v1::ClientRequest::kRouteAll:
      FillShards(response->mutable_route_all()->mutable_shards());
      return OkStatus();
    case v1::ClientRequest::kBucketId:
      return BucketIdOf(request.bucket_id().target(), response->mutable_bucket_id());
    case v1::ClientRequest::kBuckets:
      ListBuckets(request.buckets(), response->mutable_buckets());
      return OkStatus();
    case v1::ClientRequest::kInfo:
      *response->mutable_info() = Info();
      return OkStatus();
    case v1::ClientRequest::kDescribe:
      *response->mutable_describe() = Describe(ownership_->table(), *directory_);
      return OkStatus();
    case v1::ClientRequest::kApplyTopology: {
      const Status s = ApplyTopology(request.apply_topology());
      if (s.reason() == Reason::kTopologyConflict) invalid_topology_ = s.message();
      if (s.ok()) response->mutable_done();
      return s;
    }
    case v1::ClientRequest::kCall:
    case v1::ClientRequest::kMapCall:
    case v1::ClientRequest::kSync:
    case v1::ClientRequest::REQUEST_NOT_SET:
      break;
  }
  return Status(Code::kUnimplemented, Reason::kMalformed, "this router does not know that request");
}

Status Node::StartMap(const NodeName& client, std::uint64_t id, v1::MapCallRequest call) {
  if (IsWrite(call.function()) && !call.write()) {
    return InvalidArgument(call.function() + " changes records: set `write`");
  }
  const auto level = static_cast<std::uint8_t>(std::min<std::uint32_t>(call.level(), 255));
  std::set<std::uint32_t> buckets(call.buckets().begin(), call.buckets().end());
  for (std::uint32_t bucket : buckets) ETALON_RETURN_IF_ERROR(ownership_->Reach({level, bucket}));
  const BucketTable& table = ownership_->table();
  std::set<std::uint32_t> fine;
  if (call.buckets().empty()) {
    for (std::uint32_t n = 0; n < table.modulus(); ++n) fine.insert(fine.end(), n);
  }
  for (std::uint32_t bucket : buckets) {
    table.ForEachPart({level, bucket}, [&fine](std::uint32_t n) { fine.insert(n); });
  }
  return maps_.Admit(now(), client, id, std::move(call), {fine.begin(), fine.end()}, table.level(),
                     table.level(), directory_->bucket_count());
}

Status Node::BucketIdOf(const v1::Target& target, v1::BucketIdResponse* out) const {
  const BucketTable& table = ownership_->table();
  ETALON_ASSIGN_OR_RETURN(const RoutingValue value,
                          RoutingValueOf(target, *directory_, table.modulus()));
  out->set_routing_value(value.value());
  *out->mutable_bucket() = ToProto(BucketId{table.level(), table.NumberOf(value)});
  out->set_modulus(table.modulus());
  return OkStatus();
}

Status Node::RouteOf(const v1::Target& target, v1::RouteResponse* out) const {
  v1::BucketIdResponse bucket;
  ETALON_RETURN_IF_ERROR(BucketIdOf(target, &bucket));
  const auto owner = ownership_->table().At(bucket.bucket().number());
  if (!owner) {
    return Unavailable(Reason::kNoRouteToBucket, "no shard is known to have the bucket: ask again");
  }
  out->set_routing_value(bucket.routing_value());
  *out->mutable_bucket() = bucket.bucket();
  out->set_shard(owner->shard.value());
  out->set_epoch(owner->epoch.value());
  if (const Shard* shard = directory_->Find(owner->shard)) out->set_shard_name(shard->name);
  out->set_leader(health_.LeaderOf(owner->shard).name);
  return OkStatus();
}

Node::Availability Node::AvailabilityOf(ShardUid shard) const {
  if (health_.UsableLeader(shard)) return Availability::kRw;
  const auto& candidates = health_.Candidates(shard);
  const bool any = std::any_of(candidates.begin(), candidates.end(), [](const Candidate& c) {
    return c.fitness == Fitness::kHealthy || c.fitness == Fitness::kLagging;
  });
  return any ? Availability::kRo : Availability::kUnreachable;
}

void Node::ListBuckets(const v1::RouterBucketsRequest& request,
                       v1::RouterBucketsResponse* out) const {
  const BucketTable& table = ownership_->table();
  out->set_level(table.level());
  const std::uint64_t limit = request.limit() == 0 ? kDefaultPage : request.limit();
  const std::uint64_t end = std::min<std::uint64_t>(table.modulus(), request.offset() + limit);
  for (std::uint64_t n = request.offset(); n < end; ++n) {
    v1::RouterBucket& bucket = *out->add_buckets();
    bucket.set_bucket(static_cast<std::uint32_t>(n));
    const auto owner = table.At(static_cast<std::uint32_t>(n));
    if (!owner) {
      bucket.set_availability("unknown");
      continue;
    }
    bucket.set_shard(owner->shard.value());
    bucket.set_epoch(owner->epoch.value());
    switch (AvailabilityOf(owner->shard)) {
      case Availability::kRw:
        bucket.set_availability("available_rw");
        break;
      case Availability::kRo:
        bucket.set_availability("available_ro");
        break;
      case Availability::kUnreachable:
        bucket.set_availability("unreachable");
        break;
    }
  }
}

void Node::FillShards(google::protobuf::RepeatedPtrField<v1::ShardRoute>* out) const {
  for (const auto& [uid, shard] : directory_->shards()) {
    v1::ShardRoute& route = *out->Add();
    route.set_uid(uid.value());
    route.set_name(shard.name);
    route.set_leader(health_.LeaderOf(uid).name);
    route.set_buckets(ownership_->table().CountOf(uid));
    for (const Replica& replica : shard.replicas) {
      const ReplicaState& state = health_.State(replica.name);
      v1::ReplicaHealth& health = *route.add_replicas();
      health.set_name(replica.name);
      health.set_address(replica.address);
      health.set_zone(replica.zone);
      health.set_distance(replica.distance);
      health.set_connected(state.answers);
      health.set_healthy(state.fitness() == Fitness::kHealthy);
      health.set_lag_millis(static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::milliseconds>(state.lag).count()));
      health.set_why(WhyUnfit(state.fitness()));
    }
  }
}

RouterFacts Node::Facts() const {
  RouterFacts facts;
  facts.invalid_config = invalid_topology_;
  if (!directory_) return facts;
  facts.loaded = true;
  const SteadyTime time = now();
  for (const auto& [uid, shard] : directory_->shards()) {
    ShardFacts fact{shard.name, health_.Candidates(uid), std::nullopt};
    const Feed& feed = feeds_.at(uid);
    if (feed.state() != Feed::State::kLive) {
      fact.feed_down = time - feed.live_until().value_or(feed.started());
    }
    facts.shards.push_back(std::move(fact));
  }
  facts.unknown_buckets = ownership_->table().unknown();
  if (lost_since_) facts.lost = time - *lost_since_;
  for (const auto& [bucket, shard] : ownership_->claims().Doubled(time)) {
    if (facts.doubled.size() == kListedBuckets) break;
    const auto owner = ownership_->table().At(bucket);
    const auto name = [this](ShardUid uid) {
      const Shard* known = directory_->Find(uid);
      return known == nullptr ? ToHex(uid.value()) : known->name;
    };
    facts.doubled.push_back(ToString(BucketId{ownership_->table().level(), bucket}) + ": " +
                            name(shard) + (owner ? " and " + name(owner->shard) : ""));
  }
  facts.quarantined = troubles_.List(Reason::kQuarantined, Duration::zero(), time);
  facts.stuck = troubles_.List(Reason::kTransferIsInProgress, options_.stuck_after, time);
  for (auto* list : {&facts.quarantined, &facts.stuck}) {
    if (list->size() > kListedBuckets) list->resize(kListedBuckets);
  }
  for (const auto& [shard, why] : invalid_feeds_) {
    if (facts.invalid_config.empty()) facts.invalid_config = why;
  }
  facts.topology_version = directory_->version().value();
  if (newer_topology_ > facts.topology_version && time - newer_since_ >= options_.alerts.feed) {
    facts.newer_topology = newer_topology_;
  }
  return facts;
}

v1::RouterInfoResponse Node::Info() const {
  v1::RouterInfoResponse out;
  out.set_name(options_.name);
  out.set_zone(options_.zone);
  out.set_version(options_.version);
  out.set_ready(ready_);
  const auto alerts = RouterAlerts(Facts(), options_.alerts);
  out.set_status(static_cast<std::uint32_t>(StatusOf(alerts)));
  for (const RouterAlert& alert : alerts) {
    v1::Alert& one = *out.add_alerts();
    one.set_code(alert.code);
    one.set_text(alert.text);
    one.set_status(static_cast<std::uint32_t>(alert.severity));
  }
  counters_.FillIn(&out);
  if (!directory_) {
    out.set_collection(options_.collection.value());
    return out;
  }
  out.set_collection(directory_->collection().value());
  out.set_topology_version(directory_->version().value());
  FillShards(out.mutable_shards());
  const BucketTable& table = ownership_->table();
  std::uint64_t rw = 0;
  std::uint64_t ro = 0;
  for (const auto& [uid, shard] : directory_->shards()) {
    const Availability availability = AvailabilityOf(uid);
    if (availability == Availability::kRw) rw += table.CountOf(uid);
    if (availability == Availability::kRo) ro += table.CountOf(uid);
  }
  out.set_available_rw(rw);
  out.set_available_ro(ro);
  out.set_unreachable(table.known() - rw - ro);
  out.set_unknown(table.unknown());
  out.set_modulus(table.modulus());
  return out;
}

}  // namespace etalon::router
