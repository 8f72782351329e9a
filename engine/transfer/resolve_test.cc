#include "engine/transfer/resolve.h"

#include <gtest/gtest.h>

#include "proto/wire.h"

namespace etalon::transfer {
namespace {

constexpr ShardUid kSource{1};
constexpr ShardUid kTarget{2};
constexpr ShardUid kOther{3};
constexpr TransferId kX{kSource, Term(4), LogIndex(50)};
constexpr TransferId kY{kSource, Term(4), LogIndex(60)};
constexpr std::uint32_t kBuckets = 8;

// What the source answers about one bucket.
struct SourceAnswer {
  v1::Answer answer;
  v1::BucketAnswer& bucket;

  SourceAnswer() : bucket(*answer.add_buckets()) { answer.set_applied_index(100); }
  SourceAnswer& Row(v1::BucketStatus status, const TransferId& id, ShardUid to = kTarget) {
    bucket.mutable_row()->set_status(status);
    *bucket.mutable_row()->mutable_transfer() = ToProto(id);
    bucket.set_destination(to.value());
    return *this;
  }
  SourceAnswer& Left(const TransferId& id) {
    *bucket.mutable_marks()->mutable_left() = ToProto(id);
    return *this;
  }
  SourceAnswer& Applied(std::uint64_t index) {
    answer.set_applied_index(index);
    return *this;
  }
  TargetVerdict Verdict(bool prepared) const {
    return ResolveTarget(ReadSourceAnswer(answer, kX, kTarget), prepared);
  }
};

void ExpectBoth(const SourceAnswer& answer, TargetVerdict verdict) {
  EXPECT_EQ(answer.Verdict(false), verdict);
  EXPECT_EQ(answer.Verdict(true), verdict);
}

TEST(TargetTable, SourceRowIsOpenOrSending_Wait) {
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_ACTIVE, kX), TargetVerdict::kWait);
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_SENDING, kX), TargetVerdict::kWait);
}

TEST(TargetTable, SentToMePrepared_Activate) {
  const SourceAnswer sent = SourceAnswer().Row(v1::BUCKET_SENT, kX).Left(kX);
  EXPECT_EQ(sent.Verdict(true), TargetVerdict::kActivate);
}

TEST(TargetTable, SentOtherwise_HoldAndNeverActivate) {
  EXPECT_EQ(SourceAnswer().Row(v1::BUCKET_SENT, kX).Left(kX).Verdict(false), TargetVerdict::kHold);
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_SENT, kX, kOther).Left(kX), TargetVerdict::kHold);
}

TEST(TargetTable, GarbageOrLeftNamesX_Hold) {
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_GARBAGE, kX).Left(kX), TargetVerdict::kHold);
  ExpectBoth(SourceAnswer().Left(kX), TargetVerdict::kHold);
}

TEST(TargetTable, AppliedBeyondXAndNothingCarriesIt_Garbage) {
  ExpectBoth(SourceAnswer().Applied(50), TargetVerdict::kGarbage);
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_SENT, kY).Left(kY), TargetVerdict::kGarbage);
  ExpectBoth(SourceAnswer().Row(v1::BUCKET_ACTIVE, kY), TargetVerdict::kGarbage);
}

TEST(TargetTable, AppliedBelowX_GarbageUnlessPrepared) {
  EXPECT_EQ(SourceAnswer().Applied(49).Verdict(false), TargetVerdict::kGarbageIfUnprepared);
  EXPECT_EQ(SourceAnswer().Applied(49).Verdict(true), TargetVerdict::kHold);
}

TEST(TargetTable, SourceRemoved_Garbage) {
  EXPECT_EQ(ResolveTarget(SourceSays::kRemoved, false), TargetVerdict::kGarbage);
  EXPECT_EQ(ResolveTarget(SourceSays::kRemoved, true), TargetVerdict::kGarbage);
}

TEST(TargetTable, NoAnswer_Wait) {
  EXPECT_EQ(ResolveTarget(SourceSays::kNothing, false), TargetVerdict::kWait);
  EXPECT_EQ(ResolveTarget(SourceSays::kNothing, true), TargetVerdict::kWait);
}

