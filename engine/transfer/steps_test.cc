// Every step of a transfer x {source, target} x {leader change before, after}: each combination
// must be reached, and each must end with the bucket owned once and nothing lost.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "engine/transfer/testing/cluster.h"

namespace etalon::transfer::testing {
namespace {

enum class Moment { kBeforeAndLost, kBeforeAndKept, kAfter };

const char* NameOf(Moment moment) {
  switch (moment) {
    case Moment::kBeforeAndLost:
      return "BeforeAndLost";
    case Moment::kBeforeAndKept:
      return "BeforeAndKept";
    case Moment::kAfter:
      return "After";
  }
  return "";
}

struct Case {
  const char* entry;
  int log;              // whose log the entry stands in: 0 source, 1 target
  bool aborts = false;  // the scenario in which the source gives up during the copy
};

constexpr Case kEntries[] = {
    {"OPEN", 0},
    {"RECEIVING", 1},
    {"CHUNK", 1},
    {"SENDING", 0},
    {"PREPARED", 1},
    {"SENT", 0},
    {"ACTIVATE", 1},
    {"SOURCE_GARBAGE", 0},
    {"REMOVE", 0},
    {"ABORT", 0, true},
    {"TARGET_GARBAGE", 1, true},
    {"REMOVE", 1, true},
};

class Steps : public ::testing::TestWithParam<std::tuple<Case, int, Moment>> {};

TEST_P(Steps, LeaderChange) {
  const auto [entry, changes, moment] = GetParam();
  ClusterOptions options;
  options.seed = 11;
  options.shards = 2;
  options.bucket_count = 4;
  Cluster cluster(options);
  for (int i = 0; i < 40; ++i) cluster.RandomWrite(10);
  cluster.RunFor(std::chrono::milliseconds(50));

  bool reached = false;
  bool aborted = false;
  cluster.probe = [&, entry = entry, changes = changes, moment = moment](
                      Shard& shard, const v1::Control& control, bool before) {
    const bool is_log = &shard == &cluster.shard(entry.log);
    std::string name = "RECEIVING";
    if (control.has_step()) {
      name = v1::TransferStep::Kind_Name(control.step().kind());
    } else if (control.has_open()) {
      name = "OPEN";
    } else if (control.has_chunk()) {
      name = control.chunk().last() ? "PREPARED" : "CHUNK";
    } else if (!control.has_receiving()) {
      return;
    }
    if (entry.aborts && !aborted && name == "CHUNK" && !before) {
      aborted = true;
      cluster.shard(0).FeedSource(CancelOrders{"to see it abort"});
    }
    if (reached || !is_log || name != entry.entry || before == (moment == Moment::kAfter)) return;
    reached = true;
    for (int i = 0; i < 5; ++i) cluster.RandomWrite(10);
    Shard& victim = cluster.shard(changes);
    victim.ChangeLeader(moment == Moment::kBeforeAndLost ? 0 : victim.unapplied());
  };
  StartTransfer order;
  order.order = 1;
  order.target = Cluster::Uid(1);
  order.buckets = {1, 2};
  order.issuer = Cluster::Uid(1);  // so that it can be cancelled
  cluster.shard(0).FeedSource(order);
  for (int i = 0; i < 30; ++i) {
    cluster.RunFor(std::chrono::milliseconds(1));
    cluster.RandomWrite(10);
  }
  ASSERT_TRUE(cluster.RunUntil([&] { return reached; }));
  ASSERT_TRUE(cluster.RunUntilIdle());
  cluster.RunFor(std::chrono::seconds(20));
  ASSERT_TRUE(cluster.RunUntilIdle());
  EXPECT_EQ(cluster.CheckAtRest(), "");

  const bool moved = cluster.shard(1).state().FindRow(1) != nullptr;
  EXPECT_EQ(cluster.shard(1).state().FindRow(2) != nullptr, moved) << "a set moves as one";
  if (entry.aborts) {
    EXPECT_FALSE(moved);
  }
  // Past the commit point nothing brings it back; a change of the target's leader never stops a
  // transfer that it has.
  const std::string name = entry.entry;
  if (name == "ACTIVATE" || name == "SOURCE_GARBAGE" || (name == "REMOVE" && entry.log == 0) ||
      (name == "SENT" && moment != Moment::kBeforeAndLost) ||
      (name != "RECEIVING" && name != "OPEN" && changes == 1 && !entry.aborts)) {
    EXPECT_TRUE(moved);
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<Steps::ParamType>& info) {
  const auto& [entry, changes, moment] = info.param;
  return std::string(entry.entry) + (entry.log == 0 ? "OfSource" : "OfTarget") +
         (changes == 0 ? "_SourceLeader" : "_TargetLeader") + NameOf(moment);
}

INSTANTIATE_TEST_SUITE_P(All, Steps,
                         ::testing::Combine(::testing::ValuesIn(kEntries), ::testing::Values(0, 1),
                                            ::testing::Values(Moment::kBeforeAndLost,
                                                              Moment::kBeforeAndKept,
                                                              Moment::kAfter)),
                         NameOfCase);

}  // namespace
}  // namespace etalon::transfer::testing
