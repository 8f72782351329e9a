#include "engine/consensus/replica.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace etalon::consensus {
namespace {

// Rounds on their way; more would not come back earlier.
constexpr std::size_t kOpenRounds = 16;

bool Contains(const std::vector<MemberId>& members, MemberId id) {
  return std::binary_search(members.begin(), members.end(), id);
}

Status Fits(const log::SegmentedLog& log, const AppliedState& applied) {
  const bool blank = log.recovered().blank;
  if (blank && !applied.index) return OkStatus();
  const auto term = blank ? std::nullopt : log.TermAt(applied.index);
  if (term == applied.term) return OkStatus();
  return DataLoss(
      "the state is at index " + std::to_string(applied.index.value()) + " of term " +
      std::to_string(applied.term.value()) + ", but the log " +
      (blank ? "is blank"
             : "has (" + std::to_string(log.First().value() - 1) + ", " +
                   std::to_string(log.Last().value()) + "]") +
      ": they do not belong together; this replica's disk counts as lost, replace the replica");
}

}  // namespace

Result<std::unique_ptr<Replica>> Replica::Open(const Options& options, Env& env,
                                               log::SegmentedLog& log, Owner& owner) {
  ETALON_RETURN_IF_ERROR(Fits(log, owner.Applied()));
  return std::unique_ptr<Replica>(new Replica(options, env, log, owner));
}

Replica::Replica(const Options& options, Env& env, log::SegmentedLog& log, Owner& owner)
    : options_(options),
      env_(env),
      log_(log),
      owner_(owner),
      random_(env.random.Fork()),
      life_(random_.NextId()),
      lease_({options.election_ticks, options.tick, options.drift_percent}) {
  log_.SetCallbacks({
      .ready = [this] { Start(); },
      .durable = [this](std::uint64_t number) { OnDurable(number); },
      .fetched =
          [this] {
            consensus_->Fetched();
            Schedule();
          },
      .failed = [this](Status status) { owner_.OnLogFailed(status); },
      .snapshot_provider = [this](MemberId to,
                                  LogIndex at_least) { return ProvideSnapshot(to, at_least); },
  });
}

Replica::~Replica() {
  if (tick_timer_ != 0) env_.core.Cancel(tick_timer_);
}

void Replica::Start() {
  const AppliedState applied = owner_.Applied();
  members_ = applied.members;
  applied_ = applied.index;
  consensus::Options o;
  o.id = options_.self;
  o.applied = applied.index;
  o.hard_state = log_.hard_state();
  o.members = applied.members;
  o.life = life_;
  o.election_ticks = options_.election_ticks;
  o.heartbeat_ticks = options_.heartbeat_ticks;
  o.vote_holdoff_ticks = options_.election_ticks;
  o.max_message_bytes = options_.message_bytes;
  o.max_inflight = options_.inflight_messages;
  o.max_committed_bytes = options_.apply_bytes;
  o.max_uncommitted_bytes = options_.uncommitted_bytes;
  consensus_.emplace(o, log_);
  progress_at_ = env_.clock.Now();
  // Nobody else could lead: no need to wait for the timeout. Ignored if the log knows of other
  // voters.
  if (members_.voters == std::vector<MemberId>{options_.self}) consensus_->Campaign();
  Schedule();
  ScheduleTick();
}

void Replica::Step(MemberId from, std::string_view payload) {
  if (!consensus_ || blocked_ || payload.empty()) return;
  if (Contains(members_.voters, from) || Contains(members_.learners, from))
    heard_[from] = env_.clock.Now();
  const char kind = payload.front();
  payload.remove_prefix(1);
  if (kind == kRaftPayload) {
    std::optional<Offer> offer = consensus_->Step(payload);
    ObserveLease();
    if (offer) OnOffer(*std::move(offer));
  } else if (v1::SnapshotMessage message;
             kind == kSnapshotPayload &&
             message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    OnSnapshotMessage(from, std::move(message));
  }
  Schedule();
}

void Replica::OnDurable(std::uint64_t number) {
  durable_ = number;
  progress_at_ = env_.clock.Now();
  consensus_->Durable(number);
  OnPersisted();
  Schedule();
}

void Replica::Schedule() {
  if (std::exchange(pump_scheduled_, true)) return;
  env_.core.Post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) Pump();
  });
}

