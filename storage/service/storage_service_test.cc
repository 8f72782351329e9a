#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>

#include "etalon/v1/peer.pb.h"
#include "etalon/v1/services.grpc.pb.h"
#include "proto/wire.h"
#include "rpc/channel.h"
#include "rpc/client/storage_client.h"
#include "rpc/server.h"
#include "rpc/testing/process.h"
#include "storage/service/admin_service.h"
#include "storage/service/pipes.h"

namespace etalon::storage {
namespace {

using rpc::GrpcTransport;
using rpc::testing::Eventually;
using rpc::testing::Process;
using rpc::testing::RawClient;

constexpr CollectionId kCollection{77};
constexpr std::chrono::seconds kLong{20};

// A process that serves as a storage does; its node is the test.
class StorageServices : public ::testing::Test {
 protected:
  void SetUp() override {
    storage_.on_message = [this](const Process::Message& message) { OnMessage(message); };
    auto server = rpc::Server::Start({.listen = "127.0.0.1:0", .health_listen = "", .limits = {}},
                                     {&peers_, &routers_, &admin_});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
    address_ = "127.0.0.1:" + std::to_string(server_->port());
  }
  void TearDown() override { server_->Stop(std::chrono::seconds(5)); }

  // Answers admin calls by `answer_` and calls with their own bytes.
  void OnMessage(const Process::Message& message) {
    v1::NodeMessage in;
    if (!in.ParseFromString(message.bytes)) return;
    v1::NodeMessage out;
    if (in.has_admin_call()) {
      asked_ = in;
      if (answer_.mute) return;
      out.mutable_admin_reply()->set_id(in.admin_call().id());
      *out.mutable_admin_reply()->mutable_response() = answer_.response;
    } else if (in.body_case() == v1::NodeMessage::kCallFrame) {
      asked_ = in;
      v1::CallFrame frame;
      ASSERT_TRUE(frame.ParseFromString(in.call_frame()));
      v1::ReplyFrame replies;
      for (const std::string& bytes : frame.calls()) {
        v1::Call call;
        ASSERT_TRUE(call.ParseFromString(bytes));
        v1::CallReply reply;
        reply.set_id(call.id());
        reply.set_result(call.args());
        replies.add_replies(reply.SerializeAsString());
      }
      out.set_reply_frame(replies.SerializeAsString());
    } else {
      return;
    }
    storage_.net().Send(message.from, message.lane, out.SerializeAsString());
  }

  // What the node was asked last.
  v1::NodeMessage Asked() {
    v1::NodeMessage asked;
    storage_.OnCore([&] { asked = asked_; });
    return asked;
  }
  void Answer(const v1::AdminResponse& response) {
    storage_.OnCore([&] { answer_.response = response; });
  }

