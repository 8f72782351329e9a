#include "engine/transfer/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "engine/transfer/testing/cluster.h"

namespace etalon::transfer::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions Options(int shards = 2) {
  ClusterOptions options;
  options.seed = 3;
  options.shards = shards;
  options.bucket_count = 4;
  return options;
}

void Pin(Cluster& cluster, std::uint32_t bucket) {
  v1::Control control;
  control.mutable_pin()->add_buckets(bucket);
  cluster.shard(0).Propose(control);
  cluster.RunFor(milliseconds(10));
}

// ---- step 0 -------------------------------------------------------------------------------------

TEST(SourceOrders, RefusedBeforeAnythingIsDone) {
  Cluster cluster(Options());
  Pin(cluster, 3);
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {3}).reason(), Reason::kBucketIsPinned);
  EXPECT_EQ(cluster.MoveAndWait(0, 0, {1}).reason(), Reason::kMoveToSelf);
  EXPECT_EQ(cluster.MoveAndWait(0, 7, {1}).reason(), Reason::kNoSuchReplicaset);
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(cluster.MoveAndWait(1, 0, {1}).reason(), Reason::kWrongBucket);
  cluster.ChangeSettings([](v1::Settings& s) { s.mutable_shards(0)->set_locked(true); });
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {1}).reason(), Reason::kReplicasetIsLocked);
  EXPECT_EQ(cluster.shard(0).applied_controls.count("OPEN"), 0u);
}

TEST(SourceOrders, ARefusalByTheTargetCostsNothing) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  cluster.shard(1).headroom = 0;
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {1}).reason(), Reason::kNoSpaceForTransfer);
  cluster.shard(1).headroom = 1 << 30;
  cluster.ChangeSettings([](v1::Settings& s) { s.mutable_shards(1)->set_locked(true); });
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {1}).reason(), Reason::kReplicasetIsLocked);
  EXPECT_EQ(cluster.shard(0).applied_controls.count("OPEN"), 0u);
  EXPECT_EQ(cluster.shard(0).state().FindRow(1)->epoch, Epoch(1));
}

TEST(SourceOrders, ASilentTargetIsGivenUp) {
  Cluster cluster(Options());
  cluster.shard(1).silent = true;
  const SteadyTime began = cluster.now();
  EXPECT_EQ(cluster.MoveAndWait(0, 1, {1}).reason(), Reason::kUnreachableReplicaset);
  EXPECT_LE(cluster.now() - began, seconds(4));
  EXPECT_EQ(cluster.shard(0).applied_controls.count("OPEN"), 0u);
}

TEST(SourceOrders, SlotsAreCountedAndABucketMovesOnce) {
  ClusterOptions options = Options();
  options.settings.set_max_sending(2);
  Cluster cluster(options);
  Shard& source = cluster.shard(0);
  const OrderId first = source.Move(Cluster::Uid(1), {0});
  const OrderId same = source.Move(Cluster::Uid(1), {0});
  EXPECT_EQ(source.finished.at(same).reason(), Reason::kTransferIsInProgress);
  const OrderId second = source.Move(Cluster::Uid(1), {1});
  const OrderId third = source.Move(Cluster::Uid(1), {2});
  EXPECT_EQ(source.finished.at(third).code(), Code::kResourceExhausted);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(source.finished.at(first).ok());
  EXPECT_TRUE(source.finished.at(second).ok());
}

// ---- the copy -----------------------------------------------------------------------------------