void Replica::Pump() {
  pump_scheduled_ = false;
  if (blocked_) return;
  for (;;) {
    const Output* out = consensus_->Take();
    if (out == nullptr) {
      OnDrained();
      if (reads_.WantsRound() && StartRound()) continue;
      break;
    }
    if (out->number != 0) appended_ = out->number;
    if (out->restored) OnRestoring(out->number);
    for (const Message& message : out->send) Send(message);
    for (const ReadState& read : out->reads) {
      lease_.RoundConfirmed(read.tag);
      reads_.RoundConfirmed(read.tag, read.index);
    }
    to_apply_ = out->committed;
    const bool applies = !to_apply_.empty();
    if (!ApplyTaken()) break;
    if (applies) {
      Schedule();  // the rest in a slice of its own
      break;
    }
  }
  Observe();
  reads_.Applied(applied_);
}

void Replica::Send(const Message& message) {
  std::string payload;
  payload.reserve(message.bytes.size() + 1);
  payload += kRaftPayload;
  payload += message.bytes;
  if (owner_.SendToMember(message.to, Lane::kControl, std::move(payload)) == SendResult::kQueued)
    return;
  consensus_->Unreachable(message.to);
  if (message.kind == Consensus::kSnapshotMessage) EndOutgoing(message.to, false);
}

bool Replica::ApplyTaken() {
  while (!to_apply_.empty()) {
    const auto change = std::find_if(to_apply_.begin(), to_apply_.end(),
                                     [](const Entry& e) { return e.kind == EntryKind::kMembers; });
    const bool changes = change != to_apply_.end();
    const auto group =
        to_apply_.first(static_cast<std::size_t>(change - to_apply_.begin()) + (changes ? 1 : 0));
    if (changes && !change_) change_ = consensus_->ApplyMembers(group.back());
    if (const Status status = owner_.Apply(group, changes ? &*change_ : nullptr); !status.ok()) {
      blocked_ = true;
      if (!std::exchange(refused_, true)) {
        env_.log.Warning("apply_refused",
                         {{"index", group.front().index.value()}, {"why", status.ToString()}});
      }
      consensus_->Resign();
      return false;
    }
    refused_ = false;
    if (changes) {
      members_ = std::move(change_->members);
      std::erase_if(heard_, [this](const auto& heard) { return !IsMember(heard.first); });
      change_.reset();
    }
    applied_ = group.back().index;
    ObserveLease();
    lease_.Applied(group.back().term);
    consensus_->Applied(applied_);
    to_apply_ = to_apply_.subspan(group.size());
  }
  return true;
}

void Replica::ObserveLease() {
  const RaftStatus now = consensus_->GetStatus();
  lease_.Observe(now.role == Role::kLeader, now.term);
}

void Replica::Observe() {
  ObserveLease();
  const RaftStatus now = consensus_->GetStatus();
  const RaftStatus before = std::exchange(seen_, now);
  const bool led = before.role == Role::kLeader;
  const bool leads = now.role == Role::kLeader;
  if (led && (!leads || now.term != before.term)) {
    while (!outgoing_.empty()) EndOutgoing(outgoing_.begin()->first, false);
    retry_at_.clear();
    reads_.FailAll(NotLeader());
  }
  WatchHandover(env_.clock.Now());
  if (now.role != before.role || now.leader != before.leader || now.term != before.term)
    owner_.OnRole(now);
}

// ---- time ----

void Replica::ScheduleTick() {
  // Read after the tick, so that however long the process stood still there is a whole gap between
  // two ticks.
  const SteadyTime now = env_.clock.Now();
  tick_timer_ =
      env_.core.PostAt(now + random_.Between(options_.tick, 2 * options_.tick), [this] { Tick(); });
}

void Replica::Tick() {
  tick_timer_ = 0;
  const SteadyTime now = env_.clock.Now();
  if (std::exchange(blocked_, false)) (void)ApplyTaken();
  const bool stalled = blocked_ || DiskHangs(now);
  if (stalled && !stalled_) {
    env_.log.Warning("replica_stalled",
                     {{"unwritten", appended_ - durable_}, {"apply_refused", blocked_}});
  }
  stalled_ = stalled;
  if (stalled_) {
    consensus_->Resign();
  } else {
    consensus_->Tick();
    if (++ticks_ % options_.heartbeat_ticks == 0 && !lease_.given_up()) (void)StartRound();
  }
  // After a hand-over that failed: only a new term has a lease again.
  if (Leads() && lease_.given_up() && !handover_ && !status().transferee) consensus_->Reelect();
  ObserveLease();
  reads_.Expire(now);
  WatchSnapshots(now);
  TrimLog();
  Observe();
  Schedule();
  ScheduleTick();
}

