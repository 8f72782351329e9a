#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/balance/testing/balanced.h"

namespace etalon::balance::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

ClusterOptions Options(int shards, std::uint32_t buckets,
                       std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges) {
  ClusterOptions options;
  options.seed = 8;
  options.shards = shards;
  options.bucket_count = buckets;
  options.ranges = std::move(ranges);
  return options;
}

void SetWeight(Balanced& b, int shard, std::uint32_t weight) {
  b.cluster().ChangeSettings([&](v1::Settings& s) { s.mutable_shards(shard)->set_weight(weight); });
}

void SetLock(Balanced& b, int shard, bool locked) {
  b.cluster().ChangeSettings([&](v1::Settings& s) { s.mutable_shards(shard)->set_locked(locked); });
}

void Pin(Balanced& b, int shard, std::vector<std::uint32_t> buckets) {
  v1::Control control;
  for (const std::uint32_t bucket : buckets) control.mutable_pin()->add_buckets(bucket);
  b.shard(shard).Shard::Propose(control);
  b.cluster().RunFor(milliseconds(5));
}

int Moves(Balanced& b) {
  int moves = 0;
  for (int i = 0; i < b.cluster().size(); ++i) moves += b.shard(i).applied_controls["SENT"];
  return moves;
}

bool Settle(Balanced& b, int at = 0) {
  return b.cluster().RunUntil([&] { return b.AtEtalon(at); }, minutes(5));
}

TEST(Rebalancer, ThreeToFiveShardsConvergeToTheEtalonWithTheFewestMoves) {
  Balanced b(Options(5, 60, {{0, 19}, {20, 39}, {40, 59}}));
  ASSERT_TRUE(Settle(b)) << b.Counts();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(b.Count(i), 12u) << i;
  EXPECT_EQ(Moves(b), 24);
  EXPECT_EQ(b.WastedCopies(), 0);
  b.cluster().RunFor(milliseconds(100));
  const v1::RebalancerStateResponse state = b.State();
  EXPECT_TRUE(state.runs_here());
  EXPECT_EQ(state.moved(), 24u);
  EXPECT_EQ(state.remaining(), 0u);
  EXPECT_EQ(state.shards_size(), 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(b.shard(i).taker().etalon(), 12.0);
    EXPECT_EQ(b.shard(i).taker().disbalance(), 0.0);
    EXPECT_FALSE(b.State(i).runs_here() && i != 0);
  }
  EXPECT_EQ(b.cluster().CheckAtRest(), "");
}

TEST(Rebalancer, ManySendSlotsAndFewReceiveSlotsWasteNoCopy) {
  ClusterOptions options = Options(4, 60, {{0, 59}});
  options.settings.set_max_sending(15);
  options.settings.set_max_receiving(1);
  Balanced b(options);
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(Moves(b), 45);
  EXPECT_EQ(b.WastedCopies(), 0);
  // One round of a pause of seconds a bucket would take minutes.
  EXPECT_LT(b.cluster().now().time_since_epoch(), seconds(30));
}

TEST(Rebalancer, PinnedBucketsStayAndLockedShardsAreNotThere) {
  Balanced b(Options(4, 40, {{0, 19}, {20, 39}}), false);
  Pin(b, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  SetLock(b, 3, true);
  b.cluster().RunFor(milliseconds(20));
  b.Begin();
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(b.Count(0), 15u);
  EXPECT_EQ(b.Count(3), 0u);
  EXPECT_EQ(b.Count(1) + b.Count(2), 25u);
  for (int i = 0; i < 4; ++i) {
    for (const StartTransfer& order : b.shard(i).begun) {
      EXPECT_NE(order.target, Cluster::Uid(3));
      for (const std::uint32_t bucket : order.buckets) EXPECT_GE(bucket, 15u);
    }
  }
  SetLock(b, 3, false);
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_GT(b.Count(3), 0u);
  SetLock(b, 1, true);
  const std::uint64_t before = b.Count(1);
  SetWeight(b, 1, 0);
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(b.Count(1), before);
}

TEST(Rebalancer, AnUnreachableShardDelaysItsOwnMovesOnly) {
  Balanced b(Options(5, 60, {{0, 19}, {20, 39}, {40, 59}}), false);
  b.shard(4).silent = true;
  b.Begin();
  b.cluster().RunFor(seconds(20));
  // Its share stays where it is; the others have what is certain.
  EXPECT_EQ(b.Count(3), 12u) << b.Counts();
  EXPECT_EQ(b.Count(4), 0u);
  std::uint64_t rest = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_GE(b.Count(i), 12u);
    rest += b.Count(i);
  }
  EXPECT_EQ(rest, 48u);
  EXPECT_EQ(b.State().state(), "WAITING");
  EXPECT_NE(b.State().explanation().find("shard-4 does not answer"), std::string::npos);
  b.cluster().RunFor(seconds(20));
  EXPECT_EQ(b.shard(0).balance_alerts.count({std::string(kAlertUnreachable), "shard-4"}), 1u);
  b.shard(4).silent = false;
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(Moves(b), 24) << "nothing was moved twice";
  b.cluster().RunFor(seconds(11));
  EXPECT_TRUE(b.shard(0).balance_alerts.empty());
}

