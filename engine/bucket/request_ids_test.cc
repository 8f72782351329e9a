#include "engine/bucket/request_ids.h"

#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

std::size_t Results(const Shard& s) {
  std::size_t n = 0;
  for (const auto& [key, value] : s.store.map) n += ParseRequestKey(key).has_value();
  return n;
}

TEST(RequestIdsTest, ARetryReturnsTheFirstResult) {
  Shard s;
  const v1::Call insert = WithId(PutCall(1, "k", "1", "insert"), 7, 1);
  const v1::Call again = WithId(PutCall(1, "k", "2", "insert"), 7, 2);
  // In one group, before anything is in the store.
  auto done = s.DoAll({insert, insert, again, again});
  EXPECT_TRUE(done[0].status.ok());
  EXPECT_TRUE(done[1].status.ok()) << done[1].status.ToString();
  EXPECT_EQ(done[2].status.reason(), Reason::kKeyExists);
  EXPECT_EQ(done[3].status.ToString(), done[2].status.ToString());
  EXPECT_TRUE(s.Do(DeleteCall(1, "k")).status.ok());
  s.Restart();
  EXPECT_TRUE(s.Do(insert).status.ok());
  EXPECT_EQ(s.Get(1, "k"), std::nullopt) << "the retry must not apply again";
  EXPECT_EQ(s.Do(again).status.reason(), Reason::kKeyExists);
  // Other clients and other buckets have their own.
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "3", "insert"), 8, 1)).status.ok());
  EXPECT_TRUE(s.Do(WithId(PutCall(2, "k", "3", "insert"), 7, 1)).status.ok());
  EXPECT_EQ(s.sm->live_request_ids(), 4u);
}

TEST(RequestIdsTest, FailedConditionsAreKeptWithTheirNumber) {
  Shard s;
  v1::TxnArgs args;
  for (const char* key : {"a", "b"}) {
    v1::Condition& condition = *args.add_conditions();
    condition.set_space("orders");
    condition.set_key(key);
    condition.set_kind(key[0] == 'a' ? v1::Condition::ABSENT : v1::Condition::EXISTS);
  }
  const v1::Call call = WithId(TxnCall(1, args), 7, 1);
  const Status first = s.Do(call).status;
  EXPECT_EQ(first.hint().number, 1u);
  EXPECT_TRUE(s.Do(PutCall(1, "b", "x")).status.ok());
  const Status retry = s.Do(call).status;
  EXPECT_EQ(retry.ToString(), first.ToString());
  EXPECT_EQ(retry.hint(), first.hint());
}

TEST(RequestIdsTest, RefusalsAreNotKept) {
  Shard s;
  const v1::Call call = WithId(PutCall(1, "k", "v"), 7, 1);
  ASSERT_TRUE(s.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = s.Opened();
  ASSERT_TRUE(s.Do(StepCommand(v1::TransferStep::SENDING, x)).ok());
  EXPECT_EQ(s.Do(call).status.reason(), Reason::kTransferIsInProgress);
  ASSERT_TRUE(s.Do(StepCommand(v1::TransferStep::ABORT, x)).ok());
  v1::Call wrong = call;
  wrong.set_epoch(9);
  EXPECT_EQ(s.Do(wrong).status.reason(), Reason::kWrongBucket);
  v1::Call malformed = call;
  malformed.set_args("\xff");
  EXPECT_EQ(s.Do(malformed).status.reason(), Reason::kMalformed);
  EXPECT_EQ(s.sm->live_request_ids(), 0u);
  EXPECT_TRUE(s.Do(call).status.ok());
  EXPECT_EQ(s.Get(1, "k"), "v");
}

TEST(RequestIdsTest, LifeIsCountedInLogTime) {
  Shard s;
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "v", "insert"), 7, 1, 100)).status.ok());
  s.now += 99;
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "v", "insert"), 7, 1, 100)).status.ok());
  s.now += 1;
  EXPECT_EQ(s.Do(WithId(PutCall(1, "k", "v", "insert"), 7, 1, 100)).status.reason(),
            Reason::kKeyExists)
      << "its life is over";
  EXPECT_EQ(Results(s), 1u) << "the new result";

  // Default and cap.
  Shard t;
  t.DoAll({WithId(PutCall(1, "k", "v"), 7, 1), WithId(PutCall(1, "k", "v"), 7, 2, 10'000'000)});
  t.now += kDefaultLifeMillis - 1;
  t.DoAll({});
  EXPECT_EQ(t.sm->live_request_ids(), 2u);
  t.now += 1;
  t.DoAll({});
  EXPECT_EQ(t.sm->live_request_ids(), 1u);
  t.now = 1000 + kMaxLifeMillis;
  t.DoAll({});
  EXPECT_EQ(t.sm->live_request_ids(), 0u);
  EXPECT_EQ(Results(t), 0u);
}

