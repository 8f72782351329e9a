#include "rpc/unary.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "etalon/v1/services.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/server.h"
#include "rpc/status_mapping.h"
#include "rpc/testing/process.h"

namespace etalon::rpc {
namespace {

using std::chrono::milliseconds;
using testing::Eventually;
using testing::Process;

// Storage.Call as a unary call whose reply_frame is the result.
class CallService final : public v1::Storage::WithCallbackMethod_Call<v1::Storage::Service> {
 public:
  explicit CallService(std::shared_ptr<Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}

  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* context, const v1::Call* call,
                                 v1::CallReply* reply) override {
    v1::NodeMessage message;
    message.set_call_frame(call->args());
    return UnaryCall::Start(endpoint_, context, message, TimeLeft(*context, call->timeout_millis()),
                            [reply](Result<v1::NodeMessage> answer) {
                              ETALON_RETURN_IF_ERROR(answer.status());
                              reply->set_result(answer->reply_frame());
                              return OkStatus();
                            });
  }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
};

class UnaryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The node answers what it is asked, but says nothing to "mute".
    process_.on_message = [this](const Process::Message& message) {
      v1::NodeMessage call;
      ASSERT_TRUE(call.ParseFromString(message.bytes));
      if (call.call_frame() == "mute") return;
      v1::NodeMessage reply;
      reply.set_reply_frame(call.call_frame());
      const std::string bytes = call.call_frame() == "garbage" ? "\xff" : reply.SerializeAsString();
      EXPECT_EQ(process_.net().Send(message.from, Lane::kControl, bytes), SendResult::kQueued);
      EXPECT_EQ(process_.net().Send(message.from, Lane::kControl, bytes),
                SendResult::kUnknown);  // one answer only
    };
    auto server =
        Server::Start({.listen = "127.0.0.1:0", .health_listen = "", .limits = {}}, {&service_});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    stub_ = std::make_unique<v1::Storage::Stub>(
        MakeChannel("127.0.0.1:" + std::to_string(server_->port())));
  }
  void TearDown() override { server_->Stop(std::chrono::seconds(5)); }

  Status Ask(const std::string& what, std::uint32_t named_millis, grpc::ClientContext* context,
             std::string* result) {
    v1::Call call;
    call.set_args(what);
    call.set_timeout_millis(named_millis);
    v1::CallReply reply;
    const grpc::Status status = stub_->Call(context, call, &reply);
    *result = reply.result();
    return FromGrpc(status, *context);
  }

  Process process_{"a", "", Limits{.unary_calls = 2}};
  CallService service_{process_.endpoint()};
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Storage::Stub> stub_;
  std::string result_;
};

TEST_F(UnaryTest, IsAnsweredOnce) {
  for (int i = 0; i < 5; ++i) {  // more than may be in progress: each leaves its place
    grpc::ClientContext context;
    ASSERT_TRUE(Ask("hello", 0, &context, &result_).ok());
    EXPECT_EQ(result_, "hello");
  }
}

TEST_F(UnaryTest, IsAnsweredAtTheDeadlineByAMuteNode) {
  grpc::ClientContext context;
  const Status status = Ask("mute", 50, &context, &result_);
  EXPECT_EQ(status.reason(), Reason::kDeadlinePassed);
  EXPECT_NE(status.message().find("may still take effect"),
            std::string::npos);  // our words, not gRPC's
  // The reply address went with the call.
  const NodeName address = process_.Wait(1).at(0).from;
  EXPECT_EQ(address.rfind("call-", 0), 0u);
  EXPECT_TRUE(Eventually(
      [&] { return process_.Send(address, Lane::kControl, "") == SendResult::kUnknown; }));
}

TEST_F(UnaryTest, APassedDeadlineReachesNobody) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - milliseconds(1));
  EXPECT_EQ(Ask("hello", 0, &context, &result_).code(), Code::kDeadlineExceeded);
  grpc::ClientContext good;
  ASSERT_TRUE(Ask("hello", 0, &good, &result_).ok());
  EXPECT_EQ(process_.Wait(1).size(), 1u);
}

TEST_F(UnaryTest, AnAnswerThatIsNoneIsAnError) {
  grpc::ClientContext context;
  EXPECT_EQ(Ask("garbage", 0, &context, &result_).code(), Code::kInternal);
}

TEST_F(UnaryTest, TooManyAtOnceAreRefused) {
  std::vector<std::thread> threads;
  std::vector<grpc::ClientContext> contexts(2);
  for (auto& context : contexts) {
    threads.emplace_back([this, &context] {
      std::string ignored;
      EXPECT_EQ(Ask("mute", 0, &context, &ignored).code(), Code::kCancelled);
    });
  }
  ASSERT_EQ(process_.Wait(2).size(), 2u);
  grpc::ClientContext third;
  EXPECT_EQ(Ask("hello", 0, &third, &result_).ToString().substr(0, 29),
            "RESOURCE_EXHAUSTED/OVERLOADED");
  for (auto& context : contexts) context.TryCancel();
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(Eventually([&] {  // callers that gave up leave their places
    grpc::ClientContext context;
    return Ask("hello", 0, &context, &result_).ok();
  }));
}

TEST_F(UnaryTest, IsRefusedWhileTheProcessStops) {
  process_.endpoint()->BeginClose();
  grpc::ClientContext context;
  EXPECT_EQ(Ask("hello", 0, &context, &result_).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace etalon::rpc
