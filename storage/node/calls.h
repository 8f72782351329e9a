// Calls on one shard's replica: admission, batching of writes into log entries, linearizable and
// labelled-stale reads, and the writes that wait for the end of a move. Single-threaded; the Host
// does what crosses the outside.
//
// Every call is answered exactly once, at the latest when its deadline passes. Queues are bounded
// in bytes: over the bound a call is refused with RESOURCE_EXHAUSTED before it is queued.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "env/transport.h"
#include "etalon/v1/call.pb.h"
#include "storage/node/proposals.h"
#include "storage/node/scans.h"
#include "storage/node/stats.h"

namespace etalon::storage {

// The functions that change records; they run in mode rw only.
bool IsWriteFunction(std::string_view function);

class CallHost {
 public:
  virtual ~CallHost() = default;
  virtual SteadyTime Now() const = 0;
  virtual const bucket::StateMachine& State() const = 0;
  virtual const store::Store& Store() const = 0;
  virtual bool IsLeader() const = 0;
  virtual Status NotLeader() const = 0;  // NON_MASTER with the hint
  // OK, or why no write can be taken now (disk full, handing over, retired).
  virtual Status WritesAllowed() const = 0;
  // How far this replica may be behind its leader; 0 on a leader with a lease.
  virtual Duration Staleness() const = 0;
  // Done when a read of applied state is linearizable, or with a failure at the deadline.
  virtual void ReadBarrier(Deadline deadline, UniqueFunction<void(Status)> done) = 0;
  // Proposes one entry. On success the tickets are taken, and OnOutcome or OnLost follows for each
  // of them; on failure they are left as they are.
  virtual Status ProposeCalls(std::vector<CallTicket>& tickets) = 0;
  virtual void Reply(const CallTicket& ticket, const Status& status, std::string result) = 0;
  // No: so much waits to be sent to that peer that reads for it are put off until Calls::Resume.
  virtual bool MayReply(const NodeName& to) const = 0;
  // Runs `task` once after everything that is queued on the core executor now.
  virtual void Later(UniqueFunction<void()> task) = 0;
};

class Calls {
 public:
  static constexpr std::uint64_t kMaxQueuedBytes = 64u << 20;  // admitted and not answered
  static constexpr std::uint64_t kMaxHeldBytes = 16u << 20;
  static constexpr std::uint64_t kMaxEntryBytes =
      1u << 20;  // of calls in one log entry; a larger call stands alone
  static constexpr Duration kDefaultTimeout = std::chrono::seconds(10);
  static constexpr Duration kMaxTimeout = std::chrono::minutes(10);

  Calls(CallHost& host, Stats& stats, Random random);

  // A serialized v1::Call from `from`. `sink`, if set, gets the answer instead of Host::Reply.
  void Handle(const NodeName& from, std::string bytes, CallTicket::Sink sink = nullptr);

  // ---- told by the owner ----
  void OnOutcome(CallTicket ticket, bucket::CallOutcome outcome);
  // It will never be applied (NON_MASTER), or nobody here can tell (OUTCOME_UNKNOWN).
  void OnLost(CallTicket ticket, const Status& status);
  void OnRow(std::uint32_t bucket, const bucket::Row* row);
  void OnRebase();
  // From now on writes of this bucket wait, bounded in bytes and by their deadlines, those too that
  // come back from apply with TRANSFER_IS_IN_PROGRESS.
  void StartHold(std::uint32_t bucket) { held_[bucket]; }
  // Held calls are decided by what applied state says now: tried again here, or answered with where
  // the bucket is.
  void EndHold(std::uint32_t bucket);
  // Not the leader any more: queued and held writes are answered NON_MASTER.
  void OnLeadershipLost();
  // The peer has taken most of what waited for it.
  void Resume(const NodeName& peer);
  // The peer is gone: its reads that were put off are not run.
  void Forget(const NodeName& peer);
  void OnTick();  // deadlines of calls that wait, leases of scans

  std::uint64_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t held_bytes() const { return held_bytes_; }
  bool idle() const { return queued_bytes_ == 0; }
  const Scans& scans() const { return scans_; }

 private:
  void HandleWrite(CallTicket ticket, const v1::Call& call);
  void HandleRead(CallTicket ticket, v1::Call call);
  void Read(CallTicket ticket, const v1::Call& call);
  Status CheckLevel(const v1::Call& call) const;
  bool Hold(CallTicket& ticket);
  bool PutOff(CallTicket& ticket);
  void Flush();
  void Finish(const CallTicket& ticket, const Status& status, std::string result = {});

  CallHost& host_;
  Stats& stats_;
  Scans scans_;
  std::deque<CallTicket> writes_;  // admitted, not yet proposed
  bool flush_scheduled_ = false;
  std::map<std::uint32_t, std::deque<CallTicket>> held_;
  std::map<NodeName, std::deque<CallTicket>> put_off_;  // reads, by who asks
  std::uint64_t queued_bytes_ = 0;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace etalon::storage