bool Replica::DiskHangs(SteadyTime now) {
  // On a full disk a leader goes on: its reads are right, its writes are refused, and others' disks
  // may be full as well.
  if (durable_ >= appended_ || !log_.Health().ok()) progress_at_ = now;
  return now - progress_at_ >= options_.disk_stall;
}

void Replica::TrimLog() {
  const std::uint64_t entries = log_.Last().value() - log_.First().value() + 1;
  const std::uint64_t bytes = log_.SizeBytes();
  // What is over the bounds, in entries; bytes are taken as evenly spread.
  std::uint64_t excess = entries > options_.log_entries ? entries - options_.log_entries : 0;
  if (bytes > options_.log_bytes) {
    const double share =
        static_cast<double>(bytes - options_.log_bytes) / static_cast<double>(bytes);
    excess = std::max(excess, static_cast<std::uint64_t>(share * static_cast<double>(entries)));
  }
  if (excess == 0) return;
  LogIndex up_to(std::min(log_.First().value() - 1 + excess, applied_.value()));
  up_to = std::min(up_to, owner_.CheckpointIndex());
  if (bytes <= 2 * options_.log_bytes) {
    for (const auto& [to, sender] : outgoing_) up_to = std::min(up_to, sender.snapshot().index);
  }
  if (up_to >= log_.First()) log_.Trim(up_to);
}

// ---- proposals and members ----

Status Replica::NotLeader() const {
  const RaftStatus now = status();
  Hint hint;
  hint.term = now.term;
  const bool known = now.leader && now.leader != options_.self;
  if (known) hint.text = ToHex(now.leader.value());
  return Unavailable(
      Reason::kNonMaster,
      known ? "replica " + hint.text + " leads this shard" : "this replica does not lead its shard",
      std::move(hint));
}

Result<Proposed> Replica::Judged(const Proposed& proposed) {
  switch (proposed.verdict) {
    case Verdict::kAccepted:
      Schedule();
      return proposed;
    case Verdict::kNotLeader:
      return NotLeader();
    case Verdict::kTransferring:
      return Unavailable(Reason::kNonMaster, "the leadership of this shard is being handed over",
                         Hint{.term = status().term});
    case Verdict::kOverLimit:
      return ResourceExhausted("too much is proposed and not yet committed: slow down");
    case Verdict::kChangePending:
      return Unavailable(Reason::kNone, "another change of members is under way");
    case Verdict::kLeaderItself:
      return FailedPrecondition(Reason::kNone, "a leader does not remove itself: hand over first");
  }
  return Internal("unknown verdict");
}

Result<Proposed> Replica::Propose(std::string_view data) {
  if (!consensus_) return NotLeader();
  ETALON_RETURN_IF_ERROR(log_.Health());
  if (log_.PendingBytes() > options_.pending_bytes) {
    return ResourceExhausted("the log of this replica is behind with writing: slow down");
  }
  return Judged(consensus_->Propose(data));
}

Result<Proposed> Replica::AddLearner(MemberId member, std::string_view context) {
  if (!Leads()) return NotLeader();
  if (Contains(members_.learners, member)) {
    return Status(Code::kAlreadyExists, Reason::kNone, "it is a learner already");
  }
  if (Contains(members_.voters, member)) {
    return Status(Code::kAlreadyExists, Reason::kNone, "it is a voter already");
  }
  return Judged(consensus_->AddLearner(member, context));
}

Result<Proposed> Replica::AddVoter(MemberId member, std::string_view context) {
  if (!Leads()) return NotLeader();
  if (Contains(members_.voters, member)) {
    return Status(Code::kAlreadyExists, Reason::kNone, "it is a voter already");
  }
  if (!Contains(members_.learners, member)) {
    return FailedPrecondition(Reason::kNone,
                              "it is no learner: add it as one and let it catch up first");
  }
  ETALON_RETURN_IF_ERROR(CheckCaughtUp(member));
  return Judged(consensus_->AddVoter(member, context));
}

Result<Proposed> Replica::Remove(MemberId member, std::string_view context) {
  if (!Leads()) return NotLeader();
  if (!IsMember(member)) {
    return NotFound("it is no member of this shard");
  }
  return Judged(consensus_->Remove(member, context));
}

