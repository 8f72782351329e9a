#include "router/node/health.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr ShardUid kA{10};

std::shared_ptr<const Directory> MakeDirectory(std::uint64_t version,
                                               const std::vector<std::string>& names) {
  v1::Topology t;
  t.set_version(version);
  t.set_collection(7);
  t.set_bucket_count(4);
  v1::ShardInfo& shard = *t.add_shards();
  shard.set_name("a");
  shard.set_uid(kA.value());
  for (const std::string& name : names) shard.add_replicas()->set_name(name);
  return Directory::Make(t, "").value();
}

class HealthTest : public testing::Test {
 protected:
  HealthTest() { Take(health.SetDirectory(now, MakeDirectory(1, {"r1", "r2", "r3"}), random)); }

  void Take(const Health::Output& out) {
    for (const auto& [name, ping] : out.pings) pings[name] = ping.id();
    down.insert(down.end(), out.down.begin(), out.down.end());
    leaders += out.leaders.size();
  }
  // Time passes; those in `answering` answer every ping at once.
  void Run(Duration duration, const std::vector<NodeName>& answering) {
    const SteadyTime end = now + duration;
    while (health.wake() <= end) {
      now = health.wake();
      const Health::Output out = health.OnWake(now, random);
      Take(out);
      for (const auto& [name, ping] : out.pings) {
        if (std::find(answering.begin(), answering.end(), name) != answering.end()) Answer(name);
      }
    }
    now = end;
  }
  void Answer(const NodeName& name) {
    v1::Pong pong;
    pong.set_id(pings.at(name));
    pong.set_ready(true);
    pong.set_term(term);
    pong.set_leader(name == leader);
    pong.set_leader_name(leader);
    pong.set_lag_millis(lag[name]);
    Take(health.OnPong(now, name, pong));
  }
  Fitness FitnessOf(const NodeName& name) { return health.State(name).fitness(); }

  SteadyTime now{seconds(100)};
  Random random{1};
  Health health{{}};
  std::map<NodeName, std::uint64_t> pings;
  std::map<NodeName, std::uint64_t> lag;
  std::vector<NodeName> down;
  std::size_t leaders = 0;
  NodeName leader = "r1";
  std::uint64_t term = 5;
};

TEST_F(HealthTest, EveryReplicaIsDialledAtOnce) {
  EXPECT_EQ(pings.size(), 3u);
  EXPECT_FALSE(health.AllDialled());
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  EXPECT_TRUE(health.AllDialled());
  EXPECT_EQ(FitnessOf("r2"), Fitness::kHealthy);
  EXPECT_EQ(health.UsableLeader(kA), "r1");
}

TEST_F(HealthTest, PingsKeepTheirPeriod) {
  unsigned count = 0;
  const SteadyTime end = now + seconds(10);
  while (health.wake() <= end) {
    now = health.wake();
    pings.clear();
    Take(health.OnWake(now, random));
    count += static_cast<unsigned>(pings.size());
    for (const auto& [name, id] : std::map(pings)) Answer(name);
  }
  EXPECT_NEAR(count, 120, 15);
}

TEST_F(HealthTest, AMuteReplicaIsDownWithinASecondAndComesBack) {
  Run(seconds(1), {"r1", "r2", "r3"});
  ASSERT_EQ(FitnessOf("r2"), Fitness::kHealthy);
  const SteadyTime mute = now;
  while (FitnessOf("r2") != Fitness::kDown) {
    Run(milliseconds(50), {"r1", "r3"});
    ASSERT_LT(now - mute, seconds(2));
  }
  EXPECT_LE(now - mute, milliseconds(1300));
  EXPECT_GE(now - mute, milliseconds(500)) << "one lost ping is not enough";
  EXPECT_EQ(down, std::vector<NodeName>{"r2"});
  Run(seconds(3), {"r1", "r3"});
  EXPECT_EQ(down.size(), 1u) << "told once";
  const std::size_t before = leaders;
  Run(milliseconds(400), {"r1", "r2", "r3"});
  EXPECT_EQ(FitnessOf("r2"), Fitness::kHealthy);
  EXPECT_GT(leaders, before) << "calls that wait for the shard hear of it";
}

TEST_F(HealthTest, ADeadReplicaCountsAsDialled) {
  Run(seconds(2), {"r1", "r2"});
  EXPECT_TRUE(health.AllDialled());
  EXPECT_EQ(FitnessOf("r3"), Fitness::kDown);
}

TEST_F(HealthTest, AnUnreachableReplicaIsDownAtOnce) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  Take(health.OnUnreachable(now, "r2"));
  EXPECT_EQ(down, std::vector<NodeName>{"r2"});
}

