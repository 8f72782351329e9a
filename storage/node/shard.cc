#include "storage/node/shard.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "proto/wire.h"
#include "storage/node/snapshot_io.h"

namespace etalon::storage {

namespace {

constexpr Duration kHealEvery = std::chrono::seconds(1);
// Voters without a leader ask each other for votes more often than that.
constexpr Duration kMajorityIsLostAfter = std::chrono::seconds(2);

consensus::Members MembersOf(const std::vector<v1::MemberInfo>& infos) {
  consensus::Members out;
  for (const auto& info : infos)
    (info.learner() ? out.learners : out.voters).push_back(MemberId(info.member()));
  std::sort(out.voters.begin(), out.voters.end());
  std::sort(out.learners.begin(), out.learners.end());
  return out;
}

// The members after a change, with their names: known ones keep theirs, the new one's came with the
// change.
std::vector<v1::MemberInfo> Named(const consensus::MembersChange& change,
                                  const std::vector<v1::MemberInfo>& before) {
  std::vector<v1::MemberInfo> out;
  const auto add = [&](MemberId member, bool learner) {
    v1::MemberInfo info;
    info.set_member(member.value());
    info.set_learner(learner);
    info.set_name(change.context);
    for (const auto& old : before) {
      if (old.member() == member.value()) info.set_name(old.name());
    }
    out.push_back(std::move(info));
  };
  for (MemberId m : change.members.voters) add(m, false);
  for (MemberId m : change.members.learners) add(m, true);
  return out;
}

Status OutcomeUnknown() {
  return Unavailable(
      Reason::kOutcomeUnknown,
      "leadership was lost before the outcome was known: the write may or may not be applied");
}

}  // namespace

Shard::Shard(Env& env, const NodeOptions& options, const Identity& identity,
             store::StoreSet& stores, log::SegmentedLog& log, Stats& stats, Host& host)
    : env_(env),
      options_(options),
      identity_(identity),
      stores_(stores),
      log_(log),
      stats_(stats),
      host_(host),
      random_(env.random.Fork()) {}

Shard::~Shard() {
  env_.core.Cancel(tick_);
  for (auto& [machine, timer] : wakes_) env_.core.Cancel(timer);
}

Result<std::unique_ptr<Shard>> Shard::Open(Env& env, const NodeOptions& options,
                                           const Identity& identity, store::StoreSet& stores,
                                           log::SegmentedLog& log, Stats& stats, Host& host) {
  std::unique_ptr<Shard> shard(new Shard(env, options, identity, stores, log, stats, host));
  shard->calls_ =
      std::make_unique<Calls>(static_cast<CallHost&>(*shard), stats, shard->random_.Fork());
  if (options.seed_topology.version() != 0)
    shard->peers_.SetTopology(options.seed_topology, &env.net);
  if (stores.Current() != nullptr) {
    ETALON_RETURN_IF_ERROR(shard->LoadEngine(*stores.Current()));
    shard->checkpoint_index_ = shard->state().applied_index();
  }
  const SteadyTime now = env.clock.Now();
  shard->heard_leader_ = shard->level_with_leader_ = shard->checkpoint_at_ = now;
  shard->CheckDisk();
  consensus::Replica::Options raft = options.raft;
  raft.self = identity.member;
  ETALON_ASSIGN_OR_RETURN(shard->replica_, consensus::Replica::Open(raft, env, log, *shard));
  shard->Tick();
  return shard;
}

Status Shard::LoadEngine(store::Store& store) {
  auto engine = std::make_unique<Engine>();
  engine->store = &store;
  ETALON_ASSIGN_OR_RETURN(engine->state, bucket::StateMachine::Load(store, *this));
  if (engine->state->collection() != identity_.collection ||
      engine->state->shard() != identity_.shard) {
    return FailedPrecondition(Reason::kForeignDisk, "the data on this disk is of shard " +
                                                        ToHex(engine->state->shard().value()) +
                                                        " of collection " +
                                                        ToHex(engine->state->collection().value()) +
                                                        ": nothing was touched");
  }
  engine->source = std::make_unique<transfer::Source>(
      *engine->state, store, static_cast<RefCounter&>(*this), engine->gate, random_.Fork());
  engine->target = std::make_unique<transfer::Target>(
      *engine->state,
      [this] {
        return free_bytes_ > 2 * options_.reserve_bytes ? free_bytes_ - 2 * options_.reserve_bytes
                                                        : 0;
      },
      engine->gate, random_.Fork());
  engine->rebalancer = std::make_unique<balance::Rebalancer>(*engine->state, random_.Fork());
  engine->orders =
      std::make_unique<balance::OrderTaker>(*engine->state, store, engine->gate, random_.Fork());
  engine_ = std::move(engine);
  peers_.SetMembers(state().members());
  if (state().topology().version() != 0) peers_.SetTopology(state().topology(), &env_.net);
  return OkStatus();
}

void Shard::Post(UniqueFunction<void()> task) {
  env_.core.Post([alive = std::weak_ptr<bool>(alive_), task = std::move(task)]() mutable {
    if (!alive.expired()) task();
  });
}

bool Shard::is_leader() const {
  return formed() && !apply_failed_ && raft_.role == consensus::Role::kLeader &&
         state().applied_term() == raft_.term;
}

NodeName Shard::leader_name() const { return peers_.NameOf(raft_.leader).value_or(""); }

// Members answer heartbeats every few ticks.
bool Shard::heard_lately(MemberId member) const {
  const auto it = heard_.find(member);
  return it != heard_.end() && Now() - it->second < std::chrono::seconds(1);
}

Duration Shard::since_leader() const {
  return raft_.role == consensus::Role::kLeader ? Duration::zero() : Now() - heard_leader_;
}
Duration Shard::lag() const {
  return raft_.role == consensus::Role::kLeader ? Duration::zero() : Now() - level_with_leader_;
}
Duration Shard::Staleness() const {
  if (is_leader() && replica_->HasLease()) return Duration::zero();
  return std::max(since_leader(), lag());
}

Status Shard::NotLeader() const {
  Hint hint;
  hint.term = raft_.term;
  if (!handing_over_ && raft_.role != consensus::Role::kLeader) hint.leader = leader_name();
  return Unavailable(Reason::kNonMaster,
                     hint.leader.empty()
                         ? "this replica does not lead, and knows no leader now"
                         : "this replica does not lead; the leader is " + hint.leader,
                     std::move(hint));
}

Status Shard::MajorityIsLost() const {
  if (raft_.leader) {
    const NodeName leader = leader_name();
    return FailedPrecondition(Reason::kNone, "this shard has a leader (" +
                                                 (leader.empty() ? "not known by name" : leader) +
                                                 "): there is nothing to recover");
  }
  std::size_t voters = 0;
  std::size_t heard = 0;
  for (const v1::MemberInfo& member : state().members()) {
    if (member.learner()) continue;
    ++voters;
    const auto it = heard_.find(MemberId(member.member()));
    heard += member.member() == identity_.member.value() ||
             (it != heard_.end() && Now() - it->second < kMajorityIsLostAfter);
  }
  if (heard * 2 <= voters) return OkStatus();
  return FailedPrecondition(
      Reason::kNone, std::to_string(heard) + " of " + std::to_string(voters) +
                         " voters of this shard were heard of lately: that is a majority, which "
                         "elects a leader by itself");
}

// Consensus knows members by their disks; people and routers by their names.
void Shard::WithLeader(Status* status) const {
  if (status->reason() == Reason::kNonMaster) *status = NotLeader();
}

Status Shard::WritesAllowed() const {
  if (handing_over_) return NotLeader();
  if (state().retired()) return FailedPrecondition(Reason::kShardRetired, "this shard is retired");
  if (disk_low_) {
    return ResourceExhausted("the disk is full: writes are refused until space is freed",
                             Reason::kDiskFull);
  }
  ETALON_RETURN_IF_ERROR(log_.Health());
  return engine_->store->Health();
}

void Shard::ReadBarrier(Deadline deadline, UniqueFunction<void(Status)> done) {
  if (apply_failed_)
    return done(Unavailable(Reason::kStorageIsDisabled, "the store refuses work on this replica"));
  replica_->ReadBarrier(deadline, [this, done = std::move(done)](Status status) mutable {
    WithLeader(&status);
    done(std::move(status));
  });
}

// ---- proposing
// ----------------------------------------------------------------------------------------------------

Result<consensus::Proposed> Shard::ProposeEntry(v1::LogEntry* entry) {
  entry->set_version(state().version());
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Now() - log_time_at_);
  entry->set_log_time_millis(log_time_base_.value() + static_cast<std::uint64_t>(elapsed.count()));
  auto proposed = replica_->Propose(entry->SerializeAsString());
  if (proposed.ok()) return proposed;
  Status status = proposed.status();
  WithLeader(&status);
  return status;
}

