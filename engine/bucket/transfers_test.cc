#include "engine/bucket/commands.h"
#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

using Told = std::vector<std::string>;
using Step = v1::TransferStep;

v1::ChunkPayload One(std::uint64_t value, std::string key, std::string data,
                     SpaceId space = SpaceId(1)) {
  v1::ChunkPayload payload;
  v1::ChunkRecord& record = *payload.add_records();
  record.set_key(store::DataKey(RoutingValue(value), kBuckets, space, key));
  record.set_value(std::move(data));
  return payload;
}

v1::ChunkPayload Tombstone(std::uint64_t value, std::string key) {
  v1::ChunkPayload payload = One(value, std::move(key), "");
  payload.mutable_records(0)->set_tombstone(true);
  return payload;
}

TEST(TransfersTest, AWholeMove) {
  Shard a;
  Shard b(kB);
  a.DoAll({PutCall(1, "x", "1"), PutCall(1, "y", "2"), PutCall(2, "z", "3")});
  a.observer.Take();
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  EXPECT_EQ(a.observer.Take(), (Told{"row 1 ACTIVE", "opened " + ToString(x)}));
  EXPECT_EQ(a.sm->outgoing().at(x).target, kB);
  EXPECT_EQ(a.sm->outgoing().at(x).set, (std::vector<BucketEpoch>{{1, Epoch(1)}}));
  const v1::ChunkPayload snapshot = a.Copy({1});
  EXPECT_EQ(snapshot.records_size(), 2);

  // Writes go on; those of the bucket are told.
  a.DoAll({PutCall(1, "x", "4"), PutCall(2, "z", "5"), DeleteCall(1, "y"),
           PutCall(1, "x", "9", "insert")});
  EXPECT_EQ(a.observer.Take(), (Told{"key 1", "key 1"}));
  EXPECT_EQ(a.observer.keys[0], store::DataKey(RoutingValue(1), kBuckets, SpaceId(1), "x"));
  EXPECT_EQ(a.observer.keys[1], store::DataKey(RoutingValue(1), kBuckets, SpaceId(1), "y"));

  // The target has remains in its range: they go first.
  b.store.map[store::DataKey(RoutingValue(1), kBuckets, SpaceId(1), "old")] = "?";
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  EXPECT_EQ(b.observer.Take(), (Told{"row 1 RECEIVING", "incoming " + ToString(x)}));
  EXPECT_EQ(b.sm->FindRow(1)->epoch, Epoch(2));
  EXPECT_EQ(b.Get(1, "old"), std::nullopt);
  ChunkCutter cutter(x);
  ASSERT_TRUE(b.Do(cutter.Cut(snapshot)).ok());
  EXPECT_EQ(b.observer.Take(), (Told{"incoming " + ToString(x)}));
  ASSERT_TRUE(b.Do(cutter.Cut(One(1, "x", "4"))).ok());

  ASSERT_TRUE(a.Do(StepCommand(Step::SENDING, x)).ok());
  EXPECT_EQ(a.observer.Take(), (Told{"row 1 SENDING", "outgoing " + ToString(x)}));
  EXPECT_EQ(a.sm->outgoing().at(x).sending_index, a.sm->applied_index());
  EXPECT_EQ(b.Do(StepCommand(Step::ACTIVATE, x)).reason(), Reason::kBucketInvalidUpdate)
      << "not prepared";
  ASSERT_TRUE(b.Do(cutter.Cut(Tombstone(1, "y"), true)).ok());
  EXPECT_TRUE(b.sm->incoming().at(x).prepared);

  ASSERT_TRUE(a.Do(StepCommand(Step::SENT, x)).ok());
  const Marks left = a.sm->FindMarks(1);
  EXPECT_EQ(left, (Marks{.own = Epoch(1), .left_epoch = Epoch(1), .left = x, .left_to = kB}));
  EXPECT_EQ(a.Do(StepCommand(Step::ABORT, x)).reason(), Reason::kBucketInvalidUpdate)
      << "an ABORT after SENT fails";

  b.observer.Take();
  ASSERT_TRUE(b.Do(StepCommand(Step::ACTIVATE, x)).ok());
  EXPECT_EQ(b.observer.Take(), (Told{"row 1 ACTIVE", "incoming " + ToString(x)}));
  EXPECT_TRUE(b.sm->incoming().empty());
  EXPECT_EQ(*b.sm->FindRow(1), (Row{.status = RowStatus::kActive, .epoch = Epoch(2)}));
  EXPECT_EQ(b.sm->FindMarks(1).own, Epoch(2));
  EXPECT_EQ(b.Copy({1}).SerializeAsString(), a.Copy({1}).SerializeAsString());
  EXPECT_EQ(b.Get(1, "x"), "4");
  EXPECT_TRUE(b.Do(PutCall(1, "x", "5")).status.ok());

  a.observer.Take();
  EXPECT_EQ(a.Do(StepCommand(Step::REMOVE, x)).reason(), Reason::kBucketInvalidUpdate);
  ASSERT_TRUE(a.Do(StepCommand(Step::SOURCE_GARBAGE, x)).ok());
  EXPECT_EQ(a.Copy({1}).records_size(), 1);
  ASSERT_TRUE(a.Do(StepCommand(Step::REMOVE, x)).ok());
  EXPECT_EQ(a.observer.Take(), (Told{"row 1 GARBAGE", "outgoing " + ToString(x), "row 1 gone",
                                     "outgoing " + ToString(x)}));
  EXPECT_EQ(a.Copy({1}).records_size(), 0);
  EXPECT_EQ(a.Get(2, "z"), "5") << "the neighbour keeps its records";
  EXPECT_EQ(a.sm->FindMarks(1), left) << "marks stay";
  EXPECT_TRUE(a.sm->outgoing().empty());
}

