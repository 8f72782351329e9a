#include "engine/bucket/commands.h"
#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

TEST(TopologyTest, NewerVersionsOnly) {
  Shard a;
  v1::Topology next = TestTopology();
  next.set_version(3);
  next.add_spaces()->set_name("invoices");
  next.mutable_spaces(2)->set_number(9);
  EXPECT_FALSE(a.sm->FindSpace("invoices").ok());
  ASSERT_TRUE(a.Do(TopologyCommand(next)).ok());
  EXPECT_EQ(a.observer.Take(), (std::vector<std::string>{"topology"}));
  EXPECT_EQ(a.sm->FindSpace("invoices").value(), SpaceId(9));
  EXPECT_TRUE(a.Do(TopologyCommand(next)).ok()) << "the same again";
  EXPECT_TRUE(a.observer.Take().empty());
  v1::Topology other = next;
  other.set_collection_name("renamed");
  EXPECT_EQ(a.Do(TopologyCommand(other)).reason(), Reason::kTopologyConflict);
  const Status old = a.Do(TopologyCommand(TestTopology()));
  EXPECT_EQ(old.reason(), Reason::kStaleTopology);
  EXPECT_EQ(old.hint().number, 3u);
  EXPECT_EQ(a.sm->topology().version(), 3u);
}

TEST(TopologyTest, WhatNeverChanges) {
  Shard a;
  v1::Topology grown = TestTopology();
  grown.set_version(2);
  grown.mutable_shards()->RemoveLast();
  grown.add_removed_shards(kC.value());
  ASSERT_TRUE(a.Do(TopologyCommand(grown)).ok());
  const auto refused = [&](const std::function<void(v1::Topology*)>& change) {
    v1::Topology next = grown;
    next.set_version(3);
    change(&next);
    const Status status = a.Do(TopologyCommand(next));
    EXPECT_TRUE(status.ok() || status.reason() == Reason::kInvalidCfg) << status.ToString();
    return !status.ok();
  };
  EXPECT_TRUE(refused([](v1::Topology* t) { t->set_collection(8); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->set_bucket_count(8); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->mutable_shard_by()->set_field("id"); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->mutable_spaces()->RemoveLast(); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->mutable_spaces(1)->set_number(7); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->mutable_spaces(1)->set_name("other"); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->clear_removed_shards(); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->add_removed_shards(kB.value()); }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->set_complete(false); }));
  EXPECT_TRUE(refused([](v1::Topology* t) {
    *t->add_spaces() = t->spaces(0);
    t->mutable_spaces(2)->set_number(3);
  }));
  EXPECT_TRUE(refused([](v1::Topology* t) {
    t->add_spaces()->set_name("x");
    t->mutable_spaces(2)->set_number(65535);
  }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->add_spaces()->set_name("x"); }));
  EXPECT_TRUE(refused([](v1::Topology* t) {
    t->add_spaces()->set_name("x");
    t->mutable_spaces(2)->set_number(2);
  }));
  EXPECT_TRUE(refused([](v1::Topology* t) {
    *t->add_shards() = t->shards(0);
    t->mutable_shards(2)->set_uid(99);
  }));
  EXPECT_TRUE(refused([](v1::Topology* t) {
    *t->add_shards() = t->shards(0);
    t->mutable_shards(2)->set_name("new");
  }));
  EXPECT_TRUE(refused([](v1::Topology* t) { t->add_shards()->set_name("no-uid"); }));
  EXPECT_FALSE(refused([](v1::Topology* t) { t->set_collection_name("other"); }));
}

TEST(SettingsTest, NewerVersionsOnly) {
  Shard a;
  v1::Settings settings;
  settings.set_version(2);
  settings.set_max_sending(4);
  ASSERT_TRUE(a.Do(SettingsCommand(settings)).ok());
  EXPECT_EQ(a.observer.Take(), (std::vector<std::string>{"settings"}));
  EXPECT_TRUE(a.Do(SettingsCommand(settings)).ok());
  EXPECT_TRUE(a.observer.Take().empty());
  settings.set_max_sending(5);
  EXPECT_EQ(a.Do(SettingsCommand(settings)).reason(), Reason::kTopologyConflict);
  settings.set_version(1);
  EXPECT_EQ(a.Do(SettingsCommand(settings)).reason(), Reason::kStaleTopology);
  EXPECT_EQ(a.sm->settings().max_sending(), 4u);
}

