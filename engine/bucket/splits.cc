// Split tasks: docs/protocols/split.md has the table. A task follows the transfer that carries its
// set.
#include <algorithm>

#include "engine/bucket/commands.h"

namespace etalon::bucket {
namespace {

constexpr std::size_t kMaxTaskBytes = 128;

bool IsFenced(SplitState state) {
  return state == SplitState::kFencing || state == SplitState::kCommitted ||
         state == SplitState::kDone;
}

Status TaskAborted(const SplitTask& task) {
  return FailedPrecondition(
      Reason::kSplitAborted,
      "split task " + task.task + " was aborted (" + task.why + "); use a new task ID",
      {.text = task.task});
}

// What another task, or an order that the task does not know, hears.
Status Fenced(const SplitTask& task) {
  if (!IsFenced(task.state)) {
    return FailedPrecondition(Reason::kTransferPending,
                              "split task " + task.task + " is open on this shard",
                              {.text = task.task});
  }
  const LogIndex fence = task.state == SplitState::kFencing ? task.fence : task.t_switch;
  return FailedPrecondition(Reason::kShardFenced,
                            "split task " + task.task + " has fenced this shard at index " +
                                std::to_string(fence.value()),
                            {.number = fence.value(), .text = task.task});
}

}  // namespace

Status Commands::BeginSplit(const v1::Split& command) {
  if (command.task().empty() || command.task().size() > kMaxTaskBytes) {
    return InvalidArgument("a split needs a task ID of 1 to " + std::to_string(kMaxTaskBytes) +
                           " bytes");
  }
  const ShardUid target(command.target());
  if (const auto it = state_.splits().find(command.task()); it != state_.splits().end()) {
    if (it->second.target != target) {
      return InvalidArgument("split task " + command.task() + " has another target");
    }
    return it->second.state == SplitState::kAborted ? TaskAborted(it->second) : OkStatus();
  }
  if (const SplitTask* open = state_.OpenSplit()) return Fenced(*open);
  if (state_.retired()) {
    return FailedPrecondition(Reason::kShardRetired, "this shard is retired");
  }
  if (!state_.topology().complete()) {
    return FailedPrecondition(Reason::kCollectionIncomplete,
                              "not every shard is formed; nothing moves before that");
  }
  ETALON_RETURN_IF_ERROR(CheckTarget(target));
  ETALON_RETURN_IF_ERROR(CheckDivisible());
  state_.SetSplit({.task = command.task(), .target = target});
  return OkStatus();
}

// Of n buckets (two halves each if there is only one) the first ceil(n/2) stay; pinned ones stay
// and count there.
Status Commands::CheckDivisible() const {
  const std::uint64_t pinned = state_.CountOf(RowStatus::kPinned);
  const std::uint64_t owned =
      pinned + state_.CountOf(RowStatus::kActive) + state_.CountOf(RowStatus::kSending);
  if (owned == 0) {
    return FailedPrecondition(Reason::kUnknownBuckets, "this shard owns no bucket to be split off");
  }
  if (pinned == owned) {
    return FailedPrecondition(Reason::kBucketIsPinned,
                              "every bucket of this shard is pinned; unpin what may go");
  }
  if (owned == 1 && state_.modulus() * 2 > kModulusCap) {
    return FailedPrecondition(
        Reason::kModulusCap, "this shard owns one bucket, and the modulus cannot be doubled over " +
                                 std::to_string(kModulusCap));
  }
  return OkStatus();
}

Status Commands::AbortSplit(const v1::AbortSplit& command) {
  const auto it = state_.splits().find(command.task());
  if (it == state_.splits().end()) {
    return NotFound("this shard knows no split task " + command.task());
  }
  SplitTask task = it->second;
  switch (task.state) {
    case SplitState::kAborted:
      return OkStatus();
    case SplitState::kCommitted:
    case SplitState::kDone:
      return FailedPrecondition(Reason::kShardFenced,
                                "split task " + task.task + " is committed since index " +
                                    std::to_string(task.t_switch.value()),
                                {.number = task.t_switch.value(), .text = task.task});
    case SplitState::kPreparing:
      break;
    case SplitState::kCopying:
    case SplitState::kFencing:
      Abort(task.transfer, command.why());
      break;
  }
  task.state = SplitState::kAborted;
  task.transfer = {};
  task.fence = {};
  task.why = command.why();
  state_.SetSplit(std::move(task));
  return OkStatus();
}

Status Commands::CheckSplitOpens(const v1::Open& command) const {
  const SplitTask* open = state_.OpenSplit();
  if (command.split_task().empty()) {
    if (open == nullptr) return OkStatus();
    return FailedPrecondition(
        Reason::kReplicasetIsLocked,
        "split task " + open->task + " is open: this shard sends nothing else",
        {.text = open->task});
  }
  const auto it = state_.splits().find(command.split_task());
  if (it == state_.splits().end()) {
    return NotFound("this shard knows no split task " + command.split_task());
  }
  const SplitTask& task = it->second;
  if (task.state == SplitState::kAborted) return TaskAborted(task);
  if (task.state != SplitState::kPreparing || task.target.value() != command.target()) {
    return Fenced(task);
  }
  return OkStatus();
}

void Commands::SplitOpened(const Outgoing& transfer) {
  if (transfer.split_task.empty()) return;
  SplitTask task = state_.splits().at(transfer.split_task);
  task.state = SplitState::kCopying;
  task.transfer = transfer.id;
  state_.SetSplit(std::move(task));
}

void Commands::SplitSending(const Outgoing& transfer) {
  if (transfer.split_task.empty()) return;
  SplitTask task = state_.splits().at(transfer.split_task);
  task.state = SplitState::kFencing;
  task.fence = transfer.sending_index;
  state_.SetSplit(std::move(task));
}

void Commands::SplitSent(const Outgoing& transfer) {
  if (transfer.split_task.empty()) return;
  SplitTask task = state_.splits().at(transfer.split_task);
  task.state = SplitState::kCommitted;
  task.t_switch = transfer.sending_index;
  task.fence = {};
  state_.SetSplit(std::move(task));
}

void Commands::SplitAborted(const Outgoing& transfer, bool frozen, std::string_view why) {
  if (transfer.split_task.empty()) return;
  SplitTask task = state_.splits().at(transfer.split_task);
  // While copying, another transfer may try again. A fence that was taken back is not put up again
  // under the same ID: whoever saw its index would take it for the switch.
  task.state = frozen ? SplitState::kAborted : SplitState::kPreparing;
  if (frozen) task.why = why;
  task.transfer = {};
  task.fence = {};
  state_.SetSplit(std::move(task));
}

void Commands::CloseSplits(const v1::Settings& settings) {
  for (const std::string& name : settings.closed_splits()) {
    const auto it = state_.splits().find(name);
    if (it == state_.splits().end() || it->second.state != SplitState::kCommitted) continue;
    SplitTask task = it->second;
    task.state = SplitState::kDone;
    state_.SetSplit(std::move(task));
  }
}

}  // namespace etalon::bucket
