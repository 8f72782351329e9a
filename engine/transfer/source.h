// All transfers that leave this shard: steps 0 to 9 of docs/protocols/transfer.md at the source,
// and the split tasks.
//
// One machine per replica; it acts while the replica leads. Which transfers exist, and how far they
// are, it reads from the applied state; of its own it has the captures and streams of the transfers
// that it opened itself, orders not opened yet, and what it waits for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "engine/transfer/io.h"
#include "engine/transfer/peers.h"
#include "engine/transfer/rate.h"
#include "engine/transfer/resolve.h"
#include "engine/transfer/stream.h"

namespace etalon::transfer {

// Stored functions that may still write to a bucket hold references. Local to the leader,
// implemented by the owner.
class RefCounter {
 public:
  virtual ~RefCounter() = default;
  // No new references on these buckets until OpenRw. The owner sends RefsReleased when the last one
  // goes.
  virtual void CloseRw(std::uint8_t level, const std::vector<std::uint32_t>& buckets) = 0;
  virtual bool Drained(std::uint8_t level, const std::vector<std::uint32_t>& buckets) const = 0;
  virtual void OpenRw(std::uint8_t level, const std::vector<std::uint32_t>& buckets) = 0;
};

struct SourceOptions {
  Duration reserve_timeout =
      std::chrono::seconds(3);  // the target does not answer a Reserve at all
  Duration progress_timeout = std::chrono::seconds(10);  // an open transfer without progress
  Duration freeze_timeout = std::chrono::seconds(1);     // SENDING
  Duration drain_timeout = std::chrono::milliseconds(500);
  int drain_attempts = 5;
  Duration stuck_after = std::chrono::seconds(30);  // then the alert
  Duration hold_after_sent =
      std::chrono::seconds(1);  // held writes of a SENT that nobody confirms are let go
  StreamOptions stream;
};

class Source {
 public:
  // Everything outlives the machine. `gate` is shared with this replica's Target.
  Source(const bucket::StateMachine& state, const store::Store& store, RefCounter& refs,
         RebaseGate& gate, Random random, SourceOptions options = {});
  ~Source();

  Output Step(SteadyTime now, const Input& input);

  // From Observer, inside Apply, on the leader.
  void OnOpened(const bucket::Outgoing& transfer);
  void OnDataKey(std::uint32_t bucket, std::string_view store_key);

  // Transfers that use a send slot: before SENT, orders that are not opened yet included.
  std::uint32_t slots_in_use() const;
  // Outgoing transfers with phase and what they wait for, for Info.
  std::vector<v1::TransferInfo> Describe() const;

 private:
  // An order without OPEN yet: it costs nobody anything.
  struct Job {
    StartTransfer order;
    std::string split_task;
    std::vector<bucket::BucketEpoch> set;
    std::uint64_t bytes = 0;
    SteadyTime give_up_at;
    SteadyTime send_at;
    Backoff backoff;
    Token open = 0;  // proposed
  };
  struct Transfer;
  struct SplitDriver;
  using Jobs = std::map<std::uint64_t, Job>;

  bool ready() const { return leader_ && state_.applied_term() == term_; }
  bool Locked(std::string_view split_task) const;
  Duration MaxFreeze() const;

  // source.cc: events and orders
  void Handle(const RoleChanged& role);
  void Handle(const Message& message);
  void Handle(const Proposed& proposed);
  void Handle(const StartTransfer& order);
  void Handle(const CancelOrders& cancel);
  void Handle(const Suspicion& suspicion);
  void Handle(const Applied&) {}
  void Handle(const Wake&) {}
  void Handle(const RefsReleased&) {}
  void OnReserveReply(ShardUid from, const v1::ReserveReply& reply);
  void OnProgress(ShardUid from, const v1::Progress& progress);
  void OnAnswer(ShardUid from, const v1::Answer& answer);
  void OnNotLeader(ShardUid peer);
  Status CheckOrder(const StartTransfer& order, std::string_view split_task,
                    const Job* self) const;  // step 0
  void AddJob(StartTransfer order, std::string split_task);
  void DriveJobs();
  Jobs::iterator FinishJob(Jobs::iterator job, Status status);

  // source_drive.cc: transfers from OPEN on
  void DriveTransfers();
  void Drive(const bucket::Outgoing& x, Transfer& t);
  void DriveOpen(const bucket::Outgoing& x, Transfer& t);
  void DriveSending(const bucket::Outgoing& x, Transfer& t);
  void DriveSent(const bucket::Outgoing& x, Transfer& t);
  void ContinueCopy(const bucket::Outgoing& x, Transfer& t);
  void PumpStream(const bucket::Outgoing& x, Transfer& t, bool may_begin_round);
  void StopDraining(Transfer& t);
  void AskAboutSent(const bucket::Outgoing& x, Transfer& t);
  void JudgeRemoved(const bucket::Outgoing& x, Transfer& t);
  void Release(const TransferId& id, Transfer& t, std::optional<ShardUid> moved);
  void Vanished(const TransferId& id, Transfer& t);
  // Asks that shard whether it owns them at a later epoch.
  void Suspect(ShardUid peer, std::uint8_t level, const std::vector<std::uint32_t>& buckets);
  void CheckDoubled(const v1::Answer& answer);

  // source_split.cc
  void DriveSplits();
  void DriveSplit(const bucket::SplitTask& task, SplitDriver& driver);
  void SplitFailed(const std::string& task, const Status& why);

  Token ProposeControl(v1::Control control);
  void ProposeStep(const TransferId& id, Transfer& t, v1::TransferStep::Kind kind,
                   std::string_view why = {});
  void Emit(ShardUid to, v1::TransferMessage message, Lane lane = Lane::kControl);
  void SendStart(const bucket::Outgoing& x, const Transfer& t);
  void SendActivate(const bucket::Outgoing& x);
  std::uint64_t Ask(ShardUid peer, const TransferId* id, std::uint8_t level,
                    const std::vector<std::uint32_t>& buckets);
  void WakeBy(SteadyTime when) { out_.wake_at = std::min(out_.wake_at, when); }

  const bucket::StateMachine& state_;
  const store::Store& store_;
  RefCounter& refs_;
  RebaseGate& gate_;
  Random random_;
  SourceOptions options_;

  bool leader_ = false;
  Term term_;
  std::uint64_t next_number_ = 1;  // of tokens, reservations and questions
  PeerTerms peers_;
  AlertBook alerts_;
  ByteBudget budget_;
  Jobs jobs_;  // by the number of their reservation
  std::map<TransferId, Transfer> transfers_;
  std::map<std::string, SplitDriver> splits_;
  std::map<std::uint64_t, ShardUid> suspicions_;  // questions that are about no transfer

  // Of the step that runs.
  SteadyTime now_;
  bool confirmed_ = false;
  Output out_;
};

}  // namespace etalon::transfer
