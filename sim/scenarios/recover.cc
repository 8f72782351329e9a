// A shard loses two of three disks, and the third replica goes on alone by an explicit command;
// then it gets new members. If that replica had everything, nothing may be lost. If it had not
// heard that a bucket was given away, the bucket has two owners: the older one finds out and
// quarantines it, until somebody says which copy counts.

#include <optional>
#include <sstream>
#include <string>

#include "proto/wire.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

namespace {

using bucket::RowStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Story {
  kComplete,   // the survivor has everything
  kNewerWins,  // it has an old copy of a bucket, which is thrown away
  kOlderWins,  // it has an old copy of a bucket, which counts
};

class Recovery {
 public:
  Recovery(Cluster& cluster, CheckedRun& run, Chains& chains, Story story)
      : cluster_(cluster), run_(run), chains_(chains), story_(story) {
    Random& random = cluster_.world().random();
    shard_ = static_cast<int>(random.Below(3));
    const auto* state = cluster_.LeaderState(shard_);
    if (state == nullptr || state->rows().empty()) shard_ = (shard_ + 1) % 3;  // no two are empty
    other_ = (shard_ + 1 + static_cast<int>(random.Below(2))) % 3;
  }

  bool Play() {
    // Nobody is promised anything by a majority that is lost later: no write is under way then.
    chains_.Stop();
    if (!run_.Until([&] { return chains_.idle(); }, seconds(30), "calls are never answered"))
      return false;
    if (!ChooseSurvivor()) return false;
    if (story_ != Story::kComplete && !MoveBehindItsBack()) return false;
    LoseTheOthers();
    if (!GoOnAlone()) return false;
    if (story_ != Story::kComplete && !Quarantine()) return false;
    chains_.Start();
    for (const NodeName& name : cluster_.StoragesOf(shard_)) {
      if (name != survivor_ && !Replace(name)) return false;
    }
    return true;
  }

  bool CheckWitness() {
    if (story_ == Story::kComplete) return true;
    const auto value = ReadWitness();
    const std::string expected = story_ == Story::kNewerWins ? "after" : "before";
    if (value == expected) return true;
    return run_.Fail("the bucket's record is '" + value.value_or("unreadable") + "' instead of '" +
                     expected + "'");
  }

 private:
  const storage::Shard& Survivor() { return *cluster_.storage(survivor_)->shard(); }

  // A follower that has applied all that the shard has.
  bool ChooseSurvivor() {
    const auto found = [&] {
      const auto leader = cluster_.LeaderOf(shard_);
      if (!leader) return false;
      const LogIndex all = cluster_.storage(*leader)->shard()->log().Last();
      for (const NodeName& name : cluster_.StoragesOf(shard_)) {
        if (name == *leader || !cluster_.IsUp(name)) continue;
        const storage::Node* node = cluster_.storage(name);
        if (node->shard() == nullptr || !node->shard()->formed() ||
            node->shard()->state().applied_index() < all)
          continue;
        survivor_ = name;
        return true;
      }
      return false;
    };
    return run_.Until(found, seconds(30), "no follower gets level with its leader");
  }

  v1::ClientRequest Witness(const std::string& function, const std::string& args) const {
    v1::ClientRequest request;
    v1::ClientCall& call = *request.mutable_call();
    call.mutable_target()->set_bucket(moved_->bucket);
    call.set_function(function);
    call.set_args(args);
    call.set_timeout_millis(5000);
    return request;
  }
  bool WriteWitness(const std::string& value) {
    v1::PutArgs put;
    put.set_space("rows");
    put.set_key("witness");
    put.set_value(value);
    for (int attempt = 0; attempt < 10; ++attempt) {
      const auto answer = cluster_.AskRouter(cluster_.AnyRouter(),
                                             Witness("put", put.SerializeAsString()), seconds(10));
      if (answer && answer->has_call() && answer->call().status().code() == 0) return true;
    }
    return run_.Fail("a record cannot be written");
  }
  std::optional<std::string> ReadWitness() {
    v1::GetArgs get;
    get.set_space("rows");
    get.set_key("witness");
    for (int attempt = 0; attempt < 10; ++attempt) {
      const auto answer = cluster_.AskRouter(cluster_.AnyRouter(),
                                             Witness("get", get.SerializeAsString()), seconds(10));
      v1::GetResult result;
      if (answer && answer->has_call() && answer->call().status().code() == 0 &&
          result.ParseFromString(answer->call().result()))
        return result.value();
    }
    return std::nullopt;
  }

  bool MoveBehindItsBack() {
    const auto picked = [&] { return (moved_ = PickMove(cluster_, shard_, other_)).has_value(); };
    if (!run_.Until(picked, seconds(30), "there is nothing to move")) return false;
    if (!WriteWitness("before") || !ChooseSurvivor()) return false;
    cluster_.world().net().Isolate(survivor_);
    const auto gone = [&] {
      const auto* here = cluster_.LeaderState(shard_);
      const auto* there = cluster_.LeaderState(other_);
      if (here == nullptr || there == nullptr) return false;
      const bucket::Row* row = there->FindRow(moved_->bucket);
      return here->FindRow(moved_->bucket) == nullptr && row != nullptr &&
             row->status == RowStatus::kActive;
    };
    bool reached = false;
    for (int attempt = 0; attempt < 10 && !reached; ++attempt) {
      Order(cluster_, *moved_);
      if (!run_.Until(gone, seconds(10), &reached)) return false;
    }
    if (!reached) return run_.Fail("a bucket cannot be moved");
    return WriteWitness("after");
  }

