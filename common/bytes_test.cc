#include "common/bytes.h"

#include <gtest/gtest.h>

namespace etalon {
namespace {

TEST(Bytes, RoundTripAndOrder) {
  std::string s;
  PutBe16(&s, 0x0102);
  PutBe32(&s, 0x03040506);
  PutBe64(&s, 0x0708090a0b0c0d0eu);
  EXPECT_EQ(s, std::string("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e"));
  std::string_view in = s;
  std::uint16_t a = 0;
  std::uint32_t b = 0;
  std::uint64_t c = 0;
  ASSERT_TRUE(GetBe16(&in, &a) && GetBe32(&in, &b) && GetBe64(&in, &c));
  EXPECT_EQ(a, 0x0102);
  EXPECT_EQ(b, 0x03040506u);
  EXPECT_EQ(c, 0x0708090a0b0c0d0eu);
  EXPECT_TRUE(in.empty());
}

TEST(Bytes, LittleEndian) {
  std::string s;
  PutLe32(&s, 0xff020304u);
  PutLe64(&s, 0xff00000000000001u);
  std::string_view in = s;
  std::uint32_t a = 0;
  std::uint64_t b = 0;
  ASSERT_TRUE(GetLe32(&in, &a) && GetLe64(&in, &b));
  EXPECT_EQ(a, 0xff020304u);
  EXPECT_EQ(b, 0xff00000000000001u);
}

TEST(Bytes, TooShortLeavesInputAlone) {
  std::string_view in = "abc";
  std::uint32_t v = 7;
  EXPECT_FALSE(GetBe32(&in, &v));
  EXPECT_FALSE(GetLe32(&in, &v));
  EXPECT_EQ(in, "abc");
  EXPECT_EQ(v, 7u);
}

TEST(Bytes, PrefixEnd) {
  EXPECT_EQ(PrefixEnd("ab"), "ac");
  EXPECT_EQ(PrefixEnd(std::string("a\xff\xff")), "b");
  EXPECT_EQ(PrefixEnd("\xff"), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

}  // namespace
}  // namespace etalon
