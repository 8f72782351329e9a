#include "router/call/outbox.h"

#include <gtest/gtest.h>

#include "etalon/v1/call.pb.h"

namespace etalon::router {
namespace {

struct Sent {
  NodeName peer;
  v1::CallFrame frame;
};

class OutboxTest : public testing::Test {
 protected:
  std::vector<Outbox::NotSent> Flush(SendResult result = SendResult::kQueued) {
    sent.clear();
    return outbox.Flush(5, [&](const NodeName& peer, std::string frame) {
      sent.push_back({peer, {}});
      EXPECT_TRUE(sent.back().frame.ParseFromString(frame));
      return result;
    });
  }
  Outbox outbox{{.peer_bytes = 100, .frame_bytes = 50}};
  std::vector<Sent> sent;
};

TEST_F(OutboxTest, OneFrameForEachPeerATurn) {
  outbox.Queue("b", 1, "one");
  outbox.Queue("a", 2, "two");
  outbox.Queue("b", 3, "three");
  EXPECT_FALSE(outbox.empty());
  EXPECT_TRUE(Flush().empty());
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].peer, "a");
  EXPECT_EQ(sent[1].peer, "b");
  ASSERT_EQ(sent[1].frame.calls_size(), 2);
  EXPECT_EQ(sent[1].frame.calls(0), "one");
  EXPECT_EQ(sent[1].frame.calls(1), "three");
  EXPECT_EQ(sent[1].frame.topology_version(), 5u);
  EXPECT_TRUE(outbox.empty());
  Flush();
  EXPECT_TRUE(sent.empty());
}

TEST_F(OutboxTest, FramesAreBounded) {
  for (std::uint64_t id = 1; id <= 5; ++id) outbox.Queue("a", id, std::string(20, 'x'));
  outbox.Queue("a", 6, std::string(70, 'y'));
  outbox.Queue("a", 7, "z");
  EXPECT_TRUE(Flush().empty());
  std::vector<int> sizes;
  for (const Sent& s : sent) sizes.push_back(s.frame.calls_size());
  EXPECT_EQ(sizes, (std::vector<int>{2, 2, 1, 1, 1})) << "a large call is a frame of its own";
}

TEST_F(OutboxTest, BytesInFlightAreBoundedForEachPeer) {
  EXPECT_TRUE(outbox.HasRoom("a", 1000)) << "a call over the bound goes alone";
  outbox.Queue("a", 1, std::string(90, 'x'));
  EXPECT_FALSE(outbox.HasRoom("a", 20));
  EXPECT_TRUE(outbox.HasRoom("a", 10));
  EXPECT_TRUE(outbox.HasRoom("b", 20));
  Flush();
  EXPECT_FALSE(outbox.HasRoom("a", 20)) << "sent is not answered";
  outbox.Release("a", 90);
  EXPECT_TRUE(outbox.HasRoom("a", 1000));
  EXPECT_EQ(outbox.bytes(), 0u);
}

TEST_F(OutboxTest, TellsWhatDidNotLeave) {
  outbox.Queue("a", 1, "one");
  outbox.Queue("a", 2, "two");
  const auto failed = Flush(SendResult::kFull);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].peer, "a");
  EXPECT_EQ(failed[0].why, SendResult::kFull);
  EXPECT_EQ(failed[0].ids, (std::vector<std::uint64_t>{1, 2}));
}

}  // namespace
}  // namespace etalon::router
