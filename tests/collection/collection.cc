#include "tests/collection/collection.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "common/random.h"
#include "env/posix/os.h"

namespace etalon::e2e {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kPoll{20};
constexpr seconds kAnswer{2};  // of one process that is asked for its state
constexpr seconds kEnd{15};    // from SIGTERM of the operator to its end

json ReadJson(const std::string& path) {
  json value = json::parse(ReadText(path), nullptr, false);
  return value.is_object() ? value : json::object();
}

std::string LastLines(const std::string& text, std::size_t bytes) {
  return text.size() <= bytes ? text : text.substr(text.find('\n', text.size() - bytes) + 1);
}

// Below the range from which the kernel takes the ports of outgoing connections.
int AnyPort() { return 10000 + static_cast<int>(Random(OsSeed()).Below(20000)); }

}  // namespace

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

int Times(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

std::string Settings::Manifest() const {
  return fmt::format(
      "apiVersion: sharding.etalon.dev/v1alpha1\n"
      "kind: ShardedCollection\n"
      "metadata: {{name: t}}\n"
      "spec:\n"
      "  version: 0.1.0\n"
      "  shardNum: {}\n"
      "  bucketCount: {}\n"
      "  shardBy: {{field: customer, type: String, hash: Crc32}}\n"
      "  replicasPerShard: {}\n"
      "  spaces: [{{name: customers}}, {{name: accounts}}]\n"
      "  router: {{replicas: {}}}\n"
      "  rebalancing: {{mode: {}}}\n"
      "  paused: {}\n",
      shards, buckets, replicas, routers, rebalance ? "Automatic" : "Disabled", paused);
}

Collection::Collection(Settings settings)
    : settings_(std::move(settings)), bin_dir_(ETALON_BIN_DIR) {
  std::filesystem::create_directories(dir());
  WriteManifest();
}

Collection::~Collection() {
  if (testing::Test::HasFailure()) ShowLogs();
  std::vector<Process> all = storages();
  for (const Process& router : routers()) all.push_back(router);
  for (const Process& process : all) Signal(process, SIGCONT);  // one that stands cannot end
  controller::SendSignal(operator_, SIGTERM);
  const auto end = SteadyClock::now() + kEnd;
  while (operator_ && !controller::Reap(operator_) && SteadyClock::now() < end)
    std::this_thread::sleep_for(kPoll);
  controller::SendSignal(operator_, SIGKILL);
  for (const Process& process : all) {
    controller::SendSignal(
        controller::FindProcess({"--name", process.name, "--listen", process.address}), SIGKILL);
  }
}

void Collection::WriteManifest() const {
  const std::string path = dir_.path() + "/collection.yaml";
  std::ofstream(path + ".new") << settings_.Manifest();
  std::filesystem::rename(path + ".new", path);
}

void Collection::Change(const std::function<void(Settings*)>& edit) {
  edit(&settings_);
  WriteManifest();
}

void Collection::Start() {
  auto spawned = controller::Spawn(
      {.command = {std::string(ETALON_BIN_DIR) + "/etalon-operator", "--platform", "local",
                   "--manifest", dir_.path() + "/collection.yaml", "--data", dir(), "--bin-dir",
                   bin_dir_, "--base-port", std::to_string(AnyPort()), "--store", settings_.store,
                   "--stop-children-on-exit"},
       .log_path = dir_.path() + "/operator.log",
       .die_with_parent = true});
  ASSERT_TRUE(spawned.ok()) << spawned.status().ToString();
  operator_ = *spawned;
  Await("the collection is ready", [this] { return Conditions()["Ready"].status == "True"; });
}

// ---- processes ----------------------------------------------------------------------------------

std::vector<Process> Collection::Endpoints(const char* kind) const {
  std::vector<Process> out;
  const json all = ReadJson(dir() + "/endpoints.json");
  for (const json& one : all.value(kind, json::array())) {
    out.push_back({one.value("name", ""), one.value("shard", ""), one.value("address", ""),
                   one.value("pid", 0)});
  }
  return out;
}

std::vector<Process> Collection::storages() const { return Endpoints("storages"); }
std::vector<Process> Collection::routers() const { return Endpoints("routers"); }

Process Collection::Find(const std::string& name) const {
  for (const char* kind : {"storages", "routers"}) {
    for (const Process& process : Endpoints(kind)) {
      if (process.name == name) return process;
    }
  }
  ADD_FAILURE() << "there is no process " << name;
  return {};
}

std::optional<v1::InfoResponse> Collection::Info(const std::string& name) const {
  for (const Process& process : storages()) {
    if (process.name != name) continue;
    auto info = rpc::StorageClient(process.address).Info(kAnswer);
    if (info.ok()) return *std::move(info);
  }
  return std::nullopt;
}

Process Collection::Leader(const std::string& shard) {
  Process leader;
  Await("a leader of " + shard, [&] {
    std::uint64_t term = 0;
    for (const Process& process : storages()) {
      if (process.shard != shard) continue;
      const auto info = Info(process.name);
      if (!info || !info->lease() || info->term() <= term) continue;
      term = info->term();
      leader = process;
    }
    return term > 0;
  });
  return leader;
}

std::vector<Process> Collection::Followers(const std::string& shard) {
  const std::string leader = Leader(shard).name;
  std::vector<Process> out;
  for (const Process& process : storages()) {
    if (process.shard == shard && process.name != leader) out.push_back(process);
  }
  return out;
}

std::string Collection::ShardOf(const std::string& key) {
  v1::Target target;
  target.set_string_key(key);
  auto route = router().Route(target, kAnswer);
  EXPECT_TRUE(route.ok()) << route.status().ToString();
  return route.ok() ? route->shard_name() : "";
}

rpc::StorageClient& Collection::storage(const std::string& name) {
  const std::string address = Find(name).address;
  auto& client = storage_clients_[address];
  if (!client) client = std::make_unique<rpc::StorageClient>(address);
  return *client;
}

rpc::RouterClient& Collection::router(std::size_t number) {
  const std::string address = routers().at(number).address;
  auto& client = router_clients_[address];
  if (!client) client = std::make_unique<rpc::RouterClient>(address);
  return *client;
}

void Collection::Signal(const Process& process, int number) {
  if (process.pid > 0) ::kill(process.pid, number);
}

void Collection::LoseDisk(const Process& storage) {
  // Away at once, under a process that still runs: the next one must not find a part of it.
  std::filesystem::rename(DiskOf(storage.name), dir_.path() + "/gone-" + storage.name);
  Signal(storage, SIGKILL);
}

bool Collection::IsAlive(const Process& process) const {
  const std::string stat = ReadText(fmt::format("/proc/{}/stat", process.pid));
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] != 'Z';
}

