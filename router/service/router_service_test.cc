#include "router/service/router_service.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "etalon/v1/peer.pb.h"
#include "proto/wire.h"
#include "rpc/channel.h"
#include "rpc/client/router_client.h"
#include "rpc/client/router_pipe.h"
#include "rpc/server.h"
#include "rpc/testing/gate.h"
#include "rpc/testing/process.h"

namespace etalon::router {
namespace {

using rpc::testing::Eventually;
using rpc::testing::Process;
using rpc::testing::RawClient;

constexpr char kPipe[] = "/etalon.v1.Router/Pipe";
constexpr std::chrono::seconds kLong{20};

// A process that serves as a router does. Its node echoes the arguments of calls, keeps those of
// function "hold" until Release, fails "fail", and answers everything else with `answer`.
class FakeRouter {
 public:
  explicit FakeRouter(int port = 0, const rpc::Limits& limits = {})
      : process("router-0", "", limits), service_(process.endpoint(), CollectionId(7)) {
    process.on_message = [this](const Process::Message& message) { OnMessage(message); };
    auto server = rpc::Server::Start(
        {.listen = "127.0.0.1:" + std::to_string(port), .health_listen = "", .limits = limits},
        {&service_});
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    address = "127.0.0.1:" + std::to_string(server_->port());
  }
  ~FakeRouter() { Stop(Duration::zero()); }

  void Stop(Duration limit) {
    if (!server_) return;
    process.endpoint()->BeginClose();
    server_->Stop(limit);
    server_.reset();
  }
  int port() const { return server_->port(); }

  void Release() {
    process.OnCore([this] {
      for (auto& [to, bytes] : held_) process.net().Send(to, Lane::kControl, bytes);
      held_.clear();
    });
  }
  std::size_t held() {
    std::size_t count = 0;
    process.OnCore([&] { count = held_.size(); });
    return count;
  }

  Process process;
  std::string address;
  v1::ClientResponse answer;  // before it is asked
  v1::ClientRequest asked;    // core

 private:
  void OnMessage(const Process::Message& message) {
    v1::NodeMessage in;
    ASSERT_TRUE(in.ParseFromString(message.bytes));
    EXPECT_EQ(in.collection(), 7u);
    ASSERT_TRUE(asked.ParseFromString(in.client_request()));
    v1::ClientResponse response = answer;
    const v1::ClientCall& call = asked.call();
    if (call.function() == "fail") {
      *response.mutable_status() = ToProto(Unavailable(Reason::kNoRouteToBucket, "nobody has it"));
    } else if (asked.has_call()) {
      response.mutable_call()->set_id(call.id());
      response.mutable_call()->set_result(call.args());
    }
    response.set_id(asked.id());
    v1::NodeMessage out;
    out.set_client_reply(response.SerializeAsString());
    if (call.function() == "hold") {
      held_.emplace_back(message.from, out.SerializeAsString());
    } else {
      process.net().Send(message.from, Lane::kControl, out.SerializeAsString());
    }
  }

