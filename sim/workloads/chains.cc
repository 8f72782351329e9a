#include "sim/workloads/chains.h"

#include <utility>

#include "proto/wire.h"

namespace etalon::sim {

Chains::Chains(Cluster& cluster, Options options) : cluster_(cluster), options_(options) {
  for (int i = 0; i < options_.keys; ++i) {
    Key key;
    key.name = "key-" + std::to_string(i);
    keys_.push_back(std::move(key));
  }
}

void Chains::Start() {
  for (std::size_t i = 0; i < keys_.size(); ++i) Later(i);
}

void Chains::Later(std::size_t i) {
  if (stopping_) return;
  Random& random = cluster_.world().random();
  cluster_.world().After(random.Between(Duration::zero(), options_.pause), [this, i] {
    if (!stopping_) Next(i);
  });
}

NodeName Chains::Router() {
  const auto n = static_cast<std::uint64_t>(cluster_.options().routers);
  return Cluster::RouterName(static_cast<int>(cluster_.world().random().Below(n)));
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

void Chains::Fail(const Key& key, const std::string& what) {
  failures_.push_back(key.name + ": " + what);
}

void Chains::Next(std::size_t i) {
  // After an unknown outcome only a read tells where the chain stands; now and then one checks a
  // certain one.
  if (!keys_[i].certain || cluster_.world().random().Chance(1, 4)) {
    Read(i);
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
  // The second record moves with the first one, in the same transaction.
  for (const char* space : {"rows", "other"}) {
    v1::Mutation& mutation = *txn.add_mutations();
    mutation.set_space(space);
    mutation.set_key(key.name);
    mutation.set_put(ValueOf(number));
  }
  v1::ClientRequest request = Request(key, "txn", txn.SerializeAsString());
  request.mutable_call()->mutable_request()->set_client(0x77);
  request.mutable_call()->mutable_request()->set_sequence(++sequence_);
  ++under_way_;
  cluster_.Client(
      Router(), std::move(request), [this, i, number](const v1::ClientResponse& response) {
        --under_way_;
        Key& k = keys_[i];
        const Status status =
            FromProto(response.status().code() != 0 ? response.status() : response.call().status());
        if (status.ok()) {
          k.acked = number;
          ++acknowledged_;
        } else if (status.reason() == Reason::kConditionFailed) {
          Fail(k, "write " + std::to_string(number) + " expected " + std::to_string(k.acked) +
                      ": it was applied twice, or an acknowledged write was lost");
        } else {
          k.certain = false;
          ++unknown_;
        }
        cluster_.world().Mix(number);
        Later(i);
      });
}

void Chains::Read(std::size_t i) {
  Key& key = keys_[i];
  const bool other = cluster_.world().random().Chance(1, 2);
  v1::GetArgs args;
  args.set_space(other ? "other" : "rows");
  args.set_key(key.name);
  ++under_way_;
  cluster_.Client(
      Router(), Request(key, "get", args.SerializeAsString()),
      [this, i](const v1::ClientResponse& response) {
        --under_way_;
        Key& k = keys_[i];
        v1::GetResult result;
        if (response.status().code() == 0 && response.call().status().code() == 0 &&
            result.ParseFromString(response.call().result())) {
          const std::uint64_t number = result.found() ? std::stoull(result.value()) : 0;
          ++reads_;
          if (number < k.acked) {
            Fail(k, "read " + std::to_string(number) + " after " + std::to_string(k.acked) +
                        " was acknowledged");
          } else if (number > k.attempted) {
            Fail(k, "read " + std::to_string(number) + ", which nobody wrote");
          } else if (k.certain && number != k.acked) {
            Fail(k, "read " + std::to_string(number) + " instead of " + std::to_string(k.acked));
          }
          k.acked = number;
          k.certain = true;
          cluster_.world().Mix(number);
        }
        Later(i);
      });
}

bool Chains::Verify(Duration limit) {
  auto left = std::make_shared<std::size_t>(0);
  // An unknown write may still be on its way for as long as its deadline: it was waited for by
  // idle().
  stopping_ = true;
  for (const Key& key : keys_) {
    for (const char* space : {"rows", "other"}) {
      v1::GetArgs args;
      args.set_space(space);
      args.set_key(key.name);
      ++*left;
      cluster_.Client(
          Router(), Request(key, "get", args.SerializeAsString()),
          [this, &key, left](const v1::ClientResponse& response) {
            --*left;
            v1::GetResult result;
            if (response.status().code() != 0 || response.call().status().code() != 0 ||
                !result.ParseFromString(response.call().result())) {
              return Fail(key, "cannot be read at the end: " +
                                   FromProto(response.call().status()).ToString());
            }
            const std::uint64_t number = result.found() ? std::stoull(result.value()) : 0;
            const bool good =
                key.certain ? number == key.acked : number >= key.acked && number <= key.attempted;
            if (!good)
              Fail(key, "holds " + std::to_string(number) + " at the end, acknowledged is " +
                            std::to_string(key.acked));
          });
    }
  }
  return cluster_.world().RunUntil([&] { return *left == 0; }, limit) && failures_.empty();
}

}  // namespace etalon::sim
