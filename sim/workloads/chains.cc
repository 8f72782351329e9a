#include "sim/workloads/chains.h"

#include <map>
#include <utility>

#include "proto/wire.h"

namespace etalon::sim {

namespace {

constexpr char kMark[] = "-mark";
bool HasMark(std::uint64_t number) { return number % 2 == 1; }

bool Answered(const v1::ClientResponse& response) {
  return response.status().code() == 0 && response.call().status().code() == 0;
}

// The number in the record that a `get` found; 0: there is none.
std::optional<std::uint64_t> NumberIn(const v1::ClientResponse& response) {
  v1::GetResult result;
  if (!Answered(response) || !result.ParseFromString(response.call().result())) return std::nullopt;
  return result.found() ? std::stoull(result.value()) : 0;
}

v1::GetArgs GetArgs(const char* space, const std::string& key) {
  v1::GetArgs args;
  args.set_space(space);
  args.set_key(key);
  return args;
}

}  // namespace

Chains::Chains(Cluster& cluster, Options options) : cluster_(cluster), options_(options) {
  for (int i = 0; i < options_.keys; ++i) {
    Key key;
    key.name = "key-" + std::to_string(i);
    keys_.push_back(std::move(key));
  }
}

void Chains::Start() {
  stopping_ = false;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    Later(i, &Chains::Next);
    for (int r = 0; r < options_.readers; ++r) Later(i, &Chains::NextReader);
  }
}

void Chains::Later(std::size_t i, void (Chains::*work)(std::size_t)) {
  if (stopping_) return;
  Random& random = cluster_.world().random();
  cluster_.world().After(random.Between(Duration::zero(), options_.pause), [this, i, work] {
    if (!stopping_) (this->*work)(i);
  });
}

// The number comes first, so that it can be read back; the rest makes the record as long as wished.
std::string Chains::ValueOf(std::uint64_t number) const {
  std::string value = std::to_string(number) + ".";
  while (value.size() < options_.value_bytes)
    value.push_back(static_cast<char>('a' + value.size() % 26));
  return value;
}

v1::ClientRequest Chains::Request(const Key& key, const std::string& function,
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

v1::ClientRequest Chains::GetRequest(const Key& key, const char* space) const {
  return Request(key, "get", GetArgs(space, key.name).SerializeAsString());
}

const char* Chains::AnySpace() { return cluster_.world().random().Chance(1, 2) ? "other" : "rows"; }

void Chains::FailKey(const Key& key, const std::string& what) { Fail(key.name + ": " + what); }

void Chains::Next(std::size_t i) {
  // After an unknown outcome only a read tells where the chain stands; now and then one checks a
  // certain one.
  if (!keys_[i].certain || cluster_.world().random().Chance(1, 4)) {
    Look(i);
  } else {
    Write(i);
  }
}

void Chains::Write(std::size_t i) {
  Key& key = keys_[i];
  key.attempted = std::max(key.attempted, key.acked) + 1;
  const std::uint64_t number = key.attempted;
  v1::TxnArgs txn;
  v1::Condition& condition = *txn.add_conditions();
  condition.set_space("rows");
  condition.set_key(key.name);
  if (key.acked == 0) {
    condition.set_kind(v1::Condition::ABSENT);
  } else {
    condition.set_kind(v1::Condition::EQUALS);
    condition.set_value(ValueOf(key.acked));
  }
  for (const char* space : {"rows", "other"}) {
    v1::Mutation& mutation = *txn.add_mutations();
    mutation.set_space(space);
    mutation.set_key(key.name);
    mutation.set_put(ValueOf(number));
  }
  v1::Mutation& mark = *txn.add_mutations();
  mark.set_space("other");
  mark.set_key(key.name + kMark);
  if (HasMark(number)) {
    mark.set_put("odd");
  } else {
    mark.set_delete_(true);
  }
  v1::ClientRequest request = Request(key, "txn", txn.SerializeAsString());
  request.mutable_call()->mutable_request()->set_client(0x77);
  request.mutable_call()->mutable_request()->set_sequence(++sequence_);
  ++under_way_;
  cluster_.Client(
      cluster_.AnyRouter(), std::move(request),
      [this, i, number](const v1::ClientResponse& response) {
        --under_way_;
        Key& k = keys_[i];
        const Status status =
            FromProto(response.status().code() != 0 ? response.status() : response.call().status());
        if (status.ok()) {
          k.acked = number;
          k.seen = std::max(k.seen, number);
          k.open = false;
          ++acknowledged_;
        } else if (status.reason() == Reason::kConditionFailed) {
          k.certain = false;
          if (!k.open) {
            FailKey(k, "write " + std::to_string(number) + " expected " + std::to_string(k.acked) +
                           ": it was applied twice, or an acknowledged write was lost");
          }
        } else {
          k.certain = false;
          k.open = true;
          ++unknown_;
        }
        cluster_.world().Mix(number);
        Later(i, &Chains::Next);
      });
}

// The writer itself reads: after that it knows what the chain holds.
void Chains::Look(std::size_t i) {
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), GetRequest(keys_[i], AnySpace()),
                  [this, i](const v1::ClientResponse& response) {
                    --under_way_;
                    if (const auto number = NumberIn(response)) Found(keys_[i], *number);
                    Later(i, &Chains::Next);
                  });
}