Status Shard::ProposeCalls(std::vector<CallTicket>& tickets) {
  v1::LogEntry entry;
  for (const CallTicket& ticket : tickets) entry.add_calls(ticket.bytes);
  ETALON_ASSIGN_OR_RETURN(const consensus::Proposed proposed, ProposeEntry(&entry));
  proposals_.Add(proposed.index, {proposed.term, std::move(tickets), nullptr});
  return OkStatus();
}

void Shard::ProposeControl(v1::Control control, ControlDone done) {
  if (!is_leader()) return done(NotLeader());
  v1::LogEntry entry;
  *entry.mutable_control() = std::move(control);
  auto proposed = ProposeEntry(&entry);
  if (!proposed.ok()) return done(proposed.status());
  proposals_.Add(proposed->index, {proposed->term, {}, std::move(done)});
}

void Shard::ChangeMembers(MemberChange change, MemberId member, const std::string& name,
                          ControlDone done) {
  auto proposed = change == MemberChange::kAddLearner ? replica_->AddLearner(member, name)
                  : change == MemberChange::kPromote  ? replica_->AddVoter(member, name)
                                                      : replica_->Remove(member, name);
  if (!proposed.ok()) {
    Status status = proposed.status();
    WithLeader(&status);
    // What is so already is what was asked for.
    if (status.code() == Code::kAlreadyExists) status = OkStatus();
    if (status.code() == Code::kNotFound && change == MemberChange::kRemove) status = OkStatus();
    return done(std::move(status));
  }
  proposals_.Add(proposed->index, {proposed->term, {}, std::move(done)});
}

