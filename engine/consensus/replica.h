// One replica of a shard: drives Consensus over the segmented log, applies what is committed,
// answers when a read is linearizable, moves snapshots, changes members, hands over.
// docs/protocols/replication.md has the tables and the arguments; it is the specification of this
// class together with PROTOCOLS.md section 1.
//
// Threads: the core executor only. Calls return at once; what they cause (messages, appends,
// applies) happens in tasks of the executor, many calls in one go. Callbacks given to the replica
// run on the executor; possibly within the call that they were given to. When a replica ends, it
// writes nothing and calls nobody any more.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "common/unique_function.h"
#include "engine/consensus/consensus.h"
#include "engine/consensus/lease.h"
#include "engine/consensus/read_queue.h"
#include "engine/consensus/snapshot_stream.h"
#include "engine/log/log.h"
#include "env/env.h"

namespace etalon::consensus {

// Where the owner's state stands.
struct AppliedState {
  LogIndex index;
  Term term;
  Members members;
};

class Replica {
 public:
  struct Options {
    MemberId self;
    // Gaps between ticks are uniform in [tick, 2 * tick]; a late timer yields one tick. These two
    // and election_ticks must be the same on all replicas of a shard: leases rest on them.
    Duration tick = std::chrono::milliseconds(50);
    std::uint64_t election_ticks = 10;
    std::uint64_t heartbeat_ticks = 2;
    unsigned drift_percent = 10;  // see Lease
    // A leader whose log makes no progress for so long leads no more; a replica does not tick
    // meanwhile.
    Duration disk_stall = std::chrono::seconds(1);
    // Over either, the log is trimmed (never above the owner's checkpoint). Twice the bound while a
    // snapshot is on its way, so that its receiver finds what follows it.
    std::uint64_t log_bytes = 256 << 20;
    std::uint64_t log_entries = 4'000'000;
    std::uint64_t pending_bytes =
        64 << 20;  // proposals are refused while the log has more than that to write
    std::uint64_t uncommitted_bytes = 64 << 20;
    std::uint64_t message_bytes = 128 << 10;  // these two: what may be under way to one follower
    std::uint64_t inflight_messages = 32;
    std::uint64_t apply_bytes = 256 << 10;  // about the size of one apply group
    std::size_t waiting_reads = 100'000;
    std::uint64_t caught_up_entries =
        1'000;  // a learner may become a voter when it lacks at most so many
    std::size_t outgoing_snapshots = 2;
    SnapshotStreamOptions snapshot;
  };

  // What the owner of the state machine does for the replica. Nothing here may destroy the replica;
  // calls into it are welcome, but for those made from within StartSnapshot.
  class Owner {
   public:
    virtual ~Owner() = default;

    // A group of committed entries in index order; entries without data are nothing to apply. With
    // OK they are applied. `change` is set if and only if the last entry is a kMembers one: the
    // members that result, to be stored with the state, and the context that came with the change.
    // A failure means "not now": the replica stands still (it neither ticks nor leads nor answers)
    // and gives the same group again and again.
    virtual Status Apply(std::span<const Entry> entries, const MembersChange* change) = 0;
    virtual AppliedState Applied() = 0;
    // A restart will find at least the state of this index. Never more than that.
    virtual LogIndex CheckpointIndex() = 0;
    // Role, leader or term changed.
    virtual void OnRole(const RaftStatus& status) = 0;
    virtual SendResult SendToMember(MemberId to, Lane lane, std::string bytes) = 0;

    // The applied state as it is now. *meta becomes what it is a snapshot of. Null: not now.
    virtual std::unique_ptr<SnapshotSource> StartSnapshot(AppliedState* meta) = 0;
    // An empty place for the state of `meta`, on whose way to durability the current one goes on.
    // Its durable form carries meta.name: see the order of things at a restart in
    // docs/protocols/replication.md. Null: not now.
    virtual std::unique_ptr<SnapshotSink> StartRestore(const Snapshot& meta) = 0;
    // The log now begins at `meta`, durably. From this call on the finished sink's state is the
    // owner's: Applied() is that of meta. CheckpointIndex() must not exceed meta.index before a
    // restart finds the new state by itself.
    virtual void OnRestored(const Snapshot& meta, std::unique_ptr<SnapshotSink> sink) = 0;

    // The log failed for good: what this replica promised is safe, but it cannot go on. The process
    // must end.
    virtual void OnLogFailed(const Status& status) = 0;
  };

  // Takes over the callbacks of the log. Both must outlive the replica, `env` too. The log is as
  // recovered and has not been appended to. It must fit to the owner's state:
  //   a blank log and applied index 0: a replica that is to join; it waits for a leader that knows
  //   it; else First() - 1 <= applied index <= Last(), with the term of that entry; otherwise
  //   DATA_LOSS.
  static Result<std::unique_ptr<Replica>> Open(const Options& options, Env& env,
                                               log::SegmentedLog& log, Owner& owner);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // A payload that another replica's SendToMember sent. What is malformed is ignored.
  void Step(MemberId from, std::string_view payload);

  // Accepted: the entry is applied with this index and this term, or never. UNAVAILABLE/NON_MASTER:
  // not a leader, or one that hands over; the hint has the term, and the leader as hexadecimal
  // member in `text` (the owner turns it into a name). RESOURCE_EXHAUSTED: over a bound, or the
  // disk is full.
  Result<Proposed> Propose(std::string_view data);

