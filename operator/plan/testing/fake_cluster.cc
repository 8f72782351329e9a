#include "operator/plan/testing/fake_cluster.h"

#include <algorithm>

#include "operator/plan/view.h"
#include "placement/etalon.h"

namespace etalon::controller::testing {
namespace {

constexpr std::uint64_t kCollection = 0xc0;
constexpr Duration kTick = std::chrono::milliseconds(100);
constexpr std::uint64_t kLogEnd = 10000;

Status Refused(std::string why) { return FailedPrecondition(Reason::kNone, std::move(why)); }

}  // namespace

FakeCluster::FakeCluster(std::uint32_t bucket_count, std::uint64_t seed, Faults faults)
    : bucket_count_(bucket_count), random_(seed), faults_(faults) {}

void FakeCluster::Check(bool good, const std::string& sentence) {
  if (!good) violations_.push_back(sentence);
}

std::map<std::string, std::uint64_t> FakeCluster::Owned() const {
  std::map<std::string, std::uint64_t> out;
  for (const auto& [uid, shard] : shards_) {
    if (shard.owned == 0) continue;
    for (const auto& [name, storage] : storages_) {
      if (storage.uid == uid) out[storage.shard] = shard.owned;
    }
  }
  return out;
}

std::set<std::string> FakeCluster::Processes() const {
  std::set<std::string> out;
  for (const auto& [name, storage] : storages_) {
    if (storage.up) out.insert(name);
  }
  for (const auto& [name, router] : routers_) {
    if (router.up) out.insert(name);
  }
  return out;
}

std::size_t FakeCluster::ready_routers() const {
  return static_cast<std::size_t>(std::count_if(routers_.begin(), routers_.end(),
                                                [this](const auto& r) { return Ready(r.second); }));
}

// ---- what is seen
// -------------------------------------------------------------------------------------------------------

v1::InfoResponse FakeCluster::InfoOf(const std::string& name, const Storage& storage) const {
  v1::InfoResponse info;
  info.set_replica(name);
  info.set_member(storage.member);
  info.set_collection(kCollection);
  info.set_shard(storage.uid.value());
  info.set_formed(storage.formed);
  if (!storage.formed) return info;
  const Shard& shard = shards_.at(storage.uid);
  info.set_topology_version(shard.topology);
  info.set_settings_version(shard.settings);
  info.set_retired(shard.retired);
  info.set_term(shard.term);
  info.set_level(level_);
  info.set_last_index(kLogEnd);
  info.mutable_buckets()->set_active(shard.owned);
  info.mutable_buckets()->set_garbage(shard.garbage);
  info.set_store_bytes(shard.owned << 10);
  info.set_free_bytes(1 << 30);
  for (const auto& [task, split] : shard.splits) *info.add_splits() = split;
  const bool leads = shard.leader == name;
  info.set_leader(leads);
  info.set_lease(leads);
  for (const v1::MemberInfo& member : shard.members) {
    *info.add_members() = member;
    if (!leads) continue;
    v1::MemberProgress* progress = info.add_progress();
    progress->set_member(member.member());
    progress->set_name(member.name());
    const auto it = storages_.find(member.name());
    const bool here =
        it != storages_.end() && it->second.member == member.member() && it->second.up;
    progress->set_recent(here);
    progress->set_match_index(here ? it->second.match : 0);
  }
  return info;
}

Observed FakeCluster::Observe() {
  Observed seen;
  seen.collection = CollectionId(kCollection);
  seen.topologies = topologies_;
  seen.settings = settings_;
  seen.forms = forms_;
  seen.doomed = doomed_;
  std::map<std::string, StorageSeen> storages;
  const v1::Settings* settings = settings_.empty() ? nullptr : &settings_.rbegin()->second;
  for (const auto& [name, storage] : storages_) {
    StorageSeen& out = storages[name];
    out.uid = storage.uid;
    out.shard = storage.shard;
    out.process.address = storage.address;
    out.process.node = "local";
    out.process.state = storage.up ? ProcessState::kUp : ProcessState::kDown;
    out.process.restart_at = now_;
    out.process.disk_lost = !storage.up && storage.lost;
    if (storage.up && storage.answers_at <= now_ && !random_.Chance(faults_.silent_percent, 100)) {
      out.info = InfoOf(name, storage);
      if (settings != nullptr && settings->rebalancer() == storage.uid.value() &&
          out.info.value().lease()) {
        v1::RebalancerStateResponse state;
        state.set_runs_here(true);
        state.set_state("BALANCED");
        seen.rebalancer = state;
      }
    }
    if (random_.Chance(faults_.silent_percent, 400)) out.process.state = ProcessState::kUnknown;
  }
  seen.storages = storages;
  std::map<std::string, RouterSeen> routers;
  for (const auto& [name, router] : routers_) {
    RouterSeen& out = routers[name];
    out.process.state = router.up ? ProcessState::kUp : ProcessState::kDown;
    out.process.restart_at = now_;
    if (router.up && router.answers_at <= now_ && !random_.Chance(faults_.silent_percent, 100)) {
      v1::RouterInfoResponse info;
      info.set_topology_version(router.version);
      info.set_ready(Ready(router));
      out.info = info;
    }
  }
  seen.routers = routers;
  if (random_.Chance(faults_.silent_percent, 1000)) seen.storages = {};
  if (random_.Chance(faults_.silent_percent, 1000)) seen.topologies = {};
  return seen;
}

// ---- what is done
// -------------------------------------------------------------------------------------------------------

Status FakeCluster::Execute(const Action& action) {
  if (random_.Chance(faults_.fail_percent, 100)) return Unavailable(Reason::kNone, "it failed");
  Status status = Do(action);
  if (random_.Chance(faults_.lost_reply_percent, 100))
    return Unavailable(Reason::kNone, "its outcome is unknown");
  return status;
}

Status FakeCluster::Do(const Action& action) {
  return std::visit([this](const auto& a) { return Do(a); }, action);
}

Status FakeCluster::Do(const Adopt&) { return Refused("nothing to adopt"); }

Status FakeCluster::Do(const StartStorage& a) {
  Storage& storage = storages_[a.name];
  if (storage.up) return OkStatus();
  if (storage.lost) return Refused("the disk is lost");
  Check(!doomed_.contains(a.uid) && !deleted_.contains(a.uid), "a deleted shard was started");
  storage.uid = a.uid;
  storage.shard = a.shard;
  if (storage.address.empty()) storage.address = "127.0.0.1:" + std::to_string(next_port_++);
  if (storage.member == 0) storage.member = random_.NextId();
  storage.up = true;
  storage.answers_at = now_ + 2 * kTick;
  return OkStatus();
}

Status FakeCluster::Do(const StopStorage& a) {
  const auto it = storages_.find(a.name);
  if (it == storages_.end()) return OkStatus();
  if (const auto shard = shards_.find(it->second.uid); shard != shards_.end()) {
    for (const v1::MemberInfo& member : shard->second.members) {
      Check(member.member() != it->second.member,
            a.name + " was stopped while its shard's log names it");
    }
  }
  storages_.erase(it);
  return OkStatus();
}

Status FakeCluster::Do(const ReplaceDisk& a) {
  const auto it = storages_.find(a.name);
  if (it == storages_.end()) return OkStatus();
  if (it->second.up) return Refused("it runs");
  for (const v1::MemberInfo& member : shards_[it->second.uid].members) {
    Check(member.member() != it->second.member,
          "the disk of " + a.name + " was replaced while its shard's log names it");
  }
  const Storage old = it->second;
  it->second = {};
  it->second.uid = old.uid;
  it->second.shard = old.shard;
  it->second.address = old.address;
  return OkStatus();
}

Status FakeCluster::Do(const StartRouter& a) {
  Router& router = routers_[a.name];
  if (router.up) return OkStatus();
  router = {true, topologies_.rbegin()->first, now_ + 2 * kTick, now_ + 4 * kTick};
  return OkStatus();
}

Status FakeCluster::Do(const RestartRouter& a) {
  Router& router = routers_[a.name];
  if (router.up && router.version >= a.version) return OkStatus();
  router = {true, topologies_.rbegin()->first, now_ + 2 * kTick, now_ + 4 * kTick};
  return OkStatus();
}

Status FakeCluster::Do(const StopRouter& a) {
  routers_.erase(a.name);
  return OkStatus();
}

Status FakeCluster::Do(const CreateTopology& a) {
  const auto [it, made] = topologies_.emplace(a.topology.version(), a.topology);
  if (!made && it->second.SerializeAsString() != a.topology.SerializeAsString()) {
    return FailedPrecondition(Reason::kTopologyConflict, "there is one with another content");
  }
  for (const v1::ShardInfo& shard : a.topology.shards()) {
    Check(!deleted_.contains(ShardUid(shard.uid())) && !doomed_.contains(ShardUid(shard.uid())),
          "a topology names a deleted shard");
  }
  for (const std::uint64_t uid : a.topology.removed_shards()) {
    const auto shard = shards_.find(ShardUid(uid));
    if (shard == shards_.end()) continue;
    Check(shard->second.owned == 0 && shard->second.garbage == 0,
          "a shard with rows was dropped from the topology");
  }
  return OkStatus();
}

Status FakeCluster::Do(const CreateSettings& a) {
  const auto [it, made] = settings_.emplace(a.settings.version(), a.settings);
  return made || it->second.SerializeAsString() == a.settings.SerializeAsString()
             ? OkStatus()
             : Refused("another content");
}

Status FakeCluster::Do(const CreateForm& a) {
  const auto [it, made] = forms_.emplace(ShardUid(a.form.shard()), a.form);
  return made || it->second.SerializeAsString() == a.form.SerializeAsString()
             ? OkStatus()
             : Refused("another content");
}

void FakeCluster::CheckRouters(std::uint64_t version, const std::string& what) {
  for (const auto& [name, router] : routers_) {
    Check(!Ready(router) || router.version >= version,
          what + " before ready router " + name + " knew it");
  }
}

Status FakeCluster::Do(const PushTopology& a) {
  Router& router = routers_[a.router];
  if (!router.up) return Unavailable(Reason::kNone, "down");
  router.version = std::max(router.version, a.version);
  return OkStatus();
}

Result<FakeCluster::Shard*> FakeCluster::Led(ShardUid uid) {
  const auto it = shards_.find(uid);
  if (it == shards_.end() || it->second.leader.empty())
    return Unavailable(Reason::kNonMaster, "no leader");
  return &it->second;
}

Status FakeCluster::Do(const ApplyTopology& a) {
  for (const ShardUid uid : a.shards) {
    ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(uid));
    if (random_.Chance(faults_.fail_percent, 100))
      return Unavailable(Reason::kNone, "stopped half-way");
    CheckRouters(a.version, "a storage was handed topology " + std::to_string(a.version));
    Check(topologies_.contains(a.version), "a topology that is not stored was handed out");
    shard->topology = std::max(shard->topology, a.version);
  }
  return OkStatus();
}