TEST(Rebalancer, AnUnreachableShardThatMayHoldPinsIsNotGuessed) {
  // Shard 2 holds 30 pinned buckets of 60, and has never answered: the others' etalon may be 20
  // or 15.
  Balanced b(Options(3, 60, {{0, 29}, {1, 0}, {30, 59}}), false);
  std::vector<std::uint32_t> all;
  for (std::uint32_t n = 30; n < 60; ++n) all.push_back(n);
  v1::Control
      give;  // shard 1 began with bucket 0..0 by the empty range: it goes where it belongs first
  (void)give;
  Pin(b, 2, all);
  b.shard(2).silent = true;
  b.Begin();
  b.cluster().RunFor(seconds(20));
  EXPECT_GE(b.Count(0), 15u);
  EXPECT_LE(b.Count(1), 15u);
  b.shard(2).silent = false;
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(b.Count(0), 15u);
  EXPECT_EQ(b.Count(1), 15u);
  EXPECT_EQ(Moves(b), 15) << "nothing was moved twice";
}

TEST(Rebalancer, AChangedWeightCancelsWhatWasPlanned) {
  ClusterOptions options = Options(2, 40, {{0, 39}});
  options.settings.set_max_transfer_bytes_per_second(2'000'000);
  Balanced b(options, false);
  for (std::uint32_t n = 0; n < 40; ++n) b.cluster().Fill(0, n, 2, 200'000);
  b.Begin();
  ASSERT_TRUE(b.cluster().RunUntil([&] { return Moves(b) == 3; }, seconds(30)));
  SetWeight(b, 1, 0);  // back again
  b.cluster().RunFor(milliseconds(100));
  const int begun = static_cast<int>(b.shard(0).begun.size());
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(static_cast<int>(b.shard(0).begun.size()), begun) << "nothing of the old plan began";
  EXPECT_LE(Moves(b), 2 * 8) << "what had not frozen was given up";
  EXPECT_EQ(b.Count(0), 40u);
  EXPECT_EQ(b.cluster().CheckAtRest(), "");
}

TEST(Rebalancer, NobodyMayTakeAnything) {
  for (const bool locks : {false, true}) {
    Balanced b(Options(3, 30, {{0, 9}, {10, 19}, {20, 29}}));
    ASSERT_TRUE(Settle(b));
    b.cluster().ChangeSettings([&](v1::Settings& s) {
      for (v1::ShardSettings& shard : *s.mutable_shards()) {
        if (locks) {
          shard.set_locked(true);
        } else {
          shard.set_weight(0);
        }
      }
    });
    b.cluster().RunFor(seconds(1));
    EXPECT_EQ(b.State().state(), locks ? "ALL_LOCKED" : "ALL_WEIGHTS_ZERO");
    EXPECT_NE(b.State().explanation(), "");
    EXPECT_EQ(b.shard(0).balance_alerts.size(), 1u);
    const std::map<std::string, int> before = b.shard(0).said;
    b.cluster().RunFor(seconds(60));
    for (const auto& [kind, n] : b.shard(0).said) {
      EXPECT_LE(n - (before.count(kind) != 0 ? before.at(kind) : 0), 24) << "no loop";
    }
    EXPECT_EQ(Moves(b), 0);
    b.cluster().ChangeSettings([&](v1::Settings& s) {
      s.mutable_shards(0)->set_locked(false);
      s.mutable_shards(0)->set_weight(1);
    });
    ASSERT_TRUE(Settle(b)) << b.Counts();
    EXPECT_TRUE(b.shard(0).balance_alerts.empty());
  }
}

TEST(Rebalancer, TheThresholdDecidesWhetherToBeginNotWhenToStop) {
  ClusterOptions options = Options(2, 100, {{0, 52}, {53, 99}});
  options.settings.set_disbalance_threshold_percent(10);
  Balanced b(options);
  b.cluster().RunFor(seconds(15));
  EXPECT_EQ(b.State().state(), "BALANCED");
  EXPECT_EQ(Moves(b), 0);  // 53 and 47: 6 %
  EXPECT_DOUBLE_EQ(*b.shard(0).taker().disbalance(), 0.06);
  b.cluster().ChangeSettings([](v1::Settings& s) { s.set_disbalance_threshold_percent(5); });
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(Moves(b), 3) << "down to the etalon";
}

TEST(Rebalancer, WeightZeroDrainsAndAShardInASplitIsLeftAlone) {
  Balanced b(Options(3, 30, {{0, 9}, {10, 19}, {20, 29}}));
  ASSERT_TRUE(Settle(b));
  SetWeight(b, 2, 0);
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(b.Count(2), 0u);
  v1::Control control;
  control.mutable_split()->set_task("t");
  control.mutable_split()->set_target(Cluster::Uid(2).value());
  b.shard(0).Shard::Propose(control);
  ASSERT_TRUE(b.cluster().RunUntil([&] { return b.Count(2) != 0; }, seconds(10)));
  b.cluster().RunFor(seconds(15));
  // The source counts as locked until the task is closed; the target's half goes only by its
  // weight.
  EXPECT_TRUE(b.shard(0).state().busy_with_split());
  const std::size_t begun = b.shard(0).begun.size();
  SetWeight(b, 1, 1);
  b.cluster().RunFor(seconds(15));
  EXPECT_EQ(b.shard(0).begun.size(), begun);
  EXPECT_EQ(b.Count(0), 8u);
  b.cluster().ChangeSettings([](v1::Settings& s) {
    s.mutable_shards(1)->set_weight(100);
    s.mutable_shards(2)->set_weight(100);
    s.add_closed_splits("t");
  });
  ASSERT_TRUE(Settle(b)) << b.Counts();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.Count(i), 10u);
}

