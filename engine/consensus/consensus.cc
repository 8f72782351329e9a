#include "engine/consensus/consensus.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "common/check.h"

namespace etalon::consensus {

// The border: keep in step with raft_glue/abi.rs (raft_abi() catches a difference in size).
template <typename T>
struct View {
  const T* data = nullptr;
  std::size_t size = 0;
};
extern "C" {
struct CEntry {
  std::uint64_t index, term;
  std::uint32_t kind;
  View<char> data;
};
struct CMessage {
  std::uint64_t to;
  std::uint32_t kind;
  View<char> bytes;
};
struct CRead {
  std::uint64_t tag, index;
};
struct CHard {
  std::uint64_t term, vote, commit;
};
struct CMembers {
  View<std::uint64_t> voters, learners;
};
struct CSnapshot {
  std::uint64_t index, term, from;
  CMembers members;
  View<char> name;
};
struct CStatus {
  std::uint32_t role;
  std::uint64_t leader, term, commit, transferee;
  std::uint32_t members_pending;
};
struct CProgress {
  std::uint64_t matched;
  std::uint32_t state;
};
struct COutput {
  std::uint64_t number;
  std::uint32_t must_sync, has_hard, has_snapshot;
  CHard hard;
  CSnapshot snapshot;
  View<CEntry> entries;
  View<CMessage> messages;
  View<CEntry> committed;
  View<CRead> reads;
};
struct COptions {
  std::uint64_t id, applied, election_ticks, heartbeat_ticks, max_message_bytes, max_inflight,
      max_committed_bytes, max_uncommitted_bytes, vote_holdoff_ticks, life;
  CHard hard;
  CMembers members;
};
struct Callbacks {
  void* ctx;
  std::uint64_t (*first)(void*);
  std::uint64_t (*last)(void*);
  int (*term)(void*, std::uint64_t, std::uint64_t*);
  int (*entries)(void*, std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, void*);
  int (*snapshot)(void*, std::uint64_t, std::uint64_t, CSnapshot*);
  void (*warn)(void*, View<char>);
};
struct Node;
Node* raft_open(const COptions*, const Callbacks*);
void raft_close(Node*);
void raft_sink_add(void*, const CEntry*);
void raft_status(const Node*, CStatus*);
int raft_progress(const Node*, std::uint64_t, CProgress*);
void raft_tick(Node*);
void raft_campaign(Node*);
void raft_resign(Node*);
void raft_reelect(Node*);
int raft_propose(Node*, View<char>, std::uint64_t* index, std::uint64_t* term);
int raft_change(Node*, int kind, std::uint64_t member, View<char> context, std::uint64_t* index);
int raft_apply_change(Node*, View<char>, CMembers*, View<char>* context);
int raft_step(Node*, View<char>, CSnapshot*);
int raft_install(Node*, View<char>);
int raft_take(Node*, COutput*);
void raft_advance(Node*);
void raft_durable(Node*, std::uint64_t);
void raft_applied(Node*, std::uint64_t);
void raft_fetched(Node*);
int raft_transfer(Node*, std::uint64_t);
int raft_read(Node*, std::uint64_t);
void raft_report(Node*, std::uint64_t, int);
int raft_request_snapshot(Node*);
std::size_t raft_abi();
}

namespace {

// Flags of Callbacks::entries.
constexpr std::uint32_t kMayWait = 1;
constexpr std::uint32_t kBare = 2;

// Numbers of raft_change and raft_report.
constexpr int kAddVoter = 0;
constexpr int kRemove = 1;
constexpr int kAddLearner = 2;
constexpr int kUnreachable = 0;
constexpr int kSnapshotArrived = 1;
constexpr int kSnapshotFailed = 2;
// Answers of Callbacks and of the functions that may refuse.
constexpr int kFound = 0;
constexpr int kCompacted = 1;
constexpr int kAbsent = 2;
constexpr int kNotNow = 3;
constexpr int kOffered = 3;

View<char> ToC(std::string_view s) { return {s.data(), s.size()}; }
CEntry ToC(const Entry& e) {
  return {e.index.value(), e.term.value(), static_cast<std::uint32_t>(e.kind), ToC(e.data)};
}

template <typename T>
std::span<const T> Items(View<T> v) {
  return {v.data, v.size};
}
std::string_view FromC(View<char> v) { return {v.data, v.size}; }
Entry FromC(const CEntry& e) {
  return {LogIndex(e.index), Term(e.term), static_cast<EntryKind>(e.kind), FromC(e.data)};
}
std::vector<MemberId> FromC(View<std::uint64_t> ids) {
  std::vector<MemberId> v;
  for (std::uint64_t id : Items(ids)) v.emplace_back(id);
  std::sort(v.begin(), v.end());
  return v;
}
Members FromC(const CMembers& m) { return {FromC(m.voters), FromC(m.learners)}; }
Snapshot FromC(const CSnapshot& s) {
  return {LogIndex(s.index), Term(s.term), FromC(s.members), std::string(FromC(s.name))};
}

// The numbers of members, kept while a CMembers points to them.
struct PlainMembers {
  std::vector<std::uint64_t> voters;
  std::vector<std::uint64_t> learners;