TEST(SourceCopy, ChunksAreBoundedAndResentWithTheSameBytes) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 30, 30'000);
  cluster.Fill(0, 2, 1, 900'000);  // larger than a chunk: one of its own
  cluster.lost = 300;
  std::map<std::uint64_t, std::string> seen;
  std::size_t largest = 0;
  std::size_t again = 0;
  std::uint64_t in_flight = 0;
  std::map<std::uint64_t, std::size_t> sizes;
  std::uint64_t acknowledged = 1;
  cluster.tap = [&](Shard&, transfer::Send& send) {
    if (send.message.has_progress()) {
      acknowledged = std::max(acknowledged, send.message.progress().next_number());
    }
    if (!send.message.has_chunk()) return true;
    EXPECT_EQ(send.lane, Lane::kBulk);
    const v1::Chunk& chunk = send.message.chunk().chunk();
    const auto [it, is_new] = seen.emplace(chunk.number(), chunk.SerializeAsString());
    if (!is_new) {
      ++again;
      EXPECT_EQ(it->second, chunk.SerializeAsString());
    }
    v1::ChunkPayload payload;
    EXPECT_TRUE(payload.ParseFromString(chunk.payload()));
    if (payload.records_size() > 1) largest = std::max(largest, chunk.payload().size());
    sizes[chunk.number()] = chunk.payload().size();
    std::uint64_t unacknowledged = 0;
    for (const auto& [number, size] : sizes) {
      if (number >= acknowledged) unacknowledged += size;
    }
    in_flight = std::max(in_flight, unacknowledged);
    return true;
  };
  EXPECT_TRUE(cluster.MoveAndWait(0, 1, {1, 2}).ok());
  EXPECT_GT(seen.size(), 5u);
  EXPECT_GT(again, 0u);
  EXPECT_LE(largest, kChunkBytes + 4096);
  EXPECT_LE(in_flight, (1u << 20) + (1u << 20));  // the window, and the one chunk that overfills it
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(SourceCopy, TheLimitOfBytesPerSecondHolds) {
  ClusterOptions options = Options();
  options.settings.set_max_transfer_bytes_per_second(1'000'000);
  Cluster cluster(options);
  cluster.Fill(0, 1, 60, 50'000);
  const SteadyTime began = cluster.now();
  EXPECT_TRUE(cluster.MoveAndWait(0, 1, {1}).ok());
  const Duration took = cluster.now() - began;
  EXPECT_GT(took, milliseconds(2400));
  EXPECT_LT(took, milliseconds(4000));
}

TEST(SourceCopy, WritesDuringTheCopyArriveAndTheFreezeIsShort) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 100, 30'000);
  SteadyTime frozen;
  Duration freeze{};
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
    if (before) return;
    if (control.step().kind() == v1::TransferStep::SENDING) frozen = cluster.now();
    if (control.step().kind() == v1::TransferStep::ACTIVATE) freeze = cluster.now() - frozen;
    (void)shard;
  };
  bool moving = true;
  std::function<void()> write = [&] {
    if (!moving) return;
    cluster.RandomWrite(20);
    cluster.After(milliseconds(1), [&] { write(); });
  };
  write();
  EXPECT_TRUE(cluster.MoveAndWait(0, 1, {1}).ok());
  moving = false;
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
  EXPECT_GT(freeze, Duration::zero());
  // Four commits of at most 2 ms, five messages of at most 0.5 ms, and the 5 ms of data.
  EXPECT_LT(freeze, milliseconds(20));
}

TEST(SourceCopy, RoundsThatDoNotShrinkEndIt) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 10, 100'000);
  cluster.latency_min = cluster.latency_max = milliseconds(10);  // about 1 MiB each 20 ms
  bool writing = true;
  std::function<void()> write = [&] {
    if (!writing) return;
    for (int i = 0; i < 10; ++i) {
      cluster.shard(0).ProposePut(1, "r" + std::to_string(i), std::string(100'000, 'y'));
    }
    cluster.After(milliseconds(5), [&] { write(); });
  };
  write();
  const Status status = cluster.MoveAndWait(0, 1, {1});
  writing = false;
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
  EXPECT_NE(status.message().find("faster than it can be copied"), std::string::npos);
  EXPECT_EQ(cluster.shard(0).applied_controls.count("SENDING"), 0u) << "writes were never stopped";
  cluster.RunFor(seconds(10));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(cluster.Owns(0, 1));
  EXPECT_EQ(cluster.shard(1).RecordsInStore(), 0u);
}

TEST(SourceCopy, ResultsOfRequestIdsTravelWithTheRestOfTheirLife) {
  Cluster cluster(Options());
  Status first;
  cluster.shard(0).ProposePut(1, "a", "1", 77, [&](const Status& s) { first = s; });
  cluster.RunFor(milliseconds(20));
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(cluster.MoveAndWait(0, 1, {1}).ok());
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.shard(1).state().live_request_ids(), 1u);
  cluster.shard(1).ProposePut(1, "a", "2", 77);  // the same request again
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.shard(1).Get(1, "a"), "1");
  // 600 s of life went with it, not more.
  cluster.RunFor(seconds(601));
  cluster.shard(1).ProposePut(1, "b", "3");
  cluster.shard(1).ProposePut(1, "b", "3");
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.shard(1).state().live_request_ids(), 0u);
}

