// Reports of a similar system, built on ours: docs/protocols/transfer.md names what prevents each.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/transfer/testing/cluster.h"

namespace etalon::transfer::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions Options(int shards, std::uint64_t seed = 5) {
  ClusterOptions options;
  options.seed = seed;
  options.shards = shards;
  options.bucket_count = 4;
  return options;
}

// A1 (data loss): the target's leader acknowledged a chunk and was lost with it. Here a chunk
// counts once it is applied, and the source keeps it until then.
TEST(Recipes, A1_TargetLeaderIsLostAfterItTookAChunk) {
  Cluster cluster(Options(2));
  cluster.Fill(0, 1, 20, 60'000);  // several chunks
  int chunks = 0;
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
    if (control.has_chunk() && before && ++chunks % 2 == 0 && chunks <= 6) shard.ChangeLeader(0);
  };
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; }));
  EXPECT_TRUE(cluster.shard(0).finished.at(order).ok());
  EXPECT_GE(chunks, 6);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
  EXPECT_TRUE(cluster.Owns(1, 1));
}

// A2 (doubled buckets): SENT is written and the source's master switches at once.
TEST(Recipes, A2_SourceLeaderChangesAroundSent) {
  for (const std::size_t survive : {0u, 1u}) {
    Cluster cluster(Options(2));
    cluster.Fill(0, 1, 5, 10);
    bool done = false;
    cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
      if (control.step().kind() != v1::TransferStep::SENT || !before || done) return;
      done = true;
      shard.ChangeLeader(survive);
    };
    cluster.shard(0).Move(Cluster::Uid(1), {1});
    ASSERT_TRUE(cluster.RunUntil([&] { return done; }));
    cluster.RunFor(seconds(30));
    ASSERT_TRUE(cluster.RunUntilIdle());
    EXPECT_EQ(cluster.CheckAtRest(), "");
    EXPECT_EQ(cluster.Owns(1, 1), survive == 1);
  }
}

// A3: a long stored function writes on while its bucket is to be sent. The transfer waits a bounded
// time, then backs off; nothing is refused at apply that a replica could choke on.
TEST(Recipes, A3_LongStoredFunctionHoldsTheBucket) {
  Cluster cluster(Options(2));
  cluster.Fill(0, 1, 5, 10);
  cluster.shard(0).refs[1] = 1;
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).closed.count(1) != 0; }));
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).closed.count(1) == 0; }, seconds(1)));
  EXPECT_EQ(cluster.shard(0).finished.count(order), 0u);
  EXPECT_EQ(cluster.shard(0).applied_controls.count("SENDING"), 0u);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).closed.count(1) != 0; }));
  cluster.shard(0).refs[1] = 0;
  cluster.shard(0).FeedSource(RefsReleased{});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; },
                               milliseconds(300)));
  EXPECT_TRUE(cluster.shard(0).finished.at(order).ok());
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

TEST(Recipes, A3_AFunctionThatNeverEndsEndsTheTransfer) {
  Cluster cluster(Options(2));
  cluster.shard(0).refs[1] = 1;
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; }));
  EXPECT_EQ(cluster.shard(0).finished.at(order).reason(), Reason::kBucketIsLocked);
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
  EXPECT_TRUE(cluster.Owns(0, 1));
}

// A5 and A8: the message that activates is stuck; the bucket moves on from the target, then the
// message arrives.
TEST(Recipes, A5_A8_StuckMessagesArriveAfterTheBucketMovedOn) {
  Cluster cluster(Options(3));
  cluster.Fill(0, 1, 5, 10);
  std::vector<transfer::Send> stuck;
  cluster.tap = [&](Shard&, transfer::Send& send) {
    stuck.push_back(send);  // everything arrives, and once more at the end
    return true;
  };
  cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(1, 1); }));
  cluster.shard(1).Move(Cluster::Uid(2), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(2, 1); }));
  ASSERT_TRUE(cluster.RunUntilIdle());
  const std::vector<transfer::Send> again = stuck;
  ASSERT_GT(again.size(), 10u);
  for (const transfer::Send& send : again) {
    cluster.Find(send.to)->Deliver(send.message);
    cluster.RunFor(milliseconds(1));
  }
  cluster.RunFor(seconds(30));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
  EXPECT_TRUE(cluster.Owns(2, 1));
}