TEST(TargetTable, FirstMatchWinsOverTheWholeSet) {
  SourceAnswer two = SourceAnswer().Row(v1::BUCKET_SENDING, kX);
  v1::Answer answer = two.answer;
  answer.add_buckets();  // a bucket of the set without a row
  EXPECT_EQ(ReadSourceAnswer(answer, kX, kTarget), SourceSays::kCarries);
}

// ---- source -------------------------------------------------------------------------------------

SourceVerdict Verdict(SourceRow row, bool mine, TargetSays says, bool expired = false) {
  return ResolveSource({row, mine, says, expired});
}

TEST(SourceTable, OpenOrSendingOfAnEarlierTerm_AbortWithoutAsking) {
  for (const TargetSays says : {TargetSays::kNothing, TargetSays::kPrepared, TargetSays::kOwns,
                                TargetSays::kKnowsNothing}) {
    EXPECT_EQ(Verdict(SourceRow::kOpen, false, says), SourceVerdict::kAbort);
    EXPECT_EQ(Verdict(SourceRow::kSending, false, says), SourceVerdict::kAbort);
  }
}

TEST(SourceTable, OpenRefusedGoneRemovedOrStalled_Abort) {
  EXPECT_EQ(Verdict(SourceRow::kOpen, true, TargetSays::kRefused), SourceVerdict::kAbort);
  EXPECT_EQ(Verdict(SourceRow::kOpen, true, TargetSays::kRemoved), SourceVerdict::kAbort);
  EXPECT_EQ(Verdict(SourceRow::kOpen, true, TargetSays::kNothing, true), SourceVerdict::kAbort);
  EXPECT_EQ(Verdict(SourceRow::kOpen, true, TargetSays::kNothing), SourceVerdict::kWait);
}

TEST(SourceTable, SendingAndPrepared_Sent) {
  EXPECT_EQ(Verdict(SourceRow::kSending, true, TargetSays::kPrepared), SourceVerdict::kCommit);
  EXPECT_EQ(Verdict(SourceRow::kSending, true, TargetSays::kPrepared, true),
            SourceVerdict::kCommit);
}

TEST(SourceTable, SendingRefusedOrTooLong_Abort) {
  EXPECT_EQ(Verdict(SourceRow::kSending, true, TargetSays::kRefused), SourceVerdict::kAbort);
  EXPECT_EQ(Verdict(SourceRow::kSending, true, TargetSays::kNothing, true), SourceVerdict::kAbort);
  EXPECT_EQ(Verdict(SourceRow::kSending, true, TargetSays::kNothing), SourceVerdict::kWait);
}

TEST(SourceTable, SentAndTargetOwns_Garbage) {
  EXPECT_EQ(Verdict(SourceRow::kSent, false, TargetSays::kOwns), SourceVerdict::kGarbage);
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kOwns), SourceVerdict::kGarbage);
}

TEST(SourceTable, SentAndTargetPrepared_Activate) {
  EXPECT_EQ(Verdict(SourceRow::kSent, false, TargetSays::kPrepared), SourceVerdict::kActivate);
}

TEST(SourceTable, SentAndTargetKnowsNothing_Hold) {
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kKnowsNothing), SourceVerdict::kHold);
}

TEST(SourceTable, SentAndTargetRemoved_AskEverybodyThenGarbageOrHold) {
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kRemoved), SourceVerdict::kAskEverybody);
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kRemovedOwned), SourceVerdict::kGarbage);
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kRemovedUnowned), SourceVerdict::kHold);
}

TEST(SourceTable, SentWithoutAnswer_Wait) {
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kNothing), SourceVerdict::kWait);
  // A refusal of an earlier state of the row must never undo the commit point.
  EXPECT_EQ(Verdict(SourceRow::kSent, true, TargetSays::kRefused, true), SourceVerdict::kWait);
}

