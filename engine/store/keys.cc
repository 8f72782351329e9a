#include "engine/store/keys.h"

#include "common/bytes.h"
#include "common/check.h"

namespace etalon::store {
namespace {

constexpr int kHighBits = 32;  // of v div bucket_count that a key holds

std::uint32_t Reverse(std::uint32_t x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  x = (x & 0x00ff00ffu) << 8 | (x >> 8 & 0x00ff00ffu);
  return x << 16 | x >> 16;
}

std::string Prefixed(std::uint64_t position) {
  std::string out(1, kDataPrefix);
  PutBe64(&out, position);
  return out;
}

// v mod bucket_count and v div bucket_count (its low 32 bits, in their usual order) of a data key.
struct Position {
  std::uint32_t low;
  std::uint32_t high;
};

Result<Position> ParsePosition(std::string_view* in, std::uint32_t bucket_count) {
  ETALON_CHECK(bucket_count > 0, "a collection has buckets");
  Position position;
  if (in->empty() || in->front() != kDataPrefix) return DataLoss("a store key is no data key");
  in->remove_prefix(1);
  if (!GetBe32(in, &position.low) || !GetBe32(in, &position.high)) {
    return DataLoss("a data key of the store is too short");
  }
  if (position.low >= bucket_count) {
    return DataLoss("a data key of the store names bucket " + std::to_string(position.low) +
                    " of " + std::to_string(bucket_count));
  }
  position.high = Reverse(position.high);
  return position;
}

}  // namespace

std::string MetaKey(std::string_view name) {
  std::string out(1, kMetaPrefix);
  out.append(name);
  return out;
}

std::string DataKey(RoutingValue value, std::uint32_t bucket_count, SpaceId space,
                    std::string_view key) {
  ETALON_CHECK(bucket_count > 0, "a collection has buckets");
  std::string out;
  out.reserve(1 + 4 + 4 + 2 + key.size());
  out.push_back(kDataPrefix);
  PutBe32(&out, static_cast<std::uint32_t>(value.value() % bucket_count));
  PutBe32(&out, Reverse(static_cast<std::uint32_t>(value.value() / bucket_count)));
  PutBe16(&out, space.value());
  out.append(key);
  return out;
}

Result<DataKeyParts> ParseDataKey(std::string_view data_key, std::uint32_t bucket_count) {
  ETALON_ASSIGN_OR_RETURN(const Position position, ParsePosition(&data_key, bucket_count));
  std::uint16_t space = 0;
  if (!GetBe16(&data_key, &space)) return DataLoss("a data key of the store is too short");
  const auto value = std::uint64_t{position.high} * bucket_count + position.low;
  return DataKeyParts{RoutingValue(value), SpaceId(space), data_key};
}

KeyRange DataRange() { return {std::string(1, kDataPrefix), std::string(1, kDataPrefix + 1)}; }

KeyRange BucketRange(BucketId bucket, std::uint32_t bucket_count) {
  ETALON_CHECK(bucket_count > 0 && bucket.level <= kHighBits &&
                   bucket.number < std::uint64_t{bucket_count} << bucket.level,
               "a bucket number is below bucket_count * 2^level");
  const std::uint32_t high = bucket.number / bucket_count;
  const std::uint64_t begin =
      std::uint64_t{bucket.number % bucket_count} << kHighBits | Reverse(high);
  const std::uint64_t end = begin + (std::uint64_t{1} << (kHighBits - bucket.level));
  return {Prefixed(begin), end == 0 ? DataRange().end : Prefixed(end)};
}

Result<BucketId> BucketOfDataKey(std::string_view data_key, std::uint32_t bucket_count,
                                 std::uint8_t level) {
  ETALON_CHECK(level <= kHighBits, "levels end at 32");
  ETALON_ASSIGN_OR_RETURN(const Position position, ParsePosition(&data_key, bucket_count));
  const std::uint64_t mask = (std::uint64_t{1} << level) - 1;
  const std::uint64_t number = (position.high & mask) * bucket_count + position.low;
  ETALON_CHECK(number <= UINT32_MAX, "a bucket number has 32 bits");
  return BucketId{level, static_cast<std::uint32_t>(number)};
}

}  // namespace etalon::store
