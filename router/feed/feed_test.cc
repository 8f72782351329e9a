#include "router/feed/feed.h"

#include <gtest/gtest.h>

namespace etalon::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Feed::State;

constexpr ShardUid kShard{0xa};
const SteadyTime kStart{seconds(100)};

class FeedTest : public testing::Test {
 protected:
  // Subscribed to `r1`, list at index 10 of term 5 received at kStart.
  void GoLive() {
    Took(feed.Start(kStart, random));
    v1::FeedMessage list = Message(10, 0);
    list.set_full(true);
    ASSERT_FALSE(Took(feed.OnMessage(kStart, to, list, random)).apply.empty());
    ASSERT_EQ(feed.state(), State::kLive);
  }
  // Remembers the subscription that was made.
  Feed::Output Took(Feed::Output out) {
    cancelled.clear();
    asked = false;
    for (const Feed::Send& send : out.sends) {
      EXPECT_EQ(send.message.shard(), kShard.value());
      if (send.message.cancel()) {
        cancelled = send.to;
        continue;
      }
      asked = true;
      to = send.to;
      EXPECT_NE(send.message.subscription(), subscription) << "an old list would be taken for new";
      subscription = send.message.subscription();
    }
    return out;
  }
  v1::FeedMessage Message(std::uint64_t index, std::uint64_t previous, std::uint64_t term = 5) {
    v1::FeedMessage m;
    m.set_subscription(subscription);
    m.set_shard(kShard.value());
    m.set_term(term);
    m.set_index(index);
    m.set_previous_index(previous);
    return m;
  }
  v1::FeedMessage Refusal(const NodeName& leader, std::uint64_t term) {
    v1::FeedMessage m;
    m.set_subscription(subscription);
    m.set_shard(kShard.value());
    m.mutable_status()->set_code(14);
    m.mutable_status()->set_reason(v1::REASON_NON_MASTER);
    m.mutable_status()->mutable_hint()->set_leader(leader);
    m.mutable_status()->mutable_hint()->set_term(term);
    return m;
  }
  Feed::Output Give(const v1::FeedMessage& m, SteadyTime at = kStart) {
    return Took(feed.OnMessage(at, to, m, random));
  }

  FeedOptions options;
  Random random{1};
  Feed feed{kShard, {"r1", "r2", "r3"}, options};
  NodeName to;
  NodeName cancelled;
  bool asked = false;
  std::uint64_t subscription = 0;
};

TEST_F(FeedTest, TakesTheListAndThenDeltasInTheirOrder) {
  GoLive();
  EXPECT_FALSE(Give(Message(12, 10)).apply.empty());
  EXPECT_FALSE(Give(Message(12, 12)).apply.empty()) << "a heartbeat at the same index";
  EXPECT_FALSE(Give(Message(15, 12)).apply.empty());
  EXPECT_EQ(feed.state(), State::kLive);
}

TEST_F(FeedTest, WhatComesTwiceOrLateIsDropped) {
  GoLive();
  ASSERT_FALSE(Give(Message(12, 10)).apply.empty());
  EXPECT_TRUE(Give(Message(12, 10)).apply.empty());
  v1::FeedMessage list = Message(10, 0);
  list.set_full(true);
  EXPECT_TRUE(Give(list).apply.empty());
  EXPECT_EQ(feed.state(), State::kLive);
}

TEST_F(FeedTest, AGapMeansSubscribeAgainAfterAPause) {
  GoLive();
  EXPECT_TRUE(Give(Message(15, 12)).apply.empty());
  EXPECT_EQ(feed.state(), State::kWaiting);
  EXPECT_FALSE(asked);
  EXPECT_GT(feed.wake(), kStart);
  EXPECT_LE(feed.wake(), kStart + options.backoff_base);
  Took(feed.OnWake(feed.wake(), random));
  EXPECT_TRUE(asked);
  EXPECT_EQ(to, "r1") << "the leader is still known";
}

TEST_F(FeedTest, ALowerTermMeansSubscribeAgain) {
  GoLive();
  EXPECT_TRUE(Give(Message(12, 10, 4)).apply.empty());
  EXPECT_EQ(feed.state(), State::kWaiting);
}

