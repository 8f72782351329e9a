#include "storage/node/feed_publisher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace etalon::storage {
namespace {

using bucket::Marks;
using bucket::Row;
using bucket::RowStatus;
using std::chrono::milliseconds;

constexpr ShardUid kA{0xa}, kB{0xb};

// What a router would know that takes every message in its place, and whether one was missing.
class Listener {
 public:
  struct Entry {
    std::uint64_t epoch = 0;
    bool gone = false;
    std::uint64_t destination = 0;
    bool readable_only = false;
    bool operator==(const Entry&) const = default;
  };
  // By bucket; empty where nothing was said.
  using Known = std::vector<std::optional<Entry>>;
  static void Set(Known* known, std::uint32_t bucket, const Entry& entry) {
    if (known->size() <= bucket) known->resize(bucket + 1);
    (*known)[bucket] = entry;
  }

  void Hear(const v1::FeedMessage& m) {
    ++messages;
    largest = std::max(largest, m.ByteSizeLong());
    ASSERT_EQ(m.status().code(), 0u);
    ASSERT_EQ(m.shard(), kA.value());
    ASSERT_EQ(m.part(), parts_.size()) << "a part is missing";
    if (!parts_.empty()) {
      ASSERT_EQ(m.index(), parts_.front().index());
      ASSERT_EQ(m.full(), parts_.front().full());
    }
    if (!m.full()) {
      ASSERT_EQ(m.previous_index(), last) << "a message is missing";
    }
    parts_.push_back(m);
    if (m.more()) return;
    if (m.full()) known.clear();
    for (const v1::FeedMessage& part : parts_) {
      for (const v1::FeedBucket& b : part.buckets()) {
        for (std::uint32_t i = 0; i < std::max<std::uint32_t>(b.count(), 1); ++i) {
          Set(&known, b.bucket() + i, {b.epoch(), b.gone(), b.destination(), b.readable_only()});
        }
      }
    }
    parts_.clear();
    last = m.index();
  }
  bool whole() const { return parts_.empty(); }

  Known known;
  std::uint64_t last = 0;
  std::size_t messages = 0;
  std::size_t largest = 0;

 private:
  std::vector<v1::FeedMessage> parts_;
};

class FeedPublisherTest : public testing::Test {
 protected:
  FeedPublisher::View View() {
    return {kA, Term(5), level, LogIndex(index), TopologyVersion(2), rows, marks};
  }
  v1::FeedMessage Subscribe(const NodeName& from = "r", std::uint64_t id = 77) {
    v1::FeedSubscribe request;
    request.set_subscription(id);
    request.set_shard(kA.value());
    return feed.Subscribe(from, request, View(), now);
  }
  std::vector<FeedPublisher::Outgoing> Flush() { return feed.Flush(View(), now); }
  void FlushTo(Listener* listener) {
    for (const auto& out : Flush()) listener->Hear(out.message);
  }
  // Everything that is due, in its pace.
  void Settle(Listener* listener) {
    for (int i = 0; i < 1000; ++i) {
      FlushTo(listener);
      if (listener->whole()) return;
      now += FeedPublisher::kPartGap;
    }
    FAIL() << "the list does not end";
  }
  void SetRow(std::uint32_t bucket, RowStatus status, std::uint64_t epoch) {
    rows[bucket] = {.status = status, .epoch = Epoch(epoch)};
    marks[bucket].own = Epoch(epoch);
    ++index;
    feed.OnRow(bucket);
  }
  void Send(std::uint32_t bucket) {
    marks[bucket].left_epoch = rows[bucket].epoch;
    marks[bucket].left_to = kB;
    rows.erase(bucket);
    ++index;
    feed.OnRow(bucket);
  }
  // What a listener should know.
  Listener::Known Truth() {
    Listener::Known out;
    for (const auto& [bucket, m] : marks) {
      const bool left = m.left_to && m.left_epoch >= m.own;
      Listener::Set(&out, bucket,
                    left ? Listener::Entry{m.left_epoch.value() + 1, true, m.left_to.value(), false}
                         : Listener::Entry{m.own.value(), true, 0, false});
    }
    for (const auto& [bucket, row] : rows) {
      if (!bucket::IsReadable(row.status)) continue;
      Listener::Set(&out, bucket, {row.epoch.value(), false, 0, row.status == RowStatus::kSending});
    }
    return out;
  }

