// First results of writes with a request ID (docs/protocols/buckets.md, "Request IDs").
//
// A result is a record of its bucket in space 0xFFFF, so it moves with the bucket, divides at a
// rebase and goes with the range delete. Beside it stands an index entry by the end of its life,
// and all live IDs are in memory: a write whose ID is new reads nothing.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/ids.h"
#include "common/status.h"
#include "engine/bucket/changes.h"
#include "engine/store/keys.h"
#include "engine/store/store.h"
#include "etalon/v1/call.pb.h"

namespace etalon::bucket {

inline constexpr std::uint64_t kDefaultLifeMillis = 60'000;
inline constexpr std::uint64_t kMaxLifeMillis = 600'000;

// Ordered as the store keys are.
struct RequestKey {
  std::uint64_t place = 0;  // the routing value as it stands in a data key
  std::uint64_t client = 0;
  std::uint64_t sequence = 0;
  auto operator<=>(const RequestKey&) const = default;
};

// nullopt: no ID is named.
std::optional<RequestKey> KeyOfRequest(const v1::Call& call, std::uint32_t bucket_count);
// nullopt: no key of a result.
std::optional<RequestKey> ParseRequestKey(std::string_view store_key);
std::string StoreKey(const RequestKey& key);

// The record's value: be64(end of life in log time), then a serialized v1::RequestResult.
std::string EncodeRequestValue(LogTime end, std::string_view result);
// The end of life; `result` gets the rest. DATA_LOSS when too short.
Result<LogTime> ParseRequestValue(std::string_view value, std::string_view* result);
// The end of a life that starts now; it never wraps around.
LogTime EndOfLife(LogTime now, std::uint64_t life_millis);

class RequestIds {
 public:
  Status Load(const store::Store& store);

  bool IsLive(const RequestKey& key, LogTime now) const;
  std::size_t size() const { return ends_.size(); }

  // Puts the result and its index entry, replacing what the ID had before.
  void Put(const RequestKey& key, LogTime end, std::string_view result, Changes& changes);
  // Removes both, if the ID is known.
  void Erase(const RequestKey& key, Changes& changes);
  // Removes up to `limit` results whose life is over, the oldest first.
  void Expire(LogTime now, std::size_t limit, Changes& changes);
  // Forgets all of a range of store keys whose records are removed by a range delete of the same
  // batch.
  void Forget(const store::KeyRange& range, Changes& changes);

 private:
  std::map<RequestKey, LogTime> ends_;
  std::set<std::pair<LogTime, RequestKey>> by_end_;
};

}  // namespace etalon::bucket
