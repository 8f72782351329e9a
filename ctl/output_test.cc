#include "ctl/output.h"

#include <gtest/gtest.h>

namespace etalon::ctl {
namespace {

TEST(Table, AlignsColumnsAndHasNoSpaceAtTheEnd) {
  Table table({"A", "LONG"});
  table.Row({"wide cell", "1"});
  table.Row({"x", "22"});
  EXPECT_EQ(table.Text(), "A          LONG\nwide cell  1\nx          22\n");
}

TEST(Table, JsonHasLowerCaseKeys) {
  Table table({"SHARD", "UP"});
  table.Row({"shard-0", "3/3"});
  EXPECT_EQ(table.Json().dump(), R"([{"shard":"shard-0","up":"3/3"}])");
}

TEST(Output, HumanNumbers) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(5ull << 40), "5.0 TiB");
  EXPECT_EQ(HumanMillis(250), "250 ms");
  EXPECT_EQ(HumanMillis(90'000), "90 s");
  EXPECT_EQ(HumanMillis(3'600'000), "60 min");
}

TEST(Output, ExitCodesTellKindsApart) {
  EXPECT_EQ(ExitCode(OkStatus()), 0);
  EXPECT_EQ(ExitCode(InvalidArgument("x")), 2);
  EXPECT_EQ(ExitCode(NotFound("x")), 3);
  EXPECT_EQ(ExitCode(Unavailable(Reason::kNone, "x")), 4);
  EXPECT_EQ(ExitCode(FailedPrecondition(Reason::kNone, "x")), 5);
  EXPECT_EQ(ExitCode(Internal("x")), 1);
}

}  // namespace
}  // namespace etalon::ctl