TEST_F(HealthTest, UnansweredCallsCountToo) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  Take(health.OnSilence(now, "r2"));
  Take(health.OnSilence(now, "r2"));
  EXPECT_TRUE(down.empty());
  Take(health.OnSilence(now, "r2"));
  EXPECT_EQ(down, std::vector<NodeName>{"r2"});
}

TEST_F(HealthTest, OldAnswersDoNotCount) {
  const auto first = pings;
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  v1::Pong pong;
  pong.set_ready(true);
  pong.set_lag_millis(60000);
  for (std::uint64_t id : {first.at("r2"), first.at("r2") - 1, first.at("r3") + 1000}) {
    pong.set_id(id);
    Take(health.OnPong(now, "r2", pong));
    EXPECT_EQ(FitnessOf("r2"), Fitness::kHealthy) << id;
  }
}

TEST_F(HealthTest, LagIsBounded) {
  lag = {{"r1", 60000}, {"r2", 30001}, {"r3", 30000}};
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  EXPECT_EQ(FitnessOf("r1"), Fitness::kHealthy) << "a leader does not lag";
  EXPECT_EQ(FitnessOf("r2"), Fitness::kLagging);
  EXPECT_EQ(FitnessOf("r3"), Fitness::kHealthy);
}

TEST_F(HealthTest, OneThatCannotServeIsNotUsed) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  Run(milliseconds(300), {});
  v1::Pong pong;
  pong.set_id(pings.at("r2"));
  Take(health.OnPong(now, "r2", pong));
  EXPECT_EQ(FitnessOf("r2"), Fitness::kDown);
  pong.set_id(pings.at("r3"));
  pong.set_ready(true);
  pong.set_shard(99);
  Take(health.OnPong(now, "r3", pong));
  EXPECT_EQ(FitnessOf("r3"), Fitness::kDown) << "it serves another shard";
}

TEST_F(HealthTest, TheHigherTermNamesTheLeader) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  Take(health.OnNotLeader(now, "r1", "r2", Term(4)));
  EXPECT_EQ(health.LeaderOf(kA).name, "r1") << "older";
  Take(health.OnNotLeader(now, "r1", "r2", Term(6)));
  EXPECT_EQ(health.LeaderOf(kA).name, "r2");
  Take(health.OnNotLeader(now, "r2", "stranger", Term(7)));
  EXPECT_EQ(health.LeaderOf(kA).name, "r2") << "not of this shard";
  Take(health.OnNotLeader(now, "r2", "", std::nullopt));
  EXPECT_EQ(health.LeaderOf(kA).name, "") << "it should know";
  Take(health.OnProof("r3", Term(8)));
  EXPECT_EQ(health.LeaderOf(kA).name, "r3");
  EXPECT_TRUE(health.Candidates(kA)[2].leader);
}

TEST_F(HealthTest, ALeaderThatIsDownIsNotUsed) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  Take(health.OnUnreachable(now, "r1"));
  EXPECT_EQ(health.UsableLeader(kA), std::nullopt);
  EXPECT_EQ(health.LeaderOf(kA).name, "r1") << "but known";
}

TEST_F(HealthTest, ALeaderThatStepsDownIsForgotten) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  leader = "";
  Run(milliseconds(400), {"r1"});
  EXPECT_EQ(health.LeaderOf(kA).name, "");
}

TEST_F(HealthTest, SeekingIsBoundedAndNoMiss) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  auto out = health.Seek(now, kA);
  EXPECT_EQ(out.pings.size(), 3u);
  EXPECT_TRUE(health.Seek(now, kA).pings.empty());
  EXPECT_EQ(health.Seek(now + milliseconds(50), kA).pings.size(), 3u);
  Run(milliseconds(320), {"r1", "r2", "r3"});
  EXPECT_EQ(health.State("r1").misses, 0u);
}

TEST_F(HealthTest, ReplicasThatStayKeepTheirState) {
  for (const char* name : {"r1", "r2", "r3"}) Answer(name);
  pings.clear();
  Take(health.SetDirectory(now, MakeDirectory(2, {"r2", "r4"}), random));
  EXPECT_EQ(pings.size(), 1u);
  EXPECT_TRUE(pings.contains("r4"));
  EXPECT_EQ(FitnessOf("r2"), Fitness::kHealthy);
  EXPECT_EQ(health.LeaderOf(kA).name, "") << "the leader is gone";
  EXPECT_EQ(health.LeaderOf(kA).term, Term(5)) << "its term is not";
  EXPECT_FALSE(health.Knows("r1"));
}

}  // namespace
}  // namespace etalon::router
