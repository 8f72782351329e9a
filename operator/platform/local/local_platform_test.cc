// The local platform with programs that do nothing but run.
#include "operator/platform/local/local_platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "env/posix/temp_dir.h"
#include "operator/platform/local/files.h"

namespace etalon::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr ShardUid kUid(7);
// Waits for a writer that never comes: no child of its own that would stay behind.
constexpr char kRun[] = "mkfifo \"$0.$$\"; read x < \"$0.$$\"";
constexpr char kDeaf[] = "trap '' TERM; echo deaf; mkfifo \"$0.$$\"; read x < \"$0.$$\"";

class LocalPlatformTest : public ::testing::Test {
 protected:
  LocalPlatformTest() { Program(kRun); }
  ~LocalPlatformTest() override {
    if (platform_) platform_->StopAll();
  }

  // What both programs do.
  void Program(const std::string& script) {
    for (const char* name : {"/etalon-storage", "/etalon-router"}) {
      ASSERT_TRUE(ReplaceFile(dir_.path() + name, "#!/bin/sh\n" + script + "\n").ok());
      ASSERT_EQ(::chmod((dir_.path() + name).c_str(), 0755), 0);
    }
  }

  // A new operator on the same directory.
  LocalPlatform& Open() {
    LocalOptions options;
    options.data_dir = dir_.path() + "/data";
    options.bin_dir = dir_.path();
    options.base_port = 21000;
    auto records = Records::Open(options.data_dir, 1);
    EXPECT_TRUE(records.ok()) << records.status().ToString();
    platform_ = std::make_unique<LocalPlatform>(options, *std::move(records), Random(1), log_);
    return *platform_;
  }

  // Until the condition holds; the time that passes is the processes'.
  template <class Condition>
  Observed Await(Condition condition) {
    Observed seen;
    for (int i = 0; i < 20000; ++i) {
      seen = platform_->Observe(now_);
      if (condition(seen)) return seen;
      ::usleep(1000);
    }
    ADD_FAILURE() << "it never came true";
    return seen;
  }
  static const StorageSeen* Find(const Observed& seen) {
    const auto it = seen.storages.value().find("o-shard-0-0");
    return it == seen.storages.value().end() ? nullptr : &it->second;
  }
  Status Start() { return platform_->Carry(now_, StartStorage{"o-shard-0-0", "shard-0", kUid}); }
  std::string Disk() const { return dir_.path() + "/data/storage/o-shard-0-0"; }

  TempDir dir_;
  NullLogger log_;
  SteadyTime now_ = SteadyTime(std::chrono::hours(1));
  std::unique_ptr<LocalPlatform> platform_;
};

TEST_F(LocalPlatformTest, ADirectoryKeepsItsCollection) {
  const CollectionId first = Open().Observe(now_).collection;
  EXPECT_TRUE(first);
  EXPECT_EQ(Open().Observe(now_).collection, first);
}

TEST_F(LocalPlatformTest, StartsOnceAndIsFoundAgain) {
  Open();
  EXPECT_THAT(platform_->Observe(now_).storages.value(), IsEmpty());
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Start().ok());
  const Observed seen = platform_->Observe(now_);
  ASSERT_THAT(seen.storages.value(), SizeIs(1));
  EXPECT_EQ(Find(seen)->process.state, ProcessState::kUp);
  EXPECT_EQ(Find(seen)->uid, kUid);
  const std::vector<Endpoint> before = platform_->Endpoints();
  Open();
  EXPECT_EQ(Find(platform_->Observe(now_))->process.state, ProcessState::kUp);
  EXPECT_EQ(platform_->Endpoints(), before);
}

TEST_F(LocalPlatformTest, OneThatWasStartedAndNotNotedIsFound) {
  Open();
  ASSERT_TRUE(Start().ok());
  const Endpoint endpoint = platform_->Endpoints().at(0);
  Await([&](const Observed&) {
    return FindProcess({"--name", "o-shard-0-0", "--listen", endpoint.address}).pid != 0;
  });
  auto records = Records::Open(dir_.path() + "/data", 1);
  ProcessRecord record = records->processes().at("o-shard-0-0");
  record.process = {};
  ASSERT_TRUE(records->PutProcess(record).ok());
  Open();
  EXPECT_EQ(platform_->Endpoints().at(0).pid, endpoint.pid);
}

TEST_F(LocalPlatformTest, OneThatEndsWaitsLongerAndLonger) {
  Program("echo it went wrong >&2; exit 4");
  Open();
  Duration before{};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Start().ok());
    const Observed seen =
        Await([](const Observed& s) { return Find(s)->process.state == ProcessState::kDown; });
    EXPECT_EQ(Find(seen)->process.last_words, "exit code 4, last said: it went wrong");
    EXPECT_GT(Find(seen)->process.restart_at, now_);
    EXPECT_FALSE(Find(seen)->process.disk_lost);
    before = std::max(before, Find(seen)->process.restart_at - now_);
  }
  EXPECT_LE(before, std::chrono::milliseconds(800));
}

TEST_F(LocalPlatformTest, ALostDiskIsReplaced) {
  Program(
      "mkdir -p \"$8\"; echo x: the log is gone but the store is not: this disk counts as lost "
      ">&2; exit 5");
  Open();
  std::filesystem::create_directories(Disk());
  ASSERT_TRUE(Start().ok());
  Await([](const Observed& s) { return Find(s)->process.disk_lost; });
  ASSERT_TRUE(platform_->Carry(now_, ReplaceDisk{"o-shard-0-0"}).ok());
  EXPECT_FALSE(std::filesystem::exists(Disk()));
  EXPECT_FALSE(Find(platform_->Observe(now_))->process.disk_lost);
  EXPECT_TRUE(
      std::filesystem::exists(dir_.path() + "/data/retired/o-shard-0-0-0000000000000007-1"));
}