TEST(Rebalancer, ANewLeaderOrAnotherShardGoesOn) {
  Balanced b(Options(3, 60, {{0, 59}}));
  ASSERT_TRUE(b.cluster().RunUntil([&] { return Moves(b) >= 5; }, seconds(10)));
  b.shard(0).ChangeLeader(0);
  ASSERT_TRUE(b.cluster().RunUntil([&] { return Moves(b) >= 15; }, seconds(30)));
  b.cluster().ChangeSettings([](v1::Settings& s) { s.set_rebalancer(Cluster::Uid(2).value()); });
  ASSERT_TRUE(Settle(b, 2)) << b.Counts();
  EXPECT_TRUE(b.State(2).runs_here());
  EXPECT_FALSE(b.State(0).runs_here());
  EXPECT_LE(Moves(b), 40 + 4) << "at most what ran when the leader changed is moved again";
  b.cluster().ChangeSettings([](v1::Settings& s) { s.set_mode(v1::REBALANCER_DISABLED); });
  b.cluster().RunFor(milliseconds(50));
  EXPECT_EQ(b.State(2).state(), "DISABLED");
}

TEST(Rebalancer, AShardAtALowerLevelDoublesItsModulusFirst) {
  Balanced b(Options(3, 3, {{0, 0}, {1, 1}, {2, 2}}));
  ASSERT_TRUE(Settle(b));
  v1::Control rebase;
  rebase.mutable_rebase()->set_level(2);
  b.shard(1).Shard::Propose(rebase);
  SetWeight(b, 2, 300);  // 12 parts: 2.4, 2.4, 7.2
  ASSERT_TRUE(Settle(b)) << b.Counts();
  for (int i = 0; i < 3; ++i) {
    const bool moved = i == 1 || b.Count(i) != 1;
    EXPECT_EQ(b.shard(i).state().level(), moved ? 2 : 0);
  }
  EXPECT_EQ(b.Count(2), 7u);
}

TEST(Rebalancer, ADoublingThatTheLogDoesNotTakeIsTriedAgainAfterAPause) {
  Balanced b(Options(3, 3, {{0, 0}, {1, 1}, {2, 2}}));
  ASSERT_TRUE(Settle(b));
  v1::Control rebase;
  rebase.mutable_rebase()->set_level(2);
  b.shard(1).Shard::Propose(rebase);
  b.cluster().RunFor(milliseconds(50));
  const SteadyTime end = b.cluster().now() + seconds(1);
  b.shard(0).full = [&](const v1::Control& control) {
    return control.has_rebase() && b.cluster().now() < end;
  };
  SetWeight(b, 2, 300);
  ASSERT_TRUE(b.cluster().RunUntil(
      [&] { return b.shard(0).state().level() == 2 || b.shard(0).refused_at_once > 1000; }));
  EXPECT_GT(b.shard(0).refused_at_once, 2);
  EXPECT_LE(b.shard(0).refused_at_once, 210) << "it spins";
  ASSERT_TRUE(Settle(b)) << b.Counts();
}