TEST(TransfersTest, TheStoreIsExactWhenOpenedIsTold) {
  Shard a;
  Map at_open;
  a.observer.on_opened = [&](const Outgoing&) { at_open = a.store.map; };
  const auto outcomes = a.Apply({a.Entry(std::vector<v1::Call>{PutCall(1, "x", "before")}),
                                 a.Entry(OpenCommand(kB, 0, {{1, 1}})),
                                 a.Entry(std::vector<v1::Call>{PutCall(1, "x", "after")})});
  ASSERT_TRUE(outcomes.at(1).control->ok());
  const std::string key = store::DataKey(RoutingValue(1), kBuckets, SpaceId(1), "x");
  EXPECT_EQ(at_open.at(key), "before");
  v1::StateHeader header;
  ASSERT_TRUE(header.ParseFromString(at_open.at(store::MetaKey("state/header"))));
  EXPECT_EQ(header.applied_index(), outcomes[1].index.value());
  EXPECT_EQ(a.observer.told.back(), "key 1") << "what comes after is told";
  EXPECT_EQ(a.store.map.at(key), "after");
}

TEST(TransfersTest, OpenIsRefused) {
  Shard a;
  const auto reason = [&](const v1::Control& control) { return a.Do(control).reason(); };
  EXPECT_EQ(reason(OpenCommand(kA, 0, {{1, 1}})), Reason::kMoveToSelf);
  EXPECT_EQ(reason(OpenCommand(ShardUid(99), 0, {{1, 1}})), Reason::kNoSuchReplicaset);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{1, 2}})), Reason::kStaleEpoch);
  EXPECT_EQ(reason(OpenCommand(kB, 1, {{1, 1}})), Reason::kBucketOutOfRange);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {})), Reason::kMalformed);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{1, 1}, {1, 1}})), Reason::kMalformed);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{kBuckets, 1}})), Reason::kMalformed);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{1, 0}})), Reason::kMalformed);
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{1, UINT64_MAX}})), Reason::kMalformed);
  ASSERT_TRUE(a.Do(PinCommand({0})).ok());
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{0, 1}})), Reason::kBucketIsPinned);
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{2, 1}})).ok());
  EXPECT_EQ(reason(OpenCommand(kC, 0, {{1, 1}, {2, 1}})), Reason::kTransferPending);
  EXPECT_FALSE(a.sm->FindRow(1)->transfer) << "all of the set or none";
  EXPECT_EQ(reason(PinCommand({1, 2})), Reason::kTransferPending);
  EXPECT_EQ(a.StatusOf(1), RowStatus::kActive) << "all of the command or none";

  v1::Settings settings;
  settings.set_version(5);
  ASSERT_TRUE(a.Do(SettingsCommand(settings)).ok());
  v1::Control order = OpenCommand(kB, 0, {{1, 1}});
  order.mutable_open()->set_settings_version(4);
  EXPECT_EQ(reason(order), Reason::kStaleTopology);
  v1::ShardSettings& mine = *settings.add_shards();
  mine.set_uid(kA.value());
  mine.set_locked(true);
  settings.set_version(6);
  ASSERT_TRUE(a.Do(SettingsCommand(settings)).ok());
  EXPECT_TRUE(a.sm->locked());
  EXPECT_EQ(a.sm->outgoing().size(), 1u) << "a lock aborts nothing by itself";
  EXPECT_EQ(reason(OpenCommand(kB, 0, {{1, 1}})), Reason::kReplicasetIsLocked);
  settings.set_version(7);
  settings.mutable_shards(0)->set_uid(kB.value());
  ASSERT_TRUE(a.Do(SettingsCommand(settings)).ok());
  v1::Topology topology = TestTopology();
  topology.set_version(2);
  topology.mutable_shards()->RemoveLast();
  topology.add_removed_shards(kC.value());
  ASSERT_TRUE(a.Do(TopologyCommand(topology)).ok());
  EXPECT_EQ(reason(OpenCommand(kC, 0, {{1, 1}})), Reason::kNoSuchReplicaset);
  order.mutable_open()->set_settings_version(7);
  EXPECT_TRUE(a.Do(order).ok());

  v1::FormRequest incomplete = TestForm(kA);
  incomplete.mutable_topology()->set_complete(false);
  Shard young(incomplete);
  EXPECT_EQ(young.Do(OpenCommand(kB, 0, {{1, 1}})).reason(), Reason::kCollectionIncomplete);
  EXPECT_EQ(young.Do(ReceivingCommand({kB, Term(1), LogIndex(3)}, 0, {{1, 1}})).reason(),
            Reason::kCollectionIncomplete);
}

