#include "storage/node/replies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "etalon/v1/call.pb.h"

namespace etalon::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A transport that takes a number of frames.
struct Wire {
  int room = 1000;
  bool gone = false;
  std::vector<std::pair<NodeName, v1::ReplyFrame>> frames;

  Replies::Flushed Flush(Replies* replies) {
    return replies->Flush([this](const NodeName& to, const std::string& bytes) {
      if (gone) return SendResult::kUnknown;
      if (room == 0) return SendResult::kFull;
      --room;
      frames.emplace_back(to, v1::ReplyFrame());
      EXPECT_TRUE(frames.back().second.ParseFromString(bytes));
      return SendResult::kQueued;
    });
  }
};

TEST(Replies, OfOneTurnLeaveInOneFrameForEachPeer) {
  Replies replies;
  replies.Add("a", "1");
  replies.Add("b", "2");
  replies.Add("a", "3");
  Wire wire;
  EXPECT_THAT(wire.Flush(&replies).ready, IsEmpty());
  ASSERT_EQ(wire.frames.size(), 2u);
  EXPECT_EQ(wire.frames[0].first, "a");
  EXPECT_THAT(wire.frames[0].second.replies(), ElementsAre("1", "3"));
  EXPECT_THAT(wire.frames[1].second.replies(), ElementsAre("2"));
  EXPECT_TRUE(replies.empty());
}

TEST(Replies, FramesAreBoundedAndALargeReplyIsOneOfItsOwn) {
  Replies replies;
  const std::string large(Replies::kFrameBytes + 1, 'x');
  const std::string half(Replies::kFrameBytes / 2, 'x');
  for (const auto& reply : {std::string("s"), large, half, half, half}) replies.Add("a", reply);
  Wire wire;
  wire.Flush(&replies);
  std::vector<int> sizes;
  for (const auto& [to, frame] : wire.frames) sizes.push_back(frame.replies_size());
  EXPECT_THAT(sizes, ElementsAre(1, 1, 2, 1));
}

TEST(Replies, WhatFindsNoRoomWaitsInOrder) {
  Replies replies;
  const std::string part(Replies::kFrameBytes, 'x');
  for (char c : {'1', '2', '3', '4'}) replies.Add("a", c + part);
  replies.Add("b", "small");
  EXPECT_TRUE(replies.Enough("a"));
  EXPECT_FALSE(replies.Enough("b"));
  EXPECT_FALSE(replies.Enough("c"));
  Wire wire;
  wire.room = 1;
  EXPECT_THAT(wire.Flush(&replies).ready, IsEmpty());
  EXPECT_TRUE(replies.Enough("a"));  // 12 MiB are left
  wire.room = 2;
  EXPECT_THAT(wire.Flush(&replies).ready, ElementsAre("a"));
  EXPECT_FALSE(replies.Enough("a"));  // 4 MiB
  EXPECT_FALSE(replies.empty());
  wire.room = 1000;
  EXPECT_THAT(wire.Flush(&replies).ready, IsEmpty());  // told once
  EXPECT_TRUE(replies.empty());
  std::string order;
  for (const auto& [to, frame] : wire.frames) {
    if (to == "a") order += frame.replies(0)[0];
  }
  EXPECT_EQ(order, "1234");
}

TEST(Replies, APeerThatTakesNothingIsBounded) {
  Replies replies;
  Wire wire;
  wire.room = 0;
  for (int i = 0; i < 100; ++i) {
    replies.Add("a", std::string(1u << 20, 'x'));
    wire.Flush(&replies);
  }
  replies.Add("b", "x");
  wire.room = 1000;
  wire.Flush(&replies);
  std::size_t kept = 0;
  bool other = false;
  for (const auto& [to, frame] : wire.frames) {
    if (to == "a") kept += static_cast<std::size_t>(frame.replies_size()) << 20;
    other = other || to == "b";
  }
  EXPECT_GE(kept, Replies::kMost);
  EXPECT_LE(kept, Replies::kMost + (1u << 20));
  EXPECT_TRUE(other);
}

TEST(Replies, APeerThatIsGoneIsForgotten) {
  Replies replies;
  replies.Add("a", std::string(Replies::kEnough + 1, 'x'));
  Wire wire;
  wire.gone = true;
  const Replies::Flushed flushed = wire.Flush(&replies);
  EXPECT_THAT(flushed.gone, ElementsAre("a"));
  EXPECT_THAT(flushed.ready, IsEmpty());
  EXPECT_TRUE(replies.empty());
  EXPECT_FALSE(replies.Enough("a"));
}

}  // namespace
}  // namespace etalon::storage
