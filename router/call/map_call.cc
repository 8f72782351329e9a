#include "router/call/map_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"
#include "router/call/verdict.h"

namespace etalon::router {

MapMachine::MapMachine(v1::MapCallRequest request, std::vector<std::uint32_t> buckets,
                       std::uint8_t level, std::uint32_t bucket_count, SteadyTime deadline,
                       const MapOptions& options)
    : request_(std::move(request)),
      bucket_count_(bucket_count),
      deadline_(deadline),
      options_(options),
      backoff_(options.backoff_base, options.backoff_cap),
      level_(level) {
  again_.reserve(buckets.size());
  for (std::uint32_t bucket : buckets) again_.push_back({level, bucket});
}

void MapMachine::Again(std::uint32_t bucket, std::uint8_t level) {
  again_.push_back({level, bucket});
}

void MapMachine::Record(std::uint32_t bucket, std::uint8_t level, ShardUid shard, v1::Status status,
                        std::string result) {
  bytes_ += result.size();
  v1::MapResult& out = *response_.add_results();
  out.set_level(level);
  out.set_bucket(bucket);
  out.set_shard(shard.value());
  if (status.code() != 0) *out.mutable_status() = std::move(status);
  out.set_result(std::move(result));
}

void MapMachine::Lose(const Out& run, const Status& why) {
  last_ = why;
  if (safe()) {
    for (const auto& [bucket, epoch] : run.buckets) Again(bucket, run.level);
    return;
  }
  lost_ += run.buckets.size();
  last_ = Unavailable(Reason::kOutcomeUnknown,
                      "a run was lost and may have been applied: give writes a request ID to have "
                      "them tried again safely; " +
                          why.message());
}

void MapMachine::Distribute(std::uint8_t level, Routing& routing, Output& out) {
  // What is queued but not sent goes the same way: the table may have grown or moved.
  for (const auto& [shard, queue] : queues_) {
    for (const auto& [bucket, epoch] : queue) Again(bucket, level_);
  }
  queues_.clear();
  level_ = level;
  std::vector<BucketId> todo = std::move(again_);
  again_.clear();
  for (const BucketId& coarse : todo) {
    for (std::uint32_t bucket : placement::ExpandBucket(coarse, level, bucket_count_)) {
      const auto owner = routing.Find(RoutingValue(bucket));
      if (!owner) {
        out.ask_owners = ShardUid();
        if (last_.ok()) {
          last_ = Unavailable(Reason::kNoRouteToBucket, "the owner of a bucket is not known");
        }
        Again(bucket, level);
      } else if (!routing.Knows(owner->shard)) {
        out.ask_topology = true;
        last_ = Unavailable(Reason::kNoSuchReplicaset,
                            "shard " + ToHex(owner->shard.value()) + " is not in the topology");
        Again(bucket, level);
      } else {
        queues_[owner->shard].emplace_back(bucket, owner->epoch);
      }
    }
  }
}

void MapMachine::Pump(SteadyTime now, Routing& routing, Output& out) {
  std::set<ShardUid> busy;
  for (const auto& [ticket, run] : out_) busy.insert(run.shard);
  for (auto it = queues_.begin(); it != queues_.end();) {
    auto& [shard, queue] = *it;
    if (busy.contains(shard)) {
      ++it;
      continue;
    }
    const auto leader = routing.Leader(shard);
    if (!leader) {
      out.ask_replicas.push_back(shard);
      if (last_.ok()) last_ = Unavailable(Reason::kMissingMaster, "no leader of a shard is known");
      for (const auto& [bucket, epoch] : queue) Again(bucket, level_);
      it = queues_.erase(it);
      continue;
    }
    const std::size_t count = std::min(queue.size(), options_.run_buckets);
    const std::size_t keep = queue.size() - count;
    Run run{*leader, shard, {}, deadline_, ++tickets_};
    run.message.set_level(level_);
    run.message.set_function(request_.function());
    run.message.set_args(request_.args());
    run.message.set_write(request_.write());
    run.message.set_client(request_.request().client());
    run.message.set_sequence(request_.request().sequence());
    if (safe()) {
      run.until = std::min(deadline_, now + std::max(options_.run_try, (deadline_ - now) / 3));
    }
    Out sent{shard, *leader, level_, {}, run.until, false};
    for (std::size_t i = keep; i < queue.size(); ++i) {
      v1::BucketEpoch& named = *run.message.add_buckets();
      named.set_bucket(queue[i].first);
      named.set_epoch(queue[i].second.value());
      sent.buckets.emplace(queue[i].first, queue[i].second);
    }
    queue.resize(keep);
    out_.emplace(run.ticket, std::move(sent));
    out.runs.push_back(std::move(run));
    it = queue.empty() ? queues_.erase(it) : std::next(it);
  }
}

MapMachine::Output MapMachine::Proceed(SteadyTime now, std::uint8_t level, bool distribute,
                                       Routing& routing, Random& random) {
  Output out;
  const bool over = now >= deadline_;
  if (bytes_ > options_.result_bytes) {
    last_ = ResourceExhausted(
        fmt::format("the results are over {} bytes: name fewer buckets", options_.result_bytes),
        Reason::kTooLarge);
  }
  if (over || bytes_ > options_.result_bytes) {
    out.finished = Result(now);
    return out;
  }
  if (distribute) Distribute(level, routing, out);
  Pump(now, routing, out);
  if (!again_.empty() && (distribute || again_at_ <= now)) {
    again_at_ = now + backoff_.Next(random);
  }
  if (again_.empty() && queues_.empty() && out_.empty()) out.finished = Result(now);
  return out;
}

v1::MapCallResponse MapMachine::Result(SteadyTime now) {
  std::uint64_t missing = lost_ + again_.size();
  for (const auto& [shard, queue] : queues_) missing += queue.size();
  for (const auto& [ticket, run] : out_) missing += run.buckets.size();
  if (missing != 0) {
    // Buckets of a run that is still out may have been run.
    if (request_.write() && (lost_ != 0 || !out_.empty())) {
      last_ = Unavailable(
          Reason::kOutcomeUnknown,
          "of some buckets it is not known whether the function ran; the last: " + last_.message());
    } else if (last_.ok()) {
      last_ = DeadlineExceeded("the deadline passed");
    }
    const Code code = now >= deadline_ && last_.reason() != Reason::kOutcomeUnknown
                          ? Code::kDeadlineExceeded
                          : last_.code();
    *response_.mutable_status() = ToProto(Status(
        code, last_.reason(), fmt::format("{} buckets have no result; ", missing) + last_.message(),
        last_.hint()));
    if (!request_.partial()) response_.clear_results();
  }
  response_.set_missing(missing);
  return std::move(response_);
}

MapMachine::Output MapMachine::Start(SteadyTime now, std::uint8_t level, Routing& routing,
                                     Random& random) {
  return Proceed(now, level, true, routing, random);
}

std::optional<Owner> MapMachine::Asked(std::uint64_t ticket, BucketId bucket) const {
  const auto it = out_.find(ticket);
  if (it == out_.end() || bucket.level < it->second.level) return std::nullopt;
  const Out& run = it->second;
  const auto named = run.buckets.find(
      static_cast<std::uint32_t>(bucket.number % placement::Modulus(bucket_count_, run.level)));
  if (named == run.buckets.end()) return std::nullopt;
  return Owner{run.shard, named->second};
}

MapMachine::Output MapMachine::OnReply(SteadyTime now, std::uint64_t ticket,
                                       const v1::MapRunReply& reply, std::uint8_t level, bool news,
                                       Routing& routing, Random& random) {
  const auto it = out_.find(ticket);
  if (it == out_.end()) return {};
  const Out run = std::move(it->second);
  out_.erase(it);
  const Status status = FromProto(reply.status());
  const auto at = static_cast<std::uint8_t>(std::max<std::uint32_t>(reply.level(), run.level));
  std::set<std::uint32_t> open;
  for (const auto& [bucket, epoch] : run.buckets) {
    const auto parts = placement::ExpandBucket({run.level, bucket}, at, bucket_count_);
    open.insert(parts.begin(), parts.end());
  }
  const std::size_t asked = open.size();
  for (const v1::BucketResult& result : reply.results()) {
    if (open.erase(result.bucket()) == 0) continue;  // was not named, or has a result already
    const Status one = FromProto(result.status());
    const Verdict verdict = Judge(one);
    if (verdict == Verdict::kFinal || (verdict == Verdict::kUnknown && !safe())) {
      Record(result.bucket(), at, run.shard, result.status(), result.result());
    } else {
      last_ = one;
      Again(result.bucket(), at);
    }
  }
  const Verdict verdict = Judge(status);
  bool contradicted = false;
  if (status.ok()) {
    for (const v1::BucketResult& rest : reply.rest()) {
      if (!open.contains(rest.bucket())) continue;
      last_ = FromProto(rest.status());
      contradicted = contradicted || Judge(last_) == Verdict::kReroute;
    }
    for (std::uint32_t bucket : open) Again(bucket, at);
  } else if (verdict == Verdict::kUnknown && !safe()) {
    lost_ += open.size();
    last_ = status;
  } else if (verdict == Verdict::kFinal) {
    for (std::uint32_t bucket : open) Record(bucket, at, run.shard, reply.status(), {});
  } else {
    last_ = status;
    for (std::uint32_t bucket : open) Again(bucket, at);
  }
  if (again_.empty()) backoff_.Reset();
  // What was left out for want of room, or is known to be elsewhere, is asked for at once.
  const bool at_once = news || (reply.more() && open.size() < asked);
  Output out = Proceed(now, level, at_once, routing, random);
  if (verdict == Verdict::kNotLeader) out.ask_replicas.push_back(run.shard);
  if (verdict == Verdict::kTopology) out.ask_topology = true;
  if (contradicted && !news) out.ask_owners = run.shard;
  return out;
}

MapMachine::Output MapMachine::OnLost(SteadyTime now, std::uint64_t ticket, Loss why,
                                      std::uint8_t level, Routing& routing, Random& random) {
  const auto it = out_.find(ticket);
  if (it == out_.end()) return {};
  const Out run = std::move(it->second);
  out_.erase(it);
  Lose(run, Unavailable(Reason::kUnreachableReplicaset, run.to + std::string(DescribeLoss(why))));
  return Proceed(now, level, false, routing, random);
}

MapMachine::Output MapMachine::OnNotSent(SteadyTime now, std::uint64_t ticket, std::uint8_t level,
                                         Routing& routing, Random& random) {
  const auto it = out_.find(ticket);
  if (it == out_.end()) return {};
  const Out run = std::move(it->second);
  out_.erase(it);
  last_ = Unavailable(Reason::kUnreachableReplicaset, run.to + " cannot be reached now");
  for (const auto& [bucket, epoch] : run.buckets) Again(bucket, run.level);
  return Proceed(now, level, false, routing, random);
}

bool MapMachine::OnLeader(SteadyTime now, ShardUid shard, const NodeName& leader) {
  bool changed = false;
  for (auto& [ticket, run] : out_) {
    if (run.shard != shard || run.to == leader || run.deposed) continue;
    run.deposed = true;
    run.until = std::min(run.until, now + options_.deposed_grace);
    changed = true;
  }
  return changed;
}

MapMachine::Output MapMachine::OnWake(SteadyTime now, std::uint8_t level, Routing& routing,
                                      Random& random) {
  if (now < deadline_) {
    std::vector<std::uint64_t> silent;
    for (const auto& [ticket, run] : out_) {
      if (run.until <= now) silent.push_back(ticket);
    }
    for (std::uint64_t ticket : silent) {
      const Out run = std::move(out_.at(ticket));
      out_.erase(ticket);
      const Loss why = run.deposed ? Loss::kDeposed : Loss::kSilent;
      Lose(run,
           Unavailable(Reason::kUnreachableReplicaset, run.to + std::string(DescribeLoss(why))));
    }
  }
  return Proceed(now, level, !again_.empty() && again_at_ <= now, routing, random);
}

SteadyTime MapMachine::wake() const {
  SteadyTime when = deadline_;
  if (!again_.empty()) when = std::min(when, again_at_);
  for (const auto& [ticket, run] : out_) when = std::min(when, run.until);
  return when;
}

}  // namespace etalon::router