TEST(TransfersTest, ReceivingIsRefused) {
  Shard b(kB);
  const TransferId x{kA, Term(1), LogIndex(5)};
  const auto reason = [&](const v1::Control& control) { return b.Do(control).reason(); };
  EXPECT_EQ(reason(ReceivingCommand({}, 0, {{1, 1}})), Reason::kMalformed);
  EXPECT_EQ(reason(ReceivingCommand({kB, Term(1), LogIndex(2)}, 0, {{1, 1}})), Reason::kMoveToSelf);
  EXPECT_EQ(reason(ReceivingCommand(x, 0, {})), Reason::kMalformed);
  const Status low = b.Do(ReceivingCommand(x, 1, {{1, 1}}));
  EXPECT_EQ(low.reason(), Reason::kTransferPending) << "rebase first";
  EXPECT_EQ(low.hint().number, 1u);
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}, {2, 1}})).ok());
  EXPECT_EQ(reason(ReceivingCommand({kC, Term(1), LogIndex(5)}, 0, {{2, 1}, {3, 1}})),
            Reason::kBucketInvalidUpdate);
  EXPECT_EQ(b.StatusOf(3), std::nullopt);
  ASSERT_TRUE(b.Do(ChunkCutter(x).Cut(v1::ChunkPayload(), true)).ok());
  ASSERT_TRUE(b.Do(StepCommand(Step::ACTIVATE, x)).ok());

  // The bucket goes on to C; the delayed order of x must not take it again.
  ASSERT_TRUE(b.Do(OpenCommand(kC, 0, {{1, 2}})).ok());
  const TransferId y = b.Opened();
  for (const auto kind : {Step::SENDING, Step::SENT, Step::SOURCE_GARBAGE, Step::REMOVE}) {
    ASSERT_TRUE(b.Do(StepCommand(kind, y)).ok());
  }
  EXPECT_EQ(reason(ReceivingCommand(x, 0, {{1, 1}})), Reason::kStaleEpoch);
  EXPECT_TRUE(b.Do(ReceivingCommand({kC, Term(1), LogIndex(8)}, 0, {{1, 3}})).ok())
      << "and back again later";

  v1::Settings settings;
  settings.set_version(1);
  settings.add_shards()->set_uid(kB.value());
  settings.mutable_shards(0)->set_locked(true);
  ASSERT_TRUE(b.Do(SettingsCommand(settings)).ok());
  EXPECT_EQ(reason(ReceivingCommand({kC, Term(1), LogIndex(9)}, 0, {{3, 1}})),
            Reason::kReplicasetIsLocked);
}

