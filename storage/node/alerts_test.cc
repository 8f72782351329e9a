#include "storage/node/alerts.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace etalon::storage {
namespace {

using std::chrono::seconds;

AlertFacts Healthy() {
  AlertFacts f;
  f.formed = true;
  f.leader = true;
  f.leader_known = true;
  f.others = {{"b", false, true}, {"c", false, true}};
  return f;
}
AlertFacts HealthyFollower() {
  AlertFacts f = Healthy();
  f.leader = false;
  f.others.clear();
  return f;
}

// One row of docs/alerts.md: the condition raises the code with its status, and going back clears
// it.
struct Row {
  const char* name;
  const char* code;
  Severity severity;
  AlertFacts start;
  std::function<void(AlertFacts&)> spoil;
};

std::vector<Row> Rows() {
  return {
      {"unformed", "UNFORMED", Severity::kYellow, Healthy(),
       [](AlertFacts& f) { f.formed = false; }},
      {"no_leader", "MISSING_MASTER", Severity::kOrange, HealthyFollower(),
       [](AlertFacts& f) { f.leader_known = false; }},
      {"mute_leader_1s", "UNREACHABLE_MASTER", Severity::kYellow, HealthyFollower(),
       [](AlertFacts& f) { f.since_leader = seconds(1); }},
      {"mute_leader_6s", "UNREACHABLE_MASTER", Severity::kOrange, HealthyFollower(),
       [](AlertFacts& f) { f.since_leader = seconds(6); }},
      {"mute_leader_11s", "UNREACHABLE_MASTER", Severity::kRed, HealthyFollower(),
       [](AlertFacts& f) { f.since_leader = seconds(11); }},
      {"lag_1s", "HIGH_REPLICATION_LAG", Severity::kYellow, HealthyFollower(),
       [](AlertFacts& f) { f.lag = seconds(1); }},
      {"lag_5s", "HIGH_REPLICATION_LAG", Severity::kOrange, HealthyFollower(),
       [](AlertFacts& f) { f.lag = seconds(5); }},
      {"lag_10s", "OUT_OF_SYNC", Severity::kRed, HealthyFollower(),
       [](AlertFacts& f) { f.lag = seconds(10); }},
      {"learner_dead", "UNREACHABLE_REPLICA", Severity::kYellow, Healthy(),
       [](AlertFacts& f) {
         f.others.push_back({"d", true, false});
       }},
      {"none_alive", "UNREACHABLE_REPLICASET", Severity::kRed, Healthy(),
       [](AlertFacts& f) { f.others[0].alive = f.others[1].alive = false; }},
      {"one_alive", "LOW_REDUNDANCY", Severity::kOrange, Healthy(),
       [](AlertFacts& f) { f.others[0].alive = false; }},
      {"both_ways", "INVALID_REBALANCING", Severity::kYellow, Healthy(),
       [](AlertFacts& f) { f.sending = f.receiving = true; }},
      {"quarantined", "DOUBLED_BUCKETS", Severity::kRed, Healthy(),
       [](AlertFacts& f) { f.quarantined = 1; }},
      {"lost", "LOST_BUCKETS", Severity::kRed, Healthy(), [](AlertFacts& f) { f.lost = {"x"}; }},
      {"held", "HELD_TRANSFER", Severity::kRed, Healthy(), [](AlertFacts& f) { f.held = {"x"}; }},
      {"stuck", "STUCK_TRANSFER", Severity::kYellow, Healthy(),
       [](AlertFacts& f) { f.stuck = {"x"}; }},
      {"disk_full", "DISK_FULL", Severity::kRed, Healthy(),
       [](AlertFacts& f) { f.disk_full = true; }},
      {"store", "STORE_FAILURE", Severity::kRed, Healthy(),
       [](AlertFacts& f) { f.store_failure = "x"; }},
      {"weights", "ALL_WEIGHTS_ZERO", Severity::kOrange, Healthy(),
       [](AlertFacts& f) { f.all_weights_zero = true; }},
      {"locked", "ALL_SHARDS_LOCKED", Severity::kYellow, Healthy(),
       [](AlertFacts& f) { f.all_locked = true; }},
      {"conflict", "INVALID_CFG", Severity::kRed, Healthy(),
       [](AlertFacts& f) { f.topology_conflict = true; }},
      {"incomplete", "COLLECTION_INCOMPLETE", Severity::kYellow, Healthy(),
       [](AlertFacts& f) { f.collection_incomplete = true; }},
  };
}

const StorageAlert* Find(const std::vector<StorageAlert>& alerts, const std::string& code) {
  for (const auto& a : alerts) {
    if (a.code == code) return &a;
  }
  return nullptr;
}

class StorageAlertRow : public testing::TestWithParam<Row> {};

TEST_P(StorageAlertRow, RaisesAndClears) {
  const Row& row = GetParam();
  ASSERT_TRUE(StorageAlerts(row.start).empty());
  EXPECT_EQ(StatusOf(StorageAlerts(row.start)), Severity::kGreen);
  AlertFacts spoiled = row.start;
  row.spoil(spoiled);
  const auto alerts = StorageAlerts(spoiled);
  const StorageAlert* alert = Find(alerts, row.code);
  ASSERT_NE(alert, nullptr);
  EXPECT_EQ(alert->severity, row.severity);
  EXPECT_GE(StatusOf(alerts), row.severity);
  EXPECT_FALSE(alert->text.empty());
}

INSTANTIATE_TEST_SUITE_P(Rows, StorageAlertRow, testing::ValuesIn(Rows()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(StorageAlertCodes, NamesExactlyWhatTheRowsRaise) {
  std::set<std::string> raised;
  for (const Row& row : Rows()) raised.insert(row.code);
  EXPECT_EQ(std::vector<std::string>(raised.begin(), raised.end()), StorageAlertCodes());
}

}  // namespace
}  // namespace etalon::storage
