#include "rpc/transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>

#include "etalon/v1/services.pb.h"
#include "rpc/testing/gate.h"
#include "rpc/testing/pipe_service.h"
#include "rpc/testing/process.h"

namespace etalon::rpc {
namespace {

using testing::Eventually;
using testing::Gate;
using testing::kPatience;
using testing::PipeService;
using testing::Process;
using testing::RawClient;

std::string Local(int port) { return "127.0.0.1:" + std::to_string(port); }

// A process with a server whose node answers each message with the same bytes.
class EchoServer {
 public:
  explicit EchoServer(const Limits& limits = {}, int port = 0, Duration patience = Duration::zero())
      : process("server", "", limits), service_(process.endpoint(), patience) {
    process.on_message = [this](const Process::Message& message) {
      process.net().Send(message.from, message.lane, message.bytes);
    };
    auto server =
        Server::Start({.listen = Local(port), .health_listen = "", .limits = limits}, {&service_});
    EXPECT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  ~EchoServer() { Stop(Duration::zero()); }

  void Stop(Duration limit) {
    if (!server_) return;
    process.endpoint()->BeginClose();
    server_->Stop(limit);
    server_.reset();
  }
  std::string address() const { return Local(server_->port()); }
  int port() const { return server_->port(); }

  Process process;

 private:
  PipeService service_;
  std::unique_ptr<Server> server_;
};

std::string FrameOf(const std::vector<std::string>& messages) {
  v1::Frame frame;
  for (const std::string& message : messages) frame.add_messages(message);
  return frame.SerializeAsString();
}

TEST(Transport, EchoesOverAReplyAddress) {
  EchoServer server;
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.SetAddress("s", server.address());
  EXPECT_EQ(client.Send("s", Lane::kControl, "hello"), SendResult::kQueued);
  EXPECT_EQ(client.Send("s", Lane::kBulk, std::string(1 << 20, 'b')), SendResult::kQueued);
  const auto got = client.Wait(2);
  ASSERT_EQ(got.size(), 2u);
  for (const auto& message : got) {
    EXPECT_EQ(message.from, "s");
    EXPECT_EQ(message.bytes.size(), message.lane == Lane::kBulk ? 1u << 20 : 5u);
  }
  EXPECT_EQ(server.process.Wait(2)[0].from.rfind("pipe-", 0), 0u);
}

TEST(Transport, UnknownNodesAndReplyAddresses) {
  Process process("a");
  EXPECT_EQ(process.Send("nobody", Lane::kControl, "x"), SendResult::kUnknown);
  EXPECT_EQ(process.Send("pipe-1", Lane::kControl, "x"), SendResult::kUnknown);
  process.SetAddress("b", "127.0.0.1:1");
  process.SetAddress("b", "");
  EXPECT_EQ(process.Send("b", Lane::kControl, "x"), SendResult::kUnknown);
}

TEST(Transport, MessagesToItselfComeBack) {
  Process process("a");
  EXPECT_EQ(process.Send("a", Lane::kBulk, "x"), SendResult::kQueued);
  const auto got = process.Wait(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from, "a");
  EXPECT_EQ(got[0].lane, Lane::kBulk);
}

TEST(Transport, WhatQueuesDuringAWriteIsOneFrameInOrder) {
  EchoServer server;
  Gate gate(server.port());
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.SetAddress("s", gate.address());
  constexpr int kMessages = 2000;
  client.OnCore([&] {  // the first write waits for the connection, all others for it
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_EQ(client.net().Send("s", Lane::kControl, std::to_string(i)), SendResult::kQueued);
    }
  });
  gate.Open();
  const auto got = client.Wait(kMessages);
  ASSERT_EQ(got.size(), static_cast<std::size_t>(kMessages));
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(got[i].bytes, std::to_string(i));
  EXPECT_EQ(client.counters().messages_sent, static_cast<std::uint64_t>(kMessages));
  EXPECT_EQ(client.counters().frames_sent, 2u);
  EXPECT_EQ(server.process.counters().frames_received, 2u);
}

TEST(Transport, QueuesAreBoundedByLane) {
  Gate gate(1);  // stays shut
  Process client("a", GrpcTransport::kPeerPipe, {.control_queue = 10000, .bulk_queue = 5000});
  client.SetAddress("b", gate.address());
  client.OnCore([&] {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      const auto send = [&] { return client.net().Send("b", lane, std::string(1000, 'x')); };
      int queued = 0;
      while (send() == SendResult::kQueued) ASSERT_LT(++queued, 100);
      // One is being written, the others fill the queue; each counts a little more than its bytes.
      EXPECT_EQ(queued, lane == Lane::kControl ? 10 : 5);
      EXPECT_EQ(send(), SendResult::kFull);
    }
  });
  EXPECT_EQ(client.counters().refused_full, 4u);
}

TEST(Transport, MessagesOverTheHardLimitAreRefusedAtOnce) {
  EchoServer server;
  Process client("a", GrpcTransport::kStoragePipe, {.message = 1 << 20});
  client.SetAddress("s", server.address());
  EXPECT_EQ(client.Send("s", Lane::kControl, std::string(1 << 20, 'x')), SendResult::kFull);
  EXPECT_EQ(client.Send("s", Lane::kControl, "small"), SendResult::kQueued);
  EXPECT_EQ(client.Wait(1).at(0).bytes, "small");
}

TEST(Transport, RepliesOverTheHardLimitLeaveTheStreamAlone) {
  EchoServer server({.message = 1 << 20});
  Process client("a", GrpcTransport::kStoragePipe);
  client.SetAddress("s", server.address());
  ASSERT_EQ(client.Send("s", Lane::kControl, "x"), SendResult::kQueued);
  const NodeName address = server.process.Wait(1).at(0).from;
  EXPECT_EQ(server.process.Send(address, Lane::kControl, std::string(1 << 20, 'x')),
            SendResult::kFull);
  EXPECT_EQ(server.process.Send(address, Lane::kControl, "small"), SendResult::kQueued);
  EXPECT_EQ(client.Wait(2).at(1).bytes, "small");
}

TEST(Transport, ReconnectsAfterARestart) {
  auto server = std::make_unique<EchoServer>();
  const int port = server->port();
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.SetAddress("s", server->address());
  ASSERT_EQ(client.Send("s", Lane::kControl, "one"), SendResult::kQueued);
  ASSERT_EQ(client.Wait(1).size(), 1u);
  server.reset();
  ASSERT_TRUE(
      Eventually([&] { return client.Send("s", Lane::kControl, "lost") == SendResult::kUnknown; }));
  EchoServer again({}, port);
  EXPECT_TRUE(Eventually([&] {
    client.Send("s", Lane::kControl, "two");
    const auto got = client.Wait(1);
    return got.back().bytes == "two";
  }));
}

// The end of a stream is told once, after what came over it; nothing is sent on the next one
// before.
TEST(Transport, TheEndOfAStreamIsToldBehindItsMessages) {
  auto server = std::make_unique<EchoServer>();
  const int port = server->port();
  std::vector<std::string> history;  // on the client's core
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.on_message = [&](const Process::Message& m) { history.push_back(m.bytes); };
  client.endpoint()->SetEndWatcher([&](const NodeName& peer, Lane lane) {
    history.push_back("end of " + peer + (lane == Lane::kControl ? " control" : " bulk"));
  });
  client.SetAddress("s", server->address());
  for (const char* word : {"one", "two"}) {
    ASSERT_EQ(client.Send("s", Lane::kControl, word), SendResult::kQueued);
  }
  ASSERT_EQ(client.Wait(2).size(), 2u);
  server.reset();
  const auto last_is = [&](const std::string& word) {
    bool is = false;
    client.OnCore([&] { is = history.back() == word; });
    return is;
  };
  ASSERT_TRUE(Eventually([&] { return last_is("end of s control"); }));
  EchoServer again({}, port);
  ASSERT_TRUE(Eventually([&] {
    client.Send("s", Lane::kControl, "three");
    return last_is("three");
  }));
  client.OnCore([&] {
    ASSERT_GE(history.size(), 4u);
    EXPECT_EQ(history[0], "one");
    EXPECT_EQ(history[1], "two");
    EXPECT_EQ(history[2], "end of s control");
    EXPECT_EQ(history.back(), "three");
  });
}

TEST(Transport, AnotherAddressEndsTheOldStream) {
  EchoServer first;
  EchoServer second;
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.SetAddress("s", first.address());
  ASSERT_EQ(client.Send("s", Lane::kControl, "one"), SendResult::kQueued);
  ASSERT_EQ(client.Wait(1).size(), 1u);
  const NodeName address = first.process.Wait(1).at(0).from;
  client.SetAddress("s", second.address());
  ASSERT_EQ(client.Send("s", Lane::kControl, "two"), SendResult::kQueued);
  EXPECT_EQ(client.Wait(2).at(1).bytes, "two");
  EXPECT_EQ(second.process.Wait(1).at(0).bytes, "two");
  EXPECT_TRUE(Eventually(
      [&] { return first.process.Send(address, Lane::kControl, "x") == SendResult::kUnknown; }));
}

TEST(Transport, AReplyAddressIsGoneWithItsStream) {
  EchoServer server;
  auto client = std::make_unique<RawClient>(server.address(), GrpcTransport::kStoragePipe);
  ASSERT_TRUE(client->Write(FrameOf({"x"})));
  const auto got = server.process.Wait(1);
  ASSERT_EQ(got.size(), 1u);
  client.reset();
  EXPECT_TRUE(Eventually([&] {
    return server.process.Send(got[0].from, Lane::kControl, "x") == SendResult::kUnknown;
  }));
}

TEST(Transport, MalformedFramesEndTheStream) {
  EchoServer server;
  const std::string whole = FrameOf({"abcdef"});
  std::uint64_t count = 0;
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), whole.substr(0, whole.size() - 1)}) {
    RawClient client(server.address(), GrpcTransport::kStoragePipe);
    ASSERT_TRUE(client.Write(FrameOf({"good"})));
    client.Write(bytes);
    const grpc::Status status = client.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(server.process.counters().malformed, ++count);
  }
  for (const auto& message : server.process.Wait(2)) EXPECT_EQ(message.bytes, "good");
}

