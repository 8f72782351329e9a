#include "sim/workloads/maps.h"

#include <algorithm>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::sim {

namespace {

constexpr char kPrefix[] = "round-";
constexpr std::uint64_t kClient = 0x3a9;
constexpr std::uint32_t kTimeoutMillis = 10'000;

}  // namespace

void Maps::Start() {
  Later([this] { Write(1); });
  Later([this] { Read(); });
}

void Maps::Later(std::function<void()> next) {
  SimWorld& world = cluster_.world();
  world.After(world.random().Between(Duration::zero(), options_.pause),
              [this, next = std::move(next)] {
                if (!stopping_) next();
              });
}

void Maps::Call(v1::ClientRequest request, const Done& done) {
  ++under_way_;
  request.mutable_map_call()->set_timeout_millis(kTimeoutMillis);
  cluster_.Client(cluster_.AnyRouter(), std::move(request),
                  [this, done](const v1::ClientResponse& response) {
                    --under_way_;
                    v1::MapCallResponse map = response.map_call();
                    if (response.status().code() == 0) return done(&map);
                    if (response.status().reason() == v1::REASON_OUTCOME_UNKNOWN) {
                      return done(nullptr);  // as a simulated client says it
                    }
                    *map.mutable_status() = response.status();
                    done(&map);
                  });
}