// ---- giving up ----------------------------------------------------------------------------------

TEST(SourceAborts, ALockEndsWhatHasNotFrozen) {
  ClusterOptions options = Options();
  options.settings.set_max_transfer_bytes_per_second(2'000'000);
  Cluster cluster(options);
  cluster.Fill(0, 1, 30, 60'000);
  Shard& source = cluster.shard(0);
  const OrderId order = source.Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.shard(1).applied_controls.count("CHUNK") != 0; }));
  cluster.ChangeSettings([](v1::Settings& s) { s.mutable_shards(0)->set_locked(true); });
  ASSERT_TRUE(cluster.RunUntil([&] { return source.finished.count(order) != 0; }));
  EXPECT_EQ(source.finished.at(order).reason(), Reason::kReplicasetIsLocked);
  EXPECT_EQ(source.applied_controls.count("SENDING"), 0u);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(SourceAborts, ALockAfterTheFreezeLetsItFinish) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
    if (control.step().kind() != v1::TransferStep::SENDING || before) return;
    cluster.ChangeSettings([](v1::Settings& s) { s.mutable_shards(0)->set_locked(true); });
    (void)shard;
  };
  EXPECT_TRUE(cluster.MoveAndWait(0, 1, {1}).ok());
}

TEST(SourceAborts, ATargetThatFallsSilentInTheFreezeStopsWritesForASecond) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  Shard& source = cluster.shard(0);
  SteadyTime frozen;
  cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
    if (control.step().kind() != v1::TransferStep::SENDING || before) return;
    frozen = cluster.now();
    cluster.shard(1).silent = true;
  };
  const OrderId order = source.Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return source.held.size() == 1; }));
  ASSERT_TRUE(cluster.RunUntil([&] { return source.finished.count(order) != 0; }));
  EXPECT_GE(cluster.now() - frozen, seconds(1));
  EXPECT_LE(cluster.now() - frozen, milliseconds(1050));
  EXPECT_EQ(source.finished.at(order).reason(), Reason::kUnreachableReplicaset);
  ASSERT_EQ(source.released.size(), 1u);
  EXPECT_FALSE(source.released[0].second.moved.has_value()) << "the writes are tried again here";
  EXPECT_TRUE(cluster.Owns(0, 1));
  cluster.shard(1).silent = false;
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(SourceAborts, ASilentTargetNeverMakesItFreeze) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  cluster.shard(0).refs[1] = 1;  // holds it at the gate
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).closed.count(1) != 0; }));
  cluster.shard(1).silent = true;
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).closed.count(1) == 0; }));
  cluster.shard(0).refs[1] = 0;
  cluster.shard(0).FeedSource(RefsReleased{});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; }));
  EXPECT_FALSE(cluster.shard(0).finished.at(order).ok());
  EXPECT_EQ(cluster.shard(0).applied_controls.count("SENDING"), 0u);
}

