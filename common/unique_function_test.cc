#include "common/unique_function.h"

#include <gtest/gtest.h>

namespace etalon {
namespace {

TEST(UniqueFunction, HoldsWhatCannotBeCopied) {
  auto number = std::make_unique<int>(5);
  UniqueFunction<int(int)> f = [n = std::move(number)](int x) { return *n + x; };
  EXPECT_EQ(f(2), 7);
  UniqueFunction<int(int)> g = std::move(f);
  EXPECT_FALSE(f);  // NOLINT: moved from on purpose
  EXPECT_EQ(g(1), 6);
  UniqueFunction<void()> none;
  EXPECT_FALSE(none);
}

}  // namespace
}  // namespace etalon