TEST_F(FeedTest, SilenceMeansSubscribeElsewhere) {
  GoLive();
  ASSERT_FALSE(Give(Message(10, 10), kStart + seconds(1)).apply.empty());
  EXPECT_EQ(feed.wake(), kStart + seconds(1) + options.silence);
  Took(feed.OnWake(feed.wake() - milliseconds(1), random));
  EXPECT_EQ(feed.state(), State::kLive);
  Took(feed.OnWake(feed.wake(), random));
  EXPECT_EQ(feed.state(), State::kWaiting);
  Took(feed.OnWake(feed.wake(), random));
  EXPECT_EQ(to, "r2");
  EXPECT_EQ(cancelled, "r1");
}

TEST_F(FeedTest, AMuteReplicaIsLeftForTheNext) {
  Took(feed.Start(kStart, random));
  EXPECT_EQ(to, "r1");
  Took(feed.OnWake(kStart + options.answer, random));
  Took(feed.OnWake(feed.wake(), random));
  EXPECT_EQ(to, "r2");
}

TEST_F(FeedTest, ARefusalThatNamesTheLeaderIsFollowedAtOnce) {
  Took(feed.Start(kStart, random));
  Give(Refusal("r3", 7));
  EXPECT_TRUE(asked);
  EXPECT_EQ(to, "r3");
  Give(Refusal("r2", 6));
  EXPECT_EQ(feed.state(), State::kWaiting) << "an older term is no news";
}

TEST_F(FeedTest, ReplicasThatNameEachOtherAreNotAskedInTurnsWithoutAnEnd) {
  Took(feed.Start(kStart, random));
  unsigned asks = 1;
  while (feed.state() == State::kAsking) {
    ASSERT_LT(asks, 10u);
    Give(Refusal(to == "r1" ? "r2" : "r1", 7));
    if (asked) ++asks;
  }
  EXPECT_EQ(asks, 4u);
}

TEST_F(FeedTest, PausesGrowUntilAFeedWorks) {
  Took(feed.Start(kStart, random));
  SteadyTime now = kStart;
  Duration longest{};
  for (int i = 0; i < 20; ++i) {
    now = feed.wake();
    Took(feed.OnWake(now, random));  // no answer
    ASSERT_EQ(feed.state(), State::kWaiting);
    longest = std::max(longest, feed.wake() - now);
    now = feed.wake();
    Took(feed.OnWake(now, random));
  }
  EXPECT_EQ(feed.state(), State::kAsking);
  v1::FeedMessage list = Message(10, 0);
  list.set_full(true);
  ASSERT_FALSE(Give(list, now).apply.empty());
  EXPECT_GT(longest, options.backoff_base);
  EXPECT_LE(longest, options.backoff_cap);
  ASSERT_FALSE(Give(Message(10, 10), now).apply.empty());
  Give(Message(15, 12), now);
  EXPECT_LE(feed.wake() - now, options.backoff_base);
}

TEST_F(FeedTest, MessagesOfAnotherSubscriptionOrSenderDoNotCount) {
  GoLive();
  v1::FeedMessage m = Message(12, 10);
  EXPECT_TRUE(feed.OnMessage(kStart, "r2", m, random).apply.empty());
  m.set_subscription(subscription + 1);
  EXPECT_TRUE(feed.OnMessage(kStart, to, m, random).apply.empty());
  m = Message(12, 10);
  m.set_shard(0xb);
  EXPECT_TRUE(feed.OnMessage(kStart, to, m, random).apply.empty());
  EXPECT_FALSE(Give(Message(12, 10)).apply.empty());
}

TEST_F(FeedTest, ADeltaThatOvertakesTheListIsNotTaken) {
  Took(feed.Start(kStart, random));
  EXPECT_TRUE(Give(Message(12, 10)).apply.empty());
  EXPECT_EQ(feed.state(), State::kAsking);
}

// ---- lists and deltas in parts ------------------------------------------------------------------

class FeedParts : public FeedTest {
 protected:
  v1::FeedMessage Part(std::uint32_t part, bool more, std::uint64_t index, std::uint64_t previous,
                       bool full) {
    v1::FeedMessage m = Message(index, previous);
    m.set_full(full);
    m.set_part(part);
    m.set_more(more);
    m.add_buckets()->set_bucket(part);
    return m;
  }
  v1::FeedMessage List(std::uint32_t part, bool more, std::uint64_t index = 10) {
    return Part(part, more, index, 0, true);
  }
  // Subscribed, and nothing has come yet.
  void SetUp() override { Took(feed.Start(kStart, random)); }
  static std::vector<std::uint32_t> Buckets(const Feed::Output& out) {
    std::vector<std::uint32_t> buckets;
    for (const v1::FeedMessage& m : out.apply) buckets.push_back(m.buckets(0).bucket());
    return buckets;
  }
};
using Order = std::vector<std::uint32_t>;

