// The life of a shard: formed once, its members changed one at a time through its log, retired,
// deleted.
#include <fmt/format.h>

#include <algorithm>

#include "operator/plan/names.h"
#include "operator/plan/planner.h"

namespace etalon::controller {
namespace {

const v1::MemberInfo* FindMember(const v1::InfoResponse& leader, MemberId member) {
  for (const v1::MemberInfo& m : leader.members()) {
    if (MemberId(m.member()) == member) return &m;
  }
  return nullptr;
}

const v1::MemberProgress* FindProgress(const v1::InfoResponse& leader, std::uint64_t member) {
  for (const v1::MemberProgress& p : leader.progress()) {
    if (p.member() == member) return &p;
  }
  return nullptr;
}

bool Answers(const v1::InfoResponse& leader, const v1::MemberInfo& member) {
  if (member.member() == leader.member()) return true;
  const v1::MemberProgress* progress = FindProgress(leader, member.member());
  return progress != nullptr && progress->recent();
}

// Without it, the voters that answer are still a majority of those that remain.
bool QuorumSurvives(const v1::InfoResponse& leader, std::uint64_t without) {
  std::size_t voters = 0;
  std::size_t answer = 0;
  for (const v1::MemberInfo& m : leader.members()) {
    if (m.learner() || m.member() == without) continue;
    ++voters;
    answer += Answers(leader, m);
  }
  return voters > 0 && answer * 2 > voters;
}

}  // namespace

// ---- forming
// --------------------------------------------------------------------------------------------------------------

void Planner::PlanForms() {
  if (view_.settings() == nullptr) return;
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr) continue;
    if (shard.form == nullptr) {
      // What is to go is not formed any more, and what serves was formed before there was a record.
      if (shard.role != Role::kKeep || shard.leader != nullptr || shard.settings == nullptr)
        continue;
      v1::FormRequest form;
      bool blank = true;
      for (const v1::ReplicaInfo& declared : shard.declared->replicas()) {
        const ReplicaView* replica = shard.Find(declared.name());
        if (replica == nullptr || !replica->unformed()) {
          blank = false;
          break;
        }
        v1::MemberInfo* member = form.add_members();
        member->set_member(replica->info->member());
        member->set_name(declared.name());
      }
      if (!blank) {
        WaitFor("form " + shard.name,
                fmt::format("waits for every replica of {} to answer that it is blank", shard.name),
                "", "then the shard is formed");
        continue;
      }
      form.set_collection(seen_.collection.value());
      form.set_shard(shard.uid.value());
      *form.mutable_topology() = *view_.topology();
      *form.mutable_settings() = *view_.settings();
      *form.mutable_ranges() = shard.declared->initial();
      Do(CreateForm{std::move(form)});
      continue;
    }
    Form action{shard.uid, {}};
    for (const v1::MemberInfo& member : shard.form->members()) {
      const ReplicaView* replica = shard.Find(member.name());
      if (replica == nullptr || !replica->unformed()) continue;
      if (replica->info->member() == member.member()) {
        // Its log has gone on without it: it joins like any blank disk.
        if (shard.leader != nullptr &&
            FindMember(*shard.leader, MemberId(member.member())) == nullptr)
          continue;
        action.replicas.push_back(member.name());
      } else if (shard.leader == nullptr && WhyNoMajority(shard).empty()) {
        WaitFor("form " + shard.name,
                fmt::format("{} has another disk than the one that {} is formed with",
                            member.name(), shard.name),
                "", "it joins once a majority of the first disks is formed");
      }
    }
    if (action.replicas.empty()) continue;
    std::string who;
    if (!view_.RoutersKnow(shard.form->topology().version(), &who)) {
      WaitFor("routers", fmt::format("waits for {} before {} is formed", who, shard.name), "",
              "routers first, then storages");
      continue;
    }
    Do(std::move(action));
  }
}

// ---- members
// --------------------------------------------------------------------------------------------------------------

void Planner::PlanMembers() {
  for (const ShardView& shard : view_.shards()) {
    if (shard.declared == nullptr || shard.role == Role::kRetired) continue;
    PlanLostDisks(shard);
    if (shard.leader == nullptr) continue;
    PlanMember(shard);
    StopRemovedReplicas(shard);
  }
}