Status FakeCluster::Do(const ApplySettings& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.shard));
  if (shard->settings >= a.version) return OkStatus();
  shard->settings = a.version;
  for (const std::string& task : settings_.at(a.version).closed_splits()) {
    const auto it = shard->splits.find(task);
    if (it != shard->splits.end() && it->second.state() == v1::SPLIT_COMMITTED)
      it->second.set_state(v1::SPLIT_DONE);
  }
  return OkStatus();
}

Status FakeCluster::Do(const Form& a) {
  const v1::FormRequest& form = forms_.at(a.shard);
  for (const std::string& name : a.replicas) {
    if (random_.Chance(faults_.fail_percent, 100))
      return Unavailable(Reason::kNone, "stopped half-way");
    const auto it = storages_.find(name);
    if (it == storages_.end() || !it->second.up) return Unavailable(Reason::kNone, "down");
    if (it->second.formed) continue;
    CheckRouters(form.topology().version(), "a shard was formed");
    const bool first = !shards_.contains(a.shard);
    Shard& shard = shards_[a.shard];
    if (first) {
      shard.form = form.SerializeAsString();
      shard.members = {form.members().begin(), form.members().end()};
      shard.topology = form.topology().version();
      shard.settings = form.settings().version();
      for (const v1::BucketRange& range : form.ranges())
        shard.owned += range.last() - range.first() + 1;
    }
    Check(shard.form == form.SerializeAsString(), "a shard was formed with two contents");
    it->second.formed = true;
    it->second.match = kLogEnd;
  }
  return OkStatus();
}