TEST(Transport, OversizedFramesEndTheStreamWithAClearError) {
  EchoServer server({.message = 1 << 20});
  RawClient client(server.address(), GrpcTransport::kStoragePipe);
  client.Write(FrameOf({std::string(2 << 20, 'x')}));
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("larger than max"), std::string::npos)
      << status.error_message();
}

TEST(Transport, AClientThatNeverReadsIsCut) {
  EchoServer server({.reply_queue = 1 << 20});
  RawClient client(server.address(), GrpcTransport::kStoragePipe);
  // Far more than the windows of HTTP/2, the sockets and the reply queue hold together.
  for (int i = 0; i < 1000 && client.Write(FrameOf({std::string(1 << 18, 'x')})); ++i) {
  }
  EXPECT_TRUE(Eventually([&] { return server.process.counters().streams_cut == 1; }));
  const grpc::Status status = client.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_NE(status.error_message().find("not read"), std::string::npos) << status.error_message();
}

// With patience the answers that find no room are refused, and the stream lives while it moves.
TEST(Transport, AStreamWithPatienceIsCutOnlyWhenItStands) {
  EchoServer server({.reply_queue = 1 << 20}, 0, std::chrono::milliseconds(500));
  RawClient client(server.address(), GrpcTransport::kStoragePipe);
  ASSERT_TRUE(client.Write(FrameOf({"hello"})));
  const auto got = server.process.Wait(1);
  ASSERT_EQ(got.size(), 1u);
  const auto push = [&] {
    return server.process.Send(got[0].from, Lane::kControl, std::string(1 << 18, 'x'));
  };
  ASSERT_TRUE(Eventually([&] { return push() == SendResult::kFull; }));
  EXPECT_EQ(server.process.counters().streams_cut, 0u);
  // It reads again: there is room again.
  ASSERT_TRUE(Eventually([&] {
    std::string ignored;
    return client.Read(&ignored) && push() == SendResult::kQueued;
  }));
  // It does not, for longer than that.
  EXPECT_TRUE(Eventually([&] {
    (void)push();
    return server.process.counters().streams_cut == 1;
  }));
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// A node that is behind is not buried: its streams are not read, and the sender's queue fills up.
TEST(Transport, ASlowNodeHoldsItsSendersBack) {
  EchoServer server({.unhandled = 1 << 20});
  std::promise<void> release;
  auto released = release.get_future().share();
  server.process.on_message = [released](const Process::Message&) { released.wait(); };
  Process client("a", GrpcTransport::kStoragePipe, {.control_queue = 1 << 20});
  client.SetAddress("s", server.address());
  std::size_t sent = 0;
  int stuck = 0;  // rounds in which nothing was taken any more
  EXPECT_TRUE(Eventually([&] {
    const std::size_t before = sent;
    while (client.Send("s", Lane::kControl, std::string(1 << 16, 'x')) == SendResult::kQueued)
      ++sent;
    const bool received = server.process.counters().frames_received > 0;
    stuck = received && sent == before ? stuck + 1 : 0;
    return stuck == 50;
  }));
  release.set_value();
  EXPECT_EQ(server.process.Wait(sent).size(), sent);  // nothing that was queued is lost
}

TEST(Transport, AGracefulStopAnswersAllThatWasSent) {
  EchoServer server;
  Process client("router-0", GrpcTransport::kStoragePipe);
  client.SetAddress("s", server.address());
  ASSERT_EQ(client.Send("s", Lane::kControl, "first"), SendResult::kQueued);
  ASSERT_EQ(client.Wait(1).size(), 1u);
  std::atomic<std::size_t> accepted = 1;
  std::thread sender([&] {
    while (client.Send("s", Lane::kControl, "x") == SendResult::kQueued) ++accepted;
  });
  ASSERT_GE(client.Wait(200).size(), 200u);
  server.process.endpoint()->BeginClose();
  sender.join();
  server.Stop(kPatience);  // ends by itself, long before
  EXPECT_EQ(client.Wait(accepted).size(), accepted);
  EXPECT_EQ(server.process.counters().streams_cut, 0u);
}

}  // namespace
}  // namespace etalon::rpc