// At most one change at a time. True when there is one to wait for.
bool Planner::PlanMember(const ShardView& shard) {
  const v1::InfoResponse& leader = *shard.leader;
  const auto wanted = [&](const std::string& name) {
    return ReplicaOrdinal(spec_.name, shard.name, name).value_or(~0u) < spec_.replicas_per_shard;
  };
  const auto change = [&](v1::ChangeMembersRequest::Kind kind, std::uint64_t member,
                          const std::string& name) {
    Do(ChangeMember{shard.uid, kind, MemberId(member), name});
    return true;
  };
  // A disk that is gone: its replica answers with another one, or says that it is lost.
  for (const v1::MemberInfo& member : leader.members()) {
    const ReplicaView* replica = shard.Find(member.name());
    const bool other_disk = replica != nullptr && replica->info != nullptr &&
                            replica->info->member() != member.member();
    const bool lost =
        replica != nullptr && replica->seen != nullptr && replica->seen->process.disk_lost;
    if (!other_disk && !lost) continue;
    if (QuorumSurvives(leader, member.member()))
      return change(v1::ChangeMembersRequest::REMOVE, member.member(), member.name());
    WaitFor("lost disk of " + member.name(),
            fmt::format("the disk of {} is lost, and without it too few voters of {} answer",
                        member.name(), shard.name),
            "", "start the other replicas, or see `etalonctl recover`");
    return true;
  }
  for (const v1::MemberInfo& member : leader.members()) {
    if (!member.learner()) continue;
    if (!wanted(member.name()))
      return change(v1::ChangeMembersRequest::REMOVE, member.member(), member.name());
    const v1::MemberProgress* progress = FindProgress(leader, member.member());
    if (progress != nullptr && progress->recent() &&
        progress->match_index() + kCaughtUpEntries >= leader.last_index() &&
        progress->match_index() > 0) {
      return change(v1::ChangeMembersRequest::PROMOTE, member.member(), member.name());
    }
    WaitFor("learner " + member.name(),
            fmt::format("waits for {} to catch up with its leader", member.name()),
            fmt::format(
                "{} log entries",
                leader.last_index() - std::min(leader.last_index(),
                                               progress == nullptr ? 0 : progress->match_index())),
            "then it becomes a voter");
    return true;
  }
  // Disks that are to join. Their leader must know where they are.
  const v1::Topology* applied = view_.TopologyAt(leader.topology_version());
  for (const ReplicaView& replica : shard.replicas) {
    if (!wanted(replica.name) || replica.info == nullptr) continue;
    if (FindMember(leader, MemberId(replica.info->member())) != nullptr) continue;
    bool known = false;
    if (applied != nullptr) {
      for (const v1::ShardInfo& info : applied->shards()) {
        if (ShardUid(info.uid()) != shard.uid) continue;
        known = std::any_of(
            info.replicas().begin(), info.replicas().end(), [&](const v1::ReplicaInfo& r) {
              return r.name() == replica.name && r.address() == replica.seen->process.address;
            });
      }
    }
    if (known)
      return change(v1::ChangeMembersRequest::ADD_LEARNER, replica.info->member(), replica.name);
    WaitFor("learner " + replica.name,
            fmt::format("waits for the leader of {} to learn a topology that names {}", shard.name,
                        replica.name),
            "", "then it joins as a learner");
  }
  // Voters that are too many. Those that stay must all be there first.
  std::vector<const v1::MemberInfo*> staying;
  std::vector<const v1::MemberInfo*> leaving;
  for (const v1::MemberInfo& member : leader.members())
    (wanted(member.name()) ? staying : leaving).push_back(&member);
  if (leaving.empty()) return false;
  if (staying.size() < spec_.replicas_per_shard)
    return false;  // waited for above, or their processes are
  const v1::MemberInfo* out = leaving.back();
  if (!QuorumSurvives(leader, out->member())) {
    WaitFor("member " + out->name(),
            fmt::format("waits for more voters of {} to answer before {} leaves", shard.name,
                        out->name()),
            "", "it is removed");
    return true;
  }
  if (out->member() == leader.member()) {
    // The log's end is where the leader itself stands: the one nearest to it takes over.
    const v1::MemberInfo* best = nullptr;
    std::uint64_t match = 0;
    for (const v1::MemberInfo* m : staying) {
      const v1::MemberProgress* progress = FindProgress(leader, m->member());
      if (progress != nullptr && Answers(leader, *m) && progress->match_index() >= match) {
        best = m;
        match = progress->match_index();
      }
    }
    if (best != nullptr) Do(TransferLeader{shard.uid, best->name()});
    return true;
  }
  return change(v1::ChangeMembersRequest::REMOVE, out->member(), out->name());
}

