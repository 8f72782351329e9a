#include "operator/plan/conditions.h"

#include <algorithm>

namespace etalon::controller {

const Condition* Report::Find(std::string_view type) const {
  const auto it = std::find_if(conditions.begin(), conditions.end(),
                               [&](const Condition& c) { return c.type == type; });
  return it == conditions.end() ? nullptr : &*it;
}

std::string_view StatusName(ConditionStatus status) {
  switch (status) {
    case ConditionStatus::kFalse:
      return "False";
    case ConditionStatus::kTrue:
      return "True";
    case ConditionStatus::kUnknown:
      return "Unknown";
  }
  return "Unknown";
}

void KeepSince(const Report& last, SteadyTime now, Report* report) {
  for (Condition& condition : report->conditions) {
    const Condition* before = last.Find(condition.type);
    condition.since = before != nullptr && before->status == condition.status ? before->since : now;
  }
  for (Wait& wait : report->waits) {
    const auto before = std::find_if(last.waits.begin(), last.waits.end(),
                                     [&](const Wait& w) { return w.key == wait.key; });
    wait.since = before == last.waits.end() ? now : before->since;
  }
}

}  // namespace etalon::controller
