// Random moves, splits and doublings of the modulus on real shards, round by round. After each
// round: a key changed its shard only if its bucket was told to go there, all keys of a bucket went
// together, a split moved just the second half, the buckets tile, and every key is there with its
// value.

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "proto/wire.h"
#include "sim/checkers/invariants.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/table.h"

namespace etalon::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kRounds = 12;

class Property {
 public:
  explicit Property(std::uint64_t seed, bool verbose)
      : world_(seed),
        cluster_(world_, Options(world_)),
        table_(cluster_, {}),
        chaos_(cluster_, milliseconds(300)) {
    world_.SetEcho(verbose);
  }

  Outcome Play() {
    if (!cluster_.Form(seconds(30))) return Failed("the collection does not form");
    RoughNetwork(world_);
    CheckedRun run(cluster_);
    run.Add(table_);
    run_ = &run;
    if (!table_.Load(seconds(120))) return Failed("the keys cannot be written");
    for (int round = 0; round < kRounds; ++round) {
      if (!Round(round)) return Failed(run.failure());
    }
    (void)run.Conclude();
    std::ostringstream summary;
    summary << table_.acknowledged() << " writes, " << moves_ << " moves of keys, " << splits_
            << " splits, " << doublings_ << " doublings alone, " << chaos_.kills() << " kills";
    return {.failure = run.failure(),
            .trace = world_.trace(),
            .acknowledged = table_.acknowledged(),
            .summary = summary.str()};
  }

 private:
  // All keys of `bucket` may go from one shard to another.
  struct Told {
    BucketId bucket;
    int source;
    int target;
    bool must = false;
  };

  static ClusterOptions Options(SimWorld& world) {
    ClusterOptions options;
    options.shards = 4;
    options.shards_with_buckets = 2;
    options.bucket_count = 2 + static_cast<std::uint32_t>(world.random().Below(5));
    options.fast_checkpoints = world.random().Chance(1, 2);
    options.drift_ppm = RoughClocks(world);
    return options;
  }

  bool Round(int number) {
    const std::vector<int> before = Owners();
    if (before.empty()) return run_->Fail("not every key has one shard");
    told_.clear();
    table_.Start();
    chaos_.Start();
    const bool good = Act(number);
    chaos_.Stop();
    // What the last faults brought down comes back within three seconds.
    return good && Settle() && run_->For(seconds(3)) && Settle() && Judge(before);
  }

  bool Act(int number) {
    switch (world_.random().Below(3)) {
      case 0:
        return MoveSome();
      case 1:
        return SplitOne("split-" + std::to_string(number));
      default:
        return DoubleOne("double-" + std::to_string(number));
    }
  }

  bool MoveSome() {
    for (std::uint64_t n = 1 + world_.random().Below(4); n > 0; --n) {
      if (const auto move = PickMove(cluster_)) {
        told_.push_back({{move->level, move->bucket}, move->source, move->target});
        Order(cluster_, *move);
      }
      if (!run_->For(milliseconds(world_.random().Below(300)))) return false;
    }
    return true;
  }

  std::optional<int> AShardWith(std::size_t least, std::size_t most) {
    std::vector<int> shards;
    for (int s : cluster_.shards()) {
      const auto* state = cluster_.LeaderState(s);
      if (state != nullptr && state->rows().size() >= least && state->rows().size() <= most)
        shards.push_back(s);
    }
    if (shards.empty()) return std::nullopt;
    return shards[world_.random().Below(shards.size())];
  }

  int AnotherThan(int shard) {
    const auto n = static_cast<std::uint64_t>(cluster_.options().shards);
    return static_cast<int>((static_cast<std::uint64_t>(shard) + 1 + world_.random().Below(n - 1)) %
                            n);
  }