// A5: the target's confirmation is lost, and the bucket is sent on before the source knows.
TEST(Recipes, A5_TargetSendsOnBeforeTheSourceHasItsConfirmation) {
  Cluster cluster(Options(3));
  cluster.Fill(0, 1, 5, 10);
  bool cut = false;
  cluster.tap = [&](Shard& from, transfer::Send& send) {
    if (from.uid() != Cluster::Uid(1) || send.to != Cluster::Uid(0)) return true;
    return !cut;
  };
  cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
    if (control.step().kind() == v1::TransferStep::ACTIVATE && !before) cut = true;
  };
  const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(1, 1); }));
  cluster.shard(1).Move(Cluster::Uid(2), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(2, 1); }));
  cluster.RunFor(seconds(5));
  EXPECT_EQ(cluster.shard(0).finished.count(order), 0u);
  EXPECT_TRUE(cluster.shard(0).held.empty()) << "held writes are let go after a while";
  cut = false;
  cluster.probe = {};
  cluster.tap = {};
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_TRUE(cluster.shard(0).finished.at(order).ok());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

// A7: one source, parallel sends to two targets that fail in the middle.
TEST(Recipes, A7_ParallelSendsToTwoTargetsThatFail) {
  Cluster cluster(Options(3));
  for (std::uint32_t b = 0; b < 4; ++b) cluster.Fill(0, b, 5, 10);
  int chunks = 0;
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
    if (control.has_chunk() && before && ++chunks <= 4) shard.ChangeLeader(chunks % 2 ? 0 : 9);
  };
  for (std::uint32_t b = 0; b < 4; ++b)
    cluster.shard(0).Move(Cluster::Uid(1 + static_cast<int>(b % 2)), {b});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.size() == 4; }));
  cluster.RunFor(seconds(20));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

// A9: the write that freezes the source is slow; meanwhile others come to their conclusions.
TEST(Recipes, A9_SlowCommitOfSendingAndOfSent) {
  for (const v1::TransferStep::Kind slow : {v1::TransferStep::SENDING, v1::TransferStep::SENT}) {
    Cluster cluster(Options(2));
    cluster.Fill(0, 1, 5, 10);
    bool once = false;
    cluster.probe = [&](Shard&, const v1::Control& control, bool before) {
      if (control.step().kind() != slow || !before || once) return;
      once = true;
      cluster.RunFor(seconds(3));  // all others go on
    };
    const OrderId order = cluster.shard(0).Move(Cluster::Uid(1), {1});
    ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; }));
    EXPECT_TRUE(once);
    cluster.RunFor(seconds(20));
    ASSERT_TRUE(cluster.RunUntilIdle());
    EXPECT_EQ(cluster.CheckAtRest(), "");
  }
}

// A13: a destination that has no row yet must not be named to anybody.
TEST(Recipes, A13_WritesDuringAMoveAreSentNowhereBeforeTheCommitPoint) {
  Cluster cluster(Options(2));
  cluster.Fill(0, 1, 5, 10);
  int seen = 0;
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool) {
    const Status status = shard.state().CheckWrite(RoutingValue(1), Epoch());
    const bool source = shard.uid() == Cluster::Uid(0);
    if (status.reason() != Reason::kTransferIsInProgress) return;
    EXPECT_FALSE(status.hint().destination.has_value());
    if (source) {
      EXPECT_FALSE(cluster.shard(0).held.empty()) << "in SENDING the leader holds writes";
    }
    ++seen;
    (void)control;
  };
  cluster.shard(0).Move(Cluster::Uid(1), {1});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(1, 1); }));
  EXPECT_GT(seen, 2);
  ASSERT_TRUE(cluster.RunUntilIdle());
  ASSERT_EQ(cluster.shard(0).released.size(), 1u);
  EXPECT_EQ(cluster.shard(0).released[0].second.moved, Cluster::Uid(1));
  const Status after = cluster.shard(0).state().CheckWrite(RoutingValue(1), Epoch());
  EXPECT_EQ(after.reason(), Reason::kWrongBucket);
  EXPECT_EQ(after.hint().destination, Cluster::Uid(1));
  EXPECT_EQ(after.hint().epoch, Epoch(2));
}