TEST(TransfersTest, AHigherLevelExpandsTheSet) {
  Shard b(kB);
  ASSERT_TRUE(b.Do(RebaseCommand(2)).ok());
  const TransferId x{kA, Term(1), LogIndex(5)};
  // One half was here at a later epoch: refused as a whole.
  ASSERT_TRUE(b.Do(ReceivingCommand({kA, Term(1), LogIndex(3)}, 1, {{1, 4}})).ok());
  EXPECT_EQ(b.sm->rows().size(), 2u) << "1 and 9 of modulus 16";
  ASSERT_TRUE(b.Do(StepCommand(Step::TARGET_GARBAGE, {kA, Term(1), LogIndex(3)})).ok());
  ASSERT_TRUE(b.Do(StepCommand(Step::REMOVE, {kA, Term(1), LogIndex(3)})).ok());
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}, {3, 7}})).ok());
  EXPECT_EQ(b.sm->rows().size(), 8u);
  for (const std::uint32_t bucket : {1u, 5u, 9u, 13u}) {
    EXPECT_EQ(b.sm->FindRow(bucket)->epoch, Epoch(2));
    EXPECT_EQ(b.sm->FindRow(bucket + 2)->epoch, Epoch(8));
  }
  ASSERT_TRUE(b.Do(ChunkCutter(x).Cut(One(13, "k", "v"), true)).ok());
  ASSERT_TRUE(b.Do(StepCommand(Step::ACTIVATE, x)).ok());
  EXPECT_EQ(b.sm->counts().active(), 8u);
  EXPECT_EQ(b.sm->FindMarks(15).own, Epoch(8));
  EXPECT_EQ(b.Get(13, "k"), "v");
  EXPECT_EQ(b.Do(ReceivingCommand({kC, Term(1), LogIndex(1)}, 0, {{2, 1}, {1, 1}})).reason(),
            Reason::kBucketInvalidUpdate);
}

TEST(TransfersTest, ChunksAreTakenInOrderOnce) {
  Shard b(kB);
  const TransferId x{kA, Term(1), LogIndex(5)};
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  ChunkCutter cutter(x);
  const v1::Control first = cutter.Cut(One(1, "a", "1"));
  const v1::Control second = cutter.Cut(One(1, "a", "2"));
  const v1::Control third = cutter.Cut(One(1, "b", "3"), true);
  const Status early = b.Do(second);
  EXPECT_EQ(early.reason(), Reason::kTransferPending);
  EXPECT_EQ(early.hint().number, 1u);
  EXPECT_TRUE(b.Do(first).ok());
  EXPECT_TRUE(b.Do(second).ok());
  EXPECT_TRUE(b.Do(first).ok()) << "a duplicate is success";
  EXPECT_EQ(b.Get(1, "a"), "2") << "and changes nothing";
  EXPECT_EQ(b.Do(StepCommand(Step::ACTIVATE, x)).reason(), Reason::kBucketInvalidUpdate);

  v1::Control damaged = third;
  damaged.mutable_chunk()->set_crc(damaged.chunk().crc() ^ 1);
  EXPECT_EQ(b.Do(damaged).reason(), Reason::kCorrupt);
  EXPECT_FALSE(b.sm->incoming().at(x).mismatch) << "the source's bytes may be right";
  EXPECT_TRUE(b.Do(third).ok());
  EXPECT_TRUE(b.Do(third).ok());
  v1::Control fourth = cutter.Cut(One(1, "b", "4"));
  EXPECT_EQ(b.Do(fourth).reason(), Reason::kBucketInvalidUpdate) << "none after PREPARED";
  EXPECT_EQ(b.Get(1, "b"), "3");
  EXPECT_EQ(b.Do(ChunkCutter({kA, Term(1), LogIndex(6)}).Cut(One(1, "b", "4"))).reason(),
            Reason::kUnknownTransfer);
}