TEST(RequestIdsTest, LogTimeNeverGoesBack) {
  Shard s;
  s.now = 5000;
  s.DoAll({});
  s.now = 10;
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "v"), 7, 1, 100)).status.ok());
  EXPECT_EQ(s.sm->log_time(), LogTime(5000));
  s.now = 5100;
  s.DoAll({});
  EXPECT_EQ(s.sm->live_request_ids(), 0u);
  s.now = UINT64_MAX;
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "v"), 7, 1, 100)).status.ok()) << "no overflow";
}

TEST(RequestIdsTest, ExpiryIsBoundedPerEntryAndComesToAnEnd) {
  Shard s;
  std::vector<v1::Call> calls;
  for (std::uint64_t i = 0; i < 200; ++i) {
    calls.push_back(WithId(PutCall(i, "k", "v"), 7, i + 1, 50));
  }
  s.DoAll(calls);
  EXPECT_EQ(s.sm->live_request_ids(), 200u);
  s.now += 50;  // to the millisecond
  s.DoAll({});
  EXPECT_EQ(s.sm->live_request_ids(), 136u);
  EXPECT_EQ(Results(s), 136u);
  // What is over but still there does not count.
  EXPECT_EQ(s.Do(WithId(PutCall(199, "k", "v", "insert"), 7, 200)).status.reason(),
            Reason::kKeyExists);
  for (int i = 0; i < 4; ++i) s.DoAll({});
  EXPECT_EQ(s.sm->live_request_ids(), 1u);
}

TEST(RequestIdsTest, TheyTravelWithTheirBucketAndItsRemainingLife) {
  Shard a;
  const v1::Call call = WithId(PutCall(1, "k", "v", "insert"), 7, 1, 1000);
  const v1::Call other = WithId(PutCall(2, "k", "v", "insert"), 7, 2, 1000);
  a.DoAll({call, other});
  a.now += 400;
  a.DoAll({});
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  v1::ChunkPayload payload = a.Copy({1});
  ASSERT_EQ(payload.records_size(), 2);
  int results = 0;
  for (v1::ChunkRecord& record : *payload.mutable_records()) {
    if (!ParseRequestKey(record.key())) continue;
    ++results;
    std::string_view result;
    const auto end = ParseRequestValue(record.value(), &result);
    ASSERT_TRUE(end.ok());
    record.set_life_millis(end->value() - a.sm->log_time().value());
    EXPECT_EQ(record.life_millis(), 600u);
  }
  EXPECT_EQ(results, 1);

  Shard b(kB);
  b.now = 50'000;
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  ASSERT_TRUE(b.Do(ChunkCutter(x).Cut(payload, true)).ok());
  b.now += 599;
  ASSERT_TRUE(b.Do(StepCommand(v1::TransferStep::ACTIVATE, x)).ok());
  EXPECT_TRUE(b.Do(call).status.ok()) << "answered with the result of the source";
  b.Restart();
  EXPECT_TRUE(b.Do(call).status.ok());
  b.now += 1;
  EXPECT_EQ(b.Do(call).status.reason(), Reason::kKeyExists);

  // The source forgets those of the bucket, and only those.
  for (const auto kind : {v1::TransferStep::SENDING, v1::TransferStep::SENT,
                          v1::TransferStep::SOURCE_GARBAGE, v1::TransferStep::REMOVE}) {
    ASSERT_TRUE(a.Do(StepCommand(kind, x)).ok());
  }
  EXPECT_EQ(a.sm->live_request_ids(), 1u);
  EXPECT_EQ(Results(a), 1u);
  EXPECT_TRUE(a.Do(other).status.ok());
}

TEST(RequestIdsTest, ResultsWrittenDuringATransferAreTold) {
  Shard a;
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const v1::Call call = WithId(PutCall(1, "k", "v", "update"), 7, 1, 50);
  EXPECT_FALSE(a.Do(call).status.ok()) << "a failed condition is a result, too";
  ASSERT_EQ(a.observer.keys.size(), 1u);
  EXPECT_EQ(ParseRequestKey(a.observer.keys[0]), KeyOfRequest(call, kBuckets));
  EXPECT_FALSE(a.Do(call).status.ok());
  a.now += 60;
  a.DoAll({});
  EXPECT_EQ(a.sm->live_request_ids(), 0u);
  EXPECT_EQ(a.observer.keys.size(), 1u) << "neither a retry nor the end of life is told";
}