// B18: a transfer that is stuck delays no other.
TEST(Recipes, B18_OneStuckTransferDelaysNoOther) {
  Cluster cluster(Options(3));
  for (std::uint32_t b = 0; b < 4; ++b) cluster.Fill(0, b, 3, 10);
  cluster.probe = [&](Shard& shard, const v1::Control& control, bool before) {
    if (control.step().kind() == v1::TransferStep::SENT && before &&
        shard.state().outgoing().begin()->second.target == Cluster::Uid(1)) {
      cluster.shard(1).silent = true;  // the target falls silent past the commit point
    }
  };
  cluster.shard(0).Move(Cluster::Uid(1), {0});
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.shard(1).silent; }));
  cluster.probe = {};
  cluster.RunFor(seconds(40));
  EXPECT_EQ(cluster.shard(0).alerts.size(), 1u);
  EXPECT_EQ(cluster.shard(0).alerts.begin()->first, kAlertStuck);
  EXPECT_EQ(cluster.shard(0).source().slots_in_use(), 0u);
  for (std::uint32_t b = 1; b < 4; ++b) {
    const OrderId order = cluster.shard(0).Move(Cluster::Uid(2), {b});
    ASSERT_TRUE(
        cluster.RunUntil([&] { return cluster.shard(0).finished.count(order) != 0; }, seconds(2)));
    EXPECT_TRUE(cluster.shard(0).finished.at(order).ok());
  }
  cluster.shard(1).silent = false;
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");
}

// X1 and X2: states that only the loss of a majority's disks can make. Nothing is deleted, nothing
// loops, both are told.
void MeetTheNewOwner(bool by_an_order) {
  Cluster cluster(Options(2));
  cluster.Fill(0, 1, 5, 10);
  // Shard 1 owns bucket 1 at epoch 2, by a transfer that shard 0 never heard of.
  const TransferId x{Cluster::Uid(0), Term(1), LogIndex(1)};
  v1::Control receiving;
  receiving.mutable_receiving()->mutable_id()->set_source(x.source.value());
  receiving.mutable_receiving()->mutable_id()->set_term(1);
  receiving.mutable_receiving()->mutable_id()->set_index(1);
  v1::BucketEpoch& b = *receiving.mutable_receiving()->add_set();
  b.set_bucket(1);
  b.set_epoch(1);
  v1::Control last;
  *last.mutable_chunk()->mutable_id() = receiving.receiving().id();
  last.mutable_chunk()->set_number(1);
  last.mutable_chunk()->set_last(true);
  last.mutable_chunk()->set_hash(bucket::ChainChunk(0, 1, 0));
  v1::Control activate;
  *activate.mutable_step()->mutable_id() = receiving.receiving().id();
  activate.mutable_step()->set_kind(v1::TransferStep::ACTIVATE);
  Shard& source = cluster.shard(0);
  cluster.check_owners = false;
  cluster.shard(1).Propose(receiving);
  cluster.shard(1).Propose(last);
  cluster.shard(1).Propose(activate);
  ASSERT_TRUE(cluster.RunUntil([&] { return cluster.Owns(1, 1); }, seconds(1)));
  EXPECT_TRUE(cluster.Owns(0, 1));
  if (by_an_order) {  // to send it there, which is refused
    const OrderId order = source.Move(Cluster::Uid(1), {1});
    ASSERT_TRUE(cluster.RunUntil([&] { return source.finished.count(order) != 0; }));
    EXPECT_FALSE(source.finished.at(order).ok());
  } else {  // somebody says so
    source.FeedSource(Suspicion{Cluster::Uid(1), BucketId{0, 1}});
  }
  ASSERT_TRUE(cluster.RunUntil(
      [&] { return source.state().FindRow(1)->status == bucket::RowStatus::kQuarantined; },
      seconds(5)));
  cluster.RunFor(milliseconds(10));
  EXPECT_EQ(source.alerts.begin()->first, kAlertDoubled);
  EXPECT_EQ(source.state().FindRow(1)->own_seen, Epoch(2));
  EXPECT_TRUE(source.Get(1, "r0").has_value()) << "the data is kept";
  EXPECT_TRUE(cluster.Owns(1, 1)) << "the newer owner goes on";
}

TEST(Recipes, X1_ASourceThatLostItsSentMeetsTheNewOwner) {
  MeetTheNewOwner(true);
  MeetTheNewOwner(false);
}

}  // namespace
}  // namespace etalon::transfer::testing
