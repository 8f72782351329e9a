#include "common/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace etalon {
namespace {

// RFC 3720, appendix B.4, and the common check value.
TEST(Crc32c, PublishedVectors) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32c, ExtendsAtEveryCut) {
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(Crc32cExtend(Crc32c(text.substr(0, cut)), text.substr(cut)), Crc32c(text));
  }
}

}  // namespace
}  // namespace etalon
