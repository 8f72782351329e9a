#include "router/call/choose.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace etalon::router {
namespace {

using std::string;

std::vector<Candidate> Three() {
  return {{"far", Fitness::kHealthy, 9, false},
          {"lead", Fitness::kHealthy, 5, true},
          {"near", Fitness::kHealthy, 1, false}};
}

string Choose(const std::vector<Candidate>& c, v1::Mode mode, std::uint64_t turn = 0,
              const std::vector<NodeName>& tried = {}) {
  const auto i = ChooseReplica(c, mode, turn, tried);
  return i ? c[*i].name : "";
}

// Everybody in the order of a call that is refused each time.
string Order(const std::vector<Candidate>& c, v1::Mode mode, std::uint64_t turn = 0) {
  std::vector<NodeName> tried;
  string out;
  for (string name = Choose(c, mode, turn); !name.empty(); name = Choose(c, mode, turn, tried)) {
    out += (out.empty() ? "" : " ") + name;
    tried.push_back(name);
  }
  return out;
}

TEST(ChooseReplica, RoTakesTheNearestAndTheLeaderIsAnOrdinaryOne) {
  EXPECT_EQ(Order(Three(), v1::MODE_RO), "near lead far");
}

TEST(ChooseReplica, TheLeaderGoesFirstAtEqualDistance) {
  auto c = Three();
  for (Candidate& one : c) one.distance = 7;
  EXPECT_EQ(Order(c, v1::MODE_RO), "lead far near");
}

TEST(ChooseReplica, TheLargestDistanceComesLastEvenForTheLeader) {
  auto c = Three();
  c[1].distance = 1000;
  EXPECT_EQ(Order(c, v1::MODE_RO), "near far lead");
}

TEST(ChooseReplica, ReSparesTheLeader) {
  auto c = Three();
  c[1].distance = 0;
  EXPECT_EQ(Order(c, v1::MODE_RE), "near far lead");
  c[0].fitness = c[2].fitness = Fitness::kDown;
  EXPECT_EQ(Order(c, v1::MODE_RE), "lead") << "falls back to the leader";
}

TEST(ChooseReplica, HealthComesBeforeDistance) {
  auto c = Three();
  c[2].fitness = Fitness::kLagging;
  EXPECT_EQ(Order(c, v1::MODE_RO), "lead far near");
  c[1].fitness = Fitness::kDown;
  EXPECT_EQ(Order(c, v1::MODE_RO), "far near") << "one that is down is never asked";
  c[0].fitness = Fitness::kDown;
  EXPECT_EQ(Order(c, v1::MODE_RO), "near") << "lag is ignored when nobody else is left";
}

TEST(ChooseReplica, BroTakesTurnsOverAllWhateverTheDistance) {
  std::map<string, int> hits;
  for (std::uint64_t turn = 0; turn < 300; ++turn) ++hits[Choose(Three(), v1::MODE_BRO, turn)];
  EXPECT_EQ(hits, (std::map<string, int>{{"far", 100}, {"lead", 100}, {"near", 100}}));
}

TEST(ChooseReplica, BroSharesADeadOnesTurnsEvenly) {
  auto c = Three();
  c[0].fitness = Fitness::kDown;
  std::map<string, int> hits;
  for (std::uint64_t turn = 0; turn < 300; ++turn) ++hits[Choose(c, v1::MODE_BRO, turn)];
  EXPECT_EQ(hits, (std::map<string, int>{{"lead", 150}, {"near", 150}}));
}

TEST(ChooseReplica, BreTakesTurnsOverAllButTheLeader) {
  std::map<string, int> hits;
  for (std::uint64_t turn = 0; turn < 300; ++turn) ++hits[Choose(Three(), v1::MODE_BRE, turn)];
  EXPECT_EQ(hits, (std::map<string, int>{{"far", 150}, {"near", 150}}));
  EXPECT_EQ(Order(Three(), v1::MODE_BRE, 1), "near far lead");
  EXPECT_EQ(Order({{"lead", Fitness::kHealthy, 0, true}}, v1::MODE_BRE, 3), "lead");
}

TEST(ChooseReplica, NobodyIsLeft) {
  EXPECT_EQ(ChooseReplica({}, v1::MODE_RO, 0, {}), std::nullopt);
  EXPECT_EQ(ChooseReplica({{"a", Fitness::kDown, 0, true}}, v1::MODE_BRO, 0, {}), std::nullopt);
}

}  // namespace
}  // namespace etalon::router