TEST(SourceAborts, ACancelledOrderEndsUnlessItHasFrozen) {
  ClusterOptions options = Options();
  options.settings.set_max_transfer_bytes_per_second(2'000'000);
  Cluster cluster(options);
  cluster.Fill(0, 1, 30, 60'000);
  Shard& source = cluster.shard(0);
  StartTransfer order;
  order.order = 500;
  order.target = Cluster::Uid(1);
  order.buckets = {1};
  order.issuer = Cluster::Uid(1);
  source.FeedSource(order);
  order.order = 501;
  order.buckets = {2};
  order.issuer = ShardUid();  // by hand: not the rebalancer's to cancel
  source.FeedSource(order);
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.shard(1).applied_controls.count("CHUNK") != 0; }));
  source.FeedSource(CancelOrders{"the weights changed"});
  ASSERT_TRUE(cluster.RunUntil([&] { return source.finished.size() == 2; }));
  EXPECT_EQ(source.finished.at(500).code(), Code::kAborted);
  EXPECT_EQ(source.finished.at(500).message(), "the weights changed");
  EXPECT_TRUE(source.finished.at(501).ok());
}

TEST(SourceAborts, ARemovedTargetEndsTheCopy) {
  ClusterOptions options = Options(3);
  options.settings.set_max_transfer_bytes_per_second(2'000'000);
  Cluster cluster(options);
  cluster.Fill(0, 1, 30, 60'000);
  Shard& source = cluster.shard(0);
  const OrderId order = source.Move(Cluster::Uid(2), {1});
  ASSERT_TRUE(
      cluster.RunUntil([&] { return cluster.shard(2).applied_controls.count("CHUNK") != 0; }));
  cluster.shard(2).silent = true;
  cluster.ChangeTopology([](v1::Topology& t) {
    t.mutable_shards()->RemoveLast();
    t.add_removed_shards(Cluster::Uid(2).value());
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return source.finished.count(order) != 0; }, seconds(2)));
  EXPECT_FALSE(source.finished.at(order).ok());
  EXPECT_TRUE(cluster.Owns(0, 1));
}

// ---- after the commit point ---------------------------------------------------------------------

// Moves bucket 1 of shard 0 to shard 1 until SENT is applied; then shard 1 hears and says nothing.
void MoveUntilSent(Cluster& cluster) {
  cluster.probe = [&cluster](Shard&, const v1::Control& control, bool before) {
    if (control.step().kind() == v1::TransferStep::SENT && !before) cluster.shard(1).silent = true;
  };
  cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(1).silent; }));
  cluster.probe = {};
}

bucket::RowStatus StatusOf(Cluster& cluster, int shard, std::uint32_t bucket) {
  return cluster.shard(shard).state().FindRow(bucket)->status;
}

TEST(SourceSent, DataIsKeptAndTheAlertStandsWhileTheTargetKnowsNothing) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  MoveUntilSent(cluster);
  // The target comes back without its disks: it answers, and knows nothing.
  cluster.shard(1).silent = false;
  cluster.tap = [](Shard& from, transfer::Send& send) {
    if (from.uid() == Cluster::Uid(0)) return !send.message.has_activate();
    for (v1::BucketAnswer& b : *send.message.mutable_answer()->mutable_buckets()) {
      b.clear_marks();
      b.clear_row();
      b.clear_prepared();
    }
    return send.message.answer().buckets_size() > 0;
  };
  ASSERT_TRUE(cluster.RunUntil([&] { return !cluster.shard(0).alerts.empty(); }, seconds(10)));
  EXPECT_EQ(cluster.shard(0).alerts.begin()->first, kAlertLost);
  cluster.RunFor(seconds(20));
  EXPECT_EQ(StatusOf(cluster, 0, 1), bucket::RowStatus::kSent);
  EXPECT_EQ(cluster.shard(0).RecordsInStore(), 3u);
  cluster.tap = {};  // the disks are found again
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(cluster.shard(0).alerts.empty());
  EXPECT_TRUE(cluster.Owns(1, 1));
}