Status FakeCluster::Do(const ChangeMember& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.shard));
  const auto it =
      std::find_if(shard->members.begin(), shard->members.end(),
                   [&](const v1::MemberInfo& m) { return MemberId(m.member()) == a.member; });
  switch (a.kind) {
    case v1::ChangeMembersRequest::ADD_LEARNER: {
      if (it != shard->members.end()) return OkStatus();
      Check(std::none_of(shard->members.begin(), shard->members.end(),
                         [&](const auto& m) { return m.name() == a.name; }),
            "two disks of " + a.name + " in one log");
      v1::MemberInfo member;
      member.set_member(a.member.value());
      member.set_name(a.name);
      member.set_learner(true);
      shard->members.push_back(member);
      break;
    }
    case v1::ChangeMembersRequest::PROMOTE:
      if (it != shard->members.end()) it->set_learner(false);
      break;
    default:
      if (it != shard->members.end()) shard->members.erase(it);
      break;
  }
  Elect(a.shard, shard);
  Check(!shard->leader.empty(), "a change of members cost the shard its quorum");
  return OkStatus();
}

Status FakeCluster::Do(const TransferLeader& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.shard));
  shard->prefer = a.to;
  shard->prefer_until = now_ + std::chrono::seconds(5);
  Elect(a.shard, shard);
  return OkStatus();
}