TEST(RequestIdsTest, WhatLeftWithItsBucketIsNotWaitedFor) {
  Shard a;
  std::vector<v1::Call> calls;
  for (std::uint64_t i = 0; i < 100; ++i) {
    calls.push_back(WithId(PutCall(1, "k", "v"), 7, i + 1, 10));
  }
  calls.push_back(WithId(PutCall(2, "k", "v"), 7, 1, 20));
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  a.DoAll(calls);
  for (const auto kind : {v1::TransferStep::SENDING, v1::TransferStep::SENT,
                          v1::TransferStep::SOURCE_GARBAGE, v1::TransferStep::REMOVE}) {
    ASSERT_TRUE(a.Do(StepCommand(kind, x)).ok());
  }
  EXPECT_EQ(a.sm->live_request_ids(), 1u);
  a.now += 20;
  a.DoAll({});
  EXPECT_EQ(a.sm->live_request_ids(), 0u);
}

TEST(RequestIdsTest, ATombstoneOrADeadOneRemovesItAtTheTarget) {
  Shard a;
  a.DoAll({WithId(PutCall(1, "k", "v"), 7, 1), WithId(PutCall(1, "k", "v"), 7, 2)});
  const TransferId x{kA, Term(1), LogIndex(9)};
  v1::ChunkPayload payload;
  const v1::ChunkPayload all = a.Copy({1});
  for (v1::ChunkRecord record : all.records()) {
    if (!ParseRequestKey(record.key())) continue;
    record.set_life_millis(10);
    *payload.add_records() = record;
  }
  Shard b(kB);
  ChunkCutter cutter(x);
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  ASSERT_TRUE(b.Do(cutter.Cut(payload)).ok());
  EXPECT_EQ(b.sm->live_request_ids(), 2u);
  payload.mutable_records(0)->set_tombstone(true);
  payload.mutable_records(0)->clear_value();
  payload.mutable_records(1)->set_life_millis(0);
  ASSERT_TRUE(b.Do(cutter.Cut(payload)).ok());
  EXPECT_EQ(b.sm->live_request_ids(), 0u);
  EXPECT_EQ(Results(b), 0u);
}

TEST(RequestIdsTest, ARebaseDividesThemByRoutingValue) {
  Shard s;
  s.DoAll({WithId(PutCall(1, "k", "v"), 7, 1), WithId(PutCall(1 + kBuckets, "k", "v"), 7, 2)});
  ASSERT_TRUE(s.Do(RebaseCommand(1)).ok());
  ASSERT_TRUE(s.Do(OpenCommand(kB, 1, {{1 + kBuckets, 1}})).ok());
  const TransferId x = s.Opened();
  EXPECT_EQ(s.Copy({1 + kBuckets}).records_size(), 2);
  for (const auto kind : {v1::TransferStep::SENDING, v1::TransferStep::SENT,
                          v1::TransferStep::SOURCE_GARBAGE, v1::TransferStep::REMOVE}) {
    ASSERT_TRUE(s.Do(StepCommand(kind, x)).ok());
  }
  EXPECT_EQ(s.sm->live_request_ids(), 1u);
  EXPECT_TRUE(s.Do(WithId(PutCall(1, "k", "v", "insert"), 7, 1)).status.ok());
}

TEST(RequestIdsTest, ANewIdReadsNothing) {
  Shard s;
  s.store.reads = 0;
  s.DoAll({});
  const int check = s.store.reads;  // of the test itself
  s.DoAll({WithId(PutCall(1, "k", "v"), 7, 1)});
  EXPECT_EQ(s.store.reads, 2 * check);
}

TEST(RequestIdsTest, Keys) {
  const v1::Call call = WithId(PutCall(13, "k", "v"), 0x1122334455667788, 9);
  const auto key = KeyOfRequest(call, kBuckets);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(ParseRequestKey(StoreKey(*key)), key);
  EXPECT_FALSE(ParseRequestKey(StoreKey(*key) + "x").has_value());
  EXPECT_FALSE(
      ParseRequestKey(store::DataKey(RoutingValue(13), kBuckets, SpaceId(1), std::string(16, 'x')))
          .has_value());
  EXPECT_FALSE(KeyOfRequest(PutCall(13, "k", "v"), kBuckets).has_value());
  std::string_view rest;
  EXPECT_FALSE(ParseRequestValue("1234567", &rest).ok());
}

}  // namespace
}  // namespace etalon::bucket::testing