TEST(Rebalancer, WaitsUntilTheCollectionIsComplete) {
  ClusterOptions options = Options(2, 10, {{0, 9}});
  options.complete = false;
  Balanced b(options);
  b.cluster().RunFor(seconds(15));
  EXPECT_EQ(b.State().state(), "INCOMPLETE");
  EXPECT_EQ(b.shard(0).begun.size(), 0u);
  b.cluster().ChangeTopology([](v1::Topology& t) { t.set_complete(true); });
  ASSERT_TRUE(Settle(b)) << b.Counts();
  EXPECT_EQ(b.Count(1), 5u);
}

// ---- the order taker alone ----------------------------------------------------------------------

v1::BalanceMessage Order(Balanced& b, std::uint64_t number, std::uint64_t count,
                         std::uint64_t keep = 0) {
  v1::BalanceMessage message;
  message.set_from_shard(Cluster::Uid(1).value());
  message.set_from_term(b.shard(1).term().value());
  message.mutable_order()->set_number(number);
  message.mutable_order()->set_settings_version(b.cluster().settings().version());
  message.mutable_order()->set_keep(keep);
  v1::BalanceRoute& route = *message.mutable_order()->add_routes();
  route.set_target(Cluster::Uid(1).value());
  route.set_count(count);
  return message;
}

ClusterOptions ByHand() {
  ClusterOptions options = Options(2, 20, {{0, 19}});
  options.settings.set_rebalancer(Cluster::Uid(1).value());
  options.settings.set_disbalance_threshold_percent(1e9);  // nothing moves by itself
  return options;
}

TEST(OrderTaker, TakesTheSmallestBucketsUpToItsSlots) {
  Balanced b(ByHand(), false);
  b.shard(0).Hear(Order(b, 1000, 10));
  b.cluster().RunFor(Duration(1));
  ASSERT_EQ(b.shard(0).begun.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(b.shard(0).begun[i].buckets[0], i);
  b.cluster().RunFor(seconds(1));
  EXPECT_EQ(b.Count(1), 10u);
}

TEST(OrderTaker, TheSameOrderAgainMovesNothingMore) {
  Balanced b(ByHand(), false);
  for (int i = 0; i < 5; ++i) b.shard(0).Hear(Order(b, 1000, 4));
  b.cluster().RunFor(seconds(1));
  b.shard(0).Hear(Order(b, 1000, 4));
  b.shard(0).Hear(Order(b, 999, 8));  // late
  b.cluster().RunFor(seconds(1));
  EXPECT_EQ(b.Count(1), 4u);
}

TEST(OrderTaker, KeepsWhatItMustWhateverTheRoutesSay) {
  Balanced b(ByHand(), false);
  b.shard(0).Hear(Order(b, 1000, 18, 15));
  b.cluster().RunFor(seconds(2));
  EXPECT_EQ(b.Count(0), 15u);
}

TEST(OrderTaker, DropsOrdersOfOtherSettingsIssuersAndEarlierTerms) {
  Balanced b(ByHand(), false);
  v1::BalanceMessage old = Order(b, 1000, 4);
  old.mutable_order()->set_settings_version(0);
  b.shard(0).Hear(old);
  v1::BalanceMessage stranger = Order(b, 1000, 4);
  stranger.set_from_shard(Cluster::Uid(0).value());
  b.shard(0).Hear(stranger);
  v1::BalanceMessage newer = Order(b, 1001, 1);
  newer.set_from_term(100);
  b.shard(0).Hear(newer);
  b.shard(0).Hear(Order(b, 2000, 9));  // of an earlier term now
  b.cluster().RunFor(seconds(1));
  EXPECT_EQ(b.Count(1), 1u);
}

TEST(OrderTaker, ABucketThatFailsHoldsUpNoOther) {
  Balanced b(ByHand(), false);
  b.shard(0).refs[0] = 1;  // bucket 0 is never let go
  b.shard(0).Hear(Order(b, 1000, 8));
  ASSERT_TRUE(b.cluster().RunUntil([&] { return b.Count(1) == 8; }, seconds(60))) << b.Counts();
  EXPECT_NE(b.shard(0).state().FindRow(0), nullptr);
}

}  // namespace
}  // namespace etalon::balance::testing
