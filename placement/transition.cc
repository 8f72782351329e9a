#include "placement/transition.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/check.h"
#include "placement/shard_by.h"

namespace etalon::placement {

namespace {

struct Entry {
  ShardState state = ShardState::kNormal;
  Residues residues;  // sorted; empty for Splitting
  bool operator==(const Entry&) const = default;
};

// A table without what does not matter: order, names left out, residues of fenced shards, the
// classic rule, dropped shards.
struct View {
  std::uint64_t modulus = 0;
  std::map<std::string, Entry> shards;
  bool operator==(const View&) const = default;
};

Result<View> ViewOf(const DescribeAnswer& answer, std::uint64_t max_modulus) {
  ETALON_ASSIGN_OR_RETURN(const RoutingTable table, RoutingTable::Derive(answer, max_modulus));
  View view{table.modulus(), {}};
  for (std::size_t i = 0; i < answer.infos.size(); ++i) {
    if (answer.infos[i].state == ShardState::kDropped) continue;
    view.shards[answer.shard_names[i]].state = answer.infos[i].state;
  }
  for (const Claim& claim : table.shards()) view.shards[claim.shard].residues = claim.residues;
  return view;
}

Result<View> Rebased(const View& view, std::uint64_t modulus, std::uint64_t max_modulus) {
  View rebased{modulus, {}};
  for (const auto& [name, entry] : view.shards) {
    ETALON_ASSIGN_OR_RETURN(Residues residues,
                            RebaseResidues(entry.residues, view.modulus, modulus, max_modulus));
    rebased.shards[name] = {entry.state, std::move(residues)};
  }
  return rebased;
}

// What the task makes of the current table; an error when it cannot be applied to it.
Result<View> Apply(const View& current, const TableTask& task, std::uint64_t max_modulus) {
  if (task.kind == TaskKind::kRebase) return Rebased(current, task.modulus, max_modulus);

  const auto source = current.shards.find(task.source);
  if (source == current.shards.end()) {
    return InvalidArgument("the source '" + task.source + "' is not listed");
  }
  if (task.kind == TaskKind::kAdopt) {
    View next = current;
    for (const Claim& target : task.targets) {
      const auto it = next.shards.find(target.shard);
      if (it == next.shards.end()) {
        return InvalidArgument("the target '" + target.shard + "' is not listed");
      }
      it->second.state = ShardState::kNormal;  // one that is Normal already: a half-done adoption
    }
    if (source->second.state == ShardState::kSplitting) next.shards.erase(task.source);
    return next;
  }
  if (source->second.state != ShardState::kNormal) {
    return InvalidArgument("the source '" + task.source + "' is not Normal");
  }
  ETALON_ASSIGN_OR_RETURN(View next, Rebased(current, task.modulus, max_modulus));
  Entry& split = next.shards[task.source];
  split.residues = task.keeps;
  std::sort(split.residues.begin(), split.residues.end());
  if (task.keeps.empty()) split.state = ShardState::kSplitting;
  for (const Claim& target : task.targets) {
    Entry created{ShardState::kCreating, target.residues};
    std::sort(created.residues.begin(), created.residues.end());
    if (!next.shards.emplace(target.shard, std::move(created)).second) {
      return InvalidArgument("the target '" + target.shard + "' is listed already");
    }
  }
  return next;
}

int Progress(ShardState state) {
  switch (state) {
    case ShardState::kCreating:
      return 0;
    case ShardState::kNormal:
      return 1;
    case ShardState::kSplitting:
      return 2;
    case ShardState::kDropped:
      return 3;
  }
  CheckFailed(__FILE__, __LINE__, "a state that the derivation lets pass");
}

// Why `to` cannot come after `from` by any number of splits, adoptions and rebases; empty when it
// can. Splits hand residues to new shards only, so a shard that exists never gains one; and a shard
// that left the list never comes back.
std::string Obstacle(const View& from, const View& to, const View& current,
                     std::uint64_t max_modulus) {
  const auto base = Rebased(from, to.modulus, max_modulus);
  if (!base.ok()) return base.status().message();
  for (const auto& [name, entry] : to.shards) {
    const auto it = base->shards.find(name);
    if (it == base->shards.end()) {
      if (current.shards.contains(name))
        return "the shard '" + name + "' should have left the list";
      continue;
    }
    const Entry& old = it->second;
    if (Progress(entry.state) < Progress(old.state)) {
      return "the shard '" + name + "' would go back from " +
             std::string(ShardStateName(old.state)) + " to " +
             std::string(ShardStateName(entry.state));
    }
    if (!std::includes(old.residues.begin(), old.residues.end(), entry.residues.begin(),
                       entry.residues.end())) {
      return "the shard '" + name + "' would gain residues that it did not own";
    }
    if (entry.state == ShardState::kCreating && entry.residues != old.residues) {
      return "the shard '" + name + "' would lose residues while it is Creating";
    }
  }
  return "";
}

// Of what `to` has beyond `from`, the first shard by name.
std::string FirstDifference(const View& from, const View& to, std::uint64_t max_modulus) {
  const auto base = Rebased(from, to.modulus, max_modulus);
  ETALON_CHECK(base.ok(), "judged as ahead without a common modulus");
  for (const auto& [name, entry] : to.shards) {
    const auto it = base->shards.find(name);
    if (it == base->shards.end() || it->second != entry) return "the shard '" + name + "'";
  }
  for (const auto& [name, entry] : base->shards) {
    if (!to.shards.contains(name)) return "the shard '" + name + "'";
  }
  return "the modulus";
}

}  // namespace

Judgement JudgeTransition(const DescribeAnswer& current, const DescribeAnswer& proposed,
                          const TableTask& task, std::uint64_t max_modulus) {
  const auto refuse = [](std::string why) { return Judgement{Verdict::kRefuse, std::move(why)}; };

  const auto now = ViewOf(current, max_modulus);
  if (!now.ok()) return refuse("the current table is broken: " + now.status().message());
  const auto next = ViewOf(proposed, max_modulus);
  if (!next.ok()) return refuse("the proposed table is broken: " + next.status().message());
  for (std::size_t i = 0; i < proposed.infos.size(); ++i) {
    if (proposed.infos[i].state == ShardState::kDropped) {
      return refuse("the shard '" + proposed.shard_names[i] +
                    "' is listed as Dropped: leave it out instead");
    }
  }
  if (!proposed.shard_by.empty()) {
    if (const auto field = ParseShardBy(proposed.shard_by); !field.ok())
      return refuse(field.status().message());
    if (!current.shard_by.empty() && proposed.shard_by != current.shard_by) {
      return refuse("the collection is sharded by " + current.shard_by +
                    ", which can never change");
    }
  }

  const bool fills_shard_by = current.shard_by.empty() && !proposed.shard_by.empty();
  if (*now == *next && current.modulus == proposed.modulus && !fills_shard_by) {
    return {Verdict::kAlreadyApplied, "the table is as proposed already"};
  }
  if (proposed.modulus == 0) {
    return refuse(current.modulus == 0 ? "the shards of a collection that was never split change "
                                         "by a split only, which sets a modulus"
                                       : "a collection that was split cannot go back to modulus 0");
  }

  const auto expected = Apply(*now, task, max_modulus);
  if (expected.ok()) {
    if (*expected == *next) return {Verdict::kApply, ""};
    if (task.kind == TaskKind::kAdopt && next->modulus != expected->modulus) {
      return refuse("an adoption may not change the modulus");
    }
  }
  const View& base = expected.ok() ? *expected : *now;
  if (const std::string why = Obstacle(base, *next, *now, max_modulus); !why.empty())
    return refuse(why);
  if (!expected.ok() && *now == *next) return refuse(expected.status().message());
  return {Verdict::kAhead,
          FirstDifference(base, *next, max_modulus) +
              " is ahead of this copy of the table: read the table again, then retry"};
}

}  // namespace etalon::placement