bool FakeCluster::Knows(const Shard& shard, ShardUid other) const {
  const auto& shards = topologies_.at(shard.topology).shards();
  return std::any_of(shards.begin(), shards.end(),
                     [&](const v1::ShardInfo& s) { return ShardUid(s.uid()) == other; });
}

Status FakeCluster::Do(const Split& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.source));
  if (const auto it = shard->splits.find(a.task); it != shard->splits.end()) {
    return it->second.state() == v1::SPLIT_ABORTED
               ? FailedPrecondition(Reason::kSplitAborted, "a new ID is needed")
               : OkStatus();
  }
  for (const auto& [task, split] : shard->splits) {
    if (IsOpen(split)) return FailedPrecondition(Reason::kShardFenced, "another split is open");
  }
  if (!Knows(*shard, a.target)) return Refused("the target is not known");
  v1::SplitTask& task = shard->splits[a.task];
  task.set_task(a.task);
  task.set_target(a.target.value());
  return OkStatus();
}

Status FakeCluster::Do(const AbortSplit& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.source));
  v1::SplitTask& task = shard->splits.at(a.task);
  if (task.state() == v1::SPLIT_COMMITTED || task.state() == v1::SPLIT_DONE)
    return Refused("committed");
  task.set_state(v1::SPLIT_ABORTED);
  return OkStatus();
}

Status FakeCluster::Do(const Retire& a) {
  ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.shard));
  if (shard->owned + shard->garbage > 0)
    return FailedPrecondition(Reason::kNonEmpty, "it has rows");
  shard->retired = true;
  return OkStatus();
}