void Shard::HandOver(std::optional<MemberId> to, Deadline deadline, ControlDone done) {
  if (!to) to = replica_->BestSuccessor();
  if (!to) {
    return done(FailedPrecondition(Reason::kNoQuorum,
                                   "there is no other voter that could lead this shard now"));
  }
  handing_over_ = true;
  replica_->TransferLeadership(*to, deadline,
                               [this, done = std::move(done)](Status status) mutable {
                                 handing_over_ = false;
                                 WithLeader(&status);
                                 done(std::move(status));
                               });
}

// ---- consensus::Replica::Owner
// ------------------------------------------------------------------------------------

Status Shard::Apply(std::span<const consensus::Entry> entries,
                    const consensus::MembersChange* change) {
  ETALON_CHECK(formed(), "entries for a replica without state: its log must begin with a snapshot");
  auto outcomes = engine_->state->Apply(
      entries, [&](const consensus::Entry&) { return Named(*change, state().members()); });
  if (!outcomes.ok()) {
    const Status& why = outcomes.status();
    if (why.code() == Code::kResourceExhausted) {
      if (!std::exchange(apply_failed_, true))
        env_.log.Error("apply_waits", {{"why", why.ToString()}});
      CheckDisk();
      return why;
    }
    host_.Fatal(why.Annotate("applying the log"));
    return why;
  }
  apply_failed_ = false;
  for (const consensus::Entry& entry : entries) applied_bytes_ += entry.data.size();
  if (change != nullptr) peers_.SetMembers(state().members());
  for (bucket::EntryOutcome& outcome : *outcomes) Complete(std::move(outcome));
  AfterApply();
  FlushFeed();
  MaybeCheckpoint();
  return OkStatus();
}