  void LoseTheOthers() {
    for (const NodeName& name : cluster_.StoragesOf(shard_)) {
      const storage::Node* node = cluster_.storage(name);
      if (node != nullptr && node->shard() != nullptr)
        highest_term_ = std::max(highest_term_, node->shard()->replica().status().term);
    }
    for (const NodeName& name : cluster_.StoragesOf(shard_)) {
      if (name != survivor_) cluster_.ReplaceDisk(name);
    }
    cluster_.world().net().Join(survivor_);
  }

  bool GoOnAlone() {
    if (!run_.For(seconds(3))) return false;
    if (cluster_.LeaderOf(shard_)) return run_.Fail("a shard without a majority has a leader");
    v1::AdminRequest request;
    request.mutable_recover()->set_shard(Cluster::Uid(shard_).value());
    request.mutable_recover()->set_member(cluster_.storage(survivor_)->identity().member.value());
    request.mutable_recover()->set_term_above(highest_term_.value());
    // Refused while it has heard of the others lately, be it by a message that was long on its way.
    bool recovered = false;
    for (int attempt = 0; attempt < 10 && !recovered; ++attempt) {
      if (attempt > 0 && !run_.For(seconds(1))) return false;
      const auto answer = cluster_.AskReplica(survivor_, request, seconds(30));
      recovered = answer && answer->status().code() == 0;
    }
    if (!recovered) return run_.Fail("the shard is not recovered");
    return run_.Until([&] { return cluster_.LeaderOf(shard_) == survivor_; }, seconds(30),
                      "the survivor does not lead");
  }

  bool IsQuarantined(int shard) {
    const auto* state = cluster_.LeaderState(shard);
    const bucket::Row* row = state == nullptr ? nullptr : state->FindRow(moved_->bucket);
    return row != nullptr && row->status == RowStatus::kQuarantined;
  }

  bool Release(int shard, bool to_active) {
    v1::AdminRequest request;
    request.mutable_release_quarantine()->set_bucket(moved_->bucket);
    request.mutable_release_quarantine()->set_level(moved_->level);
    request.mutable_release_quarantine()->set_to_active(to_active);
    return cluster_.AdminUntilOk(shard, request, seconds(30)) ||
           run_.Fail("a quarantined bucket cannot be released");
  }

  bool Quarantine() {
    if (!run_.Until([&] { return IsQuarantined(shard_); }, seconds(30),
                    "the older owner of a doubled bucket does not find out"))
      return false;
    if (IsQuarantined(other_)) return run_.Fail("the newer owner is quarantined");
    if (story_ == Story::kNewerWins) return Release(shard_, false);
    if (!Release(shard_, true)) return false;
    return run_.Until([&] { return IsQuarantined(other_); }, seconds(30),
                      "the owner that was overruled does not find out") &&
           Release(other_, false);
  }

  bool Change(v1::ChangeMembersRequest::Kind kind, MemberId member, const NodeName& name) {
    v1::AdminRequest request;
    request.mutable_change_members()->set_kind(kind);
    request.mutable_change_members()->set_member(member.value());
    request.mutable_change_members()->set_name(name);
    return cluster_.AdminUntilOk(shard_, request, seconds(60)) ||
           run_.Fail("members cannot be changed");
  }

  // A blank replica joins: learner, level with the leader, voter.
  bool Replace(const NodeName& name) {
    const MemberId member = cluster_.storage(name)->identity().member;
    if (!Change(v1::ChangeMembersRequest::ADD_LEARNER, member, name)) return false;
    const auto level = [&] {
      const storage::Node* node = cluster_.storage(name);
      const auto* leader = cluster_.LeaderState(shard_);
      return leader != nullptr && node->shard() != nullptr && node->shard()->formed() &&
             node->shard()->state().applied_index().value() + 50 > leader->applied_index().value();
    };
    return run_.Until(level, seconds(60), "a learner does not get level") &&
           Change(v1::ChangeMembersRequest::PROMOTE, member, name);
  }

  Cluster& cluster_;
  CheckedRun& run_;
  Chains& chains_;
  const Story story_;
  int shard_ = 0;
  int other_ = 0;
  NodeName survivor_;
  Term highest_term_;
  std::optional<Move> moved_;
};

}  // namespace

Outcome RunRecover(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 16, .value_bytes = 60});
  CheckedRun run(cluster, CheckedRun::Disks::kLossy);
  run.Add(chains);
  chains.Start();
  for (int i = 0; i < 5; ++i) {
    if (const auto move = PickMove(cluster)) Order(cluster, *move);
    if (!run.For(milliseconds(world.random().Below(500)))) return Failed(run.failure());
  }
  Recovery recovery(cluster, run, chains, static_cast<Story>(seed % 3));
  if (recovery.Play() && run.For(seconds(1)) && run.Conclude()) (void)recovery.CheckWitness();
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged();
  std::ostringstream summary;
  summary << chains.acknowledged() << " writes, " << chains.reads() << " reads, "
          << chains.unknown() << " unknown";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
