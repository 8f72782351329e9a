#include "router/node/alerts.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace etalon::router {
namespace {

using std::chrono::seconds;

RouterFacts Healthy() {
  RouterFacts f;
  f.loaded = true;
  f.topology_version = 4;
  f.newer_topology = 4;
  f.shards = {{"s1",
               {{"near", Fitness::kHealthy, 0, false},
                {"lead", Fitness::kHealthy, 5, true},
                {"far", Fitness::kHealthy, 9, false}},
               std::nullopt}};
  return f;
}

// One row of docs/alerts.md: the condition raises the code, alone or with the others named, and
// gives the status; going back clears it.
struct Row {
  const char* name;
  std::multiset<std::string> codes;
  Severity status;
  std::function<void(RouterFacts&)> spoil;
};

std::vector<Row> Rows() {
  using F = RouterFacts;
  return {
      {"no_topology",
       {"NO_TOPOLOGY"},
       Severity::kRed,
       [](F& f) {
         f.loaded = false;
         f.shards.clear();
       }},
      {"no_leader",
       {"MISSING_MASTER"},
       Severity::kOrange,
       [](F& f) { f.shards[0].replicas[1].leader = false; }},
      {"leader_down",
       {"UNREACHABLE_MASTER", "UNREACHABLE_REPLICA"},
       Severity::kOrange,
       [](F& f) { f.shards[0].replicas[1].fitness = Fitness::kDown; }},
      {"follower_down",
       {"UNREACHABLE_REPLICA"},
       Severity::kYellow,
       [](F& f) { f.shards[0].replicas[2].fitness = Fitness::kDown; }},
      {"nearest_down",
       {"SUBOPTIMAL_REPLICA", "UNREACHABLE_REPLICA"},
       Severity::kYellow,
       [](F& f) { f.shards[0].replicas[0].fitness = Fitness::kDown; }},
      {"far_lags",
       {"HIGH_REPLICATION_LAG"},
       Severity::kYellow,
       [](F& f) { f.shards[0].replicas[2].fitness = Fitness::kLagging; }},
      {"nearest_lags",
       {"HIGH_REPLICATION_LAG", "SUBOPTIMAL_REPLICA"},
       Severity::kYellow,
       [](F& f) { f.shards[0].replicas[0].fitness = Fitness::kLagging; }},
      {"all_down",
       {"UNREACHABLE_MASTER", "UNREACHABLE_REPLICA", "UNREACHABLE_REPLICA", "UNREACHABLE_REPLICA",
        "UNREACHABLE_REPLICASET"},
       Severity::kRed,
       [](F& f) {
         for (auto& r : f.shards[0].replicas) r.fitness = Fitness::kDown;
       }},
      {"feed",
       {"FEED_INTERRUPTED"},
       Severity::kYellow,
       [](F& f) { f.shards[0].feed_down = seconds(5); }},
      {"unknown", {"UNKNOWN_BUCKETS"}, Severity::kYellow, [](F& f) { f.unknown_buckets = 3; }},
      {"unknown_lately",
       {"UNKNOWN_BUCKETS"},
       Severity::kYellow,
       [](F& f) {
         f.unknown_buckets = 3;
         f.lost = seconds(9);
       }},
      {"lost",
       {"LOST_BUCKETS"},
       Severity::kRed,
       [](F& f) {
         f.unknown_buckets = 3;
         f.lost = seconds(10);
       }},
      {"doubled", {"DOUBLED_BUCKETS"}, Severity::kRed, [](F& f) { f.doubled = {"7: a and b"}; }},
      {"quarantined", {"QUARANTINED_BUCKETS"}, Severity::kRed, [](F& f) { f.quarantined = {"7"}; }},
      {"stuck", {"STUCK_TRANSFER"}, Severity::kOrange, [](F& f) { f.stuck = {"7"}; }},
      {"invalid", {"INVALID_CFG"}, Severity::kRed, [](F& f) { f.invalid_config = "no such"; }},
      {"stale", {"STALE_TOPOLOGY"}, Severity::kYellow, [](F& f) { f.newer_topology = 5; }},
  };
}

std::multiset<std::string> Codes(const RouterFacts& facts) {
  std::multiset<std::string> out;
  for (const RouterAlert& a : RouterAlerts(facts, {})) {
    EXPECT_FALSE(a.text.empty());
    out.insert(a.code);
  }
  return out;
}

TEST(RouterAlerts, NoneWhenAllIsWell) {
  EXPECT_EQ(Codes(Healthy()), std::multiset<std::string>());
  EXPECT_EQ(StatusOf({}), Severity::kGreen);
  auto f = Healthy();
  f.shards[0].feed_down = seconds(4);
  EXPECT_EQ(Codes(f), std::multiset<std::string>()) << "a feed may change its feeder";
}

TEST(RouterAlerts, EachRowIsRaisedAndCleared) {
  for (const Row& row : Rows()) {
    auto facts = Healthy();
    row.spoil(facts);
    EXPECT_EQ(Codes(facts), row.codes) << row.name;
    EXPECT_EQ(StatusOf(RouterAlerts(facts, {})), row.status) << row.name;
    EXPECT_EQ(Codes(Healthy()), std::multiset<std::string>()) << row.name;
  }
}

TEST(RouterAlerts, EveryCodeHasARowAndIsListed) {
  std::set<std::string> seen;
  for (const Row& row : Rows()) seen.insert(row.codes.begin(), row.codes.end());
  EXPECT_EQ(std::vector<std::string>(seen.begin(), seen.end()), RouterAlertCodes());
}

TEST(RouterAlerts, NameTheReplica) {
  auto facts = Healthy();
  facts.shards[0].replicas[2].fitness = Fitness::kDown;
  const auto alerts = RouterAlerts(facts, {});
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_NE(alerts[0].text.find("replica far of shard s1"), std::string::npos);
}

}  // namespace
}  // namespace etalon::router