Status Replica::CheckCaughtUp(MemberId member) const {
  const std::optional<Progress> progress = consensus_->GetProgress(member);
  if (!progress || !HeardLately(member))
    return Unavailable(Reason::kNone, "nothing was heard from it lately");
  if (!progress->matched)
    return Unavailable(Reason::kNone, "it has not taken an entry from this leader yet");
  const std::uint64_t lag = log_.Last().value() - std::min(log_.Last(), progress->matched).value();
  if (progress->state == Progress::State::kSnapshot || lag > options_.caught_up_entries) {
    return Unavailable(Reason::kNone,
                       "it lacks " + std::to_string(lag) + " entries: let it catch up first");
  }
  return OkStatus();
}

// ---- hand-over ----

void Replica::TransferLeadership(MemberId to, Deadline deadline,
                                 UniqueFunction<void(Status)> done) {
  const auto start = [&]() -> Status {
    if (!Leads()) return NotLeader();
    if (handover_) return Unavailable(Reason::kNone, "another hand-over is under way");
    if (!Contains(members_.voters, to)) {
      return FailedPrecondition(Reason::kNone, "it is no voter of this shard: it cannot lead");
    }
    ETALON_RETURN_IF_ERROR(CheckCaughtUp(to));
    lease_.GiveUp();
    if (!consensus_->Transfer(to))
      return Unavailable(Reason::kNone, "the hand-over cannot start now");
    return OkStatus();
  };
  if (to == options_.self && Leads()) return done(OkStatus());
  if (const Status status = start(); !status.ok()) return done(status);
  handover_ = Handover{to, status().term, deadline, std::move(done)};
  Schedule();
}

void Replica::WatchHandover(SteadyTime now) {
  if (!handover_) return;
  const RaftStatus at = status();
  std::optional<Status> end;
  if (at.term > handover_->term && at.leader) {
    end = at.leader == handover_->to ? OkStatus()
                                     : Aborted(Reason::kNone, "another replica was elected");
  } else if (at.role == Role::kLeader && !at.transferee) {
    end = Aborted(Reason::kNone, "it did not take over in time");
  } else if (handover_->deadline.Passed(now)) {
    end = DeadlineExceeded("it did not take over in time");
  }
  if (!end) return;
  Handover ended = *std::move(std::exchange(handover_, std::nullopt));
  ended.done(*std::move(end));
}

std::optional<MemberId> Replica::BestSuccessor() const {
  if (!Leads()) return std::nullopt;
  std::optional<MemberId> best;
  LogIndex matched;
  for (MemberId voter : members_.voters) {
    if (voter == options_.self || !CheckCaughtUp(voter).ok()) continue;
    const LogIndex its = consensus_->GetProgress(voter)->matched;
    if (!best || its > matched) {
      best = voter;
      matched = its;
    }
  }
  return best;
}

// ---- reads ----

bool Replica::StartRound() {
  if (!Leads() || stalled_ || lease_.rounds_open() >= kOpenRounds) return false;
  const SteadyTime before = env_.clock.Now();
  const std::uint64_t tag = next_tag_++;
  if (!consensus_->Read(tag)) return false;
  lease_.RoundSent(tag, before);
  reads_.RoundSent(tag);
  return true;
}

void Replica::ReadBarrier(Deadline deadline, UniqueFunction<void(Status)> done) {
  if (!Leads()) return done(NotLeader());
  const SteadyTime now = env_.clock.Now();
  if (lease_.Has(now)) return done(OkStatus());
  if (deadline.Passed(now)) return done(DeadlineExceeded("the deadline of the read has passed"));
  if (reads_.size() >= options_.waiting_reads) {
    return done(ResourceExhausted("too many reads wait for a majority: slow down"));
  }
  reads_.Add(deadline, std::move(done));
  Schedule();
}

bool Replica::IsMember(MemberId id) const {
  return Contains(members_.voters, id) || Contains(members_.learners, id);
}
bool Replica::Leads() const { return consensus_ && consensus_->GetStatus().role == Role::kLeader; }
bool Replica::HasLease() const { return lease_.Has(env_.clock.Now()); }
RaftStatus Replica::status() const { return consensus_ ? consensus_->GetStatus() : RaftStatus{}; }
std::optional<Progress> Replica::GetProgress(MemberId member) const {
  return consensus_ ? consensus_->GetProgress(member) : std::nullopt;
}

bool Replica::HeardLately(MemberId member) const {
  const auto heard = heard_.find(member);
  const auto timeout = options_.tick * static_cast<Duration::rep>(options_.election_ticks);
  return heard != heard_.end() && env_.clock.Now() - heard->second < timeout;
}

}  // namespace etalon::consensus
