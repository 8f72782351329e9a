// All transfers that arrive at this shard: steps 0 to 9 of docs/protocols/transfer.md at the
// target; and the answers to everybody's questions, which need nothing but the applied state.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "engine/bucket/state_machine.h"
#include "engine/transfer/io.h"
#include "engine/transfer/peers.h"
#include "engine/transfer/resolve.h"

namespace etalon::transfer {

struct TargetOptions {
  Duration reservation_life = std::chrono::seconds(5);
  Duration ask_after = std::chrono::seconds(1);  // RECEIVING without progress
  Duration ask_cap = std::chrono::seconds(10);   // longest wait between two questions
  Duration stuck_after = std::chrono::seconds(30);
  std::size_t queue_bytes = 2 << 20;  // chunks of one transfer that wait for the log
  std::size_t chunks_in_log = 4;      // proposed and not applied yet, for each transfer
  std::size_t chunk_bytes_in_log = 1 << 20;
};

class Target {
 public:
  // `headroom` tells how many bytes more the disk can take. Everything outlives the machine; `gate`
  // is shared with this replica's Source.
  Target(const bucket::StateMachine& state, std::function<std::uint64_t()> headroom,
         RebaseGate& gate, Random random, TargetOptions options = {});
  ~Target();

  Output Step(SteadyTime now, const Input& input);

  std::vector<v1::TransferInfo> Describe() const;

 private:
  struct Arrival;
  struct Reservation {
    SteadyTime expires;
    std::uint64_t bytes = 0;
    std::uint64_t buckets = 0;  // at our level
  };
  struct Pending {  // what a proposal was for
    enum class Kind : std::uint8_t { kReceiving, kChunk, kActivate, kOther } kind = Kind::kOther;
    TransferId id;
    std::uint64_t chunk = 0;
    std::size_t bytes = 0;
  };

  bool ready() const;
  void OnRole(const RoleChanged& role);
  void OnMessage(const v1::TransferMessage& message);
  void OnReserve(const v1::TransferMessage& message);
  void OnStart(const v1::TransferMessage& message);
  void OnChunk(const v1::TransferMessage& message);
  void OnActivate(const v1::TransferMessage& message);
  void OnQuestion(const v1::TransferMessage& message);
  void OnAnswer(const v1::TransferMessage& message);
  void OnProposed(const Proposed& proposed);

  // Lock, slots, head-room, level, and whether a bucket is here already. `bytes` 0: unknown.
  Status CheckRoom(ShardUid from, std::uint8_t level, const std::vector<bucket::BucketEpoch>& set,
                   std::uint64_t bytes, std::uint64_t limit,
                   const std::pair<ShardUid, std::uint64_t>& reservation);
  void DriveArrivals();
  void Drive(const bucket::Incoming& x, Arrival& a);
  void ProposeChunks(const bucket::Incoming& x, Arrival& a);
  void Carry(TargetVerdict verdict, const bucket::Incoming& x, Arrival& a, std::string_view why);
  void AskSource(const bucket::Incoming& x, Arrival& a);
  void DriveRebase();

  Token Proposal(v1::Control control, Pending pending);
  void ProposeStep(const TransferId& id, Arrival& a, v1::TransferStep::Kind kind,
                   bool only_unprepared);
  void SendProgress(const TransferId& id, v1::Progress::State state, std::uint64_t next_number,
                    const Status& status);
  void SendProgressOf(const bucket::Incoming& x, Arrival& a);
  void Emit(ShardUid to, v1::TransferMessage message);
  void WakeBy(SteadyTime when);

  const bucket::StateMachine& state_;
  std::function<std::uint64_t()> headroom_;
  RebaseGate& gate_;
  Random random_;
  TargetOptions options_;

  bool leader_ = false;
  Term term_;
  std::uint64_t next_number_ = 1;
  PeerTerms peers_;
  AlertBook alerts_;
  std::map<std::pair<ShardUid, std::uint64_t>, Reservation> reservations_;
  std::map<TransferId, Arrival> arrivals_;
  std::map<TransferId, Token> starting_;  // RECEIVING proposed
  std::map<Token, Pending> pending_;
  Token rebase_ = 0;

  SteadyTime now_;
  bool confirmed_ = false;
  Output out_;
};

}  // namespace etalon::transfer
