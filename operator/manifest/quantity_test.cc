#include "operator/manifest/quantity.h"

#include <gtest/gtest.h>

namespace etalon::controller {
namespace {

TEST(Quantity, TakesWhatKubernetesTakes) {
  EXPECT_EQ(ParseQuantity("0"), 0u);
  EXPECT_EQ(ParseQuantity("1500"), 1500u);
  EXPECT_EQ(ParseQuantity("200Mi"), 200u << 20);
  EXPECT_EQ(ParseQuantity("1.5Gi"), 3u << 29);
  EXPECT_EQ(ParseQuantity("1k"), 1000u);
  EXPECT_EQ(ParseQuantity("1Ki"), 1024u);
  EXPECT_EQ(ParseQuantity("10G"), 10'000'000'000u);
  EXPECT_EQ(ParseQuantity("2e3"), 2000u);
  EXPECT_EQ(ParseQuantity("1E"), 1'000'000'000'000'000'000u);
}

TEST(Quantity, RefusesTheRest) {
  for (const char* text : {"", "Mi", "-1", "+1", "1K", "1ki", "1Mib", "1.2.3", " 1", "1 ", "0.5",
                           "1.5", "1e", "9999E", "1e9999", "0x10", "inf", "nan", "1m"}) {
    EXPECT_FALSE(ParseQuantity(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace etalon::controller