  FeedPublisher feed;
  std::map<std::uint32_t, Row> rows;
  std::map<std::uint32_t, Marks> marks;
  std::uint64_t index = 10;
  std::uint8_t level = 0;
  SteadyTime now{std::chrono::seconds(100)};
};

TEST_F(FeedPublisherTest, AListNamesWhatIsHereAndWhereTheRestWent) {
  SetRow(0, RowStatus::kActive, 1);
  SetRow(1, RowStatus::kPinned, 4);
  SetRow(2, RowStatus::kSending, 2);
  SetRow(3, RowStatus::kActive, 3);
  Send(3);
  rows[4] = {.status = RowStatus::kReceiving, .epoch = Epoch(7)};  // never owned: not mentioned
  SetRow(5, RowStatus::kActive, 3);
  rows[5].status = RowStatus::kQuarantined;
  const auto list = Subscribe();
  EXPECT_TRUE(list.full());
  EXPECT_FALSE(list.more());
  EXPECT_EQ(list.subscription(), 77u);
  EXPECT_EQ(list.term(), 5u);
  EXPECT_EQ(list.index(), index);
  EXPECT_EQ(list.topology_version(), 2u);
  Listener l;
  l.Hear(list);
  EXPECT_EQ(l.known, Truth());
  EXPECT_EQ(l.known.at(3), (Listener::Entry{4, true, kB.value(), false}));
  EXPECT_EQ(l.known.at(5), (Listener::Entry{3, true, 0, false}));
  EXPECT_EQ(l.known.at(4), std::nullopt);
}

TEST_F(FeedPublisherTest, ABucketThatCameBackIsNotCalledGoneAgain) {
  SetRow(0, RowStatus::kActive, 1);
  Send(0);
  SetRow(0, RowStatus::kActive, 3);
  Listener l;
  l.Hear(Subscribe());
  EXPECT_EQ(l.known.at(0), (Listener::Entry{3, false, 0, false}));
  rows.erase(0);  // and is lost here: no mark of a later departure
  index++;
  feed.OnRow(0);
  FlushTo(&l);
  EXPECT_EQ(l.known.at(0), (Listener::Entry{3, true, 0, false}));
}

TEST_F(FeedPublisherTest, ChangesFollowInAChain) {
  SetRow(0, RowStatus::kActive, 1);
  Listener l;
  l.Hear(Subscribe());
  EXPECT_TRUE(Flush().empty()) << "nothing changed, and no heartbeat is due";
  SetRow(1, RowStatus::kActive, 2);
  FlushTo(&l);
  Send(0);
  FlushTo(&l);
  EXPECT_EQ(l.known, Truth());
  EXPECT_EQ(l.messages, 3u);
  EXPECT_EQ(l.last, index);
}

TEST_F(FeedPublisherTest, SeveralChangesOfOneBucketAreOne) {
  Listener l;
  l.Hear(Subscribe());
  SetRow(1, RowStatus::kActive, 2);
  SetRow(1, RowStatus::kSending, 2);
  const auto out = Flush();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].message.buckets_size(), 1);
}

TEST_F(FeedPublisherTest, HeartbeatsKeepTheChain) {
  Listener l;
  l.Hear(Subscribe());
  now += FeedPublisher::kHeartbeat - milliseconds(1);
  EXPECT_TRUE(Flush().empty());
  now += milliseconds(1);
  index += 5;  // entries that changed no row
  FlushTo(&l);
  EXPECT_EQ(l.messages, 2u);
  EXPECT_EQ(l.last, index);
  SetRow(1, RowStatus::kActive, 2);
  FlushTo(&l);
  EXPECT_EQ(l.known, Truth());
}

TEST_F(FeedPublisherTest, EverySubscriberHasItsOwnChain) {
  Listener a, b;
  a.Hear(Subscribe("a", 1));
  SetRow(0, RowStatus::kActive, 1);
  for (const auto& out : Flush()) a.Hear(out.message);
  SetRow(1, RowStatus::kActive, 1);
  b.Hear(Subscribe("b", 2));  // the change is in its list, and due to `a`
  SetRow(2, RowStatus::kActive, 1);
  for (const auto& out : Flush()) {
    EXPECT_EQ(out.message.subscription(), out.to == "a" ? 1u : 2u);
    (out.to == "a" ? a : b).Hear(out.message);
  }
  EXPECT_EQ(a.known, Truth());
  EXPECT_EQ(b.known, Truth());
}

TEST_F(FeedPublisherTest, ADroppedOrCancelledSubscriberHearsNothing) {
  (void)Subscribe("a");
  (void)Subscribe("b");
  feed.Dropped("a");
  feed.Unsubscribe("b");
  SetRow(0, RowStatus::kActive, 1);
  EXPECT_TRUE(Flush().empty());
  EXPECT_EQ(feed.subscribers(), 0u);
  // Subscribing again begins anew.
  Listener l;
  l.Hear(Subscribe("a"));
  EXPECT_EQ(l.known, Truth());
}

TEST_F(FeedPublisherTest, SubscribersAreBounded) {
  for (std::size_t i = 0; i < FeedPublisher::kMaxSubscribers; ++i) {
    ASSERT_EQ(Subscribe(std::to_string(i)).status().code(), 0u);
  }
  const auto refusal = Subscribe("one more");
  EXPECT_EQ(refusal.status().code(), static_cast<unsigned>(Code::kResourceExhausted));
  EXPECT_EQ(refusal.subscription(), 77u);
  EXPECT_EQ(Subscribe("5").status().code(), 0u) << "one that is known may ask again";
}