  std::vector<std::pair<NodeName, std::string>> held_;  // core
  RouterService service_;
  std::unique_ptr<rpc::Server> server_;
};

v1::ClientCall Call(const std::string& function, const std::string& args = {}) {
  v1::ClientCall call;
  call.mutable_target()->set_bucket(1);
  call.set_function(function);
  call.set_args(args);
  return call;
}

// Callbacks may run until it has stopped.
class Pipe : public rpc::RouterPipe {
 public:
  using RouterPipe::RouterPipe;
  ~Pipe() { EXPECT_TRUE(Stop(kLong)); }
};

// Outcomes of piped calls; made before the pipe.
class Outcomes {
 public:
  rpc::RouterPipe::Done Next() {
    std::lock_guard lock(mutex_);
    return [this, number = next_++](const Status& status, std::string result) {
      std::lock_guard inner(mutex_);
      EXPECT_TRUE(outcomes_.emplace(number, status.ok() ? result : status.ToString()).second);
      changed_.notify_all();
    };
  }
  std::map<int, std::string> Wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLong, [&] { return outcomes_.size() >= count; });
    return outcomes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int next_ = 0;
  std::map<int, std::string> outcomes_;
};

TEST(RouterService, UnaryCalls) {
  FakeRouter router;
  rpc::RouterClient client(router.address);
  const auto result = client.Call(Call("echo", "x"), kLong);
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(*result, "x");
  EXPECT_EQ(client.Call(Call("fail"), kLong).status().ToString(),
            "UNAVAILABLE/NO_ROUTE_TO_BUCKET: nobody has it");
}

// A failure of a method whose response has a status is a success of gRPC's.
TEST(RouterService, FailuresStandInTheResponseWhereItHasAStatus) {
  FakeRouter router;
  v1::Router::Stub stub(rpc::MakeChannel(router.address));
  grpc::ClientContext context;
  v1::ClientReply reply;
  EXPECT_TRUE(stub.Call(&context, Call("fail"), &reply).ok());
  EXPECT_EQ(FromProto(reply.status()).reason(), Reason::kNoRouteToBucket);
}

TEST(RouterService, TheShorterOfDeadlineAndTimeoutGoesAlong) {
  FakeRouter router;
  rpc::RouterClient client(router.address);
  v1::ClientCall call = Call("echo");
  call.set_timeout_millis(50);
  (void)client.Call(call, kLong);
  router.process.OnCore([&] { EXPECT_EQ(router.asked.call().timeout_millis(), 50u); });
  call.set_timeout_millis(100'000'000);
  (void)client.Call(call, kLong);
  // gRPC rounds deadlines up on their way, by about 1 %.
  router.process.OnCore([&] { EXPECT_LE(router.asked.call().timeout_millis(), 20'500u); });
  call = Call("hold");
  call.set_timeout_millis(50);
  const auto late = client.Call(call, kLong);
  EXPECT_EQ(late.status().reason(), Reason::kDeadlinePassed);
}

TEST(RouterService, EveryMethodAsksItsOwnQuestionAndReadsItsOwnPart) {
  FakeRouter router;
  rpc::RouterClient client(router.address);
  using Case = v1::ClientRequest::RequestCase;
  struct Method {
    Case request;
    std::function<void(v1::ClientResponse*)> answer;
    std::function<Status()> ask;
  };
  const std::vector<Method> methods = {
      {Case::kMapCall, [](auto* r) { r->mutable_map_call(); },
       [&] { return client.MapCall({}, kLong).status(); }},
      {Case::kRoute, [](auto* r) { r->mutable_route(); },
       [&] { return client.Route({}, kLong).status(); }},
      {Case::kRouteAll, [](auto* r) { r->mutable_route_all(); },
       [&] { return client.RouteAll(kLong).status(); }},
      {Case::kBucketId, [](auto* r) { r->mutable_bucket_id(); },
       [&] { return client.BucketId({}, kLong).status(); }},
      {Case::kBuckets, [](auto* r) { r->mutable_buckets(); },
       [&] { return client.BucketsInfo({}, kLong).status(); }},
      {Case::kInfo, [](auto* r) { r->mutable_info(); },
       [&] { return client.Info(kLong).status(); }},
      {Case::kSync, [](auto* r) { r->mutable_sync(); }, [&] { return client.Sync(kLong); }},
      {Case::kDescribe, [](auto* r) { r->mutable_describe(); },
       [&] { return client.DescribeCollection(kLong).status(); }},
      {Case::kApplyTopology, [](auto* r) { r->mutable_done(); },
       [&] { return client.ApplyTopology({}, kLong); }},
  };
  for (const Method& method : methods) {
    router.process.OnCore([&] { method.answer(&router.answer); });
    const Status status = method.ask();
    EXPECT_TRUE(status.ok()) << status.ToString();
    router.process.OnCore([&] { EXPECT_EQ(router.asked.request_case(), method.request); });
  }
  router.process.OnCore([&] { router.answer.mutable_done(); });
  EXPECT_EQ(client.Info(kLong).status().code(),
            Code::kInternal);  // not the part that was asked for
}

TEST(RouterPipe, ManyCallsInFewFrames) {
  FakeRouter router;
  rpc::testing::Gate gate(router.port());
  Outcomes outcomes;
  Pipe pipe(gate.address(), 1);
  constexpr int kCalls = 3000;
  for (int i = 0; i < kCalls; ++i) {
    const std::string function = i % 10 == 0 ? "fail" : "echo";
    ASSERT_TRUE(pipe.Call(Call(function, std::to_string(i)), kLong, outcomes.Next()).ok());
  }
  gate.Open();
  const auto got = outcomes.Wait(kCalls);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(kCalls));
  for (const auto& [i, outcome] : got) {
    EXPECT_EQ(outcome,
              i % 10 == 0 ? "UNAVAILABLE/NO_ROUTE_TO_BUCKET: nobody has it" : std::to_string(i));
  }
  EXPECT_EQ(pipe.counters().messages_sent, static_cast<std::uint64_t>(kCalls));
  EXPECT_EQ(pipe.counters().frames_sent, 2u);  // the first call, and all that queued meanwhile
}

TEST(RouterPipe, RepliesComeInAnyOrder) {
  FakeRouter router;
  Outcomes outcomes;
  Pipe pipe(router.address, 1);
  ASSERT_TRUE(pipe.Call(Call("hold", "first"), kLong, outcomes.Next()).ok());
  ASSERT_TRUE(pipe.Call(Call("echo", "second"), kLong, outcomes.Next()).ok());
  EXPECT_EQ(outcomes.Wait(1), (std::map<int, std::string>{{1, "second"}}));
  router.Release();
  EXPECT_EQ(outcomes.Wait(2).at(0), "first");
}

TEST(RouterPipe, EnforcesTheTimeoutItself) {
  FakeRouter router;
  Outcomes outcomes;
  Pipe pipe(router.address, 1);
  ASSERT_TRUE(pipe.Call(Call("hold"), std::chrono::milliseconds(50), outcomes.Next()).ok());
  EXPECT_EQ(outcomes.Wait(1).at(0).substr(0, 33), "DEADLINE_EXCEEDED/DEADLINE_PASSED");
  router.process.OnCore([&] { EXPECT_EQ(router.asked.call().timeout_millis(), 50u); });
}

TEST(RouterPipe, ABrokenStreamFailsItsCallsByWhatTheyWere) {
  auto router = std::make_unique<FakeRouter>();
  const int port = router->port();
  Outcomes outcomes;
  Pipe pipe(router->address, 1);
  v1::ClientCall write = Call("hold");
  v1::ClientCall repeatable = write;
  repeatable.mutable_request()->set_client(5);
  v1::ClientCall read = write;
  read.set_mode(v1::MODE_RO);
  for (const auto& call : {write, repeatable, read})
    ASSERT_TRUE(pipe.Call(call, kLong, outcomes.Next()).ok());
  ASSERT_TRUE(Eventually([&] { return router->held() == 3; }));
  router.reset();
  const auto got = outcomes.Wait(3);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got.at(0).substr(0, 28), "UNAVAILABLE/OUTCOME_UNKNOWN:");
  EXPECT_EQ(got.at(1).substr(0, 35), "UNAVAILABLE/UNREACHABLE_REPLICASET:");
  EXPECT_EQ(got.at(2).substr(0, 35), "UNAVAILABLE/UNREACHABLE_REPLICASET:");
  // It connects again by itself.
  FakeRouter again(port);
  std::size_t asked = 0;
  EXPECT_TRUE(Eventually([&] {
    if (pipe.Call(Call("echo", "back"), kLong, outcomes.Next()).ok()) ++asked;
    return outcomes.Wait(3 + asked).rbegin()->second == "back";
  }));
}

TEST(RouterPipe, AGracefulStopAnswersWhatIsInFlight) {
  FakeRouter router;
  Outcomes outcomes;
  Pipe pipe(router.address, 1);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(pipe.Call(Call("hold", "x"), kLong, outcomes.Next()).ok());
  ASSERT_TRUE(Eventually([&] { return router.held() == 10; }));
  router.process.endpoint()->BeginClose();
  // The pipe takes no new calls for this stream once it knows.
  ASSERT_TRUE(
      Eventually([&] { return !pipe.Call(Call("hold", "late"), kLong, outcomes.Next()).ok(); }));
  const std::size_t held = router.held();
  EXPECT_GE(held, 10u);
  router.Release();
  ASSERT_TRUE(Eventually([&] {
    router.Release();
    return pipe.counters().streams_broken == 1;
  }));
  router.Stop(kLong);
  for (const auto& [i, outcome] : outcomes.Wait(held))
    EXPECT_TRUE(outcome == "x" || outcome == "late") << outcome;
}

// While too many of a client's calls are unanswered its stream is not read, and its own queue fills
// up.
TEST(RouterPipe, UnansweredCallsAreBounded) {
  FakeRouter router(0, {.client_calls = 100});
  Outcomes outcomes;
  Pipe pipe(router.address, 1, {.frame = 1 << 10, .control_queue = 1 << 20});
  std::size_t sent = 0;
  int stuck = 0;
  ASSERT_TRUE(Eventually([&] {
    const std::size_t before = sent;
    while (pipe.Call(Call("hold", std::string(500, 'x')), kLong * 10, outcomes.Next()).ok()) ++sent;
    stuck = sent == before && router.held() > 0 ? stuck + 1 : 0;
    return stuck == 50;
  }));
  // At most the frame that went over the bound came in besides.
  EXPECT_GE(router.held(), 100u);
  EXPECT_LT(router.held(), 110u);
  EXPECT_TRUE(Eventually([&] {
    router.Release();
    return outcomes.Wait(0).size() == sent;
  }));
}

TEST(RouterPipe, MalformedCallsEndTheStream) {
  FakeRouter router;
  RawClient client(router.address, kPipe);
  v1::ClientFrame frame;
  frame.add_calls("\xff\xff");
  client.Write(frame.SerializeAsString());
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(router.process.counters().malformed, 1u);
}

TEST(RouterPipe, AHalfClosedStreamGetsAllItsReplies) {
  FakeRouter router;
  RawClient client(router.address, kPipe);
  v1::ClientFrame frame;
  for (const std::uint64_t id : {11, 12}) {
    v1::ClientCall call = Call("hold", "x");
    call.set_id(id);
    frame.add_calls(call.SerializeAsString());
  }
  ASSERT_TRUE(client.Write(frame.SerializeAsString()));
  client.WritesDone();
  ASSERT_TRUE(Eventually([&] { return router.held() == 2; }));
  router.Release();
  std::vector<std::uint64_t> ids;
  for (std::string bytes; client.Read(&bytes);) {
    v1::ClientReplyFrame replies;
    ASSERT_TRUE(replies.ParseFromString(bytes));
    for (const std::string& one : replies.replies()) {
      v1::ClientReply reply;
      ASSERT_TRUE(reply.ParseFromString(one));
      ids.push_back(reply.id());
    }
  }
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{11, 12}));
  EXPECT_TRUE(client.Finish().ok());
}

