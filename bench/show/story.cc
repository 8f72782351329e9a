#include "bench/show/story.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "bench/show/import.h"
#include "bench/show/verify.h"
#include "env/posix/os.h"

namespace etalon::show {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SteadyClock = std::chrono::steady_clock;

double Since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

std::string Bar(double share) {
  const int width = 40;
  const int full = static_cast<int>(share * width);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(width - full), '.') +
         fmt::format("] {:3.0f} %", share * 100);
}

}  // namespace

void WriteManifest(const std::string& path, int shards, std::uint64_t bucket_count) {
  std::ofstream(path + ".new") << fmt::format(
      "apiVersion: sharding.etalon.dev/v1alpha1\n"
      "kind: ShardedCollection\n"
      "metadata: {{name: debian}}\n"
      "spec:\n"
      "  version: 0.1.0\n"
      "  shardNum: {}\n"
      "  bucketCount: {}\n"
      "  shardBy: {{field: source, type: String, hash: Crc32}}\n"
      "  replicasPerShard: 3\n"
      "  spaces: [{{name: packages}}, {{name: sources}}, {{name: load}}]\n"
      "  router: {{replicas: 2}}\n",
      shards, bucket_count);
  std::filesystem::rename(path + ".new", path);
}

Story::Story(StoryOptions options, const std::map<std::string, std::vector<Package>>& index)
    : options_(std::move(options)), index_(index), view_(options_.data_dir) {
  for (const auto& [source, packages] : index_) packages_ += packages.size();
}

void Story::Wrong(const std::string& what) {
  wrong_.push_back(what);
  screen_.Line("  WRONG: " + what);
}

void Story::Draw(const std::string& doing, double progress) {
  std::string block = "\n" + RenderShards(view_.shards());
  if (load_) {
    const auto sample = load_->Take();
    block += fmt::format(
        "\n  LOAD  {:.0f} calls/s   p50 {:.1f} ms   p99 {:.1f} ms   longest {:.0f} ms   errors "
        "{}\n",
        sample.per_second, sample.p50_ms, sample.p99_ms, sample.longest_ms, sample.errors);
  }
  block += "\n  " + doing + (progress < 0 ? "" : "  " + Bar(progress)) + "\n";
  screen_.Block(block);
}

bool Story::WaitSettled(std::size_t shards, Duration limit, const char* doing) {
  const auto end = SteadyClock::now() + limit;
  std::string why;
  while (SteadyClock::now() < end) {
    view_.Poll();
    if (view_.Settled(shards, options_.bucket_count, &why)) return true;
    Draw(std::string(doing) + ": " + why);
    // A person reads the table; polling faster would only take from what is shown.
    std::this_thread::sleep_for(milliseconds(250));
  }
  Wrong(fmt::format("{}: not done after {} s: {}", doing,
                    std::chrono::duration_cast<seconds>(limit).count(), why));
  return false;
}

void Story::KillLeader() {
  view_.Poll();
  for (const auto& [name, shard] : view_.shards()) {
    if (!shard.leader || shard.leader->transfers_size() == 0) continue;
    for (const auto& storage : view_.endpoints().storages) {
      if (storage.name != shard.leader->replica() || storage.pid <= 0) continue;
      screen_.Line(fmt::format("  kill -9 {} ({}, the leader of {}, which is moving buckets)",
                               storage.pid, storage.name, name));
      kill(storage.pid, SIGKILL);
      return;
    }
  }
  Wrong("no leader was found in the middle of a move");
}

bool Story::Scale(int shards, Duration limit, bool kill_a_leader) {
  load_->ResetLongest();
  const auto begin = SteadyClock::now();
  WriteManifest(options_.data_dir + "/collection.yaml", shards, options_.bucket_count);
  const std::string doing = fmt::format("shardNum: {}", shards);
  screen_.Line(fmt::format("\n* The manifest says {} now.", doing));
  if (kill_a_leader) {
    const auto end = SteadyClock::now() + seconds(30);
    bool moving = false;
    while (!moving && SteadyClock::now() < end) {
      view_.Poll();
      for (const auto& [name, shard] : view_.shards()) {
        moving |= shard.leader && shard.leader->transfers_size() > 0 &&
                  shard.leader->buckets().receiving() + shard.leader->buckets().active() > 0;
      }
      Draw(doing + ": new shards start");
    }
    KillLeader();
  }
  if (!WaitSettled(static_cast<std::size_t>(shards), limit, doing.c_str())) return false;
  const std::string figure = fmt::format(
      "{} shards at their etalon after {:.1f} s; longest write meanwhile {:.0f} ms{}", shards,
      Since(begin), load_->longest_write_ms(), kill_a_leader ? " (failover included)" : "");
  figures_.push_back(figure);
  screen_.Line("  " + figure);
  return true;
}