void Shard::Complete(bucket::EntryOutcome outcome) {
  auto pending = proposals_.Take(outcome.index);
  if (!pending) return;
  if (pending->term != outcome.term) return Lose(std::move(*pending), NotLeader());
  for (std::size_t i = 0; i < pending->calls.size(); ++i) {
    calls_->OnOutcome(std::move(pending->calls[i]), std::move(outcome.calls[i]));
  }
  if (pending->control) pending->control(outcome.control.value_or(OkStatus()));
}

void Shard::Lose(Proposals::Pending pending, const Status& status) {
  for (CallTicket& ticket : pending.calls) calls_->OnLost(std::move(ticket), status);
  if (pending.control) pending.control(status);
}

consensus::AppliedState Shard::Applied() {
  if (!formed()) return {};
  return {state().applied_index(), state().applied_term(), MembersOf(state().members())};
}

void Shard::OnRole(const consensus::RaftStatus& status) {
  const bool led = raft_.role == consensus::Role::kLeader;
  const bool leads = status.role == consensus::Role::kLeader;
  const bool new_reign = leads && (!led || status.term != raft_.term);
  const bool lost = led && (!leads || status.term != raft_.term);
  if (status.leader != raft_.leader || status.term != raft_.term) {
    heard_leader_ = Now();
    env_.log.Info("role", {{"leads", leads ? 1 : 0},
                           {"term", status.term.value()},
                           {"leader", ToHex(status.leader.value())}});
  }
  raft_ = status;
  if (lost) {
    calls_->OnLeadershipLost();
    for (auto& [index, pending] : proposals_.TakeAll()) Lose(std::move(pending), OutcomeUnknown());
    for (auto& out : feed_.Close(NotLeader(), identity_.shard))
      SendFeed(out.to, std::move(out.message));
    freezes_.clear();
    for (auto& [order, done] : std::exchange(moves_, {})) done(NotLeader());
  }
  if (new_reign && formed()) {
    log_time_base_ = state().log_time();
    log_time_at_ = Now();
  }
  if (new_reign || lost) StepAll({leads, status.term});
}

SendResult Shard::SendToMember(MemberId to, Lane lane, std::string bytes) {
  const auto name = peers_.NameOf(to);
  if (!name) return SendResult::kUnknown;
  v1::NodeMessage message;
  message.set_collection(identity_.collection.value());
  v1::RaftMessage& raft = *message.mutable_raft();
  raft.set_shard(identity_.shard.value());
  raft.set_from(identity_.member.value());
  raft.set_to(to.value());
  raft.set_payload(std::move(bytes));
  return env_.net.Send(*name, lane, message.SerializeAsString());
}

void Shard::OnRaft(const NodeName& from, const v1::RaftMessage& message) {
  if (message.to() != identity_.member.value()) return;
  const MemberId sender(message.from());
  peers_.Learn(sender, from);
  heard_[sender] = Now();
  replica_->Step(sender, message.payload());
  if (sender == replica_->status().leader) {
    heard_leader_ = Now();
    if (formed() && state().applied_index() >= replica_->status().commit)
      level_with_leader_ = heard_leader_;
  }
}

std::unique_ptr<consensus::SnapshotSource> Shard::StartSnapshot(consensus::AppliedState* meta) {
  if (!formed() || apply_failed_) return nullptr;
  *meta = Applied();
  return MakeSnapshotSource(engine_->store->NewSnapshot());
}

std::unique_ptr<consensus::SnapshotSink> Shard::StartRestore(const consensus::Snapshot& meta) {
  if (meta.name == stores_.CurrentName()) return nullptr;
  return MakeSnapshotSink(stores_, meta.name);
}

void Shard::OnRestored(const consensus::Snapshot& meta,
                       std::unique_ptr<consensus::SnapshotSink> sink) {
  store::Store* fresh = stores_.Fresh();
  ETALON_CHECK(fresh != nullptr, "a finished snapshot has its generation");
  sink.reset();
  StepAll({false, raft_.term});
  if (Status s = LoadEngine(*fresh); !s.ok())
    return host_.Fatal(s.Annotate("loading a received snapshot"));
  ETALON_CHECK(state().applied_index() == meta.index,
               "a snapshot holds the state it was named for");
  checkpoint_index_ = meta.index;
  stores_.Activate(meta.name, [this, alive = std::weak_ptr<bool>(alive_)](Status status) {
    if (!alive.expired() && !status.ok())
      host_.Fatal(status.Annotate("activating a received snapshot"));
  });
  env_.log.Info("snapshot_restored", {{"index", meta.index.value()}, {"generation", meta.name}});
}