// ---- what the operator says ---------------------------------------------------------------------

std::map<std::string, Condition> Collection::Conditions() const {
  std::map<std::string, Condition> out;
  const json status = ReadJson(dir() + "/status.json");
  for (const json& one : status.value("conditions", json::array())) {
    out[one.value("type", "")] = {one.value("status", ""), one.value("reason", ""),
                                  one.value("message", "")};
  }
  return out;
}

void Collection::AwaitWhole() {
  Await("every replica is a voter level with its leader, and the collection is ready", [this] {
    std::map<std::string, std::vector<v1::InfoResponse>> shards;
    for (const Process& process : storages()) {
      auto info = Info(process.name);
      if (!info || !info->formed()) return false;
      shards[process.shard].push_back(*std::move(info));
    }
    for (const auto& [name, replicas] : shards) {
      std::set<std::uint64_t> disks;
      std::set<std::uint64_t> applied;
      for (const auto& info : replicas) {
        disks.insert(info.member());
        applied.insert(info.applied_index());
      }
      for (const auto& info : replicas) {
        if (info.members_size() != settings_.replicas) return false;
        for (const auto& m : info.members())
          if (m.learner() || !disks.contains(m.member())) return false;
      }
      if (*applied.rbegin() - *applied.begin() > 100) return false;
    }
    return static_cast<int>(shards.size()) == settings_.shards &&
           Conditions()["Ready"].status == "True";
  });
}

void Collection::ExpectReplicasEqual() {
  Await("replicas at one index with one checksum", [this] {
    std::map<std::string, std::set<std::pair<std::uint64_t, std::uint64_t>>> sums;
    for (const Process& process : storages()) {
      auto sum = storage(process.name).Checksum({}, kCallDeadline);
      if (!sum.ok()) return false;
      sums[process.shard].emplace(sum->applied_index(), sum->checksum());
    }
    return std::all_of(sums.begin(), sums.end(),
                       [](const auto& s) { return s.second.size() == 1; });
  });
}

std::string Collection::LogOf(const std::string& process) const {
  return ReadText(dir() + "/logs/" + process + ".log");
}
std::string Collection::OperatorLog() const { return ReadText(dir_.path() + "/operator.log"); }

Collection::Output Collection::Ctl(const std::vector<std::string>& arguments) const {
  std::string command = fmt::format("'{}/etalonctl' --data '{}'", ETALON_BIN_DIR, dir());
  for (const std::string& argument : arguments) command += " '" + argument + "'";
  Output out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    out.text.append(buffer.data(), n);
  const int status = ::pclose(pipe);
  out.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}

bool Collection::Await(const std::string& what, const std::function<bool()>& condition,
                       Duration limit) const {
  const auto end = SteadyClock::now() + limit;
  while (!condition()) {
    if (SteadyClock::now() > end) {
      ADD_FAILURE() << "not within " << std::chrono::duration_cast<seconds>(limit).count()
                    << " s: " << what
                    << "\nthe operator says: " << ReadText(dir() + "/status.json");
      return false;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

void Collection::ShowLogs() const {
  constexpr std::size_t kShown = 3000;
  std::fprintf(stderr, "---- operator\n%s", LastLines(OperatorLog(), kShown).c_str());
  for (const char* kind : {"storages", "routers"}) {
    for (const Process& process : Endpoints(kind)) {
      std::fprintf(stderr, "---- %s\n%s", process.name.c_str(),
                   LastLines(LogOf(process.name), kShown).c_str());
    }
  }
}

}  // namespace etalon::e2e