Status FakeCluster::Do(const DeleteShard& a) {
  if (!doomed_.contains(a.shard)) {
    ETALON_ASSIGN_OR_RETURN(Shard * shard, Led(a.shard));
    if (!shard->retired || shard->owned + shard->garbage > 0) return Refused("it is not empty");
    doomed_.insert(a.shard);
    for (const auto& [uid, other] : shards_) {
      if (uid == a.shard || other.leader.empty() || deleted_.contains(uid)) continue;
      const bool declared =
          std::any_of(topology().shards().begin(), topology().shards().end(),
                      [u = uid](const v1::ShardInfo& s) { return ShardUid(s.uid()) == u; });
      Check(!declared || !Knows(other, a.shard),
            "a shard was deleted that another one still knows");
    }
  }
  Check(shards_[a.shard].owned + shards_[a.shard].garbage == 0, "a shard with rows was deleted");
  Check(std::count(topology().removed_shards().begin(), topology().removed_shards().end(),
                   a.shard.value()) == 1,
        "a shard was deleted that no topology removes");
  for (auto it = storages_.begin(); it != storages_.end();) {
    if (it->second.uid != a.shard) {
      ++it;
      continue;
    }
    if (random_.Chance(faults_.fail_percent, 100))
      return Unavailable(Reason::kNone, "stopped half-way");
    it = storages_.erase(it);
  }
  deleted_.insert(a.shard);
  return OkStatus();
}

// ---- time
// ---------------------------------------------------------------------------------------------------------------

void FakeCluster::Elect(ShardUid uid, Shard* shard) {
  std::size_t voters = 0;
  std::vector<std::string> candidates;
  for (const v1::MemberInfo& member : shard->members) {
    if (member.learner()) continue;
    ++voters;
    const auto it = storages_.find(member.name());
    if (it != storages_.end() && it->second.up && it->second.formed &&
        it->second.member == member.member() && it->second.uid == uid) {
      candidates.push_back(member.name());
    }
  }
  const bool quorum = candidates.size() * 2 > voters;
  const std::string before = shard->leader;
  if (!quorum) {
    shard->leader.clear();
  } else if (!shard->prefer.empty() &&
             std::count(candidates.begin(), candidates.end(), shard->prefer) > 0) {
    shard->leader = shard->prefer;
  } else if (std::count(candidates.begin(), candidates.end(), shard->leader) == 0) {
    shard->leader = candidates.front();
  }
  if (shard->leader != before) ++shard->term;
}

void FakeCluster::AdvanceSplits(Shard* shard) {
  for (auto& [name, task] : shard->splits) {
    const auto target = shards_.find(ShardUid(task.target()));
    switch (task.state()) {
      case v1::SPLIT_PREPARING:
        task.set_state(v1::SPLIT_COPYING);
        break;
      case v1::SPLIT_COPYING:
        if (target != shards_.end() && !target->second.leader.empty() && !target->second.retired) {
          task.set_state(v1::SPLIT_FENCING);
        }
        break;
      case v1::SPLIT_FENCING:
        if (random_.Chance(faults_.abort_split_percent, 100) || target->second.leader.empty() ||
            target->second.retired) {
          task.set_state(v1::SPLIT_ABORTED);
          break;
        }
        if (shard->owned == 1) {
          ++level_;
          for (auto& [u, s] : shards_) {
            s.owned *= 2;
            s.garbage *= 2;
          }
        }
        target->second.owned += shard->owned / 2;
        shard->garbage += shard->owned / 2;
        shard->owned -= shard->owned / 2;
        task.set_state(v1::SPLIT_COMMITTED);
        break;
      default:
        break;
    }
  }
}

