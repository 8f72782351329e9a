#include "router/call/target.h"

#include <fmt/format.h>

#include "placement/hash.h"

namespace etalon::router {

Result<RoutingValue> RoutingValueOf(const v1::Target& target, const Directory& directory,
                                    std::uint64_t modulus) {
  switch (target.target_case()) {
    case v1::Target::kIntKey:
      return placement::HashKey(directory.key_type(), directory.hash(),
                                static_cast<std::int64_t>(target.int_key()));
    case v1::Target::kStringKey:
      if (directory.key_type() != placement::KeyType::kString) {
        return InvalidArgument("this collection is sharded by numbers: give the key as a number");
      }
      return placement::HashKey(directory.key_type(), directory.hash(), target.string_key());
    case v1::Target::kBucket:
      if (target.bucket() >= modulus) {
        return Status(Code::kOutOfRange, Reason::kBucketOutOfRange,
                      fmt::format("bucket {} does not exist: buckets are 0..{}", target.bucket(),
                                  modulus - 1));
      }
      return RoutingValue(target.bucket());
    case v1::Target::TARGET_NOT_SET:
      break;
  }
  return InvalidArgument("the call names neither a key nor a bucket");
}

}  // namespace etalon::router