  CMembers Set(const Members& m) {
    voters.clear();
    learners.clear();
    for (MemberId id : m.voters) voters.push_back(id.value());
    for (MemberId id : m.learners) learners.push_back(id.value());
    return {{voters.data(), voters.size()}, {learners.data(), learners.size()}};
  }
};

}  // namespace

struct Consensus::Impl {
  Log& log;
  Node* node = nullptr;
  std::vector<Entry> found;  // answer of Log::Read, on its way to the crate
  Snapshot newest;           // answer of Log::SnapshotFor, likewise
  PlainMembers newest_members;
  std::vector<Entry> entries;  // of the Persist being handed over
  Output output;

  explicit Impl(Log& l) : log(l) {}
  static Impl& Of(void* ctx) { return *static_cast<Impl*>(ctx); }

  Callbacks Table();
  Proposed Change(int kind, MemberId member, std::string_view context);
};

Callbacks Consensus::Impl::Table() {
  Callbacks c{};
  c.ctx = this;
  c.first = [](void* x) noexcept { return Of(x).log.First().value(); };
  c.last = [](void* x) noexcept { return Of(x).log.Last().value(); };
  c.term = [](void* x, std::uint64_t index, std::uint64_t* term) noexcept {
    const Log& asked = Of(x).log;
    if (auto t = asked.TermAt(LogIndex(index))) {
      *term = t->value();
      return kFound;
    }
    return index < asked.First().value() ? kCompacted : kAbsent;
  };
  c.entries = [](void* x, std::uint64_t low, std::uint64_t high, std::uint64_t max,
                 std::uint32_t flags, void* sink) noexcept {
    Impl& self = Of(x);
    self.found.clear();
    const Log::Answer answer =
        self.log.Read(LogIndex(low), LogIndex(high), max, (flags & kBare) == 0,
                      (flags & kMayWait) != 0, &self.found);
    for (const Entry& e : self.found) {
      const CEntry ce = ToC(e);
      raft_sink_add(sink, &ce);
    }
    return static_cast<int>(answer);
  };
  c.snapshot = [](void* x, std::uint64_t to, std::uint64_t at_least, CSnapshot* out) noexcept {
    Impl& self = Of(x);
    auto s = self.log.SnapshotFor(MemberId(to), LogIndex(at_least));
    if (!s) return kNotNow;
    self.newest = std::move(*s);
    *out = {self.newest.index.value(), self.newest.term.value(), 0,
            self.newest_members.Set(self.newest.members), ToC(std::string_view(self.newest.name))};
    return kFound;
  };
  c.warn = [](void* x, View<char> text) noexcept { Of(x).log.Warn(FromC(text)); };
  return c;
}

Proposed Consensus::Impl::Change(int kind, MemberId member, std::string_view context) {
  static constexpr Verdict kVerdicts[] = {Verdict::kAccepted, Verdict::kNotLeader,
                                          Verdict::kTransferring, Verdict::kChangePending,
                                          Verdict::kLeaderItself};
  std::uint64_t index = 0;
  const int answer = raft_change(node, kind, member.value(), ToC(context), &index);
  CStatus s{};
  raft_status(node, &s);
  return {kVerdicts[answer], LogIndex(index), Term(s.term)};
}

Consensus::Consensus(const Options& o, Log& log) : impl_(std::make_unique<Impl>(log)) {
  ETALON_CHECK(raft_abi() == sizeof(COutput) * 1000 + sizeof(COptions) +
                                 static_cast<std::size_t>(EntryKind::kMembers),
               "raft_glue was built from other sources than consensus.cc");
  PlainMembers members;
  const COptions c{
      o.id.value(),
      o.applied.value(),
      o.election_ticks,
      o.heartbeat_ticks,
      o.max_message_bytes,
      o.max_inflight,
      o.max_committed_bytes,
      o.max_uncommitted_bytes,
      o.vote_holdoff_ticks,
      o.life,
      {o.hard_state.term.value(), o.hard_state.vote.value(), o.hard_state.commit.value()},
      members.Set(o.members)};
  const Callbacks table = impl_->Table();
  impl_->node = raft_open(&c, &table);
  ETALON_CHECK(impl_->node != nullptr,
               "the log and the options of consensus contradict each other");
}

Consensus::~Consensus() { raft_close(impl_->node); }

void Consensus::Tick() { raft_tick(impl_->node); }

std::optional<Offer> Consensus::Step(std::string_view message) {
  CSnapshot s{};
  if (raft_step(impl_->node, ToC(message), &s) != kOffered) return std::nullopt;
  return Offer{MemberId(s.from), FromC(s), std::string(message)};
}

bool Consensus::Install(const Offer& offer) {
  return raft_install(impl_->node, ToC(std::string_view(offer.message))) != 1;
}

const Output* Consensus::Take() {
  COutput c{};
  if (!raft_take(impl_->node, &c)) return nullptr;
  Output& out = impl_->output;
  out.send.clear();
  out.committed.clear();
  out.reads.clear();
  out.number = 0;
  out.restored = c.has_snapshot != 0;
  if (c.number != 0 && (c.must_sync || c.has_hard)) {
    auto& entries = impl_->entries;
    entries.clear();
    for (const CEntry& e : Items(c.entries)) entries.push_back(FromC(e));
    Persist p{c.number, c.must_sync != 0, std::nullopt, std::nullopt, entries};
    if (c.has_hard)
      p.hard_state = HardState{Term(c.hard.term), MemberId(c.hard.vote), LogIndex(c.hard.commit)};
    if (c.has_snapshot) p.snapshot = FromC(c.snapshot);
    impl_->log.Append(p);
    if (p.sync) out.number = p.number;
  }
  for (const CMessage& m : Items(c.messages))
    out.send.push_back({MemberId(m.to), m.kind, FromC(m.bytes)});
  for (const CEntry& e : Items(c.committed)) out.committed.push_back(FromC(e));
  for (const CRead& r : Items(c.reads)) out.reads.push_back({r.tag, LogIndex(r.index)});
  raft_advance(impl_->node);
  return &out;
}

void Consensus::Durable(std::uint64_t number) { raft_durable(impl_->node, number); }
void Consensus::Applied(LogIndex index) { raft_applied(impl_->node, index.value()); }
void Consensus::Fetched() { raft_fetched(impl_->node); }

Proposed Consensus::Propose(std::string_view commands) {
  std::uint64_t index = 0;
  std::uint64_t term = 0;
  const int answer = raft_propose(impl_->node, ToC(commands), &index, &term);
  return {static_cast<Verdict>(answer), LogIndex(index), Term(term)};
}
Proposed Consensus::AddVoter(MemberId m, std::string_view context) {
  return impl_->Change(kAddVoter, m, context);
}
Proposed Consensus::Remove(MemberId m, std::string_view context) {
  return impl_->Change(kRemove, m, context);
}
Proposed Consensus::AddLearner(MemberId m, std::string_view context) {
  return impl_->Change(kAddLearner, m, context);
}

MembersChange Consensus::ApplyMembers(const Entry& entry) {
  CMembers m{};
  View<char> context;
  ETALON_CHECK(raft_apply_change(impl_->node, ToC(entry.data), &m, &context) == 0,
               "a committed change of members cannot be applied");
  return {FromC(m), std::string(FromC(context))};
}

bool Consensus::Transfer(MemberId to) { return raft_transfer(impl_->node, to.value()) == 0; }
bool Consensus::Read(std::uint64_t tag) { return raft_read(impl_->node, tag) == 0; }
void Consensus::Campaign() { raft_campaign(impl_->node); }
void Consensus::Resign() { raft_resign(impl_->node); }
void Consensus::Reelect() { raft_reelect(impl_->node); }
void Consensus::Unreachable(MemberId member) {
  raft_report(impl_->node, member.value(), kUnreachable);
}
void Consensus::SnapshotDone(MemberId member, bool arrived) {
  raft_report(impl_->node, member.value(), arrived ? kSnapshotArrived : kSnapshotFailed);
}
bool Consensus::RequestSnapshot() { return raft_request_snapshot(impl_->node) == 0; }

RaftStatus Consensus::GetStatus() const {
  CStatus s{};
  raft_status(impl_->node, &s);
  return {static_cast<Role>(s.role), MemberId(s.leader),     Term(s.term),
          LogIndex(s.commit),        MemberId(s.transferee), s.members_pending != 0};
}

std::optional<Progress> Consensus::GetProgress(MemberId member) const {
  CProgress p{};
  if (raft_progress(impl_->node, member.value(), &p) != 0) return std::nullopt;
  return Progress{LogIndex(p.matched), static_cast<Progress::State>(p.state)};
}

}  // namespace etalon::consensus