TEST_F(FeedPublisherTest, TheEndOfTheReignIsToldWithTheNextLeader) {
  (void)Subscribe("a", 1);
  const auto out =
      feed.Close(Unavailable(Reason::kNonMaster, "not me", {.leader = "s-1", .term = Term(6)}), kA);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].message.subscription(), 1u);
  EXPECT_EQ(out[0].message.status().hint().leader(), "s-1");
  EXPECT_EQ(out[0].message.status().hint().term(), 6u);
  EXPECT_EQ(feed.subscribers(), 0u);
}

TEST_F(FeedPublisherTest, NothingIsRememberedWithoutSubscribers) {
  SetRow(0, RowStatus::kActive, 1);
  feed.OnRebase();
  Listener l;
  l.Hear(Subscribe());
  EXPECT_TRUE(Flush().empty()) << "all of it is in the list";
  EXPECT_EQ(l.known, Truth());
}

// ---- lists of many buckets ----------------------------------------------------------------------

constexpr std::uint32_t kMillion = 1u << 20;

TEST_F(FeedPublisherTest, AlikeBucketsShareAnEntry) {
  for (std::uint32_t b = 0; b < kMillion; ++b) {
    rows.emplace_hint(rows.end(), b, Row{.status = RowStatus::kActive, .epoch = Epoch(1)});
    marks.emplace_hint(marks.end(), b, Marks{.own = Epoch(1)});
  }
  Listener l;
  l.Hear(Subscribe());
  EXPECT_TRUE(l.whole());
  EXPECT_LT(l.largest, 100u);
  EXPECT_EQ(l.known.size(), kMillion);
  EXPECT_EQ(l.known, Truth());
}

class FeedOfAMillion : public FeedPublisherTest {
 protected:
  // No two neighbours are alike; a third of them is gone.
  void SetUp() override {
    level = 7;
    for (std::uint32_t b = 0; b < kMillion; ++b) {
      Marks mark{.own = Epoch(1'000'000 + b % 7)};
      if (b % 3 == 0) {
        mark.left_epoch = mark.own;
        mark.left_to = kB;
      } else {
        rows.emplace_hint(rows.end(), b, Row{.status = RowStatus::kActive, .epoch = mark.own});
      }
      marks.emplace_hint(marks.end(), b, mark);
    }
  }
};

TEST_F(FeedOfAMillion, GoesInBoundedPartsAtABoundedPace) {
  Listener l;
  l.Hear(Subscribe());
  EXPECT_FALSE(l.whole());
  EXPECT_TRUE(Flush().empty()) << "not all at once";
  const SteadyTime start = now;
  Settle(&l);
  EXPECT_LE(l.largest, FeedPublisher::kPartBytes + 100) << "far below the limit of a message";
  EXPECT_GT(l.messages, 10u);
  EXPECT_LT(now - start, std::chrono::seconds(5));
  EXPECT_EQ(l.known, Truth());
  SetRow(17, RowStatus::kActive, 2'000'000);
  FlushTo(&l);
  EXPECT_EQ(l.known, Truth()) << "deltas follow";
}

TEST_F(FeedOfAMillion, WhatChangesMeanwhileFollowsTheList) {
  Listener l;
  l.Hear(Subscribe());
  for (std::uint32_t i = 0; !l.whole(); ++i) {
    ASSERT_LT(i, 1000u);
    SetRow(i * 3, RowStatus::kActive, 2'000'000 + i);  // told already
    Send(kMillion - 1 - i * 3);                        // not yet
    now += FeedPublisher::kPartGap;
    FlushTo(&l);
  }
  FlushTo(&l);
  EXPECT_EQ(l.known, Truth());
  EXPECT_EQ(l.last, index);
}

TEST_F(FeedOfAMillion, ALargeDeltaGoesInPartsToo) {
  Listener l;
  l.Hear(Subscribe());
  Settle(&l);
  const auto before = l.known;
  for (std::uint32_t b = 0; b < kMillion; ++b) {
    if (b % 3 != 0) Send(b);
  }
  FlushTo(&l);
  EXPECT_FALSE(l.whole());
  EXPECT_EQ(l.known, before) << "it counts when it is whole";
  Settle(&l);
  EXPECT_LE(l.largest, FeedPublisher::kPartBytes + 100);
  EXPECT_EQ(l.known, Truth());
}

TEST_F(FeedPublisherTest, ADoubledModulusBeginsAListThatWasUnderWayAnew) {
  for (std::uint32_t b = 0; b < 100'000; ++b) {
    rows[b] = {.status = RowStatus::kActive, .epoch = Epoch(1 + b % 2)};
    marks[b].own = rows[b].epoch;
  }
  const auto first = Subscribe();
  ASSERT_TRUE(first.more());
  for (std::uint32_t b = 0; b < 100'000; ++b) {
    rows[100'000 + b] = rows[b];
    marks[100'000 + b] = marks[b];
  }
  level = 1;
  ++index;
  feed.OnRebase();
  SetRow(7, RowStatus::kActive, 9);
  Listener l;  // a router drops what it has of the first list
  Settle(&l);
  EXPECT_EQ(l.known, Truth());
}

}  // namespace
}  // namespace etalon::storage