// Not empty: so many voters' disks are gone that the rest is no majority, whoever still comes back.
std::string Planner::WhyNoMajority(const ShardView& shard) const {
  if (shard.leader != nullptr || shard.form == nullptr) return "";
  // The members as the replica knows them that has applied most; without one, the first members.
  const auto* members = &shard.form->members();
  std::uint64_t applied = 0;
  for (const ReplicaView& replica : shard.replicas) {
    if (replica.info == nullptr || !replica.info->formed() ||
        replica.info->applied_index() < applied)
      continue;
    applied = replica.info->applied_index();
    members = &replica.info->members();
  }
  std::string lost;
  std::string left;
  std::size_t voters = 0;
  std::size_t gone = 0;
  for (const v1::MemberInfo& member : *members) {
    if (member.learner()) continue;
    ++voters;
    const ReplicaView* replica = shard.Find(member.name());
    const bool other_disk = replica != nullptr && replica->info != nullptr &&
                            replica->info->member() != member.member();
    const bool damaged =
        replica != nullptr && replica->seen != nullptr && replica->seen->process.disk_lost;
    gone += other_disk || damaged;
    std::string& list = other_disk || damaged ? lost : left;
    list += (list.empty() ? "" : ", ") + member.name();
  }
  if ((voters - gone) * 2 > voters) return "";
  const std::string next = left.empty()
                               ? "bring a lost disk back"
                               : fmt::format(
                                     "bring a lost disk back, or go on with what is left of {} by "
                                     "`etalonctl recover`, which gives up what only the others had",
                                     left);
  return fmt::format(
      "{} has lost a majority of its disks (of {}), and nothing is put together again by itself: "
      "{}",
      shard.name, lost, next);
}

void Planner::PlanLostDisks(const ShardView& shard) {
  if (const std::string why = WhyNoMajority(shard); !why.empty())
    return WaitFor("majority of " + shard.name, why, "", "somebody has to decide");
  for (const ReplicaView& replica : shard.replicas) {
    if (replica.state() != ProcessState::kDown || !replica.seen->process.disk_lost) continue;
    const bool named =
        shard.leader != nullptr &&
        std::any_of(shard.leader->members().begin(), shard.leader->members().end(),
                    [&](const v1::MemberInfo& m) { return m.name() == replica.name; });
    if (shard.leader != nullptr && !named) {
      Do(ReplaceDisk{
          replica.name});  // its log names it no longer: a new disk may join under the name
    } else if (shard.leader == nullptr) {
      WaitFor("lost disk of " + replica.name,
              fmt::format("the disk of {} is lost ({}), and {} has no leader to replace it",
                          replica.name, replica.seen->process.last_words, shard.name),
              "", "start the other replicas, or see `etalonctl recover`");
    }
  }
}

void Planner::StopRemovedReplicas(const ShardView& shard) {
  for (const ReplicaView& replica : shard.replicas) {
    if (replica.state() == ProcessState::kAbsent || replica.state() == ProcessState::kUnknown)
      continue;
    if (ReplicaOrdinal(spec_.name, shard.name, replica.name).value_or(~0u) <
        spec_.replicas_per_shard)
      continue;
    const auto names = [&](const auto& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& r) { return r.name() == replica.name; });
    };
    if (names(shard.leader->members()) || names(shard.declared->replicas())) continue;
    std::string who;
    if (view_.RoutersKnow(view_.topology_version(), &who)) Do(StopStorage{replica.name, true});
  }
}

// The zone where leaders should be: a wish, granted when everything else is at rest.
void Planner::PlanLeaderZones() {
  if (spec_.leader_zone.empty() || !actions_.empty()) return;
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kKeep || shard.leader == nullptr || shard.declared == nullptr) continue;
    const auto zone = [&](const std::string& name) {
      for (const v1::ReplicaInfo& r : shard.declared->replicas()) {
        if (r.name() == name) return r.zone();
      }
      return std::string();
    };
    if (zone(shard.leader->replica()) == spec_.leader_zone) continue;
    for (const v1::MemberInfo& member : shard.leader->members()) {
      const v1::MemberProgress* progress = FindProgress(*shard.leader, member.member());
      if (member.learner() || zone(member.name()) != spec_.leader_zone || progress == nullptr ||
          !progress->recent() ||
          progress->match_index() + kCaughtUpEntries < shard.leader->last_index()) {
        continue;
      }
      return Do(TransferLeader{shard.uid, member.name()});  // one at a time
    }
  }
}