TEST(RetireTest, OnlyWithoutRowsAndForGood) {
  v1::Control retire;
  retire.mutable_retire();
  Shard a;
  const Status full = a.Do(retire);
  EXPECT_EQ(full.reason(), Reason::kNonEmpty);
  EXPECT_EQ(full.hint().number, kBuckets);

  Shard b(kB);
  const TransferId x{kA, Term(1), LogIndex(5)};
  ASSERT_TRUE(b.Do(ReceivingCommand(x, 0, {{1, 1}})).ok());
  EXPECT_EQ(b.Do(retire).reason(), Reason::kNonEmpty);
  ASSERT_TRUE(b.Do(StepCommand(v1::TransferStep::TARGET_GARBAGE, x)).ok());
  EXPECT_EQ(b.Do(retire).reason(), Reason::kNonEmpty);
  ASSERT_TRUE(b.Do(StepCommand(v1::TransferStep::REMOVE, x)).ok());
  ASSERT_TRUE(b.Do(retire).ok());
  EXPECT_TRUE(b.sm->retired());
  EXPECT_TRUE(b.Do(retire).ok());
  EXPECT_EQ(b.Do(ReceivingCommand(x, 0, {{1, 1}})).reason(), Reason::kShardRetired);
  EXPECT_EQ(b.Do(OpenCommand(kA, 0, {{1, 1}})).reason(), Reason::kShardRetired);
  EXPECT_EQ(b.Do(SplitCommand("t", kA)).reason(), Reason::kShardRetired);
}

TEST(FormTest, TheFirstState) {
  v1::FormRequest request = TestForm(kA);
  request.clear_ranges();
  for (const std::uint32_t bucket : {3u, 0u}) {
    v1::BucketRange& range = *request.add_ranges();
    range.set_first(bucket);
    range.set_last(bucket);
  }
  request.mutable_settings()->set_version(4);
  Shard a(request);
  EXPECT_EQ(a.sm->applied_index(), LogIndex(1));
  EXPECT_EQ(a.sm->applied_term(), Term(1));
  EXPECT_EQ(a.sm->version(), kStateVersion);
  EXPECT_EQ(a.sm->collection(), CollectionId(kCollection));
  EXPECT_EQ(a.sm->shard(), kA);
  EXPECT_EQ(a.sm->settings().version(), 4u);
  ASSERT_EQ(a.sm->members().size(), 1u);
  EXPECT_EQ(a.sm->members()[0].name(), "replica-0");
  EXPECT_EQ(a.sm->rows().size(), 2u);
  EXPECT_EQ(*a.sm->FindRow(3), (Row{.status = RowStatus::kActive, .epoch = Epoch(1)}));
  EXPECT_EQ(a.sm->FindMarks(3), (Marks{.own = Epoch(1)}));
  EXPECT_EQ(a.sm->FindRow(1), nullptr);
  EXPECT_EQ(a.sm->FindMarks(1), Marks{});
}

TEST(FormTest, Refusals) {
  const auto code = [](const std::function<void(v1::FormRequest*)>& change) {
    v1::FormRequest request = TestForm(kA);
    change(&request);
    const auto batch = StateMachine::FormState(request);
    return batch.status().code();
  };
  EXPECT_EQ(code([](v1::FormRequest*) {}), Code::kOk);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->clear_ranges(); }), Code::kOk) << "a later shard";
  const Code bad = Code::kInvalidArgument;
  EXPECT_EQ(code([](v1::FormRequest* r) { r->set_collection(0); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->set_collection(1); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->set_shard(0); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->set_shard(99); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->clear_members(); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->add_members(); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { *r->add_members() = r->members(0); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->mutable_ranges(0)->set_last(kBuckets); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->mutable_ranges(0)->set_last(UINT32_MAX); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->add_ranges(); }), bad) << "bucket 0 twice";
  EXPECT_EQ(code([](v1::FormRequest* r) { r->mutable_ranges(0)->set_first(9); }), bad);
  EXPECT_EQ(code([](v1::FormRequest* r) { r->mutable_topology()->set_bucket_count(0); }), bad);
  EXPECT_EQ(
      code([](v1::FormRequest* r) { r->mutable_topology()->set_bucket_count((1 << 20) + 1); }),
      bad);
}

}  // namespace
}  // namespace etalon::bucket::testing