void Chains::Found(Key& key, std::uint64_t number) {
  ++reads_;
  if (number < key.acked) {
    FailKey(key, "read " + std::to_string(number) + " after " + std::to_string(key.acked) +
                     " was acknowledged");
  } else if (number > key.attempted) {
    FailKey(key, "read " + std::to_string(number) + ", which nobody wrote");
  } else if (!key.open && number != key.acked) {
    FailKey(key, "read " + std::to_string(number) + " instead of " + std::to_string(key.acked));
  }
  if (number > key.acked) key.open = false;
  key.acked = number;
  key.seen = std::max(key.seen, number);
  key.certain = true;
  cluster_.world().Mix(number);
}

void Chains::NextReader(std::size_t i) {
  if (cluster_.world().random().Chance(1, 4)) {
    Scan(i);
  } else {
    Read(i);
  }
}

void Chains::Saw(Key& key, std::uint64_t floor, std::uint64_t number) {
  ++reads_;
  if (number < floor) {
    FailKey(key, "a reader is told " + std::to_string(number) + " after somebody was told " +
                     std::to_string(floor));
  } else if (number > key.attempted) {
    FailKey(key, "a reader is told " + std::to_string(number) + ", which nobody wrote");
  }
  key.seen = std::max(key.seen, number);
  cluster_.world().Mix(number);
}

void Chains::Read(std::size_t i) {
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), GetRequest(keys_[i], AnySpace()),
                  [this, i, floor = keys_[i].seen](const v1::ClientResponse& response) {
                    --under_way_;
                    if (const auto number = NumberIn(response)) Saw(keys_[i], floor, *number);
                    Later(i, &Chains::NextReader);
                  });
}

std::optional<std::uint64_t> Chains::NumberOf(const Key& key, const v1::ScanResult& found) {
  std::map<std::string, std::string> values;  // by space and key
  for (const v1::Record& record : found.records())
    values[record.space() + "/" + record.key()] = record.value();
  if (values.empty()) return 0;
  const auto row = values.find("rows/" + key.name);
  const auto other = values.find("other/" + key.name);
  if (row == values.end() || other == values.end() || row->second != other->second)
    return std::nullopt;
  const std::uint64_t number = std::stoull(row->second);
  const bool marked = values.contains("other/" + key.name + kMark);
  if (marked != HasMark(number) || values.size() != (marked ? 3u : 2u)) return std::nullopt;
  return number;
}

// All records, in one page of one snapshot.
void Chains::Scan(std::size_t i) {
  v1::ScanArgs args;
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), Request(keys_[i], "scan", args.SerializeAsString()),
                  [this, i, floor = keys_[i].seen](const v1::ClientResponse& response) {
                    --under_way_;
                    v1::ScanResult found;
                    if (Answered(response) && found.ParseFromString(response.call().result())) {
                      if (const auto number = NumberOf(keys_[i], found)) {
                        Saw(keys_[i], floor, *number);
                      } else {
                        FailKey(keys_[i], "a scan found records of different transactions");
                      }
                    }
                    Later(i, &Chains::NextReader);
                  });
}

bool Chains::Verify(Duration limit) {
  stopping_ = true;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    for (const char* space : {"rows", "other"}) Compare(i, space);
    Scan(i);
  }
  return cluster_.world().RunUntil([&] { return idle(); }, limit) && failures().empty();
}

// The record as it is in the end. Whoever gets no answer at all asks again.
void Chains::Compare(std::size_t i, const char* space) {
  ++under_way_;
  cluster_.Client(cluster_.AnyRouter(), GetRequest(keys_[i], space),
                  [this, i, space](const v1::ClientResponse& response) {
                    --under_way_;
                    if (response.status().code() != 0) return Compare(i, space);
                    Key& key = keys_[i];
                    const auto number = NumberIn(response);
                    if (!number) {
                      return FailKey(key, "cannot be read at the end: " +
                                              FromProto(response.call().status()).ToString());
                    }
                    const bool good = key.open ? *number >= key.acked && *number <= key.attempted
                                               : *number == key.acked;
                    if (!good) {
                      FailKey(key, "holds " + std::to_string(*number) +
                                       " at the end, acknowledged is " + std::to_string(key.acked));
                    }
                  });
}

}  // namespace etalon::sim
