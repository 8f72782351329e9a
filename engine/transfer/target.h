// All transfers that arrive at this shard: steps 0 to 9 of docs/protocols/transfer.md at the
// target; and the answers to everybody's questions, which need nothing but the applied state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
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
    bool used = false;          // by a Start: kept so that a late Reserve does not make it again
  };
  // Numbers are of one leader of the source.
  using ReservationId = std::tuple<ShardUid, Term, std::uint64_t>;

  bool ready() const { return leader_ && state_.applied_term() == term_; }

  // target.cc: events
  void Handle(const RoleChanged& role);
  void Handle(const Message& message);
  void Handle(const Proposed& proposed);
  void Handle(const Applied&) {}
  void Handle(const Wake&) {}
  // Not for this machine.
  void Handle(const StartTransfer&) {}
  void Handle(const CancelOrders&) {}
  void Handle(const RefsReleased&) {}
  void Handle(const Suspicion&) {}
  void OnReserve(ShardUid from, Term term, const v1::Reserve& reserve);
  void OnStart(ShardUid from, Term term, const v1::Start& start);
  void OnChunk(ShardUid from, const v1::Chunk& chunk);
  void OnActivate(ShardUid from, const v1::Activate& activate);
  void OnQuestion(ShardUid from, const v1::Question& question);
  void OnAnswer(ShardUid from, const v1::Answer& answer);
  // Whether there is room for a transfer. `own` is its reservation, which does not count against
  // it.
  Status CheckRoom(ShardUid from, std::uint32_t level, const std::vector<bucket::BucketEpoch>& set,
                   std::uint64_t bytes, std::uint64_t limit, const ReservationId& own);

  // target_drive.cc: transfers from RECEIVING on
  void DriveArrivals();
  void Drive(const bucket::Incoming& x, Arrival& a);
  void DriveReceiving(const bucket::Incoming& x, Arrival& a);
  void ProposeChunks(const bucket::Incoming& x, Arrival& a);
  void Carry(TargetVerdict verdict, const bucket::Incoming& x, Arrival& a, std::string_view why);
  void AskSource(const bucket::Incoming& x);
  void DriveRebase();

  Token ProposeControl(v1::Control control);
  void ProposeStep(const TransferId& id, Arrival& a, v1::TransferStep::Kind kind,
                   bool only_unprepared = false);
  void SendProgress(const TransferId& id, v1::Progress::State state, std::uint64_t next_number = 0,
                    const Status& status = {});
  void SendProgressOf(const bucket::Incoming& x);
  void Emit(ShardUid to, v1::TransferMessage message);
  void WakeBy(SteadyTime when) { out_.wake_at = std::min(out_.wake_at, when); }

  const bucket::StateMachine& state_;
  std::function<std::uint64_t()> headroom_;
  RebaseGate& gate_;
  Random random_;
  TargetOptions options_;

  bool leader_ = false;
  Term term_;
  std::uint64_t next_number_ = 1;  // of tokens and questions
  PeerTerms peers_;
  AlertBook alerts_;
  std::map<ReservationId, Reservation> reservations_;
  std::map<TransferId, Arrival> arrivals_;
  struct Starting {
    Token token = 0;
    std::uint64_t buckets = 0;  // at our level
  };
  std::map<TransferId, Starting> starting_;  // RECEIVING is proposed
  Token rebase_ = 0;
  SteadyTime rebase_at_;  // not before

  SteadyTime now_;
  bool confirmed_ = false;
  Output out_;
};

}  // namespace etalon::transfer
