#include "rpc/frames.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "etalon/v1/router.pb.h"
#include "rpc/testing/process.h"

namespace etalon::rpc {
namespace {

using testing::FromBuffer;
using testing::ToBuffer;

TEST(Frames, KeepMessagesInOrder) {
  grpc::ByteBuffer buffer =
      EncodeFrame({.messages = {"a", "", std::string("\0b", 2)}, .closing = true});
  Frame frame;
  ASSERT_TRUE(DecodeFrame(&buffer, &frame));
  EXPECT_EQ(frame.messages, (std::vector<std::string>{"a", "", std::string("\0b", 2)}));
  EXPECT_TRUE(frame.closing);
}

// One codec serves all streams because the frames of clients have the same bytes.
TEST(Frames, AreTheFramesOfClientsToo) {
  v1::ClientFrame calls;
  calls.add_calls("x");
  EXPECT_EQ(FromBuffer(EncodeFrame({.messages = {"x"}})), calls.SerializeAsString());
  v1::ClientReplyFrame replies;
  replies.add_replies("y");
  replies.set_closing(true);
  EXPECT_EQ(FromBuffer(EncodeFrame({.messages = {"y"}, .closing = true})),
            replies.SerializeAsString());
}

TEST(Frames, MalformedAndTruncatedBytesAreRefused) {
  Frame frame;
  grpc::ByteBuffer garbage = ToBuffer("\xff\xff\xff");
  EXPECT_FALSE(DecodeFrame(&garbage, &frame));
  const std::string whole = FromBuffer(EncodeFrame({.messages = {"abcdef"}}));
  for (std::size_t size = 1; size < whole.size(); ++size) {
    grpc::ByteBuffer part = ToBuffer(whole.substr(0, size));
    EXPECT_FALSE(DecodeFrame(&part, &frame)) << size;
  }
}

TEST(Outbox, GathersWhatWaits) {
  Outbox outbox(1 << 20);
  for (const char* message : {"a", "b", "c"}) EXPECT_TRUE(outbox.Push(message));
  EXPECT_EQ(outbox.Take(1 << 20), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(outbox.bytes(), 0u);
}

TEST(Outbox, FramesAreCappedButNeverEmpty) {
  Outbox outbox(1 << 20);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(outbox.Push(std::string(1000, 'x')));
  EXPECT_EQ(outbox.Take(2200).size(), 2u);
  EXPECT_EQ(outbox.Take(10).size(), 1u);
  EXPECT_TRUE(outbox.Take(10).empty());
}

TEST(Outbox, IsBoundedInBytesOfEvenEmptyMessages) {
  Outbox outbox(1000);
  EXPECT_TRUE(outbox.Push(std::string(5000, 'x')));  // alone: any size
  EXPECT_FALSE(outbox.Push("y"));
  outbox.Clear();
  int pushed = 0;
  while (outbox.Push("")) ++pushed;
  EXPECT_GT(pushed, 0);
  EXPECT_LT(pushed, 1000);
  outbox.Take(1 << 20);
  EXPECT_TRUE(outbox.Push("y"));
}

}  // namespace
}  // namespace etalon::rpc
