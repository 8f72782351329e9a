#include "rpc/server.h"

#include <gtest/gtest.h>

#include <string>

#include "rpc/testing/pipe_service.h"
#include "rpc/testing/process.h"

namespace etalon::rpc {
namespace {

using testing::PipeService;
using testing::Process;
using testing::RawClient;
using testing::RawUnary;

constexpr char kHealth[] = "/grpc.health.v1.Health/Check";

std::string Local(int port) { return "127.0.0.1:" + std::to_string(port); }

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = Server::Start(
        {.listen = "127.0.0.1:0", .health_listen = "127.0.0.1:0", .limits = {}}, {&service_});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = std::move(server).value();
  }
  void TearDown() override { server_->Stop(std::chrono::seconds(5)); }

  // HealthCheckResponse.status: 1 = SERVING, 2 = NOT_SERVING.
  int Health(int port) {
    std::string response;
    const grpc::Status status = RawUnary(Local(port), kHealth, "", &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.size() == 2 && response[0] == 8 ? response[1] : -1;
  }

  Process process_{"a"};
  PipeService service_{process_.endpoint()};
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, HealthAnswersOnBothPorts) {
  for (const int port : {server_->port(), server_->health_port()}) EXPECT_EQ(Health(port), 2);
  server_->SetServing(true);
  for (const int port : {server_->port(), server_->health_port()}) EXPECT_EQ(Health(port), 1);
  server_->SetServing(false);
  for (const int port : {server_->port(), server_->health_port()}) EXPECT_EQ(Health(port), 2);
}

TEST_F(ServerTest, TheHealthPortServesNothingElse) {
  RawClient client(Local(server_->health_port()), GrpcTransport::kStoragePipe);
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(ServerTest, ReflectionNamesTheServices) {
  RawClient client(Local(server_->port()),
                   "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ASSERT_TRUE(client.Write(std::string("\x3a\x01*")));  // list_services = "*"
  std::string response;
  ASSERT_TRUE(client.Read(&response));
  EXPECT_NE(response.find("etalon.v1.Storage"), std::string::npos);
  EXPECT_NE(response.find("grpc.health.v1.Health"), std::string::npos);
}

TEST_F(ServerTest, APortInUseIsRefused) {
  PipeService other(process_.endpoint());
  for (const auto& [listen, health] :
       {std::pair(server_->port(), 0), std::pair(0, server_->port())}) {
    const auto second = Server::Start(
        {.listen = Local(listen), .health_listen = Local(health), .limits = {}}, {&other});
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), Code::kUnavailable);
    EXPECT_NE(second.status().message().find(Local(server_->port())), std::string::npos);
  }
}

TEST_F(ServerTest, NewStreamsAreRefusedWhileItStops) {
  process_.endpoint()->BeginClose();
  RawClient client(Local(server_->port()), GrpcTransport::kStoragePipe);
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace etalon::rpc
