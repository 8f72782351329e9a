#include "common/bytes.h"

namespace etalon {

namespace {

template <typename T>
void PutBe(std::string* out, T value) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    out->push_back(static_cast<char>(value >> shift));
}

template <typename T>
void PutLe(std::string* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

template <typename T>
bool GetBe(std::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  T v = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    v = static_cast<T>((v << 8) | static_cast<unsigned char>((*in)[i]));
  *value = v;
  in->remove_prefix(sizeof(T));
  return true;
}

template <typename T>
bool GetLe(std::string_view* in, T* value) {
  if (in->size() < sizeof(T)) return false;
  T v = 0;
  for (std::size_t i = sizeof(T); i > 0; --i)
    v = static_cast<T>((v << 8) | static_cast<unsigned char>((*in)[i - 1]));
  *value = v;
  in->remove_prefix(sizeof(T));
  return true;
}

}  // namespace

void PutBe16(std::string* out, std::uint16_t value) { PutBe(out, value); }
void PutBe32(std::string* out, std::uint32_t value) { PutBe(out, value); }
void PutBe64(std::string* out, std::uint64_t value) { PutBe(out, value); }
void PutLe32(std::string* out, std::uint32_t value) { PutLe(out, value); }
void PutLe64(std::string* out, std::uint64_t value) { PutLe(out, value); }
bool GetBe16(std::string_view* in, std::uint16_t* value) { return GetBe(in, value); }
bool GetBe32(std::string_view* in, std::uint32_t* value) { return GetBe(in, value); }
bool GetBe64(std::string_view* in, std::uint64_t* value) { return GetBe(in, value); }
bool GetLe32(std::string_view* in, std::uint32_t* value) { return GetLe(in, value); }
bool GetLe64(std::string_view* in, std::uint64_t* value) { return GetLe(in, value); }

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

}  // namespace etalon