// ---- bucket::Observer
// ---------------------------------------------------------------------------------------------

void Shard::OnRow(std::uint32_t bucket, const bucket::Row* row) {
  feed_.OnRow(bucket);
  calls_->OnRow(bucket, row);
}
void Shard::OnRebase(std::uint8_t) {
  feed_.OnRebase();
  calls_->OnRebase();
}
void Shard::OnOpened(const bucket::Outgoing& transfer) {
  if (raft_.role == consensus::Role::kLeader) engine_->source->OnOpened(transfer);
}
void Shard::OnDataKey(std::uint32_t bucket, std::string_view store_key) {
  if (raft_.role == consensus::Role::kLeader) engine_->source->OnDataKey(bucket, store_key);
}
void Shard::OnTopology() { peers_.SetTopology(state().topology(), &env_.net); }

// ---- calls, feed, ticks
// -------------------------------------------------------------------------------------------

void Shard::Reply(const CallTicket& ticket, const Status& outcome, std::string result) {
  // What this disk has lost others have: it is no answer. The process is about to end.
  const Status status =
      outcome.code() == Code::kDataLoss
          ? Unavailable(Reason::kStorageIsDisabled,
                        "replica " + identity_.replica + " cannot read its disk any more")
          : outcome;
  if (ticket.sink) {
    if (auto& sink = *ticket.sink) std::exchange(sink, nullptr)(status, std::move(result));
    return;
  }
  v1::CallReply reply;
  reply.set_id(ticket.id);
  if (!status.ok()) *reply.mutable_status() = ToProto(status);
  reply.set_result(std::move(result));
  host_.SendReply(ticket.from, std::move(reply));
}

void Shard::OnSubscribe(const NodeName& from, const v1::FeedSubscribe& request) {
  if (request.cancel()) return feed_.Unsubscribe(from);
  const auto refuse = [this, from, request](const Status& why) {
    v1::FeedMessage refusal;
    refusal.set_subscription(request.subscription());
    refusal.set_shard(identity_.shard.value());
    *refusal.mutable_status() = ToProto(why);
    SendFeed(from, std::move(refusal));
  };
  if (!is_leader()) return refuse(NotLeader());
  ReadBarrier(Deadline::After(Now(), std::chrono::seconds(1)),
              [this, from, request, refuse](Status status) {
                if (status.ok() && !is_leader()) status = NotLeader();
                if (!status.ok()) return refuse(status);
                FlushFeed();  // older subscribers first: the new one's list already has what they
                              // are about to be told
                const auto view = FeedPublisher::ViewOf(state(), raft_.term);
                SendFeed(from, feed_.Subscribe(from, request, view, Now()));
              });
}

void Shard::SendFeed(const NodeName& to, v1::FeedMessage feed) {
  v1::NodeMessage message;
  message.set_collection(identity_.collection.value());
  *message.mutable_feed() = std::move(feed);
  if (env_.net.Send(to, Lane::kControl, message.SerializeAsString()) != SendResult::kQueued)
    feed_.Dropped(to);
}

void Shard::FlushFeed() {
  if (!is_leader() || !replica_->HasLease()) return;
  for (auto& out : feed_.Flush(FeedPublisher::ViewOf(state(), raft_.term), Now()))
    SendFeed(out.to, std::move(out.message));
}

void Shard::Tick() {
  tick_ = env_.core.PostAt(Now() + options_.tick, [this] { Tick(); });
  if (replica_ == nullptr || !formed()) return;
  if (Status health = engine_->store->Health(); health.code() == Code::kDataLoss)
    return host_.Fatal(health);
  calls_->OnTick();
  FlushFeed();
  if (Now() - disk_checked_ >= std::chrono::seconds(1)) CheckDisk();
  MaybeCheckpoint();
}

