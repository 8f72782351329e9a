// All transfers that leave this shard: steps 0 to 9 of docs/protocols/transfer.md at the source,
// and the split tasks.
//
// One machine per replica; it acts while the replica leads. Which transfers exist, and how far they
// are, it reads from the applied state; of its own it has the captures and streams of the transfers
// that it opened itself, orders not opened yet, and what it waits for.
#pragma once

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
  struct Job;
  struct Transfer;
  struct SplitDriver;

  bool ready() const;
  std::uint32_t max_sending() const;
  bool Locked(const std::string& split_task) const;

  void OnRole(const RoleChanged& role);
  void OnMessage(const v1::TransferMessage& message);
  void OnReserveReply(const v1::TransferMessage& message);
  void OnProgress(const v1::TransferMessage& message);
  void OnAnswer(const v1::TransferMessage& message);
  void OnNotLeader(ShardUid peer);
  void OnProposed(const Proposed& proposed);
  void OnOrder(const StartTransfer& order);
  void OnCancel(const CancelOrders& cancel);
  void OnSuspicion(const Suspicion& suspicion);

  // Step 0.
  Status CheckOrder(const StartTransfer& order, const std::string& split_task) const;
  void DriveJobs();
  void SendReserve(Job& job);
  void FinishJob(std::map<std::uint64_t, Job>::iterator job, Status status);

  void DriveTransfers();
  void Drive(const bucket::Outgoing& x, Transfer& t);
  void DriveOpen(const bucket::Outgoing& x, Transfer& t);
  void DriveSending(const bucket::Outgoing& x, Transfer& t);
  void DriveSent(const bucket::Outgoing& x, Transfer& t);
  void Carry(SourceVerdict verdict, const bucket::Outgoing& x, Transfer& t, std::string_view why);
  void TryFreeze(const bucket::Outgoing& x, Transfer& t);
  void StopDraining(Transfer& t);
  void PumpStream(const bucket::Outgoing& x, Transfer& t);
  void Forget(const TransferId& id);
  void Release(Transfer& t, std::optional<ShardUid> moved);
  void Judge(const bucket::Outgoing& x, const v1::Answer& answer);
  void CheckDoubled(const v1::Answer& answer);

  void DriveSplits();
  void DriveSplit(const bucket::SplitTask& task, SplitDriver& driver);

  Token Proposal(v1::Control control);
  void ProposeStep(Transfer& t, const TransferId& id, v1::TransferStep::Kind kind,
                   std::string_view why = {});
  v1::TransferMessage Envelope(ShardUid to) const;
  void Emit(ShardUid to, v1::TransferMessage message, Lane lane = Lane::kControl);
  void Ask(ShardUid peer, const TransferId& id, std::uint8_t level,
           const std::vector<std::uint32_t>& buckets);
  void WakeBy(SteadyTime when);

  const bucket::StateMachine& state_;
  const store::Store& store_;
  RefCounter& refs_;
  RebaseGate& gate_;
  Random random_;
  SourceOptions options_;

  bool leader_ = false;
  Term term_;
  std::uint64_t next_number_ = 1;  // tokens, reservations and questions
  PeerTerms peers_;
  AlertBook alerts_;
  ByteBudget budget_;
  std::map<std::uint64_t, Job> jobs_;  // by reservation number
  std::map<TransferId, Transfer> transfers_;
  std::map<std::string, SplitDriver> splits_;
  std::map<BucketId, std::uint64_t> suspicions_;  // number of the question

  // Of the step that runs.
  SteadyTime now_;
  bool confirmed_ = false;
  Output out_;
};

}  // namespace etalon::transfer
