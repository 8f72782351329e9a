// How a sharding key becomes a routing value. Every client of a collection must compute the same
// number, so these definitions are contracts; placement/testdata/hash-vectors.tsv holds vectors for
// ports to other languages.
//
// The bytes that are hashed are the same for every function: an Int64 key is its 8 little-endian
// two's-complement bytes, a String key is its bytes as they are (no terminator, no normalisation of
// Unicode).
//
//   Murmur3       MurmurHash3 x86_32, seed 0, over all bytes; the top bit is cleared: [0, 2^31)
//   Crc32         CRC-32/IEEE (zlib's), over the first 100 bytes: [0, 2^32), no bit is cleared
//   VshardCrc32c  CRC-32C with initial value 0xffffffff and no final xor, as VShard's strcrc32: [0,
//   2^32). Strings only;
//                 a number is passed as its decimal text. VShard's bucket ID is our bucket + 1
//
// The bucket is `routing value mod modulus` (modulus.h), reduced once and unsigned. All functions
// are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/ids.h"
#include "common/status.h"

namespace etalon::placement {

enum class HashFunction : std::uint8_t { kMurmur3, kCrc32, kVshardCrc32c };
enum class KeyType : std::uint8_t { kInt64, kString };

// As written in spec.shardBy: "Murmur3", "Crc32", "VshardCrc32c"; "Int64", "String". Case matters.
std::string_view HashFunctionName(HashFunction function);
std::optional<HashFunction> ParseHashFunction(std::string_view name);
std::string_view KeyTypeName(KeyType type);
std::optional<KeyType> ParseKeyType(std::string_view name);

// Int64 goes with Murmur3 and Crc32, String with all three.
Status CheckHash(KeyType type, HashFunction function);

// `key` is the text of the key; for Int64 its decimal text, whole ("-3000"). INVALID_ARGUMENT for a
// number that is not an int64 and for a pair that CheckHash refuses.
Result<RoutingValue> HashKey(KeyType type, HashFunction function, std::string_view key);
// The same for a key that is a number already. INVALID_ARGUMENT when the collection is sharded by
// strings: text and number hash differently, and guessing would misplace the record.
Result<RoutingValue> HashKey(KeyType type, HashFunction function, std::int64_t key);

// The bare functions, over bytes.
std::uint32_t Murmur3X86(std::string_view bytes);  // seed 0, top bit kept
std::uint32_t Crc32Ieee(std::string_view bytes);   // over all bytes given
std::uint32_t VshardCrc32c(std::string_view bytes);

}  // namespace etalon::placement