  // The second half of what the shard has, of the next level if that is one bucket.
  void TellSplit(int source, int target) {
    const auto& state = *cluster_.LeaderState(source);
    std::vector<std::uint32_t> owned;
    std::uint8_t level = state.level();
    for (const auto& [bucket, row] : state.rows()) owned.push_back(bucket);
    if (owned.size() == 1) {
      owned.push_back(owned[0] + static_cast<std::uint32_t>(state.modulus()));
      ++level;
    }
    for (std::size_t i = (owned.size() + 1) / 2; i < owned.size(); ++i)
      told_.push_back({{level, owned[i]}, source, target});
  }

  bool SplitOne(const std::string& task) {
    const auto source = AShardWith(1, 1000);
    if (!source) return MoveSome();
    const int target = AnotherThan(*source);
    TellSplit(*source, target);
    v1::AdminRequest request;
    request.mutable_split()->set_target(Cluster::Uid(target).value());
    bool done = false;
    for (int attempt = 0; attempt < 4 && !done; ++attempt) {
      request.mutable_split()->set_task(task + "." + std::to_string(attempt));
      if (!Ask(*source, request, v1::SPLIT_COMMITTED, &done)) return false;
      cluster_.settings().add_closed_splits(request.split().task());
    }
    for (Told& told : told_) told.must = done;
    splits_ += done ? 1 : 0;
    return cluster_.ApplySettings(seconds(60)) || run_->Fail("settings cannot be applied");
  }

  // Asks for a task until it is in `state`, or aborted.
  bool Ask(int source, const v1::AdminRequest& request, v1::SplitState state, bool* reached) {
    const SteadyTime end = world_.now() + seconds(60);
    while (world_.now() < end) {
      const auto answer = cluster_.AskShard(source, request, seconds(30));
      if (!answer) break;
      const Status status = FromProto(answer->status());
      if (status.reason() == Reason::kSplitAborted || answer->split().state() == v1::SPLIT_ABORTED)
        return run_->For(Duration::zero());
      if (!status.ok()) return run_->Fail("a split is refused: " + status.ToString());
      *reached = answer->split().state() == state;
      if (*reached) return run_->For(Duration::zero());
      if (!run_->For(milliseconds(50))) return false;
    }
    return run_->Fail("a split does not end");
  }

  // The modulus of a shard with one bucket doubles for a split that cannot go on, as its target is
  // locked; then the split is given up. Nothing may have moved.
  bool DoubleOne(const std::string& task) {
    const auto source = AShardWith(1, 1);
    if (!source) return MoveSome();
    const int target = AnotherThan(*source);
    const std::uint8_t level = cluster_.LeaderState(*source)->level();
    if (!Lock(target, true)) return false;
    v1::AdminRequest request;
    request.mutable_split()->set_task(task);
    request.mutable_split()->set_target(Cluster::Uid(target).value());
    (void)cluster_.AskShard(*source, request, seconds(30));
    const auto doubled = [&] {
      const auto* state = cluster_.LeaderState(*source);
      return state != nullptr && state->level() > level;
    };
    if (!run_->Until(doubled, seconds(60), "a shard with one bucket is not doubled for a split"))
      return false;
    v1::AdminRequest abort;
    abort.mutable_abort_split()->set_task(task);
    abort.mutable_abort_split()->set_why("the modulus is doubled, that is enough");
    const auto answer = cluster_.AskShard(*source, abort, seconds(30));
    if (!answer || answer->status().code() != 0) return run_->Fail("a split cannot be aborted");
    ++doublings_;
    return Lock(target, false);
  }

  bool Lock(int shard, bool locked) {
    cluster_.settings().mutable_shards(shard)->set_locked(locked);
    return cluster_.ApplySettings(seconds(60)) || run_->Fail("settings cannot be applied");
  }

  // Nothing is in flight, and no call.
  bool Settle() {
    table_.Stop();
    world_.net().HealAll();
    std::string why;
    const auto settled = [&] { return table_.idle() && IsSettled(cluster_, &why); };
    bool reached = false;
    if (!run_->Until(Every(world_, milliseconds(20), settled), seconds(90), &reached)) return false;
    return reached || run_->Fail("does not settle: " + why);
  }