TEST(SourceSent, AnswersToQuestionsOfAnEarlierStateOrTermCountForNothing) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  MoveUntilSent(cluster);
  Shard& source = cluster.shard(0);
  const TransferId x = source.state().outgoing().begin()->first;
  v1::TransferMessage message;
  message.set_from_shard(Cluster::Uid(1).value());
  message.set_from_term(cluster.shard(1).term().value());
  v1::Answer& answer = *message.mutable_answer();
  answer.mutable_id()->set_source(x.source.value());
  answer.mutable_id()->set_term(x.term.value());
  answer.mutable_id()->set_index(x.index.value());
  answer.set_shard(Cluster::Uid(1).value());
  answer.set_asker_term(source.term().value());
  answer.set_number(1);  // asked before the row was SENT
  answer.add_buckets()->set_bucket(1);
  source.Deliver(message);
  answer.set_number(1'000'000);
  answer.set_asker_term(source.term().value() - 1);
  source.Deliver(message);
  EXPECT_TRUE(source.alerts.empty());
  EXPECT_EQ(source.raised.size(), 0u);
  // The same words to a question of now are heard.
  answer.set_asker_term(source.term().value());
  source.Deliver(message);
  EXPECT_EQ(source.raised.count(std::string(kAlertLost)), 1u);
  // And a deposed leader of the target is not.
  message.set_from_term(cluster.shard(1).term().value() - 1);
  answer.mutable_buckets(0)->mutable_marks()->set_own(2);
  source.Deliver(message);
  EXPECT_EQ(StatusOf(cluster, 0, 1), bucket::RowStatus::kSent);
  EXPECT_FALSE(source.alerts.empty());
}

TEST(SourceSent, ARemovedTargetWhoseBucketsMovedOnIsNotWaitedFor) {
  Cluster cluster(Options(4));
  cluster.Fill(0, 1, 3, 100);
  bool cut = false;
  cluster.tap = [&](Shard& from, transfer::Send& send) {
    return !cut || from.uid() != Cluster::Uid(1) || send.to != Cluster::Uid(0);
  };
  cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
    if (control.step().kind() == v1::TransferStep::ACTIVATE && !before) cut = true;
  };
  cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(1, 1); }));
  ASSERT_TRUE(cluster.MoveAndWait(1, 2, {1}).ok());
  cluster.shard(1).silent = true;
  cluster.shard(3).silent = true;  // not everybody answers; enough do
  cluster.probe = {};
  cluster.RunFor(seconds(2));
  EXPECT_EQ(StatusOf(cluster, 0, 1), bucket::RowStatus::kSent);
  cluster.ChangeTopology([](v1::Topology& t) {
    t.mutable_shards()->DeleteSubrange(1, 1);
    t.add_removed_shards(Cluster::Uid(1).value());
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).Idle(); }, seconds(20)));
  EXPECT_EQ(cluster.shard(0).state().FindRow(1), nullptr);
  EXPECT_TRUE(cluster.Owns(2, 1));
}

TEST(SourceSent, ARemovedTargetWhoseBucketsNobodyOwnsKeepsTheData) {
  Cluster cluster(Options(3));
  cluster.Fill(0, 1, 3, 100);
  MoveUntilSent(cluster);
  cluster.shard(2).silent = true;
  cluster.ChangeTopology([](v1::Topology& t) {
    t.mutable_shards()->DeleteSubrange(1, 1);
    t.add_removed_shards(Cluster::Uid(1).value());
  });
  cluster.RunFor(seconds(20));
  EXPECT_EQ(cluster.shard(0).raised.count(std::string(kAlertLost)), 0u)
      << "shard 2 has not answered";
  cluster.shard(2).silent = false;
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return cluster.shard(0).raised.count(std::string(kAlertLost)) != 0; }));
  cluster.RunFor(seconds(60));
  EXPECT_EQ(StatusOf(cluster, 0, 1), bucket::RowStatus::kSent);
  EXPECT_EQ(cluster.shard(0).RecordsInStore(), 3u);
}

TEST(SourceSent, PhasesAreShownWithWhatTheyWaitFor) {
  Cluster cluster(Options());
  cluster.Fill(0, 1, 3, 100);
  MoveUntilSent(cluster);
  cluster.RunFor(milliseconds(10));
  const auto shown = cluster.shard(0).source().Describe();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].phase(), "sent");
  EXPECT_EQ(shown[0].waiting_for(), "shard-1 to confirm that it serves");
  EXPECT_EQ(shown[0].buckets(0), 1u);
}

}  // namespace
}  // namespace etalon::transfer::testing