void Maps::Write(std::uint64_t round) {
  v1::PutArgs args;
  args.set_space("other");
  args.set_key(kPrefix + std::to_string(round));
  args.set_value("v");
  v1::ClientRequest request;
  v1::MapCallRequest& map = *request.mutable_map_call();
  map.set_function("insert");
  map.set_args(args.SerializeAsString());
  map.set_write(true);
  const bool safe = !options_.nothing_fails || round % 2 == 0;
  if (safe) {
    map.mutable_request()->set_client(kClient);
    map.mutable_request()->set_sequence(round);
    map.mutable_request()->set_ttl_millis(600'000);
  }
  open_.insert(round);
  Call(request, [this, round, safe](const v1::MapCallResponse* response) {
    cluster_.world().Mix(round);
    Written(round, safe, response);
  });
}

void Maps::Written(std::uint64_t round, bool safe, const v1::MapCallResponse* response) {
  const std::string name = "write " + std::to_string(round);
  const auto next = [this, round] { Later([this, round] { Write(round + 1); }); };
  const Status status = response == nullptr ? Unavailable(Reason::kOutcomeUnknown, "silence")
                                            : FromProto(response->status());
  if (!status.ok()) {
    ++unknown_;
    if (options_.nothing_fails && response != nullptr) Fail(name + ": " + status.ToString());
    if (!safe) return next();
    // The same request again: what was run is not run once more.
    return Later([this, round] { Write(round); });
  }
  if (const std::string wrong = CheckTiling(*response); !wrong.empty()) return Fail(wrong);
  std::set<BucketId> buckets;
  for (const v1::MapResult& r : response->results()) {
    const BucketId bucket{static_cast<std::uint8_t>(r.level()), r.bucket()};
    if (r.status().code() != 0)
      Fail(name + " of bucket " + ToString(bucket) + ": " + FromProto(r.status()).ToString());
    buckets.insert(bucket);
  }
  open_.erase(round);
  written_[round] = std::move(buckets);
  ++acknowledged_;
  next();
}

v1::ClientRequest Maps::ScanRequest() const {
  v1::ScanArgs args;
  args.set_space("other");
  args.set_whole_bucket(true);
  args.set_limit(100'000);
  v1::ClientRequest request;
  request.mutable_map_call()->set_function("scan");
  request.mutable_map_call()->set_args(args.SerializeAsString());
  return request;
}

void Maps::Read() {
  Call(ScanRequest(), [this, before = written_](const v1::MapCallResponse* response) {
    if (response != nullptr && response->status().code() == 0) {
      ++reads_;
      std::string wrong = CheckTiling(*response);
      if (wrong.empty()) wrong = CheckScan(*response, before, false);
      if (!wrong.empty()) Fail(wrong);
    } else if (options_.nothing_fails && response != nullptr) {
      Fail("read: " + FromProto(response->status()).ToString());
    }
    Later([this] { Read(); });
  });
}

std::string Maps::CheckTiling(const v1::MapCallResponse& response) {
  const std::uint32_t count = cluster_.options().bucket_count;
  std::set<std::uint32_t> levels;
  for (const v1::MapResult& r : response.results()) levels.insert(r.level());
  if (levels.empty()) return "an answer without results";
  if (levels.size() > 1) ++mixed_;
  const auto finest = static_cast<std::uint8_t>(*levels.rbegin());
  std::set<std::uint32_t> seen;
  for (const v1::MapResult& r : response.results()) {
    const BucketId bucket{static_cast<std::uint8_t>(r.level()), r.bucket()};
    for (std::uint32_t part : placement::ExpandBucket(bucket, finest, count)) {
      if (!seen.insert(part).second) return ToString(bucket) + " has two results";
    }
  }
  if (seen.size() != placement::Modulus(count, finest)) return "a bucket has no result";
  return "";
}

std::string Maps::CheckScan(const v1::MapCallResponse& response, const Rounds& acknowledged,
                            bool exactly) {
  const std::uint32_t count = cluster_.options().bucket_count;
  std::set<std::pair<std::uint64_t, std::string>> records;
  for (const v1::MapResult& r : response.results()) {
    v1::ScanResult page;
    if (r.status().code() != 0 || !page.ParseFromString(r.result()) || !page.cursor().empty()) {
      return "a scan failed: " + FromProto(r.status()).ToString();
    }
    const BucketId bucket{static_cast<std::uint8_t>(r.level()), r.bucket()};
    for (const v1::Record& record : page.records()) {
      const RoutingValue value(record.routing_value());
      if (placement::BucketOf(value, count, bucket.level) != bucket) {
        return record.key() + " is in the result of bucket " + ToString(bucket) +
               ", where it does not belong";
      }
      if (!records.emplace(value.value(), record.key()).second) {
        return record.key() + " is in two results";
      }
    }
  }
  for (const auto& [round, buckets] : acknowledged) {
    for (const BucketId& bucket : buckets) {
      if (records.erase({bucket.number, kPrefix + std::to_string(round)}) == 0) {
        return "round " + std::to_string(round) + " of bucket " + ToString(bucket) +
               " was acknowledged and is missing";
      }
    }
  }
  if (!exactly) return "";
  for (const auto& [value, key] : records) {
    if (key.rfind(kPrefix, 0) != 0) continue;  // of another workload
    const std::uint64_t round = std::stoull(key.substr(sizeof(kPrefix) - 1));
    if (!open_.contains(round) && (options_.nothing_fails || !IsLaterHalf(round, value))) {
      return key + " ran on bucket " + std::to_string(value) + ", which has no result of it";
    }
  }
  return "";
}

// A second try of the round, whose answer was not needed any more, ran on a half that came into
// being after the bucket as a whole had been run. A request ID counts for each bucket.
bool Maps::IsLaterHalf(std::uint64_t round, std::uint64_t value) const {
  const std::uint32_t count = cluster_.options().bucket_count;
  const auto& buckets = written_.at(round);
  return std::any_of(buckets.begin(), buckets.end(), [&](const BucketId& bucket) {
    return value != bucket.number &&
           placement::BucketOf(RoutingValue(value), count, bucket.level) == bucket;
  });
}

bool Maps::Verify(Duration limit) {
  const SteadyTime end = cluster_.world().now() + limit;
  stopping_ = true;
  for (;;) {
    // Read whole: a stream to a router may break now and then.
    const auto answer =
        cluster_.AskRouter(cluster_.AnyRouter(), ScanRequest(), end - cluster_.world().now());
    if (!answer) return false;
    if (answer->status().code() != 0) continue;
    const v1::MapCallResponse& map = answer->map_call();
    std::string wrong = map.status().code() == 0 ? "" : FromProto(map.status()).ToString();
    if (wrong.empty()) wrong = CheckTiling(map);
    if (wrong.empty()) wrong = CheckScan(map, written_, true);
    if (!wrong.empty()) Fail("at the end: " + wrong);
    return true;
  }
}

}  // namespace etalon::sim