TEST_F(LocalPlatformTest, APortThatIsTakenIsLeft) {
  Open();
  ASSERT_TRUE(Start().ok());
  const Endpoint endpoint = platform_->Endpoints().at(0);
  ::kill(endpoint.pid, SIGKILL);
  Await([](const Observed& s) { return Find(s)->process.state == ProcessState::kDown; });
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(platform_->Endpoints().at(0).address, endpoint.address);  // it stays while it is free

  ::kill(platform_->Endpoints().at(0).pid, SIGKILL);
  Await([](const Observed& s) { return Find(s)->process.state == ProcessState::kDown; });
  const int other = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.address.substr(10))));
  ASSERT_EQ(::bind(other, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(other, 1), 0);
  ASSERT_TRUE(Start().ok());
  EXPECT_NE(platform_->Endpoints().at(0).address, endpoint.address);
  EXPECT_EQ(Find(platform_->Observe(now_))->process.address, platform_->Endpoints().at(0).address);
  ::close(other);
}

TEST_F(LocalPlatformTest, StopsAndForgets) {
  Open();
  ASSERT_TRUE(Start().ok());
  std::filesystem::create_directories(Disk());
  ASSERT_TRUE(platform_->Carry(now_, StopStorage{"o-shard-0-0", false}).ok());
  Await([](const Observed& s) { return Find(s) == nullptr; });
  EXPECT_TRUE(std::filesystem::exists(Disk()));
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(platform_->Carry(now_, StopStorage{"o-shard-0-0", true}).ok());
  Await([](const Observed& s) { return Find(s) == nullptr; });
  EXPECT_FALSE(std::filesystem::exists(Disk()));
  EXPECT_TRUE(platform_->Carry(now_, StopStorage{"o-shard-0-0", true}).ok());
}

TEST_F(LocalPlatformTest, OneThatDoesNotListenIsKilled) {
  Program(kDeaf);
  Open();
  ASSERT_TRUE(Start().ok());
  Await([&](const Observed&) {
    return LastLine(dir_.path() + "/data/logs/o-shard-0-0.log") == "deaf";
  });
  ASSERT_TRUE(platform_->Carry(now_, StopStorage{"o-shard-0-0", false}).ok());
  EXPECT_NE(Find(platform_->Observe(now_)), nullptr);
  now_ += std::chrono::seconds(31);
  Await([](const Observed& s) { return Find(s) == nullptr; });
}

TEST_F(LocalPlatformTest, ARouterIsRestartedUnderItsAddress) {
  Open();
  ASSERT_TRUE(platform_->Carry(now_, StartRouter{"o-router-0", 0}).ok());
  const Endpoint before = platform_->Endpoints().at(0);
  ASSERT_TRUE(platform_->Carry(now_, RestartRouter{"o-router-0", 0}).ok());
  Await([&](const Observed&) {
    const Endpoint now = platform_->Endpoints().at(0);
    return now.pid != before.pid && now.pid != 0;
  });
  EXPECT_EQ(platform_->Endpoints().at(0).address, before.address);
}

TEST_F(LocalPlatformTest, ADeletionThatWasBegunIsFinishedByTheNextOperator) {
  Program(kDeaf);
  Open();
  ASSERT_TRUE(Start().ok());
  std::filesystem::create_directories(Disk());
  Await([&](const Observed&) {
    return LastLine(dir_.path() + "/data/logs/o-shard-0-0.log") == "deaf";
  });
  ASSERT_TRUE(platform_->Carry(now_, DeleteShard{kUid, "shard-0"}).ok());
  Open();
  EXPECT_TRUE(platform_->Observe(now_).doomed.value().contains(kUid));
  now_ += std::chrono::seconds(31);
  Await([](const Observed& s) { return Find(s) == nullptr; });
  EXPECT_FALSE(std::filesystem::exists(Disk()));
}

TEST_F(LocalPlatformTest, RecordsAreMadeOnce) {
  Open();
  v1::Topology topology;
  topology.set_version(1);
  EXPECT_TRUE(platform_->Carry(now_, CreateTopology{topology}).ok());
  EXPECT_TRUE(platform_->Carry(now_, CreateTopology{topology}).ok());
  topology.set_bucket_count(5);
  EXPECT_EQ(platform_->Carry(now_, CreateTopology{topology}).reason(), Reason::kTopologyConflict);
  v1::FormRequest form;
  form.set_shard(kUid.value());
  EXPECT_TRUE(platform_->Carry(now_, CreateForm{form}).ok());
  v1::Settings settings;
  settings.set_version(3);
  EXPECT_TRUE(platform_->Carry(now_, CreateSettings{settings}).ok());
  const Observed seen = Open().Observe(now_);
  EXPECT_THAT(seen.topologies.value(), SizeIs(1));
  EXPECT_EQ(seen.topologies.value().at(1).bucket_count(), 0u);
  EXPECT_THAT(seen.forms.value(), SizeIs(1));
  EXPECT_EQ(seen.settings.value().rbegin()->first, 3u);
  EXPECT_EQ(platform_->Carry(now_, controller::Adopt{CollectionId(5)}).reason(), Reason::kNonEmpty);
}

TEST_F(LocalPlatformTest, DamageIsToldNotRepaired) {
  Open();
  ASSERT_TRUE(ReplaceFile(dir_.path() + "/data/topology-1.json", "{ not").ok());
  EXPECT_THAT(Records::Open(dir_.path() + "/data", 1).status().message(),
              HasSubstr("topology-1.json is damaged"));
}

}  // namespace
}  // namespace etalon::controller
