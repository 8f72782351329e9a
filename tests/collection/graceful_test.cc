// Hand-overs and graceful stops under a load of writes: nobody is refused, nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>

#include "rpc/client/router_pipe.h"
#include "rpc/testing/process.h"
#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

using rpc::testing::RawClient;
using ::testing::HasSubstr;
using ::testing::Not;

// What a process wrote from its first signal on, before it was started again.
std::string LastWords(const Collection& collection, const Process& process) {
  const std::string log = collection.LogOf(process.name);
  const std::size_t begin = log.find("\"stopping\"");
  if (begin == log.npos) return "";
  return log.substr(begin, log.find("\"started\"", begin) - begin);
}

TEST(Graceful, SwitchoverUnderLoad) {
  Collection collection({.shards = 2});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  Load load(collection);
  load.Start();
  load.AwaitProgress(5);
  for (int number = 0; number < 2; ++number) {
    const std::string shard = collection.Shard(number);
    const Process before = collection.Leader(shard);
    const auto done = collection.Ctl({"switchover", shard});
    EXPECT_EQ(done.code, 0) << done.text;
    const Process between = collection.Leader(shard);
    EXPECT_NE(between.name, before.name);
    load.AwaitProgress(5);
    // Back to the one that led before, by its name.
    v1::TransferLeaderRequest request;
    request.set_to(before.name);
    const Status back = collection.storage(between.name).TransferLeader(request, kCallDeadline);
    EXPECT_TRUE(back.ok()) << back.ToString();
    EXPECT_EQ(collection.Leader(shard).name, before.name);
    load.AwaitProgress(5);
  }
  const auto nobody = collection.Ctl({"switchover", collection.Shard(0), "t-shard-1-0"});
  EXPECT_EQ(nobody.code, 3) << nobody.text;
  EXPECT_THAT(nobody.text, HasSubstr("t-shard-1-0"));
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  collection.ExpectReplicasEqual();
}

TEST(Graceful, StopOfLeadersAndRoutersUnderLoad) {
  Collection collection({.shards = 2});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  Load load(collection, {.try_other_routers = true});
  load.Start();
  load.AwaitProgress(5);
  for (const Process& leader :
       {collection.Leader(collection.Shard(0)), collection.Leader(collection.Shard(1))}) {
    collection.Signal(leader, SIGTERM);
    collection.Await(leader.name + " ends", [&] { return !collection.IsAlive(leader); });
    // It handed over: it knew the next leader when it ended.
    EXPECT_THAT(LastWords(collection, leader), HasSubstr("\"role\",\"leads\":\"0\""));
    load.AwaitProgress(5, leader.shard);
  }
  for (const Process& router : collection.routers()) {
    collection.Signal(router, SIGTERM);
    collection.Await(router.name + " ends", [&] { return !collection.IsAlive(router); });
    load.AwaitProgress(5);
    collection.Await(router.name + " is started again",
                     [&] { return collection.Find(router.name).pid != router.pid; });
  }
  collection.AwaitWhole();
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  collection.ExpectReplicasEqual();
  EXPECT_EQ(Times(collection.OperatorLog(), "exit code 0"), 4) << collection.OperatorLog();
  EXPECT_EQ(Times(collection.OperatorLog(), "killed by signal"), 0);
}

// What was sent to a router before its end is answered; a second signal waits for nothing.
TEST(Graceful, OneSignalFinishesWhatIsInFlightAndTheSecondDoesNot) {
  Collection collection;
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  const std::vector<Process> routers = collection.routers();
  const Process storage = collection.Followers("shard-0").front();
  const auto stopping = [&](const Process& process) {
    collection.Await(process.name + " begins to stop",
                     [&] { return Times(collection.LogOf(process.name), "\"stopping\"") > 0; });
    EXPECT_TRUE(collection.IsAlive(process));
  };
  {
    rpc::RouterPipe pipe(routers[0].address, 1);
    std::atomic<int> answered{0};
    std::atomic<int> failed{0};
    const auto put = [&](const std::string& key) {
      const Status sent = pipe.Call(
          WriteCall("put", "c", "accounts", key, "v"), kCallDeadline,
          [&](const Status& status, const std::string&) { ++(status.ok() ? answered : failed); });
      EXPECT_TRUE(sent.ok()) << sent.ToString();
    };
    put("before");
    collection.Await("the stream is established", [&] { return answered == 1; });
    for (const Process& process : collection.storages()) collection.Signal(process, SIGSTOP);
    for (int i = 0; i < 10; ++i) put(std::to_string(i));
    collection.Signal(routers[0], SIGTERM);
    stopping(routers[0]);
    for (const Process& process : collection.storages()) collection.Signal(process, SIGCONT);
    collection.Await("all calls are answered", [&] { return answered + failed == 11; });
    EXPECT_EQ(failed, 0);
    collection.Await("the router ends", [&] { return !collection.IsAlive(routers[0]); });
  }
  // A stream whose client does not go keeps a process that stops waiting.
  for (const auto& [process, method] : {std::pair(routers[1], "/etalon.v1.Router/Pipe"),
                                        std::pair(storage, "/etalon.v1.Storage/Pipe")}) {
    const Process target = process;
    RawClient client(target.address, method);
    ASSERT_TRUE(client.Write(""));  // an empty frame: the stream is established
    collection.Signal(target, SIGTERM);
    stopping(target);
    collection.Signal(target, SIGTERM);
    collection.Await("the operator notices the end of " + target.name,
                     [&] { return collection.Find(target.name).pid != target.pid; });
  }
  EXPECT_EQ(Times(collection.OperatorLog(), "exit code 0"), 1) << collection.OperatorLog();
  EXPECT_EQ(Times(collection.OperatorLog(), "killed by signal 15"), 2) << collection.OperatorLog();
}

}  // namespace
}  // namespace etalon::e2e