TEST(TransfersTest, AWholeThatDiffersIsRememberedAndNeverActivated) {
  const TransferId x{kA, Term(1), LogIndex(5)};
  const auto try_last = [&](const std::function<void(v1::Chunk*)>& spoil) {
    Shard b(kB);
    EXPECT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
    ChunkCutter cutter(x);
    EXPECT_TRUE(b.Do(cutter.Cut(One(1, "a", "1"))).ok());
    v1::Control last = cutter.Cut(One(1, "b", "2"), true);
    spoil(last.mutable_chunk());
    const Status status = b.Do(last);
    if (status.ok()) return true;
    EXPECT_EQ(status.reason(), Reason::kCorrupt);
    EXPECT_TRUE(b.sm->incoming().at(x).mismatch);
    EXPECT_FALSE(b.sm->incoming().at(x).prepared);
    EXPECT_EQ(b.sm->incoming().at(x).next_number, 2u);
    EXPECT_EQ(b.Get(1, "b"), std::nullopt);
    EXPECT_EQ(b.observer.told.back(), "incoming " + ToString(x)) << "so that the source is told";
    EXPECT_EQ(b.Do(StepCommand(Step::ACTIVATE, x)).reason(), Reason::kBucketInvalidUpdate);
    EXPECT_EQ(b.Do(last).reason(), Reason::kCorrupt) << "nothing more is taken";
    EXPECT_TRUE(b.Do(StepCommand(Step::TARGET_GARBAGE, x)).ok());
    EXPECT_TRUE(b.Do(StepCommand(Step::REMOVE, x)).ok());
    EXPECT_TRUE(b.sm->incoming().empty());
    EXPECT_EQ(b.Get(1, "a"), std::nullopt);
    return false;
  };
  EXPECT_TRUE(try_last([](v1::Chunk*) {}));
  EXPECT_FALSE(try_last([](v1::Chunk* c) { c->set_hash(c->hash() + 1); }));
  EXPECT_FALSE(try_last([](v1::Chunk* c) { c->set_records(c->records() + 1); }));
  EXPECT_FALSE(try_last([](v1::Chunk* c) { c->set_bytes(c->bytes() + 1); }));
}

TEST(TransfersTest, AChunkMustBeOfTheSet) {
  const TransferId x{kA, Term(1), LogIndex(5)};
  const auto taken = [&](const v1::ChunkPayload& payload) {
    Shard b(kB);
    EXPECT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
    EXPECT_TRUE(b.Do(ReceivingCommand({kC, Term(1), LogIndex(1)}, 0, {{3, 1}})).ok());
    const Status status = b.Do(ChunkCutter(x).Cut(payload));
    EXPECT_EQ(b.sm->incoming().at(x).mismatch, !status.ok());
    EXPECT_EQ(b.Copy({0, 1, 2, 3}).records_size(), status.ok() ? payload.records_size() : 0);
    return status.ok();
  };
  EXPECT_TRUE(taken(One(1, "k", "v")));
  EXPECT_TRUE(taken(One(1 + kBuckets, "k", "v"))) << "another routing value of the bucket";
  EXPECT_FALSE(taken(One(2, "k", "v"))) << "not here";
  EXPECT_FALSE(taken(One(3, "k", "v"))) << "of another transfer";
  EXPECT_FALSE(taken(One(1, "k", "v", SpaceId(0))));
  EXPECT_FALSE(taken(One(1, "k", "v", store::kRequestSpace)));
  EXPECT_FALSE(taken(One(1, std::string(16, 'k'), "short", store::kRequestSpace)));
  EXPECT_FALSE(taken(One(1, std::string(16, 'k'), "12345678\xff\xff\xff", store::kRequestSpace)));
  v1::ChunkPayload payload = One(1, "good", "v");
  payload.add_records()->set_key(store::MetaKey("state/header"));
  EXPECT_FALSE(taken(payload)) << "and then nothing of it is written";
  payload.mutable_records(1)->set_key("\x01");
  EXPECT_FALSE(taken(payload));

  Shard b(kB);
  EXPECT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  EXPECT_FALSE(b.Do(ChunkCutter(x).Cut("\xff\xff", v1::ChunkPayload(), false)).ok());
  EXPECT_TRUE(b.sm->incoming().at(x).mismatch);
}

