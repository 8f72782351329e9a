// Calls of applications: how they compile to the one data command, Txn{conditions, mutations}, and
// how that is evaluated at apply (docs/protocols/buckets.md, "Transactions").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "engine/bucket/changes.h"
#include "engine/bucket/request_ids.h"
#include "engine/bucket/shard_state.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "etalon/v1/call.pb.h"

namespace etalon::bucket {

inline constexpr std::size_t kMaxKeyBytes = 4u << 10;
inline constexpr std::size_t kMaxValueBytes = 1u << 20;
inline constexpr std::size_t kMaxTxnBytes = 4u << 20;
// What each condition and mutation counts beside its key and value.
inline constexpr std::size_t kTxnItemBytes = 16;

struct Txn {
  enum class Test : unsigned char { kExists, kAbsent, kEquals };
  struct Condition {
    std::string key;  // of the store
    Test test;
    std::string value;  // kEquals
  };
  struct Mutation {
    std::string key;                 // of the store
    std::optional<std::string> put;  // nullopt: delete
  };
  std::vector<Condition> conditions;
  std::vector<Mutation> mutations;
  Reason failure = Reason::kConditionFailed;  // what a failed condition is called
};

// Errors: UNIMPLEMENTED/UNKNOWN_FUNCTION, INVALID_ARGUMENT/MALFORMED (two buckets, too),
// INVALID_ARGUMENT/TOO_LARGE, NOT_FOUND/UNKNOWN_SPACE.
Result<Txn> Compile(const v1::Call& call, const ShardState& state);

// The status of a write whose condition did not hold. Built from what a request's record keeps, so
// that a retry gets the same words.
Status ConditionFailure(Reason failure, std::uint64_t number);

class Calls {
 public:
  Calls(const ShardState& state, const store::Store& store, Changes& changes, RequestIds& requests)
      : state_(state), store_(store), changes_(changes), requests_(requests) {}

  // Applies one serialized Call. A status means that the store could not be read: this replica must
  // stop.
  Result<CallOutcome> Apply(std::string_view bytes);

 private:
  Result<std::optional<std::string>> Read(const std::string& key);
  Result<CallOutcome> Replay(const RequestKey& key);
  // The number of the first condition that does not hold.
  Result<std::optional<std::size_t>> FirstFailed(const Txn& txn);
  void TellKey(std::uint32_t bucket, const std::string& key);

  const ShardState& state_;
  const store::Store& store_;
  Changes& changes_;
  RequestIds& requests_;
  v1::Call call_;  // reused: it keeps its memory
};

}  // namespace etalon::bucket