// ---- the end of a shard
// -----------------------------------------------------------------------------------------------------

void Planner::RetireVictims() {
  for (const ShardView& shard : view_.shards()) {
    if (shard.role != Role::kVictim) continue;
    resharding_ = true;
    if (shard.creating() && shard.form == nullptr)
      continue;                             // never formed: the next topology drops it
    if (shard.leader == nullptr) continue;  // waited for elsewhere
    const std::uint64_t rows = RowsOf(*shard.leader);
    if (rows == 0 && shard.leader->transfers().empty() && !splits_.open.contains(shard.uid) &&
        shard.weight() == 0 && shard.leader->settings_version() == view_.settings_version()) {
      Do(Retire{shard.uid});
      continue;
    }
    std::string how;
    if (shard.leader->buckets().pinned() > 0) {
      how = fmt::format("; {} of them are pinned: unpin them", shard.leader->buckets().pinned());
    } else if (!Rebalances()) {
      how = spec_.rebalancing.mode == RebalancingMode::kDisabled
                ? "; rebalancing.mode is Disabled, so nothing moves: enable it"
                : "; no shard runs the rebalancer";
    }
    WaitFor("drain " + shard.name, fmt::format("waits for {} to be drained{}", shard.name, how),
            fmt::format("{} buckets", rows),
            "then it retires, the topology drops it, and its processes stop; its volumes are kept");
  }
}

// Every shard that may have a quorum has a topology without it, and so has every router.
bool Planner::EverybodyForgot(const ShardView& shard) {
  std::string who;
  if (!view_.RoutersKnow(view_.topology_version(), &who)) {
    WaitFor("forget " + shard.name,
            fmt::format("waits for {} before {} is deleted", who, shard.name), "",
            "its processes stop; its volumes are kept");
    return false;
  }
  for (const ShardView& other : view_.shards()) {
    if (other.declared == nullptr || !other.may_have_quorum) continue;
    if (other.leader != nullptr && view_.TopologyAt(other.leader->topology_version()) != nullptr &&
        !KnowsTarget(other, shard.uid)) {
      continue;
    }
    WaitFor("forget " + shard.name,
            fmt::format("waits for {} to learn that {} is gone", other.name, shard.name), "",
            "its processes stop; its volumes are kept");
    return false;
  }
  return true;
}

void Planner::DeleteRemoved() {
  for (const ShardView& shard : view_.shards()) {
    if (shard.role == Role::kRetired) {
      resharding_ = true;
      if (shard.leader == nullptr) {
        WaitFor("leader of " + shard.name,
                fmt::format("waits for a leader of {}, which has retired", shard.name), "",
                "then the topology drops it");
      }
    }
    if (shard.role != Role::kRemoved) continue;
    resharding_ = true;
    if (seen_.doomed.value().contains(shard.uid)) {
      Do(DeleteShard{shard.uid, shard.name});
      continue;
    }
    if (shard.form == nullptr) {  // it was never formed, so nobody ever handed it anything
      for (const ReplicaView& replica : shard.replicas) {
        if (replica.unformed() || replica.state() == ProcessState::kDown)
          Do(StopStorage{replica.name, true});
      }
      continue;
    }
    if (!EverybodyForgot(shard)) continue;
    if (shard.leader == nullptr) {
      WaitFor("leader of " + shard.name,
              fmt::format("waits for a leader of {} to prove that it holds nothing", shard.name),
              "", "its processes stop; its volumes are kept");
    } else if (shard.leader->retired() && RowsOf(*shard.leader) == 0) {
      Do(DeleteShard{shard.uid, shard.name});
    } else {
      WaitFor(
          "rows of " + shard.name,
          fmt::format("{} left the topology and still holds buckets; it is left alone", shard.name),
          fmt::format("{} buckets", RowsOf(*shard.leader)), "somebody has to look at it");
    }
  }
}

}  // namespace etalon::controller