void FakeCluster::Rebalance() {
  for (auto& [uid, runner] : shards_) {
    if (runner.leader.empty() || deleted_.contains(uid)) continue;
    const v1::Settings& settings = settings_.at(runner.settings);
    if (ShardUid(settings.rebalancer()) != uid || !topologies_.at(runner.topology).complete())
      continue;
    std::set<std::uint64_t> splitting;
    for (const auto& [u, shard] : shards_) {
      for (const auto& [name, task] : shard.splits) {
        if (!IsOpen(task)) continue;
        splitting.insert(u.value());
        splitting.insert(task.target());
      }
    }
    std::vector<placement::ShardLoad> loads;
    for (const v1::ShardInfo& info : topologies_.at(runner.topology).shards()) {
      const auto it = shards_.find(ShardUid(info.uid()));
      if (it == shards_.end() || it->second.leader.empty() || it->second.retired ||
          splitting.contains(info.uid()))
        continue;
      placement::ShardLoad load;
      load.name = info.name();
      load.uid = ShardUid(info.uid());
      load.buckets = it->second.owned;
      load.weight = 0;
      for (const v1::ShardSettings& s : settings.shards()) {
        if (s.uid() != info.uid()) continue;
        load.weight = s.weight();
        load.locked = s.locked();
      }
      loads.push_back(load);
    }
    const placement::EtalonResult etalon = placement::ComputeEtalon(loads);
    if (etalon.state != placement::EtalonState::kOk) continue;
    std::uint64_t slots = 4;
    for (const placement::ShardEtalon& from : etalon.shards) {
      for (const placement::ShardEtalon& to : etalon.shards) {
        Shard& source = shards_.at(from.uid);
        Shard& target = shards_.at(to.uid);
        if (!Knows(source, to.uid)) continue;
        while (slots > 0 && source.owned > from.etalon && target.owned < to.etalon) {
          --source.owned;
          ++source.garbage;
          ++target.owned;
          --slots;
        }
      }
    }
  }
}

void FakeCluster::Tick() {
  now_ += kTick;
  if (random_.Chance(faults_.kill_permille, 1000) && !storages_.empty()) {
    auto it = storages_.begin();
    std::advance(it, static_cast<long>(random_.Below(storages_.size())));
    it->second.up = false;
  }
  if (random_.Chance(faults_.kill_permille, 1000) && !routers_.empty()) {
    auto it = routers_.begin();
    std::advance(it, static_cast<long>(random_.Below(routers_.size())));
    it->second.up = false;
  }
  if (random_.Chance(faults_.lose_disk_permille, 1000) && !storages_.empty()) {
    auto it = storages_.begin();
    std::advance(it, static_cast<long>(random_.Below(storages_.size())));
    const auto shard = shards_.find(it->second.uid);
    // Only one of a whole shard: what loses a majority of its disks cannot be repaired by anybody
    // here.
    const bool whole = shard != shards_.end() && shard->second.members.size() >= 3 &&
                       it->second.formed &&
                       std::all_of(shard->second.members.begin(), shard->second.members.end(),
                                   [&](const v1::MemberInfo& m) {
                                     const auto s = storages_.find(m.name());
                                     return !m.learner() && s != storages_.end() &&
                                            s->second.member == m.member() && s->second.formed;
                                   });
    if (whole && random_.Chance(1, 2)) {
      it->second.up = false;
      it->second.lost = true;
      it->second.formed = false;
    } else if (whole) {  // its directory is gone: it comes back as a blank disk
      it->second.up = false;
      it->second.formed = false;
      it->second.member = random_.NextId();
      it->second.match = 0;
    }
  }
  for (auto& [uid, shard] : shards_) {
    if (deleted_.contains(uid)) continue;
    if (shard.prefer_until < now_) shard.prefer.clear();
    Elect(uid, &shard);
    if (shard.leader.empty()) continue;
    for (const v1::MemberInfo& member : shard.members) {
      const auto it = storages_.find(member.name());
      if (it == storages_.end() || !it->second.up || it->second.member != member.member()) continue;
      if (it->second.formed || !member.learner()) continue;
      it->second.match = std::min(kLogEnd, it->second.match + 4000);
      it->second.formed = it->second.match == kLogEnd;
    }
    shard.garbage -= std::min<std::uint64_t>(shard.garbage, 4);
    AdvanceSplits(&shard);
  }
  Rebalance();
  std::uint64_t total = 0;
  for (const auto& [uid, shard] : shards_) total += shard.owned;
  const bool complete = !topologies_.empty() && topology().complete();
  Check(!complete || total == modulus(), "buckets were lost or doubled");
}

}  // namespace etalon::controller::testing
