#include "sim/workloads/table.h"

#include <algorithm>
#include <utility>

#include "placement/hash.h"
#include "proto/wire.h"

namespace etalon::sim {

namespace {

constexpr std::uint64_t kClient = 0x7ab1e;
constexpr int kLoaders = 64;

Status StatusOf(const v1::ClientResponse& response) {
  return FromProto(response.status().code() != 0 ? response.status() : response.call().status());
}

}  // namespace

Table::Table(Cluster& cluster, Options options)
    : cluster_(cluster), options_(options), busy_(options.keys, false) {
  for (std::uint32_t i = 0; i < options_.keys; ++i) {
    Key key;
    key.name = "k" + std::to_string(i);
    key.routing =
        placement::HashKey(placement::KeyType::kString, placement::HashFunction::kCrc32, key.name)
            .value();
    by_name_[key.name] = i;
    keys_.push_back(std::move(key));
  }
}

v1::ClientRequest Table::Request(const Key& key, const std::string& function,
                                 const std::string& args) const {
  v1::ClientRequest request;
  v1::ClientCall& call = *request.mutable_call();
  call.mutable_target()->set_string_key(key.name);
  call.set_mode(v1::MODE_RW);
  call.set_function(function);
  call.set_args(args);
  call.set_timeout_millis(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count()));
  return request;
}

// What was acknowledged last, or what nobody knows the outcome of: that may come late.
bool Table::Matches(const Key& key, const std::string& value) const {
  const auto is = [&](std::uint64_t n) { return value == key.name + "=" + std::to_string(n); };
  return (key.written != 0 && is(key.written)) ||
         std::any_of(key.unknown.begin(), key.unknown.end(), is);
}

void Table::Write(std::uint32_t key, bool until_done) {
  Key& k = keys_[key];
  const std::uint64_t number = ++k.tried;
  busy_[key] = true;
  v1::PutArgs put;
  put.set_space("rows");
  put.set_key(k.name);
  put.set_value(k.name + "=" + std::to_string(number));
  v1::ClientRequest request = Request(k, "put", put.SerializeAsString());
  request.mutable_call()->mutable_request()->set_client(kClient);
  request.mutable_call()->mutable_request()->set_sequence(++sequence_);
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), std::move(request),
                  [this, key, number, until_done](const v1::ClientResponse& response) {
                    --under_way_;
                    busy_[key] = false;
                    const Status status = StatusOf(response);
                    if (status.ok()) {
                      keys_[key].written = number;
                      ++acknowledged_;
                    } else {
                      keys_[key].unknown.push_back(number);
                      ++unknown_;
                      if (until_done) return Write(key, true);
                    }
                    if (!until_done) NextWriter();
                  });
}

bool Table::Load(Duration limit) {
  SimWorld& world = cluster_.world();
  const SteadyTime end = world.now() + limit;
  for (std::uint32_t next = 0; next < keys(); ++next) {
    Write(next, true);
    if (!world.RunUntil([&] { return under_way_ < kLoaders; }, end - world.now())) return false;
  }
  return world.RunUntil([&] { return idle(); }, end - world.now());
}

void Table::Start() {
  stopping_ = false;
  for (; writers_ < options_.writers; ++writers_) NextWriter();
}

void Table::NextWriter() {
  Random& random = cluster_.world().random();
  cluster_.world().After(random.Between(Duration::zero(), options_.pause), [this] {
    if (stopping_) {
      --writers_;
      return;
    }
    const auto key = static_cast<std::uint32_t>(cluster_.world().random().Below(keys()));
    busy_[key] ? NextWriter() : Write(key, false);
  });
}

bool Table::CompareByScan(Duration limit) {
  v1::ScanArgs scan;
  scan.set_whole_bucket(true);
  scan.set_limit(keys());
  v1::ClientRequest request;
  request.mutable_map_call()->set_function("scan");
  request.mutable_map_call()->set_args(scan.SerializeAsString());
  request.mutable_map_call()->set_timeout_millis(10'000);
  const auto answer = cluster_.AskRouter(cluster_.AnyRouter(), request, limit);
  if (!answer) return false;
  if (!answer->has_map_call() || answer->map_call().status().code() != 0) {
    Fail("the collection cannot be scanned: " + StatusOf(*answer).ToString() + ", " +
         FromProto(answer->map_call().status()).ToString());
    return true;
  }
  std::vector<int> found(keys_.size(), 0);
  for (const v1::MapResult& bucket : answer->map_call().results()) {
    const std::string name = "bucket " + std::to_string(bucket.bucket());
    v1::ScanResult page;
    if (bucket.status().code() != 0 || !page.ParseFromString(bucket.result()) ||
        !page.cursor().empty()) {
      Fail(name + " cannot be scanned: " + FromProto(bucket.status()).ToString());
      return true;
    }
    for (const v1::Record& record : page.records()) {
      const auto it = by_name_.find(record.key());
      if (it == by_name_.end() || !Matches(keys_[it->second], record.value())) {
        Fail(name + " has " + record.key() + " with " + record.value());
        return true;
      }
      ++found[it->second];
    }
  }
  for (std::uint32_t i = 0; i < keys(); ++i) {
    if (found[i] == 1) continue;
    Fail(keys_[i].name + " was found " + std::to_string(found[i]) + " times");
    return true;
  }
  return true;
}

void Table::Read(std::uint32_t key) {
  v1::GetArgs args;
  args.set_space("rows");
  args.set_key(keys_[key].name);
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), Request(keys_[key], "get", args.SerializeAsString()),
                  [this, key](const v1::ClientResponse& response) {
                    --under_way_;
                    ++reads_;
                    if (response.status().code() != 0) return Read(key);
                    const Status status = StatusOf(response);
                    v1::GetResult result;
                    if (!status.ok() || !result.ParseFromString(response.call().result())) {
                      return Fail(keys_[key].name + " cannot be read: " + status.ToString());
                    }
                    if (!Matches(keys_[key], result.value()))
                      Fail(keys_[key].name + " has '" + result.value() + "'");
                  });
}

bool Table::Verify(Duration limit) {
  SimWorld& world = cluster_.world();
  const SteadyTime end = world.now() + limit;
  stopping_ = true;
  if (!CompareByScan(limit)) return false;
  for (std::uint32_t next = 0; next < keys() && failures().empty(); ++next) {
    Read(next);
    if (!world.RunUntil([&] { return under_way_ < kLoaders; }, end - world.now())) return false;
  }
  return world.RunUntil([&] { return idle(); }, end - world.now());
}

}  // namespace etalon::sim