  // The shard of each key; empty: some key has none, or two.
  std::vector<int> Owners() {
    std::vector<int> owners(table_.keys(), -1);
    for (int s : cluster_.shards()) {
      const auto* state = cluster_.LeaderState(s);
      if (state == nullptr) return {};
      for (std::uint32_t key = 0; key < table_.keys(); ++key) {
        const bucket::Row* row = state->FindRow(state->BucketAt(table_.ValueOf(key)));
        if (row == nullptr) continue;
        if (owners[key] != -1) return {};
        owners[key] = s;
      }
    }
    if (std::count(owners.begin(), owners.end(), -1) != 0) return {};
    return owners;
  }

  // Where a key may be by now. Orders may fail, splits that were committed may not.
  std::set<int> MayBe(std::uint32_t key, int before) const {
    std::set<int> places = {before};
    for (const Told& told : told_) {
      const std::uint64_t modulus = std::uint64_t{cluster_.options().bucket_count}
                                    << told.bucket.level;
      if (table_.ValueOf(key).value() % modulus != told.bucket.number) continue;
      if (!places.contains(told.source)) continue;
      if (told.must) places.erase(told.source);
      places.insert(told.target);
    }
    return places;
  }

  bool Judge(const std::vector<int>& before) {
    const std::vector<int> after = Owners();
    if (after.empty()) return run_->Fail("not every key has one shard");
    for (std::uint32_t key = 0; key < table_.keys(); ++key) {
      if (!MayBe(key, before[key]).contains(after[key])) {
        return run_->Fail("key " + std::to_string(key) + " was on shard " +
                          std::to_string(before[key]) + " and is on shard " +
                          std::to_string(after[key]) + ", where its bucket was not told to go");
      }
      if (after[key] != before[key]) ++moves_;
    }
    if (!table_.CompareByScan(seconds(30))) return run_->Fail("the collection cannot be scanned");
    return Describe() && run_->For(Duration::zero());
  }

  // What clients are told tiles, and is what the shards say.
  bool Describe() {
    for (int r = 0; r < cluster_.options().routers; ++r) {
      v1::ClientRequest request;
      request.mutable_describe();
      const auto answer = cluster_.AskRouter(Cluster::RouterName(r), request, seconds(10));
      if (!answer) return run_->Fail("a router does not describe the collection");
      const auto& described = answer->describe();
      const Status status =
          FromProto(answer->status().code() != 0 ? answer->status() : described.status());
      if (!status.ok()) return run_->Fail("the collection is not described: " + status.ToString());
      std::vector<int> owner(described.routing_modulus(), -1);
      for (int i = 0; i < described.shard_infos_size(); ++i) {
        const int shard = std::stoi(described.shard_names(i).substr(std::string("shard-").size()));
        for (const std::uint64_t bucket : described.shard_infos(i).hash_routing().buckets()) {
          if (bucket >= owner.size() || owner[bucket] != -1)
            return run_->Fail("the described buckets do not tile");
          owner[bucket] = shard;
        }
      }
      const std::vector<int> owners = Owners();
      for (std::uint32_t key = 0; key < table_.keys(); ++key) {
        if (owner[table_.ValueOf(key).value() % owner.size()] != owners[key])
          return run_->Fail("the described owner of key " + std::to_string(key) + " is another");
      }
    }
    return true;
  }

  SimWorld world_;
  Cluster cluster_;
  Table table_;
  Chaos chaos_;
  CheckedRun* run_ = nullptr;
  std::vector<Told> told_;   // in this round
  std::uint64_t moves_ = 0;  // of keys
  int splits_ = 0;
  int doublings_ = 0;
};

}  // namespace

Outcome RunProperty(std::uint64_t seed, bool verbose) { return Property(seed, verbose).Play(); }

}  // namespace etalon::sim