TEST(RouterPipe, AResultThatIsTooLargeFailsItsCallAlone) {
  FakeRouter router(0, {.message = 1 << 20});
  Outcomes outcomes;
  Pipe pipe(router.address, 1);
  // The request passes; the reply, with its envelope, does not.
  ASSERT_TRUE(
      pipe.Call(Call("echo", std::string((1 << 20) - 40, 'x')), kLong, outcomes.Next()).ok());
  EXPECT_EQ(outcomes.Wait(1).at(0).substr(0, 29), "RESOURCE_EXHAUSTED/TOO_LARGE:");
  ASSERT_TRUE(pipe.Call(Call("echo", "small"), kLong, outcomes.Next()).ok());
  EXPECT_EQ(outcomes.Wait(2).at(1), "small");
}

TEST(RouterPipe, StopFailsWhatIsInFlight) {
  FakeRouter router;
  Outcomes outcomes;
  Pipe pipe(router.address, 1);
  ASSERT_TRUE(pipe.Call(Call("hold"), kLong, outcomes.Next()).ok());
  EXPECT_TRUE(pipe.Stop(kLong));
  EXPECT_EQ(outcomes.Wait(0).size(), 1u);  // before Stop returned
  EXPECT_EQ(pipe.Call(Call("echo"), kLong, outcomes.Next()).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace etalon::router