TEST(TransfersTest, GarbageJudgedOnNotPreparedFailsOncePrepared) {
  Shard b(kB);
  const TransferId x{kA, Term(1), LogIndex(5)};
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  ASSERT_TRUE(b.Do(ChunkCutter(x).Cut(One(1, "k", "v"), true)).ok());
  v1::Control garbage = StepCommand(Step::TARGET_GARBAGE, x);
  garbage.mutable_step()->set_only_unprepared(true);
  EXPECT_EQ(b.Do(garbage).reason(), Reason::kBucketInvalidUpdate);
  EXPECT_EQ(b.StatusOf(1), RowStatus::kReceiving);
  garbage.mutable_step()->set_only_unprepared(false);
  EXPECT_TRUE(b.Do(garbage).ok());
  EXPECT_EQ(b.Do(StepCommand(Step::ACTIVATE, x)).reason(), Reason::kBucketInvalidUpdate);
  EXPECT_EQ(b.sm->FindMarks(1).own, Epoch()) << "it was never active here";
  EXPECT_TRUE(b.Do(StepCommand(Step::REMOVE, x)).ok());
  EXPECT_TRUE(b.sm->rows().empty());

  Shard c(kC);
  ASSERT_TRUE(c.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  garbage.mutable_step()->set_only_unprepared(true);
  EXPECT_TRUE(c.Do(garbage).ok());
}

TEST(TransfersTest, AbortLeavesTheSourceAsItWas) {
  for (const bool frozen : {false, true}) {
    Shard a;
    a.DoAll({PutCall(1, "k", "v")});
    const auto rows = a.sm->rows();
    const auto marks = a.sm->marks();
    ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}, {2, 1}})).ok());
    const TransferId x = a.Opened();
    if (frozen) {
      ASSERT_TRUE(a.Do(StepCommand(Step::SENDING, x)).ok());
    }
    a.observer.Take();
    ASSERT_TRUE(a.Do(StepCommand(Step::ABORT, x)).ok());
    EXPECT_EQ(a.observer.Take(), (Told{"row 1 ACTIVE", "row 2 ACTIVE", "outgoing " + ToString(x)}));
    EXPECT_EQ(a.sm->rows(), rows);
    EXPECT_EQ(a.sm->marks(), marks);
    EXPECT_TRUE(a.sm->outgoing().empty());
    EXPECT_EQ(a.Do(StepCommand(Step::SENDING, x)).reason(), Reason::kBucketInvalidUpdate);
    EXPECT_EQ(a.Do(StepCommand(Step::ABORT, x)).reason(), Reason::kBucketInvalidUpdate);
    a.DoAll({PutCall(1, "k", "w")});
    EXPECT_TRUE(a.observer.Take().empty()) << "nothing is captured any more";
  }
}

TEST(TransfersTest, TheRangesOfASetAreRemovedAndNothingBetween) {
  Shard a(kA, 8);
  for (std::uint64_t v = 0; v < 16; ++v) a.DoAll({PutCall(v, "k", "v")});
  ASSERT_TRUE(a.Do(RebaseCommand(1)).ok());
  // Neighbours in the order of the store (2, 10; 10 and 3), and one alone.
  ASSERT_TRUE(a.Do(OpenCommand(kB, 1, {{2, 1}, {10, 1}, {3, 1}, {7, 1}})).ok());
  const TransferId x = a.Opened();
  for (const auto kind : {Step::SENDING, Step::SENT, Step::SOURCE_GARBAGE, Step::REMOVE}) {
    ASSERT_TRUE(a.Do(StepCommand(kind, x)).ok());
  }
  for (std::uint64_t v = 0; v < 16; ++v) {
    const bool gone = v == 2 || v == 10 || v == 3 || v == 7;
    EXPECT_EQ(a.Get(v, "k").has_value(), !gone) << v;
  }
}

TEST(TransfersTest, UnknownStepsAreRefused) {
  Shard a;
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  EXPECT_FALSE(a.Do(StepCommand(Step::UNKNOWN, x)).ok());
  EXPECT_FALSE(a.Do(StepCommand(static_cast<Step::Kind>(55), x)).ok());
  EXPECT_FALSE(a.Do(StepCommand(Step::ACTIVATE, x)).ok()) << "a step of the target";
}

