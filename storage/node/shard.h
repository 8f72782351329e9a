// One replica of one shard: the state machine under consensus, the machines that move buckets,
// calls, feed and scans, wired together. No decision is made here that one of the machines could
// make.
//
// A replica on a blank disk that is to join has no state machine until its first snapshot has
// arrived: formed() is false until then, and it serves nothing.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/balance/order_taker.h"
#include "engine/balance/rebalancer.h"
#include "engine/bucket/state_machine.h"
#include "engine/consensus/replica.h"
#include "engine/log/log.h"
#include "engine/store/store_set.h"
#include "engine/transfer/source.h"
#include "engine/transfer/target.h"
#include "env/env.h"
#include "etalon/v1/peer.pb.h"
#include "storage/node/alerts.h"
#include "storage/node/calls.h"
#include "storage/node/feed_publisher.h"
#include "storage/node/identity.h"
#include "storage/node/options.h"
#include "storage/node/peers.h"
#include "storage/node/proposals.h"
#include "storage/node/stats.h"

namespace etalon::storage {

class Shard final : private consensus::Replica::Owner,
                    private bucket::Observer,
                    private CallHost,
                    private transfer::RefCounter {
 public:
  // What the node does for its shard.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void Send(const NodeName& to, Lane lane, v1::NodeMessage message) = 0;
    // Queues an answer to a call; answers of one turn to one peer leave in one frame.
    virtual void SendReply(const NodeName& to, v1::CallReply reply) = 0;
    virtual bool MayReply(const NodeName& to) const = 0;  // as in CallHost
    // This replica cannot go on: the process must end.
    virtual void Fatal(const Status& status) = 0;
  };

  // `stores` has its current generation open, if it has one, and `log` is as recovered; they must
  // fit to each other.
  static Result<std::unique_ptr<Shard>> Open(Env& env, const NodeOptions& options,
                                             const Identity& identity, store::StoreSet& stores,
                                             log::SegmentedLog& log, Stats& stats, Host& host);
  ~Shard() override;

  bool formed() const { return engine_ != nullptr; }
  // Only while formed().
  const bucket::StateMachine& state() const { return *engine_->state; }
  const store::Store& store() const { return *engine_->store; }
  consensus::Replica& replica() { return *replica_; }
  const consensus::Replica& replica() const { return *replica_; }
  // For tests that look at what is proposed.
  log::SegmentedLog& log() const { return log_; }
  Calls& calls() { return *calls_; }
  Peers& peers() { return peers_; }
  bool is_leader() const;        // leads and has applied an entry of its term
  NodeName leader_name() const;  // empty: unknown
  LogIndex checkpoint_index() const { return checkpoint_index_; }
  Duration lag() const;                      // followers: since level with the leader
  Duration since_leader() const;             // followers: since they heard from it
  bool heard_lately(MemberId member) const;  // leader: within a second
  Status NotLeader() const override;         // NON_MASTER with what is known of the leader

  // ---- messages ----
  void OnRaft(const NodeName& from, const v1::RaftMessage& message);
  void OnTransfer(const NodeName& from, const v1::TransferMessage& message);
  void OnBalance(const NodeName& from, const v1::BalanceMessage& message);
  void OnSuspicion(const v1::Suspicion& suspicion);
  void OnSubscribe(const NodeName& from, const v1::FeedSubscribe& request);

  // Ok: no majority of the voters was heard of for a while, and none leads. Only then may a replica
  // go on alone.
  Status MajorityIsLost() const;

  // ---- changes; each `done` is called once ----
  // OUTCOME_UNKNOWN when leadership is lost meanwhile. All commands are idempotent.
  void ProposeControl(v1::Control control, ControlDone done);
  enum class MemberChange { kAddLearner, kPromote, kRemove };
  void ChangeMembers(MemberChange change, MemberId member, const std::string& name,
                     ControlDone done);
  // Stops admitting writes, hands leadership to `to` (or to the best voter), admits again.
  void HandOver(std::optional<MemberId> to, Deadline deadline, ControlDone done);
  void Checkpoint(ControlDone done);
  void StartMove(const v1::SendRequest& request, UniqueFunction<void(Result<TransferId>)> done);
  void ReadBarrier(Deadline deadline, UniqueFunction<void(Status)> done) override;

  // ---- observation ----
  v1::RebalancerStateResponse RebalancerState() const;
  std::optional<double> etalon() const;
  std::optional<double> disbalance() const;
  std::vector<v1::TransferInfo> Transfers() const;
  AlertFacts Facts() const;
  bool Quiet() const;  // nothing admitted is unanswered

 private:
  // Everything that belongs to one state machine; a snapshot from another replica brings a new one.
  struct Engine {
    store::Store* store = nullptr;
    std::unique_ptr<bucket::StateMachine> state;
    transfer::RebaseGate gate;
    std::unique_ptr<transfer::Source> source;
    std::unique_ptr<transfer::Target> target;
    std::unique_ptr<balance::Rebalancer> rebalancer;
    std::unique_ptr<balance::OrderTaker> orders;
  };
  enum class Machine : unsigned char { kSource, kTarget, kRebalancer, kOrders };
  struct MachineProposal {
    Machine machine;
    transfer::Token token;
  };

  Shard(Env& env, const NodeOptions& options, const Identity& identity, store::StoreSet& stores,
        log::SegmentedLog& log, Stats& stats, Host& host);
  Status LoadEngine(store::Store& store);

