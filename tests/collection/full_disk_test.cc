// A storage whose disk is full, in the middle of its life and at its start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

using ::testing::HasSubstr;

// Programs of which a storage meets a full disk while SetFull said so (full_disk_preload.cc).
class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() : collection_({.buckets = 4}) {
    std::filesystem::create_symlink(std::string(ETALON_BIN_DIR) + "/etalon-router",
                                    bin_.path() + "/etalon-router");
    const std::string storage = bin_.path() + "/etalon-storage";
    std::ofstream(storage) << "#!/bin/sh\n"
                              "previous=\n"
                              "for argument; do\n"
                              "  [ \"$previous\" = --data ] && export ETALON_FULL_DISK=$argument\n"
                              "  previous=$argument\n"
                              "done\n"
                              "export LD_PRELOAD=" ETALON_FULL_DISK_PRELOAD
                              "\n"
                              "exec " ETALON_BIN_DIR "/etalon-storage \"$@\"\n";
    ::chmod(storage.c_str(), 0755);
    collection_.SetBinDir(bin_.path());
  }

  void SetFull(const std::string& storage, bool full) {
    const std::string flag = collection_.DiskOf(storage) + ".full";
    if (full) {
      std::ofstream(flag) << "full";
    } else {
      std::filesystem::remove(flag);
    }
  }

  Status Put(const std::string& customer, const std::string& key, const std::string& value) {
    return collection_.router()
        .Call(WriteCall("put", customer, "accounts", key, value), kCallDeadline)
        .status();
  }
  std::optional<std::string> Get(const std::string& customer, const std::string& key) {
    auto value =
        ReadGet(collection_.router().Call(GetCall(customer, "accounts", key), kCallDeadline));
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return value.ok() ? *value : std::nullopt;
  }
  bool Alerts(const std::string& storage, const std::string& code) {
    const auto info = collection_.Info(storage);
    if (!info) {
      ADD_FAILURE() << storage << " does not answer";
      return false;
    }
    return std::any_of(info->alerts().begin(), info->alerts().end(),
                       [&](const v1::Alert& a) { return a.code() == code; });
  }

  TempDir bin_;
  Collection collection_;
};

TEST_F(FullDiskTest, OfTheLeader) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  Load load(collection_);
  load.Start();
  load.AwaitProgress(20);
  const Process leader = collection_.Leader("shard-0");
  SetFull(leader.name, true);
  collection_.Await("writes are refused", [&] { return !Put("probe", "k", "v").ok(); });
  load.Stop();

  // Said clearly, to the caller and to whoever looks.
  const Status refused = Put("probe", "refused", "v");
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.reason(), Reason::kDiskFull);
  EXPECT_THAT(refused.message(), HasSubstr("disk is full"));
  EXPECT_TRUE(Alerts(leader.name, "DISK_FULL"));
  collection_.Await("the condition Available says why", [&] {
    const Condition available = collection_.Conditions()["Available"];
    return available.status == "False" && available.reason == "DiskFull";
  });
  // Nothing that was said before is lost, and all of it can be read.
  load.ExpectAllStored();
  EXPECT_EQ(Get("probe", "refused"), std::nullopt);
  SetFull(leader.name, false);
  collection_.Await("it takes writes without being started again",
                    [&] { return Put("probe", "healed", "v").ok(); });

  // Full at a worse time: the store has to make something durable, and stops.
  SetFull(leader.name, true);
  const Status checkpoint = collection_.storage(leader.name).Checkpoint(kCallDeadline);
  EXPECT_EQ(checkpoint.reason(), Reason::kDiskFull) << checkpoint.ToString();
  EXPECT_EQ(Get("probe", "healed"), "v");
  // Another replica has room.
  const auto switched = collection_.Ctl({"switchover", "shard-0"});
  EXPECT_EQ(switched.code, 0) << switched.text;
  EXPECT_TRUE(Put("probe", "elsewhere", "v").ok());
  // One that cannot write is not handed anything, and the try leaves the leader as it was.
  v1::TransferLeaderRequest request;
  request.set_to(leader.name);
  const Process other = collection_.Leader("shard-0");
  const Status back = collection_.storage(other.name).TransferLeader(request, kCallDeadline);
  EXPECT_FALSE(back.ok());
  collection_.Await("the leader that could not hand over leads on", [&] {
    const auto info = collection_.Info(other.name);
    return info && info->lease() && collection_.Conditions()["Available"].status == "True";
  });
  EXPECT_TRUE(Put("probe", "elsewhere too", "v").ok());

  SetFull(leader.name, false);
  // Soon, and not with the next checkpoint that is due anyway.
  collection_.Await(
      "the store works again",
      [&] { return !Alerts(leader.name, "DISK_FULL") && !Alerts(leader.name, "STORE_FAILURE"); },
      kPatience / 3);
  collection_.AwaitWhole();
  EXPECT_EQ(collection_.Find(leader.name).pid, leader.pid);  // it was not started again
  collection_.Await("it can lead again", [&] {
    return collection_.storage(other.name).TransferLeader(request, kCallDeadline).ok();
  });
  EXPECT_EQ(collection_.Leader("shard-0").name, leader.name);
  EXPECT_TRUE(Put("probe", "last", "v").ok());
  for (const char* key : {"healed", "elsewhere", "elsewhere too", "last"})
    EXPECT_EQ(Get("probe", key), "v") << key;
  load.ExpectAllStored();
  collection_.ExpectReplicasEqual();
}

TEST_F(FullDiskTest, AtTheStartOfAStorage) {
  ASSERT_NO_FATAL_FAILURE(collection_.Start());
  Load load(collection_);
  load.Start();
  load.AwaitProgress(5);
  const Process follower = collection_.Followers("shard-0").front();
  SetFull(follower.name, true);
  collection_.Signal(follower, SIGKILL);
  collection_.Await("it says that its disk is full", [&] {
    return collection_.LogOf(follower.name).find("free some space") != std::string::npos;
  });
  load.AwaitProgress(5);
  SetFull(follower.name, false);
  collection_.AwaitWhole();
  load.Stop();
  load.ExpectNoFailure();
  load.ExpectAllStored();
  collection_.ExpectReplicasEqual();
  // It is the same disk: nothing was put aside or fetched anew.
  EXPECT_TRUE(std::filesystem::is_empty(collection_.dir() + "/retired"));
}

}  // namespace
}  // namespace etalon::e2e
