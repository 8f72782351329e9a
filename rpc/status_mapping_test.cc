#include "rpc/status_mapping.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "etalon/v1/services.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/client/unary_client.h"
#include "rpc/server.h"

namespace etalon::rpc {
namespace {

// Answers Checkpoint with a given status.
class Failing final : public v1::Admin::WithCallbackMethod_Checkpoint<v1::Admin::Service> {
 public:
  Status status;
  std::optional<grpc::Status> plain;  // without our trailer

  grpc::ServerUnaryReactor* Checkpoint(grpc::CallbackServerContext* context,
                                       const v1::CheckpointRequest*, v1::Empty*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(plain ? *plain : ToGrpc(status, *context));
    return reactor;
  }
};

class StatusMapping : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server =
        Server::Start({.listen = "127.0.0.1:0", .health_listen = "", .limits = {}}, {&service_});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  void TearDown() override { server_->Stop(std::chrono::seconds(5)); }

  Status Ask() {
    v1::Admin::Stub stub(MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
    grpc::ClientContext context;
    v1::Empty response;
    return FromGrpc(stub.Checkpoint(&context, {}, &response), context);
  }

  Failing service_;
  std::unique_ptr<Server> server_;
};

TEST_F(StatusMapping, SuccessStaysSuccess) { EXPECT_TRUE(Ask().ok()); }

TEST_F(StatusMapping, EveryFieldSurvivesACall) {
  service_.status = Status(Code::kAborted, Reason::kWrongBucket, "moved \xe2\x82\xac",
                           {.destination = ShardUid(7),
                            .epoch = Epoch(3),
                            .leader = "b",
                            .term = Term(2),
                            .number = 0,
                            .text = "t"});
  const Status status = Ask();
  EXPECT_EQ(status.ToString(), service_.status.ToString());
  EXPECT_EQ(status.hint(), service_.status.hint());
}

// Larger trailers than a client takes would replace the status by one that says nothing.
TEST_F(StatusMapping, LongTextsAreCutAtACharacter) {
  std::string text;
  while (text.size() < 100000) text += "\xe2\x82\xac";
  service_.status = FailedPrecondition(Reason::kShardFenced, text, {.text = text});
  const Status status = Ask();
  EXPECT_EQ(status.reason(), Reason::kShardFenced);
  EXPECT_GT(status.message().size(), 900u);
  EXPECT_EQ(status.message(), text.substr(0, status.message().size() - 3) + "...");
}

TEST_F(StatusMapping, AnswersOfGrpcItselfGetAReason) {
  service_.plain = grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "big");
  EXPECT_EQ(Ask().ToString(), "RESOURCE_EXHAUSTED/OVERLOADED: big");
  service_.plain = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no");
  EXPECT_EQ(Ask().code(), Code::kUnimplemented);
  EXPECT_EQ(Ask().reason(), Reason::kNone);
  v1::Admin::Stub nobody(MakeChannel("127.0.0.1:1"));
  grpc::ClientContext context;
  v1::Empty response;
  const Status status = FromGrpc(nobody.Checkpoint(&context, {}, &response), context);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.reason(), Reason::kUnreachableReplicaset);
}

// A server that stops cancels calls that come late. For a client that is one more server that is
// not there.
TEST_F(StatusMapping, ACallThatAStoppingServerCancelsFoundNobody) {
  service_.plain = grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED");
  v1::Admin::Stub stub(MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
  const auto answer = CallUnary(stub, &v1::Admin::Stub::Checkpoint, v1::CheckpointRequest(),
                                std::chrono::seconds(9));
  EXPECT_EQ(answer.status().code(), Code::kUnavailable);
  EXPECT_EQ(answer.status().reason(), Reason::kUnreachableReplicaset);
}

}  // namespace
}  // namespace etalon::rpc