bool Story::Run() {
  screen_.Line("* A collection of 2 shards with 3 replicas each, and 2 routers, starts from " +
               options_.data_dir + "/collection.yaml.");
  auto begin = SteadyClock::now();
  if (!WaitSettled(2, seconds(60), "the collection starts")) return false;
  screen_.Line(fmt::format("  It serves after {:.1f} s.", Since(begin)));
  client_ = std::make_unique<Client>(view_.endpoints().routers, seconds(10));

  screen_.Line(fmt::format(
      "\n* {} packages of {} sources go in, each with its source's counter in one transaction.",
      packages_, index_.size()));
  std::atomic<std::uint64_t> imported{0};
  std::atomic<bool> importing{true};
  ImportResult result;
  std::thread importer([&] {
    result = Import(*client_, index_, [&](std::uint64_t n) { imported = n; });
    importing = false;
  });
  while (importing) {
    view_.Poll();
    Draw("import", static_cast<double>(imported) / static_cast<double>(packages_));
    std::this_thread::sleep_for(milliseconds(200));
  }
  importer.join();
  if (result.failed > 0) {
    Wrong(fmt::format("{} packages were not imported, first: {}", result.failed,
                      result.first_failure));
    return false;
  }
  figures_.push_back(fmt::format("{} packages ({} MiB) imported in {:.1f} s: {:.0f}/s",
                                 result.packages, result.bytes >> 20, result.seconds,
                                 static_cast<double>(result.packages) / result.seconds));
  screen_.Line("  " + figures_.back());

  screen_.Line(
      "\n* A load of reads, writes and two-record transactions begins, and goes on until the end.");
  Load::Options load;
  load.calls_per_second = options_.calls_per_second;
  load_ = std::make_unique<Load>(*client_, index_, load, OsSeed());
  load_->Start();
  if (!Scale(4, seconds(120), true) || !Scale(3, seconds(120), false)) return false;
  load_->Stop();
  figures_.push_back(fmt::format(
      "{} calls of the load, {} acknowledged writes, {} errors, {} sent again by the client",
      load_->calls(), load_->acknowledged(), load_->errors(), client_->Resent()));
  screen_.Line("\n* The load stops. " + figures_.back() + ".");
  if (load_->errors() > 0) Wrong("calls of the load failed, first: " + load_->first_error());
  return Verify();
}

bool Story::Verify() {
  screen_.Line("\n* Everything is read back.");
  const auto begin = SteadyClock::now();
  for (const auto& what : VerifyDocuments(*client_, index_)) Wrong(what);
  for (const auto& what : load_->Verify()) Wrong(what);
  view_.Poll();
  std::string why;
  if (!view_.Settled(3, options_.bucket_count, &why)) Wrong("buckets do not tile: " + why);
  if (Status s = view_.ReplicasEqual(); !s.ok()) Wrong(s.message());
  screen_.Line(fmt::format("  Read and compared in {:.1f} s.", Since(begin)));
  Draw("done");
  screen_.Line("\nFigures:");
  for (const auto& figure : figures_) screen_.Line("  " + figure);
  if (wrong_.empty()) {
    screen_.Line(
        fmt::format("\nVERDICT: good. {} documents as in the index, {} source counters right, {} "
                    "acknowledged writes found,\n"
                    "         buckets tile, replicas equal, no call failed.",
                    packages_, index_.size(), load_->acknowledged()));
  } else {
    screen_.Line(fmt::format("\nVERDICT: BAD, {} things are wrong (see above).", wrong_.size()));
  }
  return wrong_.empty();
}

}  // namespace etalon::show
