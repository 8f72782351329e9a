#include "engine/consensus/replica_sim.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/bytes.h"
#include "common/check.h"

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kCheckpointEvery = 60;  // entries
constexpr std::size_t kPadding = 3000;

void PutIds(std::string* out, const std::vector<MemberId>& ids) {
  PutLe64(out, ids.size());
  for (MemberId id : ids) PutLe64(out, id.value());
}
std::uint64_t Get(std::string_view* in) {
  std::uint64_t value = 0;
  ETALON_CHECK(GetLe64(in, &value), "a state of the test is too short");
  return value;
}
std::vector<MemberId> GetIds(std::string_view* in) {
  std::vector<MemberId> ids(Get(in));
  for (MemberId& id : ids) id = MemberId(Get(in));
  return ids;
}
std::uint64_t MixIn(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

class StringSource final : public SnapshotSource {
 public:
  explicit StringSource(std::string bytes) : bytes_(std::move(bytes)) {}
  Result<std::optional<std::string>> NextChunk(std::size_t max_bytes) override {
    if (at_ == bytes_.size()) return std::optional<std::string>();
    std::string chunk = bytes_.substr(at_, max_bytes);
    at_ += chunk.size();
    return std::optional(std::move(chunk));
  }

 private:
  const std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::string ChainState::Encode() const {
  std::string out;
  PutLe64(&out, at.index.value());
  PutLe64(&out, at.term.value());
  PutLe64(&out, hash);
  PutIds(&out, at.members.voters);
  PutIds(&out, at.members.learners);
  out.append(kPadding, 'p');
  return out;
}

ChainState ChainState::Decode(std::string_view bytes) {
  ChainState state;
  state.at.index = LogIndex(Get(&bytes));
  state.at.term = Term(Get(&bytes));
  state.hash = Get(&bytes);
  state.at.members.voters = GetIds(&bytes);
  state.at.members.learners = GetIds(&bytes);
  ETALON_CHECK(bytes.size() == kPadding, "a state of the test has a wrong size");
  return state;
}

// Its durable form is a file of the generation's name.
class SimNode::Sink final : public SnapshotSink {
 public:
  Sink(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  Status Add(std::string chunk) override {
    bytes_ += chunk;
    return OkStatus();
  }
  void Finish(UniqueFunction<void(Status)> done) override {
    auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
    DiskJob job = ReplaceFile(path_, bytes_);
    job.insert(job.begin(), DiskOp::MakeDir("gen"));
    job.push_back(DiskOp::SyncDir(""));
    disk_.Submit(std::move(job), [shared, alive = std::weak_ptr<bool>(alive_)](Status status) {
      if (!alive.expired()) (*shared)(std::move(status));
    });
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Disk& disk_;
  const std::string path_;
  std::string bytes_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

SimNode::SimNode(sim::SimWorld& world, Truth& truth, MemberId id, Replica::Options options)
    : world_(world), truth_(truth), id_(id), name_(NameOf(id)), options_([&] {
        options.self = id;
        return options;
      }()) {}

void SimNode::OpenLog() {
  auto opened =
      log::SegmentedLog::Open(env_->disk, env_->core, env_->clock, env_->random.Fork(), env_->log,
                              {.dir = "log", .segment_bytes = 32 << 10, .cache_bytes = 16 << 10});
  ETALON_CHECK(opened.ok(), opened.status().ToString());
  log_ = *std::move(opened);
}

void SimNode::Form(const Members& members) {
  // Up to a tenth less than half of what Lease::Options::drift_percent allows for.
  const auto drift = static_cast<std::int64_t>(world_.random().Below(90'001)) - 45'000;
  env_.emplace(
      world_.AddNode(name_, {world_.random().Between(Duration::zero(), seconds(100)), drift}));
  if (!members.voters.empty()) {
    OpenLog();
    state_ = {{LogIndex(1), Term(1), members}, 0};
    bool done = false;
    const Status status = WriteBase(*log_, FirstBase(members), Term(1), [&](Status written) {
      ETALON_CHECK(written.ok(), written.ToString());
      DiskJob job = ReplaceFile(GenerationPath("first"), state_.Encode());
      job.insert(job.begin(), DiskOp::MakeDir("gen"));
      for (DiskOp& op : ReplaceFile("CURRENT", "first")) job.push_back(std::move(op));
      env_->disk.Submit(std::move(job), [&done](Status stored) { done = stored.ok(); });
    });
    ETALON_CHECK(status.ok(), status.ToString());
    ETALON_CHECK(world_.RunUntil([&] { return done; }, seconds(10)), "a replica was not formed");
    log_.reset();
  }
  world_.Crash(name_);
}

void SimNode::Start() {
  env_.emplace(world_.Restart(name_));
  OpenLog();
  LoadState();
  auto opened = Replica::Open(options_, *env_, *log_, *this);
  ETALON_CHECK(opened.ok(), opened.status().ToString());
  replica_ = *std::move(opened);
  world_.SetReceiver(name_, [this](const NodeName& from, Lane, const std::string& bytes) {
    replica_->Step(MemberId(std::stoull(from.substr(1))), bytes);
  });
}

void SimNode::Crash() {
  replica_.reset();
  log_.reset();
  waiting_.clear();
  checkpointing_ = false;
  world_.Crash(name_);
}

void SimNode::LoadState() {
  state_ = {};
  generation_ = "first";
  if (const auto current = ReadWhole(env_->disk, "CURRENT"); current.ok()) generation_ = *current;
  if (const auto bytes = ReadWhole(env_->disk, GenerationPath(generation_)); bytes.ok()) {
    state_ = ChainState::Decode(*bytes);
  }
  // Older than the log's base: the crash came between the log and CURRENT. The log names the
  // generation.
  if (state_.at.index.value() + 1 < log_->First().value()) {
    ETALON_CHECK(log_->recovered().snapshot.has_value(),
                 "the log was trimmed above the checkpoint");
    generation_ = log_->recovered().snapshot->name;
    const auto bytes = ReadWhole(env_->disk, GenerationPath(generation_));
    ETALON_CHECK(bytes.ok(), "the generation that the log names is not there");
    state_ = ChainState::Decode(*bytes);
    env_->disk.Submit(ReplaceFile("CURRENT", generation_), [](Status) {});
    ++truth_.late_swaps;
  }
  checkpoint_ = state_.at.index;
}

void SimNode::Checkpoint() {
  if (checkpointing_ || hold_checkpoints_ ||
      state_.at.index.value() < checkpoint_.value() + kCheckpointEvery)
    return;
  checkpointing_ = true;
  env_->disk.Submit(ReplaceFile(GenerationPath(generation_), state_.Encode()),
                    [this, index = state_.at.index, generation = generation_](Status status) {
                      checkpointing_ = false;
                      if (status.ok() && generation == generation_)
                        checkpoint_ = std::max(checkpoint_, index);
                    });
}

Status SimNode::Apply(std::span<const Entry> entries, const MembersChange* change) {
  if (refuse_ > 0) {
    --refuse_;
    return ResourceExhausted("the store of the test is full", Reason::kDiskFull);
  }
  for (const Entry& entry : entries) {
    EXPECT_EQ(entry.index, state_.at.index.Next()) << name_;
    state_.at.index = entry.index;
    state_.at.term = entry.term;
    state_.hash = MixIn(state_.hash, entry.term.value());
    for (char c : entry.data) state_.hash = MixIn(state_.hash, static_cast<unsigned char>(c));
    const auto [at, fresh] = truth_.history.emplace(entry.index, state_.hash);
    EXPECT_EQ(at->second, state_.hash)
        << name_ << " applied something else at " << entry.index.value();
    EXPECT_EQ(entry.kind == EntryKind::kMembers, change != nullptr && &entry == &entries.back());
    const auto waiting = waiting_.find(entry.index);
    if (waiting != waiting_.end()) {
      if (waiting->second == entry.term) {
        truth_.floor = std::max(truth_.floor, entry.index);
        ++truth_.writes;
      }
      waiting_.erase(waiting);
    }
  }
  if (change != nullptr) {
    state_.at.members = change->members;
    last_context_ = change->context;
  }
  world_.Mix(state_.hash);
  Checkpoint();
  return OkStatus();
}

bool SimNode::Write(std::size_t bytes) {
  std::string data(bytes, 'w');
  const std::uint64_t unique = world_.random().Next();
  data.replace(0, 8, reinterpret_cast<const char*>(&unique), 8);
  const auto proposed = replica_->Propose(data);
  if (proposed.ok()) waiting_[proposed->index] = proposed->term;
  return proposed.ok();
}

void SimNode::Read(Duration patience) {
  auto at_once = std::make_shared<bool>(true);
  replica_->ReadBarrier(In(patience), [this, at_once, floor = truth_.floor](const Status& status) {
    if (!status.ok()) return;
    ++truth_.reads;
    truth_.lease_reads += *at_once;
    truth_.stale += state_.at.index < floor;
    truth_.floor = std::max(truth_.floor, state_.at.index);
  });
  *at_once = false;
}

SendResult SimNode::SendToMember(MemberId to, Lane lane, std::string bytes) {
  return env_->net.Send(NameOf(to), lane, std::move(bytes));
}

std::unique_ptr<SnapshotSource> SimNode::StartSnapshot(AppliedState* meta) {
  if (refuse_snapshots_) return nullptr;
  ++snapshots_started_;
  *meta = state_.at;
  return std::make_unique<StringSource>(state_.Encode());
}

std::unique_ptr<SnapshotSink> SimNode::StartRestore(const Snapshot& meta) {
  if (refuse_restores_) return nullptr;
  return std::make_unique<Sink>(env_->disk, GenerationPath(meta.name));
}

void SimNode::OnRestored(const Snapshot& meta, std::unique_ptr<SnapshotSink> sink) {
  state_ = ChainState::Decode(static_cast<Sink&>(*sink).bytes());
  EXPECT_EQ(state_.at.index, meta.index);
  EXPECT_EQ(state_.at.term, meta.term);
  EXPECT_EQ(state_.at.members, meta.members);
  generation_ = meta.name;
  checkpoint_ = meta.index;  // durable, and named by the log
  waiting_.clear();
  ++truth_.restores;
  env_->disk.Submit(ReplaceFile("CURRENT", generation_), [](Status) {});
}

// ---- the shard ----

Replica::Options SimShard::TestOptions() {
  Replica::Options options;
  options.log_bytes = 96 << 10;
  options.caught_up_entries = 50;
  options.snapshot.chunk_bytes = 500;
  return options;
}

void SimShard::Form(std::uint64_t voters) {
  Members members;
  for (std::uint64_t id = 1; id <= voters; ++id) members.voters.emplace_back(id);
  truth.history[LogIndex(1)] = 0;
  for (std::uint64_t id = 1; id <= voters; ++id) {
    nodes[id] = std::make_unique<SimNode>(world, truth, MemberId(id), options);
    nodes[id]->Form(members);
  }
  for (auto& [id, node] : nodes) node->Start();
}

SimNode& SimShard::Add(std::uint64_t id) {
  nodes[id] = std::make_unique<SimNode>(world, truth, MemberId(id), options);
  nodes[id]->Form({});
  nodes[id]->Start();
  return *nodes[id];
}

SimNode* SimShard::Leader() {
  SimNode* best = nullptr;
  for (auto& [id, node] : nodes) {
    if (node->leads() && (!best || node->replica().status().term > best->replica().status().term))
      best = node.get();
  }
  return best;
}

SimNode& SimShard::WaitForLeader(Duration limit) {
  const bool found = RunUntil(
      [&] {
        SimNode* leader = Leader();
        return leader && leader->state().at.term == leader->replica().status().term;
      },
      limit);
  ETALON_CHECK(found, "nobody leads");
  return *Leader();
}

bool SimShard::Every(const std::function<bool()>& step, Duration limit) {
  const SteadyTime end = world.now() + limit;
  while (!step()) {
    if (world.now() >= end) return false;
    world.RunFor(milliseconds(1));
  }
  return true;
}

void SimShard::WriteSome(std::uint64_t writes) {
  const std::uint64_t end = truth.writes + writes;
  while (truth.writes < end) {
    WaitForLeader().Write();
    world.RunFor(milliseconds(1));
  }
}

void SimShard::Settle(Duration limit) {
  const bool settled = RunUntil(
      [&] {
        SimNode* leader = Leader();
        if (!leader || leader->state().at.index < truth.floor) return false;
        return std::all_of(nodes.begin(), nodes.end(), [&](const auto& n) {
          return !n.second->up() || n.second->state().at.index == leader->log().Last();
        });
      },
      limit);
  EXPECT_TRUE(settled) << "the replicas do not agree in time";
  for (auto& [id, node] : nodes) {
    if (node->up()) {
      EXPECT_EQ(node->state().hash, truth.history.rbegin()->second) << node->name();
    }
  }
}

void SimShard::AddLearner(std::uint64_t id) {
  EXPECT_TRUE(Every([&] {
    SimNode* leader = Leader();
    if (!leader) return false;
    const auto answer = leader->replica().AddLearner(MemberId(id), "name " + std::to_string(id));
    return answer.status().code() == Code::kAlreadyExists;
  }));
}

void SimShard::Promote(std::uint64_t id) {
  EXPECT_TRUE(Every([&] {
    SimNode* leader = Leader();
    if (!leader) return false;
    const auto answer = leader->replica().AddVoter(MemberId(id), "name " + std::to_string(id));
    return answer.status().code() == Code::kAlreadyExists;
  }));
}

void SimShard::Remove(std::uint64_t id) {
  EXPECT_TRUE(Every([&] {
    SimNode* leader = Leader();
    if (!leader) return false;
    if (leader->id() == MemberId(id)) {
      if (const auto to = leader->replica().BestSuccessor()) {
        leader->replica().TransferLeadership(*to, Deadline::Never(), [](const Status&) {});
      }
      return false;
    }
    return leader->replica().Remove(MemberId(id), "").status().code() == Code::kNotFound;
  }));
}

Status SimShard::Transfer(std::uint64_t to, Duration patience) {
  std::optional<Status> answer;
  SimNode& leader = WaitForLeader();
  leader.replica().TransferLeadership(MemberId(to), leader.In(patience),
                                      [&](Status status) { answer = std::move(status); });
  ETALON_CHECK(RunUntil([&] { return answer.has_value(); }, patience + seconds(2)),
               "a hand-over without an end");
  return *answer;
}

}  // namespace etalon::consensus
