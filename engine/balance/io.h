// What the machines of the rebalancer (Rebalancer, OrderTaker) are told and what they ask for. Same
// shape and same duties of the owner as engine/transfer/io.h.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "engine/transfer/io.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::balance {

using transfer::Alert;
using transfer::Applied;
using transfer::CancelOrders;
using transfer::OrderFinished;
using transfer::OrderOpened;
using transfer::Propose;
using transfer::Proposed;
using transfer::RoleChanged;
using transfer::StartTransfer;
using transfer::Wake;

struct Message {
  v1::BalanceMessage message;
};

// OrderTaker: besides the common ones, OrderOpened and OrderFinished for its own orders
// (IsOwnOrder), and Proposed.
using Input =
    std::variant<RoleChanged, Message, Applied, Wake, Proposed, OrderOpened, OrderFinished>;

// To the leader of that shard, the own one included: the owner hands such a message to its own
// machines, later.
struct Send {
  ShardUid to;
  v1::BalanceMessage message;
};

// StartTransfer and CancelOrders go to this replica's Source.
using Action = std::variant<Send, StartTransfer, CancelOrders, Propose, Alert>;

struct Output {
  std::vector<Action> actions;
  SteadyTime wake_at = SteadyTime::max();
};

inline constexpr std::string_view kAlertAllWeightsZero = "ALL_WEIGHTS_ZERO";
inline constexpr std::string_view kAlertAllLocked = "ALL_SHARDS_LOCKED";
inline constexpr std::string_view kAlertUnreachable = "REBALANCER_SHARD_UNREACHABLE";

// Orders of the OrderTaker have this bit; orders by hand do not.
inline constexpr transfer::OrderId kOwnOrders = transfer::OrderId{1} << 63;
constexpr bool IsOwnOrder(transfer::OrderId order) { return (order & kOwnOrders) != 0; }

// BalanceQuery and BalanceOrder are for the OrderTaker, BalanceReport and BalanceResult for the
// Rebalancer, NotLeader for neither.
bool IsForOrderTaker(const v1::BalanceMessage& message);
bool IsForRebalancer(const v1::BalanceMessage& message);

}  // namespace etalon::balance
