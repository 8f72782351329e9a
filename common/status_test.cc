#include "common/status.h"

#include <gtest/gtest.h>

namespace etalon {
namespace {

TEST(Status, OkIsFree) {
  Status ok;
  EXPECT_TRUE(ok.ok());
  EXPECT_EQ(ok.ToString(), "OK");
  EXPECT_EQ(ok.code(), Code::kOk);
  EXPECT_TRUE(ok.Annotate("x").ok());
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Status, CarriesReasonAndHint) {
  Hint hint;
  hint.destination = ShardUid(7);
  hint.epoch = Epoch(3);
  const Status s = Aborted(Reason::kWrongBucket, "bucket 5 is not here", hint);
  const Status copy = s;
  EXPECT_EQ(copy.reason(), Reason::kWrongBucket);
  EXPECT_EQ(copy.hint(), hint);
  EXPECT_EQ(copy.ToString(), "ABORTED/WRONG_BUCKET: bucket 5 is not here");
  EXPECT_EQ(copy.Annotate("put").message(), "put: bucket 5 is not here");
  EXPECT_EQ(copy.Annotate("put").hint(), hint);
}

Result<int> Half(int x) {
  if (x % 2 != 0) return InvalidArgument("odd");
  return x / 2;
}
Result<int> Quarter(int x) {
  ETALON_ASSIGN_OR_RETURN(const int half, Half(x));
  ETALON_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(Result, Propagates) {
  ASSERT_TRUE(Quarter(8).ok());
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().code(), Code::kInvalidArgument);
}

TEST(Reason, EveryNumberHasAName) {
  EXPECT_EQ(ReasonName(Reason::kTransferIsInProgress), "TRANSFER_IS_IN_PROGRESS");
  EXPECT_EQ(ReasonName(Reason::kShardFenced), "SHARD_FENCED");
  EXPECT_EQ(ReasonName(static_cast<Reason>(9999)), "UNKNOWN");
}

}  // namespace
}  // namespace etalon
