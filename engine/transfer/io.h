// What the machines of a transfer (Source, Target) are told and what they ask for.
//
// Shape: `Output Step(SteadyTime now, const Input&)`. The owner carries the actions out in their
// order. It steps a machine
//   * for each message that IsForSource or IsForTarget names it for;
//   * for each proposal of this machine that was applied or is known not to be (Proposed), then
//   once after each group of
//     applied entries (Applied);
//   * at Output::wake_at, which replaces what earlier outputs said (Wake);
//   * when the replica begins or ends to lead (RoleChanged).
// The machines read the applied state while they are stepped and remember nothing of it that they
// could read again. On loss of leadership they forget everything; a new StateMachine (a follower's
// snapshot) needs new machines.
//
// Threads: the core executor. Nothing here reads a clock, sends or waits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "common/time.h"
#include "engine/bucket/rows.h"
#include "env/transport.h"
#include "etalon/v1/log.pb.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::transfer {

// Names a proposal of one machine; unique while the machine lives, never 0.
using Token = std::uint64_t;
// Names an order, chosen by who gives it, never 0.
using OrderId = std::uint64_t;

// ---- inputs
// -----------------------------------------------------------------------------------------------------

struct RoleChanged {
  bool leader = false;
  Term term;  // of this replica's shard
};

struct Message {
  v1::TransferMessage message;
};

// What became of a proposal.
struct Proposed {
  Token token = 0;
  bool applied =
      false;  // false: it is certain that it never will be (overload, ...), and `status` says why
  Status status;   // applied: the outcome of the command
  LogIndex index;  // applied: of its entry
  Term term;
};

struct Applied {};

struct Wake {};

// Source only: move these buckets. Answered by OrderOpened (if it gets so far) and OrderFinished,
// once each.
struct StartTransfer {
  OrderId order = 0;
  ShardUid target;
  std::uint8_t level = 0;              // of the numbers below; the shard's level
  std::vector<std::uint32_t> buckets;  // sorted; not empty
  // The order of the rebalancer it comes from; zero: by hand.
  SettingsVersion settings_version;
  ShardUid issuer;
  Term issuer_term;
  std::uint64_t limit = 0;  // v1::Reserve.limit
};

// Source only: gives up all transfers that came from the rebalancer, unless their last phase has
// begun.
struct CancelOrders {
  std::string why;
};

// Source only: RefCounter::Drained may have become true.
struct RefsReleased {};

// Source only: somebody claims that `peer` owns this bucket at an epoch above ours. The source
// asks, and judges the answer.
struct Suspicion {
  ShardUid peer;
  BucketId bucket;
};

struct Input {
  // Leadership was confirmed after this input arose: the lease is valid now, or a read index that
  // was begun after it has completed (and its index is applied). Questions and answers without it
  // are dropped, so the owner delivers these (NeedsConfirmation) only then; it costs nothing while
  // there is a lease.
  bool confirmed = false;
  std::variant<RoleChanged, Message, Proposed, Applied, Wake, StartTransfer, CancelOrders,
               RefsReleased, Suspicion>
      event;
};

// ---- outputs
// ----------------------------------------------------------------------------------------------------

struct Propose {
  Token token = 0;
  v1::Control control;
};

// To the leader of that shard. May be lost; the machines send again. Never to the own shard. When
// the owner learns that it sent to a replica that does not lead, it gives the NotLeader to the
// machine (both), besides correcting its table.
struct Send {
  ShardUid to;
  Lane lane = Lane::kControl;
  v1::TransferMessage message;
};

// From now on the owner holds writes to these buckets, bounded in bytes and by the calls'
// deadlines, those too that come back from apply with TRANSFER_IS_IN_PROGRESS. Reads go on.
struct HoldWrites {
  TransferId id;
  std::uint8_t level = 0;
  std::vector<std::uint32_t> buckets;
};

// Ends a HoldWrites of the same id. With `moved` the calls are answered WRONG_BUCKET with the
// destination and, for each bucket, its epoch there (StateMachine::CheckWrite says so by then);
// without they are tried again.
struct ReleaseWrites {
  TransferId id;
  std::optional<ShardUid> moved;
};

struct OrderOpened {
  OrderId order = 0;
  TransferId id;
};

// OK: the target is known to own the buckets. Else nothing moved, and `status` says why; a refusal
// by the target has the target's reason (TOO_MANY_RECEIVING, REPLICASET_IS_LOCKED,
// NO_SPACE_FOR_TRANSFER, ...). `id` is empty if it was refused before OPEN, which costs nothing.
struct OrderFinished {
  OrderId order = 0;
  TransferId id;
  Status status;
  std::uint64_t bytes = 0;  // sent, each chunk counted once
};

// The state of an alert changed, or its text did.
struct Alert {
  std::string_view code;  // one of the constants below
  std::string key;        // what it is about: a transfer, a bucket, a task
  bool raised = false;    // false: cleared
  std::string text;
};

inline constexpr std::string_view kAlertLost =
    "LOST_BUCKETS";  // SENT here, and the target knows nothing of it
inline constexpr std::string_view kAlertHold =
    "HELD_TRANSFER";  // received data that nobody may use or delete
inline constexpr std::string_view kAlertDoubled = "DOUBLED_BUCKETS";  // QUARANTINED rows
inline constexpr std::string_view kAlertStuck = "STUCK_TRANSFER";     // waits for a peer for long
inline constexpr std::string_view kAlertSplitWaits =
    "STUCK_TRANSFER";  // a split task does not get on

using Action =
    std::variant<Propose, Send, HoldWrites, ReleaseWrites, OrderOpened, OrderFinished, Alert>;

struct Output {
  std::vector<Action> actions;
  SteadyTime wake_at = SteadyTime::max();
  // Something is to be judged and leadership is not confirmed: the owner steps Wake with
  // `confirmed` once it is, by a read index if there is no lease.
  bool want_confirmation = false;
};

// ---- routing
// ----------------------------------------------------------------------------------------------------

// Which machine of the shard `self` a message is for. NotLeader is for both; an empty message for
// none.
bool IsForSource(const v1::TransferMessage& message, ShardUid self);
bool IsForTarget(const v1::TransferMessage& message, ShardUid self);
bool NeedsConfirmation(const v1::TransferMessage& message);

}  // namespace etalon::transfer
