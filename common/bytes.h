// Fixed-width integers in byte strings. Big-endian where order matters (store keys), little-endian
// in file frames.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace etalon {

void PutBe16(std::string* out, std::uint16_t value);
void PutBe32(std::string* out, std::uint32_t value);
void PutBe64(std::string* out, std::uint64_t value);
void PutLe32(std::string* out, std::uint32_t value);
void PutLe64(std::string* out, std::uint64_t value);

// Each reads from the front of *in and advances it. False, with *in unchanged, when it is too
// short.
bool GetBe16(std::string_view* in, std::uint16_t* value);
bool GetBe32(std::string_view* in, std::uint32_t* value);
bool GetBe64(std::string_view* in, std::uint64_t* value);
bool GetLe32(std::string_view* in, std::uint32_t* value);
bool GetLe64(std::string_view* in, std::uint64_t* value);

// The smallest string greater than every string that starts with `prefix`; empty when there is none
// (all 0xff).
std::string PrefixEnd(std::string_view prefix);

}  // namespace etalon
