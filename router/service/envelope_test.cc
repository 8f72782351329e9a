#include "router/service/envelope.h"

#include <gtest/gtest.h>

#include <string>

#include "etalon/v1/peer.pb.h"
#include "etalon/v1/router.pb.h"

namespace etalon::router {
namespace {

// The envelope is protobuf's: what it writes, protobuf reads.
TEST(Envelope, WrappedCallsAreClientRequests) {
  for (const std::size_t size : {0u, 1u, 127u, 128u, 20000u}) {
    for (const std::uint64_t number : {1ull, 127ull, 128ull, ~0ull}) {
      v1::ClientCall call;
      call.set_id(9);
      call.set_args(std::string(size, 'x'));
      v1::NodeMessage message;
      ASSERT_TRUE(message.ParseFromString(
          WrapClientCall(CollectionId(7), number, call.SerializeAsString())));
      EXPECT_EQ(message.collection(), 7u);
      v1::ClientRequest request;
      ASSERT_TRUE(request.ParseFromString(message.client_request()));
      EXPECT_EQ(request.id(), number);
      EXPECT_EQ(request.call().SerializeAsString(), call.SerializeAsString());
    }
  }
}

std::string Answer(const v1::ClientResponse& response) {
  v1::NodeMessage message;
  message.set_collection(~0ull);
  message.set_client_reply(response.SerializeAsString());
  return message.SerializeAsString();
}

TEST(Envelope, AnswersAreReadInPlace) {
  v1::ClientResponse response;
  response.set_id(1ull << 40);
  response.mutable_call()->set_id(3);
  response.mutable_call()->set_result(std::string(300, 'r'));
  const std::string message = Answer(response);
  ClientAnswer answer;
  ASSERT_TRUE(ReadClientAnswer(message, &answer));
  EXPECT_EQ(answer.number, response.id());
  EXPECT_EQ(answer.reply, response.call().SerializeAsString());
  EXPECT_TRUE(answer.status.empty());

  response.clear_call();
  response.mutable_status()->set_code(14);
  const std::string failure = Answer(response);
  ASSERT_TRUE(ReadClientAnswer(failure, &answer));
  EXPECT_EQ(answer.status, response.status().SerializeAsString());
  EXPECT_TRUE(answer.reply.empty());
}

TEST(Envelope, WhatIsNoAnswerIsRefused) {
  ClientAnswer answer;
  v1::NodeMessage other;
  other.mutable_ping()->set_id(1);
  EXPECT_FALSE(ReadClientAnswer(other.SerializeAsString(), &answer));
  EXPECT_FALSE(ReadClientAnswer("\xff", &answer));
  EXPECT_FALSE(ReadClientAnswer(std::string(20, '\xff'), &answer));  // a number without an end
  v1::ClientResponse response;
  response.set_id(5);
  response.mutable_call()->set_result("abc");
  const std::string whole = Answer(response);
  int refused = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    refused += ReadClientAnswer(std::string_view(whole).substr(0, size), &answer) ? 0 : 1;
  }
  EXPECT_EQ(refused, static_cast<int>(whole.size()));
}

}  // namespace
}  // namespace etalon::router
