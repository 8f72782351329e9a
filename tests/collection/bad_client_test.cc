// Clients that do what they should not: a clear error for them, and nothing for the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <sstream>
#include <thread>

#include "etalon/v1/peer.pb.h"
#include "etalon/v1/services.pb.h"
#include "rpc/testing/process.h"
#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

using rpc::testing::RawClient;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRouterPipe[] = "/etalon.v1.Router/Pipe";
constexpr char kStoragePipe[] = "/etalon.v1.Storage/Pipe";
constexpr char kPeerPipe[] = "/etalon.v1.Peer/Pipe";
constexpr std::uint64_t kMiB = 1u << 20;

std::uint64_t ResidentBytes(const Process& process) {
  std::istringstream status(ReadText("/proc/" + std::to_string(process.pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

// Watches by how much processes grow.
class Growth {
 public:
  explicit Growth(std::vector<Process> processes) : processes_(std::move(processes)) {
    for (const Process& process : processes_) before_.push_back(ResidentBytes(process));
    most_ = before_;
    thread_ = std::thread([this] {
      while (!stop_) {
        for (std::size_t i = 0; i < processes_.size(); ++i)
          most_[i] = std::max(most_[i], ResidentBytes(processes_[i]));
        std::this_thread::sleep_for(milliseconds(10));
      }
    });
  }
  // No process grew by more.
  void ExpectBelow(std::uint64_t bytes) {
    stop_ = true;
    thread_.join();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      EXPECT_LT(most_[i] - before_[i], bytes)
          << processes_[i].name << " grew from " << before_[i] / kMiB << " to " << most_[i] / kMiB
          << " MiB";
    }
  }

 private:
  const std::vector<Process> processes_;
  std::vector<std::uint64_t> before_;
  std::vector<std::uint64_t> most_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// A record of almost 1 MiB, and clients that ask for it far more often than they take it.
TEST(BadClient, ThatNeverReads) {
  Collection collection({.buckets = 4});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  const Status put =
      collection.router()
          .Call(WriteCall("put", "big", "accounts", "k", std::string(kMiB - 1024, 'v')),
                kCallDeadline)
          .status();
  ASSERT_TRUE(put.ok()) << put.ToString();
  v1::Target target;
  target.set_string_key("big");
  const auto route = collection.router().Route(target, kCallDeadline);
  ASSERT_TRUE(route.ok()) << route.status().ToString();
  v1::ClientFrame to_router;
  v1::CallFrame calls;
  for (std::uint64_t id = 1; id <= 1000; ++id) {
    v1::ClientCall call = GetCall("big", "accounts", "k");
    call.set_id(id);
    to_router.add_calls(call.SerializeAsString());
    v1::Call inner;
    inner.set_id(id);
    inner.set_routing_value(route->routing_value());
    inner.set_function("get");
    inner.set_args(call.args());
    calls.add_calls(inner.SerializeAsString());
  }
  v1::NodeMessage message;
  message.set_call_frame(calls.SerializeAsString());
  v1::Frame to_storage;
  to_storage.add_messages(message.SerializeAsString());

  Load load(collection);
  load.Start();
  load.AwaitProgress(5);
  const Process router = collection.routers().front();
  const Process leader = collection.Leader("shard-0");
  Growth growth({router, leader});
  {
    RawClient client(router.address, kRouterPipe);
    // The router cuts it off; until then it reads no more from it than it can keep.
    for (int i = 0; i < 1000 && client.Write(to_router.SerializeAsString()); ++i) {
    }
    const grpc::Status end = client.Finish();
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << end.error_message();
    EXPECT_THAT(end.error_message(), HasSubstr("not read"));
  }
  load.AwaitProgress(20);
  {
    RawClient client(leader.address, kStoragePipe);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.Write(to_storage.SerializeAsString()));
    load.AwaitProgress(20);
  }
  growth.ExpectBelow(300 * kMiB);  // of the 100 GiB that were asked for
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  EXPECT_EQ(collection.Find(router.name).pid, router.pid);
  EXPECT_EQ(collection.Find(leader.name).pid, leader.pid);
}

void ExpectBadFramesRefused(Collection& collection) {
  const Process router = collection.routers().front();
  const Process leader = collection.Leader("shard-0");
  const auto end_of = [](const Process& process, const char* method, const std::string& bytes) {
    RawClient client(process.address, method, {{"etalon-node", "stranger"}});
    client.Write(bytes);
    return client.Finish();
  };
  const std::string garbage = "\xff\xff\xff garbage";
  v1::ClientFrame half;
  half.add_calls(garbage);
  const std::string whole = half.SerializeAsString();
  for (const auto& [process, method] :
       {std::pair(router, kRouterPipe), std::pair(leader, kStoragePipe),
        std::pair(leader, kPeerPipe)}) {
    for (const std::string& bytes : {garbage, whole.substr(0, whole.size() - 1)}) {
      const grpc::Status end = end_of(process, method, bytes);
      EXPECT_EQ(end.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
      EXPECT_THAT(end.error_message(), Not(HasSubstr("garbage"))) << method;
      EXPECT_FALSE(end.error_message().empty()) << method;
    }
    const grpc::Status end = end_of(process, method, std::string(65 * kMiB, 'x'));
    EXPECT_EQ(end.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << method;
    EXPECT_THAT(end.error_message(), HasSubstr("larger than max")) << method;
  }
  // A frame that is one, of calls that are none.
  EXPECT_EQ(end_of(router, kRouterPipe, whole).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  std::string response;
  const grpc::Status unary =
      rpc::testing::RawUnary(router.address, "/etalon.v1.Router/Call", garbage, &response);
  EXPECT_FALSE(unary.ok());
  const grpc::Status unknown =
      rpc::testing::RawUnary(router.address, "/etalon.v1.Router/Nonsense", "", &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  // Nobody was harmed.
  EXPECT_TRUE(collection.router()
                  .Call(WriteCall("put", "somebody", "accounts", "k", "v"), kCallDeadline)
                  .ok());
  EXPECT_EQ(collection.Find(router.name).pid, router.pid);
  EXPECT_EQ(collection.Find(leader.name).pid, leader.pid);
}

void ExpectBadCallsRefused(Collection& collection) {
  struct Case {
    std::string what;
    v1::ClientCall call;
    Code code;
    Reason reason;
    std::string says;
  };
  std::vector<Case> cases;
  const auto add = [&](const std::string& what, v1::ClientCall call, Code code, Reason reason,
                       const std::string& says) {
    cases.push_back({what, std::move(call), code, reason, says});
  };
  const v1::ClientCall put = WriteCall("put", "c", "accounts", "k", "v");
  add("unknown space, written", WriteCall("put", "c", "nowhere", "k", "v"), Code::kInvalidArgument,
      Reason::kUnknownSpace, "nowhere");
  add("unknown space, read", GetCall("c", "nowhere", "k"), Code::kInvalidArgument,
      Reason::kUnknownSpace, "nowhere");
  v1::ClientCall call = put;
  call.set_function("drop");
  add("unknown function", call, Code::kUnimplemented, Reason::kUnknownFunction, "drop");
  for (const std::uint64_t bucket : {4ull, 1ull << 40}) {
    call = put;
    call.mutable_target()->set_bucket(bucket);
    add("bucket out of range", call, Code::kOutOfRange, Reason::kBucketOutOfRange,
        std::to_string(bucket));
  }
  call = put;
  call.mutable_target()->set_int_key(7);
  add("a number as key of a collection that is sharded by a text", call, Code::kInvalidArgument,
      Reason::kMalformed, "String");
  call = put;
  call.clear_target();
  add("no target", call, Code::kInvalidArgument, Reason::kMalformed, "");
  call = put;
  call.set_args("\xff\xff");
  add("arguments that are none", call, Code::kInvalidArgument, Reason::kMalformed, "put");
  call = GetCall("c", "accounts", "k");
  call.set_args("\xff\xff");
  add("the same of a read", call, Code::kInvalidArgument, Reason::kMalformed, "get");
  call = put;
  call.set_mode(v1::MODE_RO);
  add("a write with a mode of reads", call, Code::kInvalidArgument, Reason::kMalformed, "mode rw");
  add("a value over 1 MiB", WriteCall("put", "c", "accounts", "k", std::string(kMiB + 1, 'x')),
      Code::kInvalidArgument, Reason::kTooLarge, "");
  Txn large;
  for (int i = 0; i < 5; ++i) large.Put("accounts", std::to_string(i), std::string(kMiB, 'x'));
  add("a transaction over 4 MiB", large.On("c"), Code::kInvalidArgument, Reason::kTooLarge, "");
  v1::TxnArgs two;
  for (const std::uint64_t value : {0, 1}) {
    two.add_mutations()->set_space("accounts");
    two.mutable_mutations()->rbegin()->set_put("x");
    two.mutable_mutations()->rbegin()->set_routing_value(value);
  }
  add("a transaction over two buckets", MakeCall("c", "txn", two), Code::kInvalidArgument,
      Reason::kMalformed, "bucket");
  for (const Case& c : cases) {
    const Status status = collection.router().Call(c.call, kCallDeadline).status();
    EXPECT_EQ(status.code(), c.code) << c.what << ": " << status.ToString();
    EXPECT_EQ(status.reason(), c.reason) << c.what << ": " << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(c.says)) << c.what;
    EXPECT_FALSE(status.message().empty()) << c.what;
  }
  const auto stored = ReadScan(collection.router().Call(ScanCall("c", ""), kCallDeadline));
  ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  EXPECT_EQ(stored->records_size(), 0) << "something was written all the same";

  // The same of people's tools.
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"bucket", "99"}, "99"},
           {{"pin", "99"}, "99"},
           {{"move", "0", "shard-7"}, "shard-7"},
           {{"put", "nowhere", "c", "k", "v"}, "nowhere"},
           {{"recover", "nobody", "--yes-lose-data"}, "nobody"}}) {
    const auto output = collection.Ctl(arguments);
    EXPECT_NE(output.code, 0) << arguments[0];
    EXPECT_THAT(output.text, HasSubstr(says)) << arguments[0];
  }
}

// The write may take effect or not; the same request again says which, and does not do it twice.
void ExpectDeadlinesKept(Collection& collection) {
  const auto insert = [](std::uint64_t sequence) {
    v1::ClientCall call = WriteCall("insert", "c", "accounts", "k", std::to_string(sequence));
    SetRequest(&call, 7, sequence);
    return call;
  };
  const std::vector<Process> storages = collection.storages();
  for (const Process& storage : storages) collection.Signal(storage, SIGSTOP);
  v1::ClientCall late = insert(1);
  late.set_timeout_millis(200);
  const Status status = collection.router().Call(late, kCallDeadline).status();
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.ToString();
  EXPECT_FALSE(status.message().empty());
  // One that has passed before it comes.
  late.set_timeout_millis(1);
  EXPECT_EQ(collection.router().Call(late, kCallDeadline).status().code(), Code::kDeadlineExceeded);
  for (const Process& storage : storages) collection.Signal(storage, SIGCONT);
  const Status again = collection.router().Call(insert(1), kCallDeadline).status();
  EXPECT_TRUE(again.ok()) << again.ToString();
  EXPECT_EQ(collection.router().Call(insert(2), kCallDeadline).status().reason(),
            Reason::kKeyExists);
  const auto value =
      ReadGet(collection.router().Call(GetCall("c", "accounts", "k"), kCallDeadline));
  ASSERT_TRUE(value.ok()) << value.status().ToString();
  EXPECT_EQ(*value, "1");
}

TEST(BadClient, GetsAClearError) {
  Collection collection({.buckets = 4});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  ExpectBadFramesRefused(collection);
  ExpectBadCallsRefused(collection);
  ExpectDeadlinesKept(collection);
}

}  // namespace
}  // namespace etalon::e2e
