#include "engine/bucket/calls.h"

#include <algorithm>
#include <utility>

#include "etalon/v1/log.pb.h"

namespace etalon::bucket {
namespace {

Status TooLarge(std::string_view what, std::size_t bytes, std::size_t limit) {
  return InvalidArgument(std::string(what) + " of " + std::to_string(bytes) +
                             " bytes is over the limit of " + std::to_string(limit),
                         Reason::kTooLarge);
}

// Builds the Txn of one call.
class Compiler {
 public:
  Compiler(const v1::Call& call, const ShardState& state)
      : call_(call), state_(state), bucket_(state.BucketAt(RoutingValue(call.routing_value()))) {}

  Result<Txn> Run() {
    const std::string& function = call_.function();
    if (function == "put") {
      ETALON_RETURN_IF_ERROR(Put());
    } else if (function == "insert") {
      txn_.failure = Reason::kKeyExists;
      ETALON_RETURN_IF_ERROR(Put(Txn::Test::kAbsent));
    } else if (function == "update") {
      txn_.failure = Reason::kKeyNotFound;
      ETALON_RETURN_IF_ERROR(Put(Txn::Test::kExists));
    } else if (function == "delete") {
      ETALON_RETURN_IF_ERROR(Delete());
    } else if (function == "txn") {
      ETALON_RETURN_IF_ERROR(Transaction());
    } else {
      return Status(Code::kUnimplemented, Reason::kUnknownFunction,
                    "\"" + function.substr(0, 64) +
                        "\" is no function that writes; there are put, insert, update, delete and "
                        "txn");
    }
    return std::move(txn_);
  }

 private:
  template <class Args>
  Status Parse(Args* args) {
    if (args->ParseFromString(call_.args())) return OkStatus();
    return InvalidArgument("the arguments of " + call_.function() + " cannot be parsed");
  }

  Status Put(std::optional<Txn::Test> test = std::nullopt) {
    v1::PutArgs args;
    ETALON_RETURN_IF_ERROR(Parse(&args));
    if (test) ETALON_RETURN_IF_ERROR(AddCondition(args.space(), args.key(), {}, *test, {}));
    return AddMutation(args.space(), args.key(), {}, std::move(*args.mutable_value()));
  }

  Status Delete() {
    v1::DeleteArgs args;
    ETALON_RETURN_IF_ERROR(Parse(&args));
    return AddMutation(args.space(), args.key(), {}, std::nullopt);
  }

  Status Transaction() {
    v1::TxnArgs args;
    ETALON_RETURN_IF_ERROR(Parse(&args));
    for (v1::Condition& condition : *args.mutable_conditions()) {
      Txn::Test test = Txn::Test::kEquals;
      if (condition.kind() == v1::Condition::EXISTS) {
        test = Txn::Test::kExists;
      } else if (condition.kind() == v1::Condition::ABSENT) {
        test = Txn::Test::kAbsent;
      } else if (condition.kind() != v1::Condition::EQUALS) {
        return InvalidArgument("a condition is EXISTS, ABSENT or EQUALS");
      }
      ETALON_RETURN_IF_ERROR(AddCondition(condition.space(), condition.key(),
                                          ValueNamedBy(condition), test,
                                          std::move(*condition.mutable_value())));
    }
    for (v1::Mutation& mutation : *args.mutable_mutations()) {
      std::optional<std::string> put;
      if (!mutation.delete_()) {
        put = std::move(*mutation.mutable_put());
      } else if (!mutation.put().empty()) {
        return InvalidArgument("a mutation either puts or deletes");
      }
      ETALON_RETURN_IF_ERROR(
          AddMutation(mutation.space(), mutation.key(), ValueNamedBy(mutation), std::move(put)));
    }
    return OkStatus();
  }

  template <class Item>
  static std::optional<std::uint64_t> ValueNamedBy(const Item& item) {
    if (!item.has_routing_value()) return std::nullopt;
    return item.routing_value();
  }

  // The store key, after all checks of one condition or mutation.
  Result<std::string> Place(const std::string& space, const std::string& key,
                            std::optional<std::uint64_t> routing_value, std::size_t value_bytes) {
    if (key.size() > kMaxKeyBytes) return TooLarge("a key", key.size(), kMaxKeyBytes);
    if (value_bytes > kMaxValueBytes) return TooLarge("a value", value_bytes, kMaxValueBytes);
    bytes_ += key.size() + value_bytes + kTxnItemBytes;
    if (bytes_ > kMaxTxnBytes) return TooLarge("a transaction", bytes_, kMaxTxnBytes);
    const RoutingValue at(routing_value.value_or(call_.routing_value()));
    if (state_.BucketAt(at) != bucket_) {
      return InvalidArgument("a transaction is of one bucket; routing value " +
                             std::to_string(at.value()) + " is of another one than the call's");
    }
    ETALON_ASSIGN_OR_RETURN(const SpaceId number, state_.FindSpace(space));
    return store::DataKey(at, state_.bucket_count(), number, key);
  }

  Status AddCondition(const std::string& space, const std::string& key,
                      std::optional<std::uint64_t> routing_value, Txn::Test test,
                      std::string value) {
    ETALON_ASSIGN_OR_RETURN(std::string at, Place(space, key, routing_value, value.size()));
    txn_.conditions.push_back({std::move(at), test, std::move(value)});
    return OkStatus();
  }

