// Writes with a request ID that are sent again: applied once, and the first result is returned,
// whatever happened in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "common/random.h"
#include "env/posix/os.h"
#include "rpc/testing/process.h"
#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

using rpc::testing::RawClient;

// `insert` refuses a key that exists: were the retry applied, it would say so.
class RetryTest : public ::testing::Test {
 protected:
  static constexpr char kCustomer[] = "customer";

  v1::ClientCall Insert(const std::string& key, std::uint64_t sequence) const {
    v1::ClientCall call = WriteCall("insert", kCustomer, "accounts", key, "first");
    SetRequest(&call, client_, sequence);
    return call;
  }
  Status Ask(std::size_t router, const v1::ClientCall& call) {
    return collection_.router(router).Call(call, kCallDeadline).status();
  }
  // The first request's result is returned, and a new request finds the key.
  void ExpectAppliedOnce(const std::string& when, const v1::ClientCall& first) {
    for (const std::size_t router : {0, 1}) {
      const Status again = Ask(router, first);
      EXPECT_TRUE(again.ok()) << when << ": " << again.ToString();
    }
    v1::ClientCall other = first;
    SetRequest(&other, client_, next_++);
    EXPECT_EQ(Ask(0, other).reason(), Reason::kKeyExists) << when;
  }
  void Move(const std::string& to) {
    v1::Target key;
    key.set_string_key(kCustomer);
    const auto route = collection_.router().Route(key, kCallDeadline);
    ASSERT_TRUE(route.ok()) << route.status().ToString();
    const std::string bucket = std::to_string(route->bucket().number());
    collection_.Await("the bucket is at " + to, [&] {
      (void)collection_.Ctl({"move", bucket, to});
      return collection_.ShardOf(kCustomer) == to;
    });
  }

  Collection collection_{Settings{.shards = 2, .buckets = 4}};
  const std::uint64_t client_ = Random(OsSeed()).NextId();
  std::uint64_t next_ = 1000;
};

TEST_F(RetryTest, ReturnsTheFirstResult) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  const v1::ClientCall first = Insert("key", 1);
  Status status = Ask(0, first);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ExpectAppliedOnce("at once", first);

  // A refusal is a result as well, and stays one.
  const v1::ClientCall refused = Insert("key", 2);
  EXPECT_EQ(Ask(0, refused).reason(), Reason::kKeyExists);
  v1::DeleteArgs args;
  args.set_space("accounts");
  args.set_key("key");
  v1::ClientCall remove = MakeCall(kCustomer, "delete", args);
  SetRequest(&remove, client_, 3);
  EXPECT_TRUE(Ask(0, remove).ok());
  EXPECT_EQ(Ask(1, refused).reason(), Reason::kKeyExists);
  EXPECT_TRUE(Ask(1, Insert("key", 4)).ok()) << "it is really gone";

  // A killed leader.
  const v1::ClientCall second = Insert("second", 5);
  ASSERT_TRUE(Ask(0, second).ok());
  const std::string home = collection_.ShardOf(kCustomer);
  const Process killed = collection_.Leader(home);
  collection_.Signal(killed, SIGKILL);
  ExpectAppliedOnce("after a killed leader", second);

  // A moved bucket, there and back again.
  const std::string away =
      home == collection_.Shard(0) ? collection_.Shard(1) : collection_.Shard(0);
  ASSERT_NO_FATAL_FAILURE(Move(away));
  ExpectAppliedOnce("after a move", second);
  const v1::ClientCall third = Insert("third", 6);
  ASSERT_TRUE(Ask(0, third).ok());
  ASSERT_NO_FATAL_FAILURE(Move(home));
  ExpectAppliedOnce("after the move back", second);
  ExpectAppliedOnce("after the move back", third);

  // A mute leader: the request is with it when another one takes over and answers, and comes to
  // life there later.
  collection_.AwaitWhole();
  const Process mute = collection_.Leader(home);
  collection_.Signal(mute, SIGSTOP);
  const v1::ClientCall fourth = Insert("fourth", 7);
  status = Ask(0, fourth);
  EXPECT_TRUE(status.ok()) << status.ToString();
  collection_.Signal(mute, SIGCONT);
  ExpectAppliedOnce("after a mute leader", fourth);
  collection_.AwaitWhole();
  ExpectAppliedOnce("after a mute leader came back", fourth);
  collection_.ExpectReplicasEqual();
}

// Each step of a counter is sent on a stream that is cut at once, and then asked for elsewhere.
TEST_F(RetryTest, AfterALinkThatWasCut) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  constexpr std::uint64_t kSteps = 40;
  constexpr std::uint64_t kMostSteps = 400;
  const std::string address = collection_.routers().front().address;
  const auto counter = [&] {
    const auto value = ReadGet(
        collection_.router(1).Call(GetCall(kCustomer, "accounts", "counter"), kCallDeadline));
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return value.ok() ? value->value_or("") : "";
  };
  Random random(OsSeed());
  std::uint64_t n = 0;
  int applied = 0;  // before the request came again
  while (n < kSteps || (applied < 3 && n < kMostSteps)) {
    ++n;
    v1::ClientCall step =
        Txn()
            .Expect("accounts", "counter",
                    n == 1 ? std::nullopt : std::optional<std::string>(std::to_string(n - 1)))
            .Put("accounts", "counter", std::to_string(n))
            .On(kCustomer);
    step.set_id(1);
    SetRequest(&step, client_, n);
    {
      RawClient cut(address, "/etalon.v1.Router/Pipe");
      v1::ClientFrame frame;
      frame.add_calls(step.SerializeAsString());
      ASSERT_TRUE(cut.Write(frame.SerializeAsString()));
      // From before the write has left to after it was applied.
      std::this_thread::sleep_for(std::chrono::microseconds(random.Below(3000 + 50 * n)));
      cut.Cancel();
    }
    applied += counter() == std::to_string(n);
    const Status status = Ask(1, step);
    ASSERT_TRUE(status.ok()) << n << ": " << status.ToString();
  }
  EXPECT_EQ(counter(), std::to_string(n));
  EXPECT_GT(applied, 0) << "no request was applied before its link was cut";

  // The same under a load: its router dies, a leader dies, its buckets move.
  Load load(collection_, {.try_other_routers = true});
  load.Start();
  load.AwaitProgress(5);
  const Process router = collection_.routers().front();
  collection_.Signal(router, SIGKILL);
  load.AwaitProgress(5);
  collection_.Signal(collection_.Leader(collection_.Shard(0)), SIGKILL);
  load.AwaitProgress(5);
  for (int bucket = 0; bucket < 4; ++bucket) {
    const std::string to = collection_.Shard(bucket % 2);
    (void)collection_.Ctl({"move", std::to_string(bucket), to});
    load.AwaitProgress(2);
  }
  collection_.AwaitWhole();
  load.AwaitProgress(5);
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  collection_.ExpectReplicasEqual();
}

}  // namespace
}  // namespace etalon::e2e
