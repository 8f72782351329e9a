#include "engine/bucket/calls.h"

#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

v1::Condition Cond(std::string key, v1::Condition::Kind kind, std::string value = "") {
  v1::Condition condition;
  condition.set_space("orders");
  condition.set_key(std::move(key));
  condition.set_kind(kind);
  condition.set_value(std::move(value));
  return condition;
}

v1::Mutation PutOf(std::string key, std::string value) {
  v1::Mutation mutation;
  mutation.set_space("orders");
  mutation.set_key(std::move(key));
  mutation.set_put(std::move(value));
  return mutation;
}

v1::Mutation DeleteOf(std::string key) {
  v1::Mutation mutation;
  mutation.set_space("orders");
  mutation.set_key(std::move(key));
  mutation.set_delete_(true);
  return mutation;
}

TEST(CallsTest, PutInsertUpdateDelete) {
  Shard s;
  EXPECT_TRUE(s.Do(PutCall(5, "k", "1")).status.ok());
  EXPECT_EQ(s.Get(5, "k"), "1");
  const CallOutcome exists = s.Do(PutCall(5, "k", "2", "insert"));
  EXPECT_EQ(exists.status.code(), Code::kAlreadyExists);
  EXPECT_EQ(exists.status.reason(), Reason::kKeyExists);
  EXPECT_EQ(s.Get(5, "k"), "1");
  EXPECT_TRUE(s.Do(PutCall(5, "k", "3", "update")).status.ok());
  EXPECT_EQ(s.Get(5, "k"), "3");
  const CallOutcome missing = s.Do(PutCall(5, "other", "x", "update"));
  EXPECT_EQ(missing.status.code(), Code::kNotFound);
  EXPECT_EQ(missing.status.reason(), Reason::kKeyNotFound);
  EXPECT_EQ(s.Get(5, "other"), std::nullopt);
  EXPECT_TRUE(s.Do(PutCall(5, "other", "y", "insert")).status.ok());
  EXPECT_EQ(s.Get(5, "other"), "y");
  EXPECT_TRUE(s.Do(DeleteCall(5, "k")).status.ok());
  EXPECT_TRUE(s.Do(DeleteCall(5, "k")).status.ok()) << "deleting nothing is no error";
  EXPECT_EQ(s.Get(5, "k"), std::nullopt);
  EXPECT_EQ(s.Get(1, "other"), std::nullopt) << "another routing value of the same bucket";
}