TEST(TransfersTest, QuarantineAbortsTheTransferOfItsSet) {
  for (const bool frozen : {false, true}) {
    Shard a;
    ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}, {2, 1}})).ok());
    const TransferId x = a.Opened();
    if (frozen) {
      ASSERT_TRUE(a.Do(StepCommand(Step::SENDING, x)).ok());
    }
    EXPECT_EQ(a.Do(QuarantineCommand(1, 2, 3)).reason(), Reason::kStaleEpoch);
    EXPECT_EQ(a.Do(QuarantineCommand(1, 1, 1)).reason(), Reason::kMalformed) << "no proof";
    EXPECT_EQ(a.sm->outgoing().size(), 1u);
    ASSERT_TRUE(a.Do(QuarantineCommand(1, 1, 3)).ok());
    EXPECT_EQ(*a.sm->FindRow(1),
              (Row{.status = RowStatus::kQuarantined, .epoch = Epoch(1), .own_seen = Epoch(3)}));
    EXPECT_EQ(a.StatusOf(2), RowStatus::kActive);
    EXPECT_FALSE(a.sm->FindRow(2)->transfer);
    EXPECT_TRUE(a.sm->outgoing().empty());
  }
  Shard a;
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  ASSERT_TRUE(a.Do(StepCommand(Step::SENDING, x)).ok());
  ASSERT_TRUE(a.Do(StepCommand(Step::SENT, x)).ok());
  EXPECT_EQ(a.Do(QuarantineCommand(1, 1, 3)).reason(), Reason::kBucketInvalidUpdate);
}

TEST(TransfersTest, ReleaseOfAQuarantine) {
  Shard a;
  a.DoAll({PutCall(1, "k", "v"), PutCall(2, "k", "v")});
  ASSERT_TRUE(a.Do(QuarantineCommand(1, 1, 7)).ok());
  ASSERT_TRUE(a.Do(ReleaseCommand(1, true)).ok());
  EXPECT_EQ(*a.sm->FindRow(1), (Row{.status = RowStatus::kActive, .epoch = Epoch(8)}))
      << "above the owner that was seen";
  EXPECT_EQ(a.sm->FindMarks(1).own, Epoch(8));
  EXPECT_EQ(a.Get(1, "k"), "v");

  ASSERT_TRUE(a.Do(QuarantineCommand(2, 1, 7)).ok());
  ASSERT_TRUE(a.Do(ReleaseCommand(2, false)).ok());
  const TransferId x = a.Opened();
  EXPECT_EQ(a.StatusOf(2), RowStatus::kGarbage);
  EXPECT_EQ(a.sm->outgoing().at(x).target, ShardUid());
  EXPECT_EQ(a.observer.told.back(), "outgoing " + ToString(x)) << "not opened: nothing is sent";
  EXPECT_FALSE(a.sm->CheckRead(RoutingValue(2), Epoch()).hint().destination.has_value());
  EXPECT_EQ(a.Get(2, "k"), "v");
  ASSERT_TRUE(a.Do(StepCommand(Step::REMOVE, x)).ok());
  EXPECT_EQ(a.sm->FindRow(2), nullptr);
  EXPECT_EQ(a.Get(2, "k"), std::nullopt);
}

TEST(TransfersTest, AnOlderDestinationIsNotNamed) {
  Shard a;
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  for (const auto kind : {Step::SENDING, Step::SENT, Step::SOURCE_GARBAGE, Step::REMOVE}) {
    ASSERT_TRUE(a.Do(StepCommand(kind, x)).ok());
  }
  EXPECT_EQ(a.sm->CheckRead(RoutingValue(1), Epoch()).hint().destination, kB);
  const TransferId back{kB, Term(1), LogIndex(5)};
  ASSERT_TRUE(a.Do(ReceivingCommand(back, 0, {{1, 2}})).ok());
  ASSERT_TRUE(a.Do(ChunkCutter(back).Cut(v1::ChunkPayload(), true)).ok());
  ASSERT_TRUE(a.Do(StepCommand(Step::ACTIVATE, back)).ok());
  ASSERT_TRUE(a.Do(QuarantineCommand(1, 3, 4)).ok());
  ASSERT_TRUE(a.Do(ReleaseCommand(1, false)).ok());
  const Status elsewhere = a.sm->CheckRead(RoutingValue(1), Epoch());
  EXPECT_EQ(elsewhere.reason(), Reason::kWrongBucket);
  EXPECT_FALSE(elsewhere.hint().destination.has_value()) << "it left B for here long ago";
}

