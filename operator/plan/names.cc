#include "operator/plan/names.h"

#include <fmt/format.h>

#include <charconv>

#include "common/random.h"

namespace etalon::controller {
namespace {

// "<prefix><decimal number without leading zeros>".
std::optional<std::uint32_t> NumberAfter(std::string_view prefix, std::string_view text) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  text.remove_prefix(prefix.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || fmt::format("{}", number) != text)
    return std::nullopt;
  return number;
}

}  // namespace

std::string ShardName(std::uint32_t number) { return fmt::format("shard-{}", number); }

std::optional<std::uint32_t> ShardNumber(std::string_view shard) {
  return NumberAfter("shard-", shard);
}

std::string ReplicaName(const std::string& collection, const std::string& shard,
                        std::uint32_t ordinal) {
  return fmt::format("{}-{}-{}", collection, shard, ordinal);
}

std::optional<std::uint32_t> ReplicaOrdinal(const std::string& collection, const std::string& shard,
                                            std::string_view replica) {
  return NumberAfter(fmt::format("{}-{}-", collection, shard), replica);
}

std::string RouterName(const std::string& collection, std::uint32_t ordinal) {
  return fmt::format("{}-router-{}", collection, ordinal);
}

std::string SurgeRouterName(const std::string& collection) { return collection + "-router-surge"; }

ShardUid UidOf(CollectionId collection, std::uint32_t number) {
  // Two rounds: neighbouring seeds of one collection, and of neighbouring collections, give
  // unrelated numbers.
  const std::uint64_t mixed = Random(collection.value()).NextId();
  return ShardUid(Random(mixed ^ (std::uint64_t{number} * 0x9e3779b97f4a7c15u + 1)).NextId());
}

}  // namespace etalon::controller