TEST(CallsTest, ABucketThatIsMeantAsAWholeIsRefusedOnceItHasHalves) {
  Shard s;
  v1::Call call = PutCall(5, "k", "1");
  call.set_level(0);
  EXPECT_TRUE(s.Do(call).status.ok());
  ASSERT_TRUE(s.Do(RebaseCommand(1)).ok());
  call = PutCall(5, "k", "2");
  call.set_level(0);
  const CallOutcome refused = s.Do(WithId(call, 1, 1));
  EXPECT_EQ(refused.status.code(), Code::kAborted);
  EXPECT_EQ(refused.status.reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(refused.status.hint().number, 1u);
  EXPECT_EQ(s.Get(5, "k"), "1");
  EXPECT_EQ(s.sm->live_request_ids(), 0u) << "a routing refusal is no result";
  for (std::uint32_t level : {1u, 2u}) {
    call.set_level(level);
    EXPECT_TRUE(s.Do(call).status.ok());
  }
}

TEST(CallsTest, ABlindWriteReadsNothing) {
  Shard s;
  s.store.reads = 0;
  v1::TxnArgs args;
  *args.add_mutations() = PutOf("a", "1");
  s.DoAll({PutCall(1, "k", "v"), DeleteCall(2, "k"), TxnCall(3, args)});
  const int check = s.store.reads;  // the mirror check of the test reads header, topology, settings
  s.DoAll({});
  EXPECT_EQ(s.store.reads - check, check);
  s.DoAll({PutCall(1, "k", "v", "update")});
  EXPECT_EQ(s.store.reads, 3 * check + 1) << "one condition, one read";
}

TEST(CallsTest, ConditionsSeeEarlierWritesOfTheSameGroup) {
  Shard s;
  EXPECT_TRUE(s.Do(PutCall(1, "old", "1")).status.ok());
  // Two entries of one group, one store write.
  s.store.writes = 0;
  const auto outcomes = s.Apply(
      {s.Entry(std::vector<v1::Call>{PutCall(1, "k", "1", "insert"), PutCall(1, "k", "2", "insert"),
                                     DeleteCall(1, "old"), PutCall(1, "old", "x", "update")}),
       s.Entry(std::vector<v1::Call>{PutCall(1, "k", "3", "update"), DeleteCall(1, "k"),
                                     PutCall(1, "k", "4", "insert")})});
  EXPECT_EQ(s.store.writes, 1);
  std::vector<bool> ok;
  for (const EntryOutcome& outcome : outcomes) {
    for (const CallOutcome& call : outcome.calls) ok.push_back(call.status.ok());
  }
  EXPECT_EQ(ok, (std::vector<bool>{true, false, true, false, true, true, true}));
  EXPECT_EQ(s.Get(1, "k"), "4");
  EXPECT_EQ(s.Get(1, "old"), std::nullopt);
}

TEST(CallsTest, TxnIsAllOrNothing) {
  Shard s;
  v1::TxnArgs args;
  *args.add_conditions() = Cond("a", v1::Condition::ABSENT);
  *args.add_conditions() = Cond("b", v1::Condition::EXISTS);
  *args.add_mutations() = PutOf("a", "1");
  CallOutcome outcome = s.Do(TxnCall(1, args));
  EXPECT_EQ(outcome.status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(outcome.status.reason(), Reason::kConditionFailed);
  EXPECT_EQ(outcome.status.hint().number, 1u);
  EXPECT_EQ(s.Get(1, "a"), std::nullopt);

  EXPECT_TRUE(s.Do(PutCall(1, "b", "B")).status.ok());
  *args.add_conditions() = Cond("b", v1::Condition::EQUALS, "B");
  *args.add_mutations() = DeleteOf("b");
  EXPECT_TRUE(s.Do(TxnCall(1, args)).status.ok());
  EXPECT_EQ(s.Get(1, "a"), "1");
  EXPECT_EQ(s.Get(1, "b"), std::nullopt);

  v1::TxnArgs equals;
  *equals.add_conditions() = Cond("b", v1::Condition::EQUALS, "");
  EXPECT_EQ(s.Do(TxnCall(1, equals)).status.hint().number, 0u) << "no record is no empty value";
  EXPECT_TRUE(s.Do(PutCall(1, "b", "")).status.ok());
  EXPECT_TRUE(s.Do(TxnCall(1, equals)).status.ok());
}

TEST(CallsTest, TxnOverRoutingValuesOfOneBucket) {
  Shard s;
  v1::TxnArgs args;
  *args.add_mutations() = PutOf("a", "1");
  args.mutable_mutations(0)->set_routing_value(1 + kBuckets);
  *args.add_conditions() = Cond("c", v1::Condition::ABSENT);
  args.mutable_conditions(0)->set_routing_value(1 + 2 * kBuckets);
  EXPECT_TRUE(s.Do(TxnCall(1, args)).status.ok());
  EXPECT_EQ(s.Get(1 + kBuckets, "a"), "1");
  EXPECT_EQ(s.Get(1, "a"), std::nullopt);
  args.mutable_mutations(0)->set_routing_value(2);
  EXPECT_EQ(s.Do(TxnCall(1, args)).status.code(), Code::kInvalidArgument);
  args.mutable_mutations(0)->set_routing_value(1);
  args.mutable_conditions(0)->set_routing_value(3);
  EXPECT_EQ(s.Do(TxnCall(1, args)).status.code(), Code::kInvalidArgument);
  // One bucket becomes two: what was one transaction is two buckets now.
  args.mutable_conditions(0)->set_routing_value(1 + kBuckets);
  EXPECT_TRUE(s.sm->CheckArguments(TxnCall(1, args)).ok());
  ASSERT_TRUE(s.Do(RebaseCommand(1)).ok());
  EXPECT_EQ(s.sm->CheckArguments(TxnCall(1, args)).code(), Code::kInvalidArgument);
}

TEST(CallsTest, BadArguments) {
  Shard s;
  const auto refused = [&](const v1::Call& call) {
    const Status early = s.sm->CheckArguments(call);
    const Status late = s.Do(call).status;
    EXPECT_EQ(early.ToString(), late.ToString()) << "the leader and apply must agree";
    return late;
  };
  v1::Call call = PutCall(1, "k", "v");
  call.set_args("\xff\xff\xff");
  EXPECT_EQ(refused(call).reason(), Reason::kMalformed);
  for (const char* function : {"get", "scan", "", "frob"}) {
    call = PutCall(1, "k", "v", function);
    EXPECT_EQ(refused(call).reason(), Reason::kUnknownFunction) << function;
  }
  v1::PutArgs args;
  args.set_space("nowhere");
  call = PutCall(1, "k", "v");
  call.set_args(args.SerializeAsString());
  const Status unknown = refused(call);
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_EQ(unknown.reason(), Reason::kUnknownSpace);
  EXPECT_NE(unknown.message().find("accounts, orders"), std::string::npos) << unknown.ToString();
  v1::TxnArgs txn;
  *txn.add_mutations() = PutOf("k", "v");
  txn.mutable_mutations(0)->set_delete_(true);
  EXPECT_EQ(refused(TxnCall(1, txn)).reason(), Reason::kMalformed);
  txn.Clear();
  *txn.add_conditions() = Cond("k", static_cast<v1::Condition::Kind>(17));
  EXPECT_EQ(refused(TxnCall(1, txn)).reason(), Reason::kMalformed);
  v1::LogEntry entry = s.Entry();
  entry.add_calls("\xff\xff");
  EXPECT_EQ(s.Apply({entry}).at(0).calls.at(0).status.reason(), Reason::kMalformed);
}

TEST(CallsTest, Limits) {
  Shard s;
  EXPECT_TRUE(s.Do(PutCall(1, std::string(kMaxKeyBytes, 'k'), "v")).status.ok());
  EXPECT_EQ(s.Do(PutCall(1, std::string(kMaxKeyBytes + 1, 'k'), "v")).status.reason(),
            Reason::kTooLarge);
  EXPECT_TRUE(s.Do(PutCall(1, "k", std::string(kMaxValueBytes, 'v'))).status.ok());
  EXPECT_EQ(s.Do(PutCall(1, "k", std::string(kMaxValueBytes + 1, 'v'))).status.reason(),
            Reason::kTooLarge);
  v1::TxnArgs args;
  for (int i = 0; i < 4; ++i) {
    *args.add_mutations() = PutOf(std::to_string(i), std::string(kMaxValueBytes - 17, 'v'));
  }
  EXPECT_TRUE(s.Do(TxnCall(1, args)).status.ok()) << "exactly 4 MiB";
  args.mutable_mutations(0)->mutable_put()->push_back('v');
  EXPECT_EQ(s.Do(TxnCall(1, args)).status.reason(), Reason::kTooLarge);
}

TEST(CallsTest, EpochsAndOwnership) {
  Shard s;
  v1::Call call = PutCall(1, "k", "v");
  call.set_epoch(1);
  EXPECT_TRUE(s.Do(call).status.ok());
  call.set_epoch(2);
  const Status newer = s.Do(call).status;
  EXPECT_EQ(newer.reason(), Reason::kWrongBucket) << "the caller knows of a newer owner";
  EXPECT_EQ(newer.code(), Code::kAborted);
  EXPECT_FALSE(newer.hint().destination.has_value());

  Shard b(kB);
  const Status absent = b.Do(PutCall(1, "k", "v")).status;
  EXPECT_EQ(absent.reason(), Reason::kWrongBucket);
  EXPECT_FALSE(absent.hint().destination.has_value());

  // Bucket 1 comes back with epoch 3: who names 1 is behind.
  ASSERT_TRUE(s.Do(QuarantineCommand(1, 1, 2)).ok());
  ASSERT_TRUE(s.Do(ReleaseCommand(1, true)).ok());
  call.set_epoch(1);
  const Status stale = s.Do(call).status;
  EXPECT_EQ(stale.reason(), Reason::kStaleEpoch);
  EXPECT_EQ(stale.hint().epoch, Epoch(3));
  EXPECT_EQ(stale.hint().destination, kA);
  call.set_epoch(0);
  EXPECT_TRUE(s.Do(call).status.ok());
}

TEST(CallsTest, ReadsAndWritesByStatus) {
  Shard s;
  const auto check = [&](std::uint64_t v) {
    return std::pair(s.sm->CheckRead(RoutingValue(v), Epoch()).reason(),
                     s.sm->CheckWrite(RoutingValue(v), Epoch()).reason());
  };
  using P = std::pair<Reason, Reason>;
  ASSERT_TRUE(s.Do(PinCommand({3})).ok());
  EXPECT_EQ(check(3), P(Reason::kNone, Reason::kNone));
  EXPECT_EQ(check(1), P(Reason::kNone, Reason::kNone));
  ASSERT_TRUE(s.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = s.Opened();
  EXPECT_EQ(check(1), P(Reason::kNone, Reason::kNone)) << "writable while it is copied";
  ASSERT_TRUE(s.Do(StepCommand(v1::TransferStep::SENDING, x)).ok());
  EXPECT_EQ(check(1), P(Reason::kNone, Reason::kTransferIsInProgress));
  EXPECT_EQ(s.Do(PutCall(1, "k", "v")).status.code(), Code::kUnavailable);
  ASSERT_TRUE(s.Do(StepCommand(v1::TransferStep::SENT, x)).ok());
  for (const v1::TransferStep::Kind next :
       {v1::TransferStep::SOURCE_GARBAGE, v1::TransferStep::REMOVE, v1::TransferStep::REMOVE}) {
    EXPECT_EQ(check(1), P(Reason::kWrongBucket, Reason::kWrongBucket));
    const Status moved = s.Do(PutCall(1, "k", "v")).status;
    EXPECT_EQ(moved.hint().destination, kB);
    EXPECT_EQ(moved.hint().epoch, Epoch(2));
    (void)s.Do(StepCommand(next, x));
  }
  ASSERT_TRUE(s.Do(QuarantineCommand(2, 1, 9)).ok());
  EXPECT_EQ(check(2), P(Reason::kQuarantined, Reason::kQuarantined));

  // Arriving: no destination.
  ASSERT_TRUE(s.Do(ReceivingCommand({kB, Term(1), LogIndex(5)}, 0, {{1, 2}})).ok());
  EXPECT_EQ(check(1), P(Reason::kTransferIsInProgress, Reason::kTransferIsInProgress));
  EXPECT_FALSE(s.Do(PutCall(1, "k", "v")).status.hint().destination.has_value());
  EXPECT_EQ(s.Get(1, "k"), std::nullopt);
}

TEST(CallsTest, GetOfAnUnknownSpace) {
  Shard s;
  v1::GetArgs args;
  args.set_space("nowhere");
  EXPECT_EQ(s.sm->Get(RoutingValue(1), args).status().reason(), Reason::kUnknownSpace);
  EXPECT_EQ(s.sm->SpaceName(SpaceId(2)), "accounts");
  EXPECT_EQ(s.sm->SpaceName(SpaceId(3)), "");
}

}  // namespace
}  // namespace etalon::bucket::testing
