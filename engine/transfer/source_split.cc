// Split tasks: as long as a task is Preparing, its set has to be opened; from then on the task
// follows the transfer.
#include <utility>

#include "engine/transfer/source.h"
#include "engine/transfer/source_state.h"
#include "placement/split.h"

namespace etalon::transfer {
namespace {

std::string AlertKey(const std::string& task) { return "split " + task; }

}  // namespace

void Source::DriveSplits() {
  for (const auto& [name, task] : state_.splits()) {
    if (task.state == bucket::SplitState::kPreparing) {
      const auto [it, is_new] = splits_.try_emplace(name);
      if (is_new) it->second.since = it->second.try_at = now_;
      DriveSplit(task, it->second);
    } else if (splits_.erase(name) > 0) {
      alerts_.ClearAll(AlertKey(name), &out_);
    }
  }
}

void Source::DriveSplit(const bucket::SplitTask& task, SplitDriver& driver) {
  if (now_ - driver.since >= options_.stuck_after) {
    alerts_.Raise(kAlertSplitWaits, AlertKey(task.task),
                  "split task " + task.task + " does not begin: " + driver.waits_for, &out_);
  } else {
    WakeBy(driver.since + options_.stuck_after);
  }
  if (driver.rebase != 0 || driver.abort != 0) return;
  for (const auto& [number, job] : jobs_) {
    if (job.split_task == task.task) return;
  }
  if (now_ < driver.try_at) return WakeBy(driver.try_at);

  const auto try_later = [&](std::string why) {
    driver.waits_for = std::move(why);
    driver.try_at = now_ + driver.backoff.Next(random_);
    WakeBy(driver.try_at);
  };
  const auto give_up = [&](const Status& why) {
    v1::Control control;
    control.mutable_abort_split()->set_task(task.task);
    control.mutable_abort_split()->set_why(why.message());
    driver.abort = ProposeControl(std::move(control));
    driver.waits_for = why.message();
    driver.try_at = now_ + driver.backoff.Next(random_);
  };
  if (IsRemoved(state_.topology(), task.target)) {
    return give_up(NotFound("the target was removed from the topology"));
  }
  // Others end soon: an open split counts as a lock. Only then it is known what there is to halve.
  if (!state_.outgoing().empty() || !state_.incoming().empty()) {
    return try_later("other transfers of this shard have to end first");
  }
  std::vector<std::uint32_t> owned;
  std::vector<std::uint32_t> pinned;
  for (const auto& [bucket, row] : state_.rows()) {
    if (!bucket::IsWritable(row.status)) continue;
    owned.push_back(bucket);
    if (row.status == bucket::RowStatus::kPinned) pinned.push_back(bucket);
  }
  const Result<placement::SplitPlan> plan =
      placement::PlanSplit(owned, pinned, state_.level(), state_.bucket_count());
  if (!plan.ok()) return give_up(plan.status());
  if (plan->level > state_.level()) {
    v1::Control control;
    control.mutable_rebase()->set_level(plan->level);
    driver.rebase = ProposeControl(std::move(control));
    driver.waits_for = "the modulus to be doubled";
    driver.try_at = now_;
    return;
  }
  driver.waits_for = "the target to take the buckets";
  driver.try_at = now_ + driver.backoff.Next(random_);
  WakeBy(driver.try_at);
  StartTransfer order;
  order.target = task.target;
  order.level = plan->level;
  order.buckets = plan->move;
  AddJob(std::move(order), task.task);
}

void Source::SplitFailed(const std::string& task, const Status& why) {
  const auto it = splits_.try_emplace(task).first;
  if (it->second.since == SteadyTime()) it->second.since = now_;
  it->second.waits_for = why.ToString();
  it->second.try_at = now_ + it->second.backoff.Next(random_);
  WakeBy(it->second.try_at);
}

}  // namespace etalon::transfer
