// The loss of a majority of a shard's disks: nothing forms anew by itself, one command goes on with
// what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "tests/collection/load.h"

namespace etalon::e2e {
namespace {

using ::testing::HasSubstr;

TEST(Recover, AfterTheLossOfAMajority) {
  Collection collection({.shards = 2});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  const std::string shard = collection.Shard(0);
  Load load(collection, {.writers = 4, .shard = shard});
  Load elsewhere(collection, {.writers = 2, .shard = collection.Shard(1)});
  load.Start();
  elsewhere.Start();
  load.AwaitProgress(20);
  load.Stop();
  collection.AwaitWhole();
  const Process leader = collection.Leader(shard);
  const std::vector<Process> followers = collection.Followers(shard);
  ASSERT_EQ(followers.size(), 2u);
  const Process survivor = followers[0];
  const std::uint64_t disk = collection.Info(survivor.name)->member();
  // Not while there is a majority, whoever asks for it.
  const auto early = collection.Ctl({"recover", survivor.name, "--yes-lose-data"});
  EXPECT_EQ(early.code, 5) << early.text;
  v1::RecoverRequest request;
  request.set_shard(collection.Info(survivor.name)->shard());
  request.set_member(disk);
  request.set_term_above(100);
  const Status split_brain = collection.storage(survivor.name).Recover(request, kCallDeadline);
  EXPECT_EQ(split_brain.code(), Code::kFailedPrecondition);
  EXPECT_THAT(split_brain.message(), HasSubstr("has a leader (" + leader.name + ")"));
  collection.LoseDisk(leader);
  collection.LoseDisk(followers[1]);

  collection.Await("the condition says that a majority is lost", [&] {
    const Condition available = collection.Conditions()["Available"];
    return available.status == "False" && available.reason == "MajorityLost";
  });
  const Condition available = collection.Conditions()["Available"];
  for (const std::string& part :
       {shard, leader.name, followers[1].name, survivor.name, std::string("etalonctl recover")}) {
    EXPECT_THAT(available.message, HasSubstr(part));
  }
  // The other shard does not notice, and nobody puts the lost one together again.
  elsewhere.AwaitProgress(50);
  for (const Process& blank : {leader, followers[1]}) {
    const auto info = collection.Info(blank.name);
    ASSERT_TRUE(info.has_value());
    EXPECT_FALSE(info->formed()) << blank.name;
  }
  const auto left = collection.Info(survivor.name);
  ASSERT_TRUE(left.has_value());
  EXPECT_FALSE(left->leader());
  EXPECT_EQ(left->members_size(), 3);
  const Status refused =
      collection.router()
          .Call(WriteCall("put", load.Customer(0), "accounts", "k", "v"), std::chrono::seconds(1))
          .status();
  EXPECT_FALSE(refused.ok());

  // Only on purpose, and only there where there is something to go on with.
  const auto unconfirmed = collection.Ctl({"recover", survivor.name});
  EXPECT_EQ(unconfirmed.code, 5);
  EXPECT_THAT(unconfirmed.text, HasSubstr("--yes-lose-data"));
  const auto blank = collection.Ctl({"recover", leader.name, "--yes-lose-data"});
  EXPECT_EQ(blank.code, 5);
  EXPECT_THAT(blank.text, HasSubstr("unformed"));
  Collection::Output recovered;
  collection.Await("the survivor has not heard of the others for a while, and goes on alone", [&] {
    recovered = collection.Ctl({"recover", survivor.name, "--yes-lose-data"});
    return recovered.code == 0 || recovered.text.find("heard of lately") == std::string::npos;
  });
  EXPECT_EQ(recovered.code, 0) << recovered.text;

  load.Start();
  load.AwaitProgress(5);
  collection.AwaitWhole();
  load.AwaitProgress(5);
  load.Stop();
  elsewhere.Stop();
  // It had everything that was acknowledged, and still has.
  load.ExpectNoFailure();
  load.ExpectAllStored();
  elsewhere.ExpectNoFailure();
  elsewhere.ExpectAllStored();
  collection.ExpectReplicasEqual();
  EXPECT_EQ(collection.Info(survivor.name)->member(), disk);
}

// A shard goes on with a replica that is behind: what only the others had is given up, and a bucket
// that it had handed over since has two owners, of which the older one is put in quarantine.
TEST(Recover, WithAReplicaThatIsBehind) {
  Collection collection({.shards = 2});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  const auto put = [&](const std::string& customer, const std::string& value) {
    const Status status =
        collection.router()
            .Call(WriteCall("put", customer, "accounts", "k", value), kCallDeadline)
            .status();
    EXPECT_TRUE(status.ok()) << status.ToString();
  };
  const auto get = [&](const std::string& customer) {
    const auto value =
        ReadGet(collection.router().Call(GetCall(customer, "accounts", "k"), kCallDeadline));
    EXPECT_TRUE(value.ok()) << value.status().ToString();
    return value.ok() ? *value : std::nullopt;
  };
  const std::string source = collection.Shard(0);
  const std::string target = collection.Shard(1);
  std::vector<std::string> customers;  // of the source, in two buckets
  std::vector<std::uint32_t> buckets;
  for (int i = 0; customers.size() < 2; ++i) {
    const std::string customer = "customer-" + std::to_string(i);
    v1::Target key;
    key.set_string_key(customer);
    const auto route = collection.router().Route(key, kCallDeadline);
    ASSERT_TRUE(route.ok()) << route.status().ToString();
    if (route->shard_name() != source) continue;
    if (!buckets.empty() && route->bucket().number() == buckets.front()) continue;
    customers.push_back(customer);
    buckets.push_back(route->bucket().number());
  }
  const std::string& moved = customers[0];
  const std::string& stays = customers[1];
  const std::uint32_t bucket = buckets[0];
  put(moved, "before");
  put(stays, "before");
  collection.AwaitWhole();

  // One replica misses what comes now.
  collection.Change([](Settings* s) { s->paused = true; });
  collection.Await("nothing is started",
                   [&] { return collection.Conditions()["Paused"].status == "True"; });
  const Process behind = collection.Followers(source).front();
  collection.Signal(behind, SIGKILL);
  collection.Await("one replica is down", [&] { return !collection.IsAlive(behind); });
  put(stays, "after");
  const auto move = collection.Ctl({"move", std::to_string(bucket), target});
  ASSERT_EQ(move.code, 0) << move.text;
  collection.Await("the bucket has moved", [&] {
    return collection.ShardOf(moved) == target &&
           collection.Info(collection.Leader(source).name)->transfers_size() == 0;
  });
  put(moved, "after");
  // Then the others lose their disks.
  for (const Process& storage : collection.storages()) {
    if (storage.shard == source && storage.name != behind.name) collection.LoseDisk(storage);
  }
  collection.Change([](Settings* s) { s->paused = false; });
  collection.Await("the condition says that a majority is lost", [&] {
    return collection.Conditions()["Available"].reason == "MajorityLost" &&
           collection.Info(behind.name);
  });
  Collection::Output recovered;
  collection.Await("it goes on alone", [&] {
    recovered = collection.Ctl({"recover", behind.name, "--yes-lose-data"});
    return recovered.code == 0;
  });
  EXPECT_EQ(recovered.code, 0) << recovered.text;
  collection.AwaitWhole();
  EXPECT_EQ(get(stays), "before");  // given up
  EXPECT_EQ(get(moved), "after");   // the newer owner is the one that is asked
  put(moved, "later");

  // The older owner has the bucket again, and learns that it is not its own.
  const std::string old_owner = collection.Leader(source).name;
  collection.Await("the bucket is in quarantine", [&] {
    const auto info = collection.Info(old_owner);
    return info && info->buckets().quarantined() == 1;
  });
  const auto status = collection.Ctl({"status"});
  EXPECT_THAT(status.text, HasSubstr("DOUBLED_BUCKETS"));
  EXPECT_EQ(get(moved), "later");

  // Ended by a person alone, and only what is in quarantine.
  const auto release = [&](std::uint32_t number) {
    return collection.Ctl({"release", std::to_string(number), source, "--to", "garbage"});
  };
  const auto sound = release(buckets[1]);
  EXPECT_EQ(sound.code, 5) << sound.text;
  EXPECT_THAT(sound.text, HasSubstr("BUCKET_INVALID_UPDATE"));
  const auto nowhere = release(4711);
  EXPECT_NE(nowhere.code, 0);
  EXPECT_THAT(nowhere.text, HasSubstr("4711"));
  const auto released = release(bucket);
  EXPECT_EQ(released.code, 0) << released.text;
  collection.Await("the quarantine is over", [&] {
    const auto info = collection.Info(old_owner);
    return info && info->buckets().quarantined() == 0 && info->buckets().garbage() == 0;
  });
  EXPECT_THAT(collection.Ctl({"status"}).text, testing::Not(HasSubstr("DOUBLED_BUCKETS")));
  EXPECT_EQ(get(moved), "later");
  EXPECT_EQ(get(stays), "before");
  collection.ExpectReplicasEqual();
}

}  // namespace
}  // namespace etalon::e2e