  // consensus::Replica::Owner
  Status Apply(std::span<const consensus::Entry> entries,
               const consensus::MembersChange* change) override;
  consensus::AppliedState Applied() override;
  LogIndex CheckpointIndex() override { return checkpoint_index_; }
  void OnRole(const consensus::RaftStatus& status) override;
  SendResult SendToMember(MemberId to, Lane lane, std::string bytes) override;
  std::unique_ptr<consensus::SnapshotSource> StartSnapshot(consensus::AppliedState* meta) override;
  std::unique_ptr<consensus::SnapshotSink> StartRestore(const consensus::Snapshot& meta) override;
  void OnRestored(const consensus::Snapshot& meta,
                  std::unique_ptr<consensus::SnapshotSink> sink) override;
  void OnLogFailed(const Status& status) override { host_.Fatal(status); }

  // bucket::Observer
  void OnRow(std::uint32_t bucket, const bucket::Row* row) override;
  void OnRebase(std::uint8_t level) override;
  void OnOpened(const bucket::Outgoing& transfer) override;
  void OnOutgoingChanged(const TransferId&) override {}
  void OnIncomingChanged(const TransferId&) override {}
  void OnDataKey(std::uint32_t bucket, std::string_view store_key) override;
  void OnSplit(const bucket::SplitTask&) override {}
  void OnTopology() override;
  void OnSettings() override {}

  // CallHost
  SteadyTime Now() const override { return env_.clock.Now(); }
  const bucket::StateMachine& State() const override { return *engine_->state; }
  const store::Store& Store() const override { return *engine_->store; }
  bool IsLeader() const override { return is_leader(); }
  Status WritesAllowed() const override;
  Duration Staleness() const override;
  Status ProposeCalls(std::vector<CallTicket>& tickets) override;
  void Reply(const CallTicket& ticket, const Status& status, std::string result) override;
  bool MayReply(const NodeName& to) const override { return host_.MayReply(to); }
  void Later(UniqueFunction<void()> task) override { Post(std::move(task)); }

  // transfer::RefCounter: nothing holds write references yet, so there is nothing to drain.
  void CloseRw(std::uint8_t, const std::vector<std::uint32_t>&) override {}
  bool Drained(std::uint8_t, const std::vector<std::uint32_t>&) const override { return true; }
  void OpenRw(std::uint8_t, const std::vector<std::uint32_t>&) override {}

  // ---- shard_machines.cc: stepping the machines and carrying out what they ask for ----
  // Runs `work` now, or right after the work that runs: machines are never stepped from within each
  // other.
  void Run(UniqueFunction<void()> work);
  void StepTransfer(Machine machine, transfer::Input input);
  void StepBalance(Machine machine, balance::Input input);
  void StepAll(const transfer::RoleChanged& role);
  void AfterApply();
  void Carry(Machine machine, transfer::Output output);
  void Carry(Machine machine, balance::Output output);
  void Act(Machine machine, transfer::Action action);
  void Act(Machine machine, balance::Action action);
  void ProposeFor(Machine machine, transfer::Propose propose);
  void SendTransfer(ShardUid to, Lane lane, const v1::TransferMessage& message);
  void SendBalance(const balance::Send& send);
  void WakeAt(Machine machine, SteadyTime when);
  void WantConfirmation(Machine machine);
  void OnAlert(const transfer::Alert& alert);
  void StartHold(const transfer::HoldWrites& hold);
  void EndHold(const transfer::ReleaseWrites& release);
  void OrderEvent(const transfer::OrderOpened& opened);
  void OrderEvent(const transfer::OrderFinished& finished);

  void Post(UniqueFunction<void()> task);
  void Tick();
  void FlushFeed();
  void SendFeed(const NodeName& to, v1::FeedMessage feed);
  void CheckDisk();
  void MaybeCheckpoint();
  void BeginCheckpoint(ControlDone done);
  Result<consensus::Proposed> ProposeEntry(v1::LogEntry* entry);
  void Complete(bucket::EntryOutcome outcome);
  void Lose(Proposals::Pending pending, const Status& status);
  void WithLeader(Status* status) const;

  Env& env_;
  const NodeOptions options_;
  const Identity identity_;
  store::StoreSet& stores_;
  log::SegmentedLog& log_;
  Stats& stats_;
  Host& host_;
  Random random_;

  std::unique_ptr<Engine> engine_;
  std::unique_ptr<consensus::Replica> replica_;
  std::unique_ptr<Calls> calls_;
  FeedPublisher feed_;
  Peers peers_;
  Proposals proposals_;
  consensus::RaftStatus raft_;
  bool handing_over_ = false;
  bool apply_failed_ = false;

  // A leader's log time: counted from what was applied when it began to lead.
  LogTime log_time_base_;
  SteadyTime log_time_at_;

  std::deque<UniqueFunction<void()>> work_;
  bool working_ = false;
  std::map<Machine, Executor::TimerId> wakes_;
  std::map<Machine, bool> confirming_;
  std::map<std::pair<std::string, std::string>, std::string>
      machine_alerts_;  // (code, key) -> text
  struct Freeze {
    std::vector<std::uint32_t> buckets;
    SteadyTime since;
  };
  std::map<TransferId, Freeze> freezes_;
  std::map<transfer::OrderId, UniqueFunction<void(Result<TransferId>)>> moves_;
  transfer::OrderId next_order_ = 1;

  LogIndex checkpoint_index_;
  bool checkpointing_ = false;
  bool checkpoint_failed_ = false;   // the last one
  std::uint64_t applied_bytes_ = 0;  // of log entries since the last checkpoint began
  SteadyTime checkpoint_at_;
  SteadyTime disk_checked_;
  std::uint64_t free_bytes_ = 0;
  bool disk_low_ = false;

  SteadyTime heard_leader_;
  std::map<MemberId, SteadyTime> heard_;
  SteadyTime level_with_leader_;
  Executor::TimerId tick_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks hold it weakly
};

}  // namespace etalon::storage