TEST(SourceTable, Garbage_Remove) {
  EXPECT_EQ(Verdict(SourceRow::kGarbage, false, TargetSays::kNothing), SourceVerdict::kRemove);
}

bucket::Outgoing Set(std::vector<bucket::BucketEpoch> set, std::uint8_t level = 0) {
  bucket::Outgoing x;
  x.id = kX;
  x.target = kTarget;
  x.level = level;
  x.set = std::move(set);
  return x;
}

v1::Answer TargetAnswer(std::uint32_t level,
                        std::vector<std::pair<std::uint32_t, std::uint64_t>> own) {
  v1::Answer answer;
  answer.set_level(level);
  for (const auto& [bucket, epoch] : own) {
    v1::BucketAnswer& b = *answer.add_buckets();
    b.set_bucket(bucket);
    b.mutable_marks()->set_own(epoch);
  }
  return answer;
}

TEST(ReadTargetAnswer, OwnsOnlyIfEveryBucketIsAboveItsEpoch) {
  const bucket::Outgoing x = Set({{1, Epoch(5)}, {2, Epoch(7)}});
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(0, {{1, 6}, {2, 8}}), x, kBuckets), TargetSays::kOwns);
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(0, {{1, 6}, {2, 7}}), x, kBuckets),
            TargetSays::kKnowsNothing);
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(0, {{1, 6}}), x, kBuckets), TargetSays::kKnowsNothing);
}

TEST(ReadTargetAnswer, AFinerAnswerMustNameBothHalves) {
  const bucket::Outgoing x = Set({{1, Epoch(5)}});
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(1, {{1, 6}, {9, 6}}), x, kBuckets), TargetSays::kOwns);
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(1, {{1, 6}, {9, 5}}), x, kBuckets),
            TargetSays::kKnowsNothing);
  EXPECT_EQ(ReadTargetAnswer(TargetAnswer(1, {{1, 6}}), x, kBuckets), TargetSays::kKnowsNothing);
}

TEST(ReadTargetAnswer, PreparedIsOfThisTransferOnly) {
  const bucket::Outgoing x = Set({{1, Epoch(5)}});
  v1::Answer answer = TargetAnswer(0, {{1, 0}});
  v1::BucketAnswer& b = *answer.mutable_buckets(0);
  b.set_prepared(true);
  b.mutable_row()->set_status(v1::BUCKET_RECEIVING);
  *b.mutable_row()->mutable_transfer() = ToProto(kX);
  EXPECT_EQ(ReadTargetAnswer(answer, x, kBuckets), TargetSays::kPrepared);
  *b.mutable_row()->mutable_transfer() = ToProto(kY);
  EXPECT_EQ(ReadTargetAnswer(answer, x, kBuckets), TargetSays::kKnowsNothing);
}

TEST(SomebodyOwnsEach, EachBucketByItselfAtTheFinestLevel) {
  const bucket::Outgoing x = Set({{1, Epoch(5)}, {2, Epoch(5)}});
  std::map<ShardUid, v1::Answer> answers;
  EXPECT_FALSE(SomebodyOwnsEach(answers, x, kBuckets));
  answers[kTarget] = TargetAnswer(0, {{1, 6}, {2, 0}});
  EXPECT_FALSE(SomebodyOwnsEach(answers, x, kBuckets));
  answers[kOther] = TargetAnswer(0, {{1, 0}, {2, 7}});
  EXPECT_TRUE(SomebodyOwnsEach(answers, x, kBuckets));
  // A finer answer: half of bucket 2 went on, the other half is nobody's.
  answers[kOther] = TargetAnswer(1, {{1, 0}, {9, 0}, {2, 7}, {10, 0}});
  EXPECT_FALSE(SomebodyOwnsEach(answers, x, kBuckets));
  answers[ShardUid(4)] = TargetAnswer(1, {{1, 0}, {9, 0}, {2, 0}, {10, 8}});
  EXPECT_TRUE(SomebodyOwnsEach(answers, x, kBuckets));
}

}  // namespace
}  // namespace etalon::transfer
