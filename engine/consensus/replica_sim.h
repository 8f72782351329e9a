// Test-only: replicas of one shard in a simulated world, over real logs, with a small state machine
// that knows when a read was stale.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/consensus/base.h"
#include "engine/consensus/replica.h"
#include "sim/world/world.h"

namespace etalon::consensus {

// What is true of the shard, whoever knows it. A log is one sequence, so a read is stale if and
// only if it sees less than what was acknowledged, or seen by a read that had ended, before it
// began.
struct Truth {
  std::map<LogIndex, std::uint64_t> history;  // hash of the state after each index
  LogIndex floor{1};                          // acknowledged or seen
  std::uint64_t writes = 0;                   // acknowledged
  std::uint64_t reads = 0;                    // answered
  std::uint64_t lease_reads = 0;              // of these, at once
  std::uint64_t stale = 0;                    // of these, wrong
  std::uint64_t restores = 0;
  std::uint64_t late_swaps = 0;  // starts that found the newest state only by the log's base
};

// The state machine: a chain of hashes.
struct ChainState {
  AppliedState at;
  std::uint64_t hash = 0;

  std::string Encode() const;  // padded, so that it takes several chunks
  static ChainState Decode(std::string_view bytes);
};

class SimNode final : public Replica::Owner {
 public:
  SimNode(sim::SimWorld& world, Truth& truth, MemberId id, Replica::Options options);

  static NodeName NameOf(MemberId id) { return "r" + std::to_string(id.value()); }

  // Makes the replica one of the first members of a new shard.
  void Form(const Members& members);
  void Start();
  void Crash();
  bool up() const { return replica_ != nullptr; }
  MemberId id() const { return id_; }
  const NodeName& name() const { return name_; }
  Replica& replica() { return *replica_; }
  log::SegmentedLog& log() { return *log_; }
  const ChainState& state() const { return state_; }
  const std::vector<RaftStatus>& roles() const { return roles_; }  // all that OnRole told
  const std::string& last_context() const { return last_context_; }
  bool log_failed() const { return log_failed_; }
  bool leads() const { return up() && replica_->status().role == Role::kLeader; }

  // A write of `bytes`; acknowledged in the truth once applied here. False: refused.
  bool Write(std::size_t bytes = 40);
  // A read; counted in the truth.
  void Read(Duration patience = std::chrono::milliseconds(500));

  Deadline In(Duration patience) const { return Deadline::After(env_->clock.Now(), patience); }
  void RefuseApplies(int times) { refuse_ = times; }
  void HoldCheckpoints(bool hold) { hold_checkpoints_ = hold; }
  void RefuseSnapshots(bool refuse) { refuse_snapshots_ = refuse; }
  void RefuseRestores(bool refuse) { refuse_restores_ = refuse; }
  int snapshots_started() const { return snapshots_started_; }

  // Replica::Owner
  Status Apply(std::span<const Entry> entries, const MembersChange* change) override;
  AppliedState Applied() override { return state_.at; }
  LogIndex CheckpointIndex() override { return checkpoint_; }
  void OnRole(const RaftStatus& status) override { roles_.push_back(status); }
  SendResult SendToMember(MemberId to, Lane lane, std::string bytes) override;
  std::unique_ptr<SnapshotSource> StartSnapshot(AppliedState* meta) override;
  std::unique_ptr<SnapshotSink> StartRestore(const Snapshot& meta) override;
  void OnRestored(const Snapshot& meta, std::unique_ptr<SnapshotSink> sink) override;
  void OnLogFailed(const Status&) override { log_failed_ = true; }

 private:
  class Sink;

  void OpenLog();
  void LoadState();
  void Checkpoint();
  std::string GenerationPath(const std::string& name) const { return "gen/" + name; }

  sim::SimWorld& world_;
  Truth& truth_;
  const MemberId id_;
  const NodeName name_;
  const Replica::Options options_;
  std::optional<Env> env_;
  std::unique_ptr<log::SegmentedLog> log_;
  std::unique_ptr<Replica> replica_;
  ChainState state_;
  std::string generation_;
  LogIndex checkpoint_;
  bool checkpointing_ = false;
  std::map<LogIndex, Term> waiting_;
  std::vector<RaftStatus> roles_;
  int refuse_ = 0;
  bool hold_checkpoints_ = false;
  bool refuse_snapshots_ = false;
  bool refuse_restores_ = false;
  int snapshots_started_ = 0;
  bool log_failed_ = false;
  std::string last_context_;
};

class SimShard {
 public:
  explicit SimShard(std::uint64_t seed) : world(seed) {}

  static Replica::Options TestOptions();  // small bounds, so that everything happens

  // Nodes with the IDs 1 to `voters`, formed and started.
  void Form(std::uint64_t voters);
  SimNode& Add(std::uint64_t id);  // a blank one, started
  SimNode& At(std::uint64_t id) { return *nodes.at(id); }
  // Of the highest term; null if nobody leads.
  SimNode* Leader();
  // Runs until somebody leads that may serve, and returns it; fails the test after `limit`.
  SimNode& WaitForLeader(Duration limit = std::chrono::seconds(20));
  // Acknowledged writes through whoever leads.
  void WriteSome(std::uint64_t writes);
  // Runs until all nodes that are up have applied the same, all that was acknowledged included.
  void Settle(Duration limit = std::chrono::seconds(60));
  // Retries until it is done.
  void AddLearner(std::uint64_t id);
  void Promote(std::uint64_t id);
  void Remove(std::uint64_t id);
  Status Transfer(std::uint64_t to, Duration patience = std::chrono::seconds(5));
  // `step` once a millisecond until it says true; false: not in time.
  bool Every(const std::function<bool()>& step, Duration limit = std::chrono::seconds(20));
  bool RunUntil(const std::function<bool()>& done, Duration limit = std::chrono::seconds(20)) {
    return world.RunUntil(done, limit);
  }

  sim::SimWorld world;
  Truth truth;
  Replica::Options options = TestOptions();
  std::map<std::uint64_t, std::unique_ptr<SimNode>> nodes;
};

}  // namespace etalon::consensus