void Shard::CheckDisk() {
  disk_checked_ = Now();
  auto free = env_.disk.FreeBytes();
  if (!free.ok()) return;
  free_bytes_ = *free;
  const bool low = free_bytes_ < options_.reserve_bytes;
  if (low != disk_low_)
    env_.log.Warning(low ? "disk_full" : "disk_has_room", {{"free", free_bytes_}});
  disk_low_ = low;
}

void Shard::MaybeCheckpoint() {
  if (checkpointing_) return;
  const bool due = state().applied_index() > checkpoint_index_ &&
                   (applied_bytes_ >= options_.checkpoint_bytes ||
                    Now() - checkpoint_at_ >= options_.checkpoint_every);
  // A store that the disk stopped goes on after a checkpoint only.
  const bool heals = !engine_->store->Health().ok() && Now() - checkpoint_at_ >= kHealEvery;
  if (due || heals) BeginCheckpoint(nullptr);
}

void Shard::Checkpoint(ControlDone done) {
  if (!formed())
    return done(FailedPrecondition(Reason::kUnformed, "there is nothing to checkpoint"));
  BeginCheckpoint(std::move(done));
}

void Shard::BeginCheckpoint(ControlDone done) {
  checkpointing_ = true;
  applied_bytes_ = 0;
  checkpoint_at_ = Now();
  store::Store* store = engine_->store;
  store->Checkpoint([this, alive = std::weak_ptr<bool>(alive_), store,
                     index = state().applied_index(),
                     done = std::move(done)](Status status) mutable {
    if (alive.expired()) return;
    checkpointing_ = false;
    const bool failed_before = std::exchange(checkpoint_failed_, !status.ok());
    if (status.ok()) {
      if (engine_->store == store) checkpoint_index_ = std::max(checkpoint_index_, index);
      if (failed_before) env_.log.Info("checkpoint_succeeds_again");
    } else if (status.code() == Code::kDataLoss) {
      host_.Fatal(status.Annotate("checkpoint"));
    } else if (!failed_before) {
      env_.log.Warning("checkpoint_failed", {{"why", status.ToString()}});
    }
    if (done) done(std::move(status));
  });
}

// ---- observation
// --------------------------------------------------------------------------------------------------

v1::RebalancerStateResponse Shard::RebalancerState() const { return engine_->rebalancer->State(); }
std::optional<double> Shard::etalon() const { return engine_->orders->etalon(); }
std::optional<double> Shard::disbalance() const { return engine_->orders->disbalance(); }

std::vector<v1::TransferInfo> Shard::Transfers() const {
  auto out = engine_->source->Describe();
  for (auto& info : engine_->target->Describe()) out.push_back(std::move(info));
  return out;
}

bool Shard::Quiet() const { return calls_->idle() && proposals_.size() == 0; }

AlertFacts Shard::Facts() const {
  AlertFacts f;
  f.formed = formed();
  if (!f.formed) return f;
  f.leader = raft_.role == consensus::Role::kLeader;
  f.leader_known = static_cast<bool>(raft_.leader);
  f.since_leader = since_leader();
  f.lag = lag();
  if (f.leader) {
    for (const auto& member : state().members()) {
      if (member.member() == identity_.member.value()) continue;
      f.others.push_back(
          {member.name(), member.learner(), heard_lately(MemberId(member.member()))});
    }
  }
  f.sending = !state().outgoing().empty();
  f.receiving = !state().incoming().empty();
  f.quarantined = state().counts().quarantined();
  for (const auto& [key, text] : machine_alerts_) {
    if (key.first == transfer::kAlertLost) f.lost.push_back(text);
    if (key.first == transfer::kAlertHold) f.held.push_back(text);
    if (key.first == transfer::kAlertStuck || key.first == transfer::kAlertSplitWaits)
      f.stuck.push_back(text);
  }
  f.disk_full = disk_low_;
  if (Status s = log_.Health(); !s.ok()) f.store_failure = s.message();
  if (Status s = engine_->store->Health(); !s.ok()) f.store_failure = s.message();
  const auto balance = RebalancerState();
  f.all_weights_zero = balance.state() == "ALL_WEIGHTS_ZERO";
  f.all_locked = balance.state() == "ALL_LOCKED";
  f.collection_incomplete = !state().topology().complete();
  return f;
}

}  // namespace etalon::storage