TEST(RebaseTest, CopiesRowsAndMarks) {
  Shard a;
  ASSERT_TRUE(a.Do(PinCommand({0})).ok());
  ASSERT_TRUE(a.Do(QuarantineCommand(3, 1, 2)).ok());
  ASSERT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
  const TransferId x = a.Opened();
  for (const auto kind : {Step::SENDING, Step::SENT, Step::SOURCE_GARBAGE}) {
    EXPECT_EQ(a.Do(RebaseCommand(1)).reason(), Reason::kTransferPending);
    ASSERT_TRUE(a.Do(StepCommand(kind, x)).ok());
  }
  EXPECT_EQ(a.Do(RebaseCommand(1)).reason(), Reason::kTransferPending);
  ASSERT_TRUE(a.Do(StepCommand(Step::REMOVE, x)).ok());
  a.observer.Take();
  ASSERT_TRUE(a.Do(RebaseCommand(2)).ok());
  EXPECT_EQ(a.observer.Take(), (Told{"rebase 2"}));
  EXPECT_EQ(a.sm->level(), 2);
  EXPECT_EQ(a.sm->modulus(), 16u);
  EXPECT_EQ(a.sm->rows().size(), 12u);
  for (std::uint32_t bucket = 0; bucket < 16; ++bucket) {
    const Row* row = a.sm->FindRow(bucket);
    const Row* origin = a.sm->FindRow(bucket % 4);
    ASSERT_EQ(row == nullptr, origin == nullptr);
    if (row != nullptr) {
      EXPECT_EQ(*row, *origin);
    }
    EXPECT_EQ(a.sm->FindMarks(bucket), a.sm->FindMarks(bucket % 4));
  }
  EXPECT_EQ(a.sm->FindMarks(13).left_to, kB);
  EXPECT_EQ(a.sm->counts().pinned(), 4u);
  EXPECT_TRUE(a.Do(RebaseCommand(2)).ok()) << "absolute";
  EXPECT_TRUE(a.Do(RebaseCommand(0)).ok());
  EXPECT_EQ(a.sm->level(), 2);
  EXPECT_EQ(a.Do(RebaseCommand(19)).reason(), Reason::kModulusCap);
  EXPECT_EQ(a.Do(RebaseCommand(200)).reason(), Reason::kModulusCap);
  EXPECT_EQ(a.Do(RebaseCommand(UINT32_MAX)).reason(), Reason::kModulusCap);

  // Commands that name a lower level mean all halves; a higher one is not understood.
  ASSERT_TRUE(a.Do(PinCommand({0}, true, 1)).ok());
  EXPECT_EQ(a.sm->counts().pinned(), 2u) << "0 and 8 of modulus 16 are free";
  EXPECT_EQ(a.Do(PinCommand({0}, true, 3)).reason(), Reason::kBucketOutOfRange);
  EXPECT_EQ(a.Do(PinCommand({8}, true, 1)).reason(), Reason::kBucketOutOfRange);
  ASSERT_TRUE(a.Do(ReleaseCommand(3, false, 0)).ok());
  EXPECT_EQ(a.sm->counts().garbage(), 4u);
  ASSERT_TRUE(a.Do(StepCommand(Step::REMOVE, a.Opened())).ok());
  EXPECT_EQ(a.sm->rows().size(), 8u);
}

TEST(RebaseTest, RefusedWhileReceiving) {
  Shard b(kB);
  ASSERT_TRUE(b.Do(ReceivingCommand({kA, Term(1), LogIndex(5)}, 0, {{1, 1}})).ok());
  EXPECT_EQ(b.Do(RebaseCommand(1)).reason(), Reason::kTransferPending);
}

TEST(RowsTest, ChunkHashDependsOnEveryPart) {
  const std::uint64_t h = ChainChunk(0, 1, 2);
  EXPECT_NE(h, ChainChunk(0, 2, 2));
  EXPECT_NE(h, ChainChunk(0, 1, 3));
  EXPECT_NE(h, ChainChunk(1, 1, 2));
  EXPECT_NE(ChainChunk(h, 2, 5), ChainChunk(ChainChunk(0, 2, 5), 1, 2)) << "order counts";
  EXPECT_EQ(h, 0xd4af77485fb169f1u)
      << "both sides of a transfer may be of different versions: never change it";
}

}  // namespace
}  // namespace etalon::bucket::testing