TEST_F(FeedParts, AListCountsOnlyWhole) {
  EXPECT_TRUE(Give(List(0, true)).apply.empty());
  EXPECT_TRUE(Give(List(1, true)).apply.empty());
  EXPECT_EQ(feed.state(), State::kAsking);
  EXPECT_EQ(feed.live_until(), std::nullopt);
  EXPECT_EQ(Buckets(Give(List(2, false))), (Order{0, 1, 2}));
  EXPECT_EQ(feed.state(), State::kLive);
  EXPECT_FALSE(Give(Message(12, 10)).apply.empty()) << "deltas follow";
}

TEST_F(FeedParts, EachPartGivesTheNextOneTime) {
  SteadyTime at = kStart;
  for (std::uint32_t part = 0; part < 5; ++part) {
    at += options.answer - milliseconds(1);
    ASSERT_TRUE(Took(feed.OnWake(at, random)).sends.empty());
    Give(List(part, part < 4), at);
  }
  EXPECT_EQ(feed.state(), State::kLive);
}

TEST_F(FeedParts, AMissingPartMeansSubscribeAgain) {
  Give(List(0, true));
  EXPECT_TRUE(Give(List(2, false)).apply.empty());
  EXPECT_EQ(feed.state(), State::kWaiting);
  Took(feed.OnWake(feed.wake(), random));
  ASSERT_TRUE(asked);
  // What came of the old list does not count towards the new one.
  EXPECT_TRUE(Give(List(1, false)).apply.empty());
  EXPECT_EQ(feed.state(), State::kWaiting);
}

TEST_F(FeedParts, AListThatIsNotFinishedInTimeIsGivenUp) {
  Give(List(0, true));
  Took(feed.OnWake(kStart + options.answer, random));
  EXPECT_EQ(feed.state(), State::kWaiting);
}

TEST_F(FeedParts, APartThatComesTwiceIsDropped) {
  Give(List(0, true));
  Give(List(0, true));
  Give(List(1, true));
  Give(List(0, true));
  Give(List(1, true));
  EXPECT_EQ(Buckets(Give(List(2, false))), (Order{0, 1, 2}));
  for (std::uint32_t part : {0u, 1u, 2u}) {
    EXPECT_TRUE(Give(List(part, part < 2)).apply.empty()) << "and so is all of it, when it is old";
  }
  EXPECT_FALSE(Give(Message(12, 10)).apply.empty());
}

TEST_F(FeedParts, ANewerListTakesThePlaceOfOneThatIsNotWhole) {
  Give(List(0, true, 10));
  EXPECT_TRUE(Give(List(0, true, 15)).apply.empty());
  EXPECT_TRUE(Give(List(1, false, 10)).apply.empty()) << "of the list that was given up";
  const auto out = Give(List(1, false, 15));
  EXPECT_EQ(Buckets(out), (Order{0, 1}));
  EXPECT_FALSE(Give(Message(16, 15)).apply.empty());
}

TEST_F(FeedParts, ADeltaInPartsCountsOnlyWhole) {
  Give(List(0, false));
  ASSERT_EQ(feed.state(), State::kLive);
  EXPECT_TRUE(Give(Part(0, true, 12, 10, false)).apply.empty());
  EXPECT_TRUE(Give(Part(0, true, 12, 10, false)).apply.empty()) << "twice";
  EXPECT_EQ(Buckets(Give(Part(1, false, 12, 10, false))), (Order{0, 1}));
  EXPECT_FALSE(Give(Message(13, 12)).apply.empty());
}

TEST_F(FeedParts, ADeltaWhoseLastPartIsLostIsAGap) {
  Give(List(0, false));
  Give(Part(0, true, 12, 10, false));
  EXPECT_TRUE(Give(Message(13, 12)).apply.empty());
  EXPECT_EQ(feed.state(), State::kWaiting);
}

TEST_F(FeedParts, AListMayFollowDeltas) {
  // The modulus doubled.
  Give(List(0, false));
  EXPECT_TRUE(Give(Part(0, true, 15, 10, true)).apply.empty());
  EXPECT_EQ(feed.state(), State::kLive) << "what was known still stands";
  EXPECT_EQ(Buckets(Give(Part(1, false, 15, 10, true))), (Order{0, 1}));
  EXPECT_FALSE(Give(Message(16, 15)).apply.empty());
}