  // One change at a time, none by a leader to itself. ALREADY_EXISTS and NOT_FOUND: nothing to do.
  // UNAVAILABLE: try again later (another change is under way; a learner that lacks more than
  // caught_up_entries). The context is kept in the entry and comes with MembersChange.
  Result<Proposed> AddLearner(MemberId member, std::string_view context);
  Result<Proposed> AddVoter(MemberId member,
                            std::string_view context);  // a learner that has caught up
  Result<Proposed> Remove(MemberId member, std::string_view context);

  // done(OK): `to` leads. Proposals are refused meanwhile. There is no lease any more in this term,
  // whatever comes of it; after a failure the leader soon begins a new one, if it still leads.
  void TransferLeadership(MemberId to, Deadline deadline, UniqueFunction<void(Status)> done);
  // The voter that is nearest to this leader's log; nullopt: nobody that would do, or not the
  // leader.
  std::optional<MemberId> BestSuccessor() const;

  // done(OK): a read of the applied state, in this very call, is linearizable. At once with a
  // lease, else after a read index. DEADLINE_EXCEEDED comes up to one tick late.
  void ReadBarrier(Deadline deadline, UniqueFunction<void(Status)> done);
  bool HasLease() const;

  RaftStatus status() const;
  const Members& members() const { return members_; }  // as of applied
  std::optional<Progress> GetProgress(MemberId member) const;
  // Something came from that member within the shortest election timeout.
  bool HeardLately(MemberId member) const;
  bool stalled() const { return stalled_; }  // no ticks: the disk hangs, or Apply failed

 private:
  struct Handover {
    MemberId to;
    Term term;
    Deadline deadline;
    UniqueFunction<void(Status)> done;
  };
  struct Incoming {
    enum class Phase { kReceiving, kFinishing, kFinished, kInstalling, kPersisting };
    Offer offer;
    SnapshotReceiver receiver;
    Phase phase = Phase::kReceiving;
    std::uint64_t persist_number = 0;  // kPersisting
  };

  Replica(const Options& options, Env& env, log::SegmentedLog& log, Owner& owner);

  void Start();
  void OnDurable(std::uint64_t number);
  void Schedule();  // a pump
  void Pump();
  void Send(const Message& message);
  bool ApplyTaken();  // false: the owner refused, and nothing goes on until it no longer does
  void ObserveLease();
  void Observe();
  void ScheduleTick();
  void Tick();
  bool DiskHangs(SteadyTime now);
  void TrimLog();

  bool Leads() const;
  bool IsMember(MemberId id) const;
  Status NotLeader() const;
  Result<Proposed> Judged(const Proposed& proposed);
  Status CheckCaughtUp(MemberId member) const;
  bool StartRound();
  void WatchHandover(SteadyTime now);

  // replica_snapshots.cc
  std::optional<Snapshot> ProvideSnapshot(MemberId to, LogIndex at_least);
  void EndOutgoing(MemberId to, bool arrived);
  void OnPull(MemberId from, const v1::SnapshotMessage& message);
  void OnOffer(Offer offer);
  void OnChunk(v1::SnapshotChunk chunk);
  void InstallIncoming();
  void OnRestoring(std::uint64_t persist_number);
  void OnDrained();
  void OnPersisted();
  void AbandonIncoming(std::string_view why);
  void OnSnapshotMessage(MemberId from, v1::SnapshotMessage message);
  void WatchSnapshots(SteadyTime now);
  void SendPull(bool again);
  void SendEnd(MemberId to, const std::string& name, bool arrived, std::string_view why);
  SendResult SendSnapshot(MemberId to, Lane lane, const v1::SnapshotMessage& message);

  // First byte of a payload.
  static constexpr char kRaftPayload = 1;
  static constexpr char kSnapshotPayload = 2;

  const Options options_;
  Env& env_;
  log::SegmentedLog& log_;
  Owner& owner_;
  Random random_;
  const std::uint64_t life_;
  Members members_;  // as of applied_
  LogIndex applied_;
  std::optional<Consensus> consensus_;  // once what the log recovered is durable
  RaftStatus seen_;                     // as last told to the owner
  Lease lease_;

  bool pump_scheduled_ = false;
  Executor::TimerId tick_timer_ = 0;
  std::uint64_t ticks_ = 0;
  bool stalled_ = false;
  std::uint64_t appended_ = 0;  // numbers of Persists
  std::uint64_t durable_ = 0;
  SteadyTime progress_at_;

  // What the last Take gave to apply and is not yet applied.
  std::span<const Entry> to_apply_;
  std::optional<MembersChange> change_;  // of a group that the owner refused
  bool blocked_ = false;
  bool refused_ = false;  // by Apply, as was logged

  std::uint64_t next_tag_ = 1;
  ReadQueue reads_;
  std::map<MemberId, SteadyTime> heard_;  // members only
  std::optional<Handover> handover_;

  std::uint64_t next_snapshot_ = 1;
  std::map<MemberId, SnapshotSender> outgoing_;
  std::map<MemberId, SteadyTime> retry_at_;  // of those whose stream failed
  std::vector<MemberId> stale_;  // of outgoing_: to be ended, their receivers ask for another one
  std::unique_ptr<Incoming> incoming_;

  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks hold it weakly
};

}  // namespace etalon::consensus
