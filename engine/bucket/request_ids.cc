#include "engine/bucket/request_ids.h"

#include <algorithm>
#include <limits>

#include "common/bytes.h"

namespace etalon::bucket {
namespace {

constexpr std::string_view kIndex = "state/request/";

std::string IndexKey(LogTime end, const RequestKey& key) {
  std::string out = store::MetaKey(kIndex);
  PutBe64(&out, end.value());
  PutBe64(&out, key.place);
  PutBe64(&out, key.client);
  PutBe64(&out, key.sequence);
  return out;
}

// The place that a bound of a range of store keys stands for.
std::uint64_t PlaceOf(std::string_view bound) {
  std::uint64_t place = 0;
  bound.remove_prefix(1);
  GetBe64(&bound, &place);
  return place;
}

}  // namespace

std::optional<RequestKey> KeyOfRequest(const v1::Call& call, std::uint32_t bucket_count) {
  if (call.request().client() == 0) return std::nullopt;
  const std::string key =
      store::DataKey(RoutingValue(call.routing_value()), bucket_count, store::kRequestSpace, {});
  return RequestKey{PlaceOf(key), call.request().client(), call.request().sequence()};
}

std::optional<RequestKey> ParseRequestKey(std::string_view in) {
  RequestKey key;
  std::uint16_t space = 0;
  if (in.empty() || in.front() != store::kDataPrefix) return std::nullopt;
  in.remove_prefix(1);
  if (!GetBe64(&in, &key.place) || !GetBe16(&in, &space) || !GetBe64(&in, &key.client) ||
      !GetBe64(&in, &key.sequence) || !in.empty() || space != store::kRequestSpace.value()) {
    return std::nullopt;
  }
  return key;
}

std::string StoreKey(const RequestKey& key) {
  std::string out(1, store::kDataPrefix);
  PutBe64(&out, key.place);
  PutBe16(&out, store::kRequestSpace.value());
  PutBe64(&out, key.client);
  PutBe64(&out, key.sequence);
  return out;
}

std::string EncodeRequestValue(LogTime end, std::string_view result) {
  std::string out;
  PutBe64(&out, end.value());
  out.append(result);
  return out;
}

Result<LogTime> ParseRequestValue(std::string_view value, std::string_view* result) {
  std::uint64_t end = 0;
  if (!GetBe64(&value, &end)) return DataLoss("the result of a request ID is too short");
  *result = value;
  return LogTime(end);
}

LogTime EndOfLife(LogTime now, std::uint64_t life_millis) {
  const std::uint64_t left = std::numeric_limits<std::uint64_t>::max() - now.value();
  return LogTime(now.value() + std::min(left, life_millis));
}

Status RequestIds::Load(const store::Store& store) {
  const std::string begin = store::MetaKey(kIndex);
  const auto it = store.NewSnapshot()->NewIterator(begin, PrefixEnd(begin));
  for (; it->Valid(); it->Next()) {
    std::string_view in = it->key().substr(begin.size());
    std::uint64_t end = 0;
    RequestKey key;
    if (!GetBe64(&in, &end) || !GetBe64(&in, &key.place) || !GetBe64(&in, &key.client) ||
        !GetBe64(&in, &key.sequence) || !in.empty() || !ends_.emplace(key, LogTime(end)).second) {
      return DataLoss(
          "the index of request IDs is damaged. This replica must be built anew from the others");
    }
    by_end_.emplace_hint(by_end_.end(), LogTime(end), key);
  }
  return it->status();
}

bool RequestIds::IsLive(const RequestKey& key, LogTime now) const {
  const auto it = ends_.find(key);
  return it != ends_.end() && it->second > now;
}

void RequestIds::Put(const RequestKey& key, LogTime end, std::string_view result,
                     Changes& changes) {
  const auto [it, added] = ends_.try_emplace(key, end);
  if (!added) {
    by_end_.erase({it->second, key});
    changes.batch().Delete(IndexKey(it->second, key));
    it->second = end;
  }
  by_end_.emplace(end, key);
  changes.batch().Put(IndexKey(end, key), {});
  changes.batch().Put(StoreKey(key), EncodeRequestValue(end, result));
}

void RequestIds::Erase(const RequestKey& key, Changes& changes) {
  const auto it = ends_.find(key);
  if (it == ends_.end()) return;
  changes.batch().Delete(IndexKey(it->second, key));
  changes.batch().Delete(StoreKey(key));
  by_end_.erase({it->second, key});
  ends_.erase(it);
}

void RequestIds::Expire(LogTime now, std::size_t limit, Changes& changes) {
  for (; limit > 0 && !by_end_.empty() && by_end_.begin()->first <= now; --limit) {
    Erase(RequestKey(by_end_.begin()->second), changes);
  }
}

void RequestIds::Forget(const store::KeyRange& range, Changes& changes) {
  auto it = ends_.lower_bound({PlaceOf(range.begin), 0, 0});
  const auto end = range.end.front() == store::kDataPrefix
                       ? ends_.lower_bound({PlaceOf(range.end), 0, 0})
                       : ends_.end();
  while (it != end) {
    changes.batch().Delete(IndexKey(it->second, it->first));
    by_end_.erase({it->second, it->first});
    it = ends_.erase(it);
  }
}

}  // namespace etalon::bucket