TEST_F(FeedParts, WhatIsNotWholeIsBounded) {
  auto part = List(0, true);
  v1::FeedMessage filler;
  for (int i = 0; i < 100'000; ++i) filler.add_buckets()->set_epoch(std::uint64_t{1} << 40);
  *part.mutable_buckets() = filler.buckets();
  std::uint32_t number = 0;
  for (; feed.state() == State::kAsking && number < 1000; ++number) {
    part.set_part(number);
    Give(part);
  }
  EXPECT_EQ(feed.state(), State::kWaiting);
  EXPECT_NEAR(static_cast<double>(number) * static_cast<double>(part.ByteSizeLong()),
              static_cast<double>(Feed::kMaxPartsBytes), 2'000'000);
}

TEST_F(FeedTest, TheEndOfTheConnectionIsAGap) {
  GoLive();
  EXPECT_TRUE(Took(feed.OnDisconnect(kStart, "r2", random)).sends.empty());
  EXPECT_EQ(feed.state(), State::kLive) << "somebody else's";
  Took(feed.OnDisconnect(kStart, "r1", random));
  EXPECT_EQ(feed.state(), State::kWaiting);
  EXPECT_LE(feed.wake(), kStart + options.backoff_base);
  Took(feed.OnWake(feed.wake(), random));
  EXPECT_EQ(to, "r2");
}

TEST_F(FeedTest, ANewerLeaderIsAskedAtOnceAndTheOldOneIsLeft) {
  GoLive();
  Took(feed.OnLeader(kStart, "r2", Term(6), random));
  EXPECT_EQ(to, "r2");
  EXPECT_EQ(cancelled, "r1");
  Took(feed.OnLeader(kStart, "r1", Term(5), random));
  EXPECT_FALSE(asked) << "of an older term";
  Took(feed.OnLeader(kStart, "stranger", Term(9), random));
  EXPECT_FALSE(asked);
}

TEST_F(FeedTest, TheLeaderThatRefusedIsNotAskedAgainBeforeThePauseEnds) {
  Took(feed.Start(kStart, random));
  Give(Refusal("", 5));
  ASSERT_EQ(feed.state(), State::kWaiting);
  Took(feed.OnLeader(kStart, "r1", Term(0), random));
  EXPECT_FALSE(asked);
  Took(feed.OnLeader(kStart, "r1", Term(6), random));
  EXPECT_TRUE(asked) << "it has won an election since";
}

TEST_F(FeedTest, RefreshesAreBounded) {
  GoLive();
  Took(feed.Refresh(kStart + milliseconds(10), random));
  EXPECT_FALSE(asked) << "a list came just now";
  const SteadyTime wake = feed.wake();
  EXPECT_GE(wake, kStart + options.refresh_gap);
  Took(feed.Refresh(kStart + milliseconds(20), random));
  EXPECT_EQ(feed.wake(), wake) << "one refresh serves all who ask";
  Took(feed.OnWake(wake, random));
  EXPECT_TRUE(asked);
  EXPECT_EQ(to, "r1");
}

TEST_F(FeedTest, ARefreshCutsALongPauseShort) {
  Took(feed.Start(kStart, random));
  for (int i = 0; i < 12; ++i) Took(feed.OnWake(feed.wake(), random));
  while (feed.state() != State::kWaiting) Took(feed.OnWake(feed.wake(), random));
  const SteadyTime wake = feed.wake();
  Took(feed.Refresh(wake - milliseconds(1), random));
  EXPECT_TRUE(asked || feed.wake() <= wake);
  EXPECT_EQ(feed.state(), State::kAsking);
}

TEST_F(FeedTest, StopsAtTheFeeder) {
  GoLive();
  Took(feed.Stop());
  EXPECT_EQ(cancelled, "r1");
  EXPECT_TRUE(Give(Message(12, 10)).apply.empty());
}

TEST_F(FeedTest, AFeederThatLeavesTheTopologyIsLeft) {
  GoLive();
  Took(feed.SetReplicas(kStart, {"r1", "r4"}, random));
  EXPECT_FALSE(asked);
  Took(feed.SetReplicas(kStart, {"r4", "r5"}, random));
  EXPECT_TRUE(asked);
  EXPECT_EQ(cancelled, "r1");
}

}  // namespace
}  // namespace etalon::router
