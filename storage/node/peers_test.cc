#include "storage/node/peers.h"

#include <gtest/gtest.h>

namespace etalon::storage {
namespace {

constexpr ShardUid kA{0xa}, kB{0xb};

class Net final : public Transport {
 public:
  SendResult Send(const NodeName&, Lane, std::string) override { return SendResult::kQueued; }
  void SetAddress(const NodeName& node, std::string_view address) override {
    addresses[node] = address;
  }
  std::map<NodeName, std::string> addresses;
};

class PeersTest : public testing::Test {
 protected:
  void Apply(std::vector<std::string> replicas_of_b) {
    v1::Topology topology;
    topology.set_version(++version);
    v1::ShardInfo& shard = *topology.add_shards();
    shard.set_uid(kB.value());
    for (const std::string& name : replicas_of_b) {
      v1::ReplicaInfo& replica = *shard.add_replicas();
      replica.set_name(name);
      if (name != "b-nowhere") replica.set_address(name + ":7000");
    }
    peers.SetTopology(topology, &net);
  }

  Net net;
  Peers peers;
  std::uint64_t version = 0;
};

TEST_F(PeersTest, AddressesGoToTheTransport) {
  Apply({"b-0", "b-nowhere"});
  EXPECT_EQ(net.addresses, (std::map<NodeName, std::string>{{"b-0", "b-0:7000"}}));
  EXPECT_EQ(peers.ReplicasOf(kB), (std::vector<NodeName>{"b-0", "b-nowhere"}));
}

TEST_F(PeersTest, AShardThatTheTopologyDoesNotNameIsUnknown) {
  Apply({"b-0"});
  EXPECT_EQ(peers.LeaderOf(kA), std::nullopt);
  EXPECT_TRUE(peers.ReplicasOf(kA).empty());
  peers.LeaderHint(kA, "a-0", Term(5));  // does not make it known
  EXPECT_EQ(peers.LeaderOf(kA), std::nullopt);
}

TEST_F(PeersTest, WithoutAHintReplicasAreAskedInTurn) {
  Apply({"b-0", "b-1", "b-2"});
  std::vector<NodeName> asked;
  for (int i = 0; i < 4; ++i) asked.push_back(*peers.LeaderOf(kB));
  EXPECT_EQ(asked, (std::vector<NodeName>{"b-0", "b-1", "b-2", "b-0"}));
}

TEST_F(PeersTest, TheHintOfTheHighestTermStands) {
  Apply({"b-0", "b-1", "b-2"});
  peers.LeaderHint(kB, "b-1", Term(5));
  EXPECT_EQ(peers.LeaderOf(kB), "b-1");
  peers.LeaderHint(kB, "b-0", Term(4));
  EXPECT_EQ(peers.LeaderOf(kB), "b-1") << "an old word";
  peers.LeaderHint(kB, "b-2", Term(5));
  EXPECT_EQ(peers.LeaderOf(kB), "b-2") << "of one term the later word";
  peers.LeaderSeen(kB, "b-0", Term(6));
  EXPECT_EQ(peers.LeaderOf(kB), "b-0");
}

TEST_F(PeersTest, AReplicaThatDoesNotLeadAndKnowsNobodyIsNotAskedAgainAtOnce) {
  Apply({"b-0", "b-1"});
  peers.LeaderHint(kB, "b-0", Term(5));
  peers.LeaderHint(kB, "", Term(5));
  const NodeName first = *peers.LeaderOf(kB);
  EXPECT_NE(*peers.LeaderOf(kB), first);
}

TEST_F(PeersTest, ANewTopologyKeepsTheLeaderThatStays) {
  Apply({"b-0", "b-1"});
  peers.LeaderHint(kB, "b-1", Term(5));
  Apply({"b-0", "b-1", "b-2"});
  EXPECT_EQ(peers.LeaderOf(kB), "b-1");
  Apply({"b-0", "b-2"});
  EXPECT_EQ(peers.LeaderOf(kB), "b-0") << "nobody asks one that has left";
  peers.LeaderHint(kB, "b-2", Term(4));
  EXPECT_EQ(peers.LeaderOf(kB), "b-2") << "asked in turn: the older term did not count";
  peers.LeaderHint(kB, "b-0", Term(5));
  EXPECT_EQ(peers.LeaderOf(kB), "b-0");
}

TEST_F(PeersTest, MembersAreKnownByTheirDisks) {
  v1::MemberInfo member;
  member.set_member(11);
  member.set_name("a-0");
  peers.SetMembers({member});
  EXPECT_EQ(peers.NameOf(MemberId(11)), "a-0");
  EXPECT_EQ(peers.MemberOf("a-0"), MemberId(11));
  EXPECT_EQ(peers.NameOf(MemberId(12)), std::nullopt);
  EXPECT_EQ(peers.MemberOf("a-1"), std::nullopt);
}

TEST_F(PeersTest, ABlankDiskLearnsWhomToAnswer) {
  peers.Learn(MemberId(11), "a-0");
  EXPECT_EQ(peers.NameOf(MemberId(11)), "a-0");
  EXPECT_EQ(peers.MemberOf("a-0"), std::nullopt) << "hearsay makes no member";
  // What the log says counts more.
  v1::MemberInfo member;
  member.set_member(11);
  member.set_name("a-7");
  peers.SetMembers({member});
  EXPECT_EQ(peers.NameOf(MemberId(11)), "a-7");
}

}  // namespace
}  // namespace etalon::storage