  struct {
    v1::AdminResponse response;
    bool mute = false;
  } answer_;               // core
  v1::NodeMessage asked_;  // core
  Process storage_{"s-0"};
  PeerService peers_{storage_.endpoint()};
  StorageService routers_{storage_.endpoint(), kCollection};
  AdminService admin_{storage_.endpoint(), kCollection};
  std::unique_ptr<rpc::Server> server_;
  std::string address_;
};

TEST_F(StorageServices, PeersAreKnownByTheirNames) {
  Process peer("s-1");
  peer.SetAddress("s-0", address_);
  ASSERT_EQ(peer.Send("s-0", Lane::kControl, "one"), SendResult::kQueued);
  ASSERT_EQ(storage_.Wait(1).size(), 1u);
  ASSERT_EQ(peer.Send("s-0", Lane::kBulk, "two"), SendResult::kQueued);
  const auto got = storage_.Wait(2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].from, "s-1");
  EXPECT_EQ(got[0].lane, Lane::kControl);
  EXPECT_EQ(got[1].from, "s-1");
  EXPECT_EQ(got[1].lane, Lane::kBulk);
}

TEST_F(StorageServices, PeersWithoutANameOrWithAReplyAddressAreRefused) {
  using Metadata = std::vector<std::pair<std::string, std::string>>;
  for (const Metadata& metadata :
       {Metadata{}, Metadata{{"etalon-node", "pipe-1"}}, Metadata{{"etalon-node", "call-9"}},
        Metadata{{"etalon-node", "s-1"}, {"etalon-lane", "fast"}}}) {
    RawClient client(address_, GrpcTransport::kPeerPipe, metadata);
    EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(StorageServices, RoutersAreAnsweredOnTheirStream) {
  Process router("router-0", GrpcTransport::kStoragePipe);
  router.SetAddress("s-0", address_);
  v1::Call call;
  call.set_id(5);
  call.set_args("x");
  v1::CallFrame frame;
  frame.add_calls(call.SerializeAsString());
  v1::NodeMessage message;
  message.set_call_frame(frame.SerializeAsString());
  ASSERT_EQ(router.Send("s-0", Lane::kControl, message.SerializeAsString()), SendResult::kQueued);
  const auto got = router.Wait(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].from, "s-0");
  v1::NodeMessage reply;
  ASSERT_TRUE(reply.ParseFromString(got[0].bytes));
  EXPECT_FALSE(reply.reply_frame().empty());
}

TEST_F(StorageServices, AUnaryCallIsAFrameOfOne) {
  v1::Storage::Stub stub(rpc::MakeChannel(address_));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLong);
  v1::Call call;
  call.set_id(42);
  call.set_args("x");
  v1::CallReply reply;
  ASSERT_TRUE(stub.Call(&context, call, &reply).ok());
  EXPECT_EQ(reply.id(), 42u);
  EXPECT_EQ(reply.status().code(), 0u);
  EXPECT_EQ(reply.result(), "x");
  EXPECT_EQ(Asked().collection(), kCollection.value());
  v1::CallFrame frame;
  ASSERT_TRUE(frame.ParseFromString(Asked().call_frame()));
  ASSERT_TRUE(call.ParseFromString(frame.calls(0)));
  EXPECT_GT(call.timeout_millis(), 1000u);   // the caller's deadline goes along
  EXPECT_LE(call.timeout_millis(), 20500u);  // gRPC rounds deadlines up on their way, by about 1 %
}

TEST_F(StorageServices, AdminAnswersTheRightPart) {
  v1::AdminResponse response;
  response.mutable_info()->set_replica("s-0");
  Answer(response);
  rpc::StorageClient client(address_);
  const auto info = client.Info(kLong);
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(info->replica(), "s-0");
  EXPECT_EQ(Asked().collection(), kCollection.value());
  EXPECT_TRUE(Asked().admin_call().request().has_info());
  EXPECT_GT(Asked().admin_call().request().timeout_millis(), 1000u);
  // Another part than was asked for is no answer.
  EXPECT_EQ(client.Checksum({}, kLong).status().code(), Code::kInternal);
}

TEST_F(StorageServices, EveryAdminMethodAsksItsOwnQuestion) {
  rpc::StorageClient client(address_);
  using Case = v1::AdminRequest::RequestCase;
  std::map<Case, std::function<void()>> methods = {
      {Case::kInfo, [&] { (void)client.Info(kLong); }},
      {Case::kBucketsInfo, [&] { (void)client.BucketsInfo({}, kLong); }},
      {Case::kForm, [&] { (void)client.Form({}, kLong); }},
      {Case::kChangeMembers, [&] { (void)client.ChangeMembers({}, kLong); }},
      {Case::kTransferLeader, [&] { (void)client.TransferLeader({}, kLong); }},
      {Case::kApplyTopology, [&] { (void)client.ApplyTopology({}, kLong); }},
      {Case::kApplySettings, [&] { (void)client.ApplySettings({}, kLong); }},
      {Case::kRecover, [&] { (void)client.Recover({}, kLong); }},
      {Case::kReleaseQuarantine, [&] { (void)client.ReleaseQuarantine({}, kLong); }},
      {Case::kSplit, [&] { (void)client.Split({}, kLong); }},
      {Case::kSplitStatus, [&] { (void)client.SplitStatus({}, kLong); }},
      {Case::kAbortSplit, [&] { (void)client.AbortSplit({}, kLong); }},
      {Case::kRetire, [&] { (void)client.Retire(kLong); }},
      {Case::kPin, [&] { (void)client.Pin({}, kLong); }},
      {Case::kSend, [&] { (void)client.Send({}, kLong); }},
      {Case::kRebalancerState, [&] { (void)client.RebalancerState(kLong); }},
      {Case::kCheckpoint, [&] { (void)client.Checkpoint(kLong); }},
      {Case::kChecksum, [&] { (void)client.Checksum({}, kLong); }},
  };
  for (auto& [request, method] : methods) {
    method();
    EXPECT_EQ(Asked().admin_call().request().request_case(), request);
  }
}

TEST_F(StorageServices, PinAndUnpinDecideForThemselves) {
  v1::AdminResponse response;
  response.mutable_done();
  Answer(response);
  rpc::StorageClient client(address_);
  v1::PinRequest request;
  request.add_buckets(3);
  request.set_unpin(true);
  ASSERT_TRUE(client.Pin(request, kLong).ok());
  EXPECT_FALSE(Asked().admin_call().request().pin().unpin());
  request.set_unpin(false);
  ASSERT_TRUE(client.Unpin(request, kLong).ok());
  EXPECT_TRUE(Asked().admin_call().request().pin().unpin());
}

TEST_F(StorageServices, AdminFailuresArriveWhole) {
  const Status status =
      Unavailable(Reason::kNonMaster, "s-2 leads", {.leader = "s-2", .term = Term(4)});
  v1::AdminResponse response;
  *response.mutable_status() = ToProto(status);
  Answer(response);
  const Status got = rpc::StorageClient(address_).Retire(kLong);
  EXPECT_EQ(got.ToString(), status.ToString());
  EXPECT_EQ(got.hint(), status.hint());
}

TEST_F(StorageServices, AdminIsAnsweredAtTheDeadline) {
  storage_.OnCore([&] { answer_.mute = true; });
  const Status got = rpc::StorageClient(address_).Retire(std::chrono::milliseconds(100));
  EXPECT_EQ(got.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(got.reason(), Reason::kDeadlinePassed);
}

}  // namespace
}  // namespace etalon::storage