  Status AddMutation(const std::string& space, const std::string& key,
                     std::optional<std::uint64_t> routing_value, std::optional<std::string> put) {
    ETALON_ASSIGN_OR_RETURN(std::string at,
                            Place(space, key, routing_value, put ? put->size() : 0));
    txn_.mutations.push_back({std::move(at), std::move(put)});
    return OkStatus();
  }

  const v1::Call& call_;
  const ShardState& state_;
  const std::uint32_t bucket_;
  std::size_t bytes_ = 0;
  Txn txn_;
};

}  // namespace

Result<Txn> Compile(const v1::Call& call, const ShardState& state) {
  return Compiler(call, state).Run();
}

Status ConditionFailure(Reason failure, std::uint64_t number) {
  if (failure == Reason::kKeyExists) {
    return Status(Code::kAlreadyExists, failure, "the key exists already");
  }
  if (failure == Reason::kKeyNotFound) return NotFound("there is no such key", failure);
  return FailedPrecondition(failure, "condition " + std::to_string(number) + " did not hold",
                            {.number = number});
}

Result<std::optional<std::string>> Calls::Read(const std::string& key) {
  if (const store::Batch::Op* op = changes_.Find(key)) {
    if (op->kind == store::Batch::Kind::kDelete) return std::optional<std::string>();
    return std::optional<std::string>(op->value);
  }
  return store_.Get(key);
}

Result<std::optional<std::size_t>> Calls::FirstFailed(const Txn& txn) {
  for (std::size_t i = 0; i < txn.conditions.size(); ++i) {
    const Txn::Condition& condition = txn.conditions[i];
    ETALON_ASSIGN_OR_RETURN(const std::optional<std::string> value, Read(condition.key));
    bool holds = false;
    switch (condition.test) {
      case Txn::Test::kExists:
        holds = value.has_value();
        break;
      case Txn::Test::kAbsent:
        holds = !value.has_value();
        break;
      case Txn::Test::kEquals:
        holds = value == condition.value;
        break;
    }
    if (!holds) return std::optional<std::size_t>(i);
  }
  return std::optional<std::size_t>();
}

Result<CallOutcome> Calls::Replay(const RequestKey& key) {
  ETALON_ASSIGN_OR_RETURN(const std::optional<std::string> value, Read(StoreKey(key)));
  std::string_view bytes;
  v1::RequestResult result;
  if (!value || !ParseRequestValue(*value, &bytes).ok() ||
      !result.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return DataLoss("the result of a request ID is damaged");
  }
  CallOutcome outcome;
  const auto reason = static_cast<Reason>(result.reason());
  if (reason != Reason::kNone) outcome.status = ConditionFailure(reason, result.number());
  outcome.result = std::move(*result.mutable_result());
  return outcome;
}

void Calls::TellKey(std::uint32_t bucket, const std::string& key) {
  changes_.Tell({.kind = Event::Kind::kDataKey, .bucket = bucket, .text = key});
}

Result<CallOutcome> Calls::Apply(std::string_view bytes) {
  if (!call_.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return CallOutcome{InvalidArgument("a call in the log cannot be parsed"), {}};
  }
  const RoutingValue value(call_.routing_value());
  if (Status refused = state_.CheckLevel(call_); !refused.ok()) {
    return CallOutcome{std::move(refused), {}};
  }
  if (Status refused = state_.CheckWrite(value, Epoch(call_.epoch())); !refused.ok()) {
    return CallOutcome{std::move(refused), {}};
  }
  const std::optional<RequestKey> request = KeyOfRequest(call_, state_.bucket_count());
  if (request && requests_.IsLive(*request, state_.log_time())) return Replay(*request);

  Result<Txn> compiled = Compile(call_, state_);
  if (!compiled.ok()) return CallOutcome{compiled.status(), {}};
  Txn& txn = compiled.value();
  ETALON_ASSIGN_OR_RETURN(const std::optional<std::size_t> failed, FirstFailed(txn));

  const std::uint32_t bucket = state_.BucketAt(value);
  const bool captured = static_cast<bool>(state_.FindRow(bucket)->transfer);
  CallOutcome outcome;  // WriteResult and TxnResult are empty messages
  if (failed) {
    outcome.status = ConditionFailure(txn.failure, *failed);
  } else {
    for (Txn::Mutation& mutation : txn.mutations) {
      if (captured) TellKey(bucket, mutation.key);
      if (mutation.put) {
        changes_.batch().Put(std::move(mutation.key), std::move(*mutation.put));
      } else {
        changes_.batch().Delete(std::move(mutation.key));
      }
    }
  }
  if (request) {
    v1::RequestResult result;
    result.set_reason(static_cast<v1::Reason>(outcome.status.reason()));
    if (failed && txn.failure == Reason::kConditionFailed) result.set_number(*failed);
    result.set_result(outcome.result);
    const std::uint64_t asked = call_.request().ttl_millis();
    const std::uint64_t life = asked == 0 ? kDefaultLifeMillis : std::min(asked, kMaxLifeMillis);
    requests_.Put(*request, EndOfLife(state_.log_time(), life), result.SerializeAsString(),
                  changes_);
    if (captured) TellKey(bucket, StoreKey(*request));
  }
  return outcome;
}

}  // namespace etalon::bucket
