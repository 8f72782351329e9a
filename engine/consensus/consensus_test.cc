// The machine alone: messages are carried by hand, the log is in memory, and what is durable is the
// test's choice.
#include "engine/consensus/consensus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

namespace etalon::consensus {
namespace {

// Kinds of the crate's messages.
constexpr std::uint32_t kAppend = 3;
constexpr std::uint32_t kRequestVote = 5;
constexpr std::uint32_t kHeartbeat = 8;
constexpr std::uint32_t kTimeoutNow = 14;
constexpr std::uint32_t kRequestPreVote = 17;

struct Record {
  Term term;
  EntryKind kind;
  std::string data;
};

// Entries (base, base + size], and the hard state: what one disk holds.
struct Tape {
  LogIndex base{1};
  Term base_term{1};
  std::deque<Record> records;
  HardState hard{Term(1), MemberId(), LogIndex(1)};

  LogIndex Last() const { return LogIndex(base.value() + records.size()); }
  const Record& At(LogIndex i) const { return records[i.value() - base.value() - 1]; }
};

// A Persist that owns its entries.
struct Write {
  std::uint64_t number = 0;
  bool sync = false;
  std::optional<HardState> hard;
  std::optional<Snapshot> snapshot;
  LogIndex first;
  std::vector<Record> records;

  void To(Tape* tape) const {
    if (snapshot) *tape = {snapshot->index, snapshot->term, {}, tape->hard};
    if (!records.empty()) {
      tape->records.resize(first.value() - tape->base.value() - 1);
      tape->records.insert(tape->records.end(), records.begin(), records.end());
    }
    if (hard) tape->hard = *hard;
  }
};

class MemoryLog final : public Log {
 public:
  Tape tape;                   // as appended
  std::vector<Write> written;  // all Persists of this life
  std::optional<Snapshot> snapshot;

  LogIndex First() const override { return tape.base.Next(); }
  LogIndex Last() const override { return tape.Last(); }
  std::optional<Term> TermAt(LogIndex i) const override {
    if (i == tape.base) return tape.base_term;
    if (i < tape.base || i > tape.Last()) return std::nullopt;
    return tape.At(i).term;
  }
  Answer Read(LogIndex low, LogIndex high, std::uint64_t max_bytes, bool with_data, bool,
              std::vector<Entry>* out) override {
    if (low <= tape.base) return Answer::kCompacted;
    if (high.value() > tape.Last().value() + 1) return Answer::kAbsent;
    for (std::uint64_t size = 0; low < high; low = low.Next()) {
      const Record& r = tape.At(low);
      if (!out->empty() && (size += r.data.size()) > max_bytes) break;
      out->push_back(
          {low, r.term, r.kind, with_data ? std::string_view(r.data) : std::string_view()});
    }
    return Answer::kOk;
  }
  std::optional<Snapshot> SnapshotFor(MemberId, LogIndex) override { return snapshot; }
  void Append(const Persist& p) override {
    Write write{p.number, p.sync, p.hard_state, p.snapshot, LogIndex(), {}};
    for (const Entry& e : p.entries) {
      if (!write.first) write.first = e.index;
      write.records.push_back({e.term, e.kind, std::string(e.data)});
    }
    write.To(&tape);
    written.push_back(std::move(write));
  }
  void Warn(std::string_view) override {}
};

struct Letter {
  MemberId from;
  MemberId to;
  std::uint32_t kind;
  std::string bytes;
};

class Peer {
 public:
  explicit Peer(std::uint64_t number) : id(number) {}

  void Start(Members as_of_applied, LogIndex applied_index = LogIndex(1),
             std::uint64_t holdoff = 10) {
    members = std::move(as_of_applied);
    applied = applied_index;
    Options o;
    o.id = id;
    o.applied = applied;
    o.hard_state = log.tape.hard;
    o.members = members;
    o.life = ++life;
    o.vote_holdoff_ticks = holdoff;
    log.written.clear();
    c.emplace(o, log);
  }
  void Tick(int times = 1) {
    while (times-- > 0) c->Tick();
  }
  bool leads() const { return c->GetStatus().role == Role::kLeader; }
  Term term() const { return c->GetStatus().term; }

  const MemberId id;
  std::uint64_t life = 0;
  MemoryLog log;
  Members members;
  LogIndex applied;
  std::string context;
  std::vector<ReadState> reads;
  std::vector<Offer> offers;
  std::optional<Consensus> c;
};

// Peers 1 to n, and the letters between them.
class Post {
 public:
  explicit Post(std::uint64_t n) {
    for (std::uint64_t i = 1; i <= n; ++i) peers.emplace_back(std::make_unique<Peer>(i));
  }
  Peer& At(std::uint64_t number) { return *peers[number - 1]; }

  static Members Voters(std::initializer_list<std::uint64_t> ids) {
    Members m;
    for (std::uint64_t id : ids) m.voters.emplace_back(id);
    return m;
  }
  void StartAll() {
    Members all;
    for (auto& p : peers) all.voters.push_back(p->id);
    for (auto& p : peers) p->Start(all);
  }

  // Everything is durable and applied at once.
  void Collect(Peer& p) {
    while (const Output* out = p.c->Take()) {
      for (const Message& m : out->send)
        letters.push_back({p.id, m.to, m.kind, std::string(m.bytes)});
      for (const ReadState& r : out->reads) p.reads.push_back(r);
      for (const Entry& e : out->committed) {
        if (e.kind == EntryKind::kMembers) {
          MembersChange change = p.c->ApplyMembers(e);
          p.members = std::move(change.members);
          p.context = std::move(change.context);
        }
        p.applied = e.index;
      }
      if (!out->committed.empty()) p.c->Applied(p.applied);
      const std::uint64_t number = out->number;
      const bool restored = out->restored;
      if (number != 0) p.c->Durable(number);
      if (restored) {
        p.applied = p.log.tape.base;
        p.c->Applied(p.applied);
      }
    }
  }
  using Filter = std::function<bool(const Letter&)>;
  static bool All(const Letter&) { return true; }
  // Carries what the filter lets through, until nothing is left; the rest stays in `letters`.
  void Carry(const Filter& lets_through = All) {
    for (;;) {
      for (auto& p : peers) {
        if (p->c) Collect(*p);
      }
      const auto next = std::find_if(letters.begin(), letters.end(), lets_through);
      if (next == letters.end()) return;
      const Letter letter = std::move(*next);
      letters.erase(next);
      Peer& to = At(letter.to.value());
      if (!to.c) continue;
      if (auto offer = to.c->Step(letter.bytes)) to.offers.push_back(*std::move(offer));
    }
  }
  static Filter Between(std::initializer_list<std::uint64_t> ids) {
    return [set = std::vector<std::uint64_t>(ids)](const Letter& l) {
      const auto in = [&](MemberId id) {
        return std::count(set.begin(), set.end(), id.value()) != 0;
      };
      return in(l.from) && in(l.to);
    };
  }
  // Makes a peer lead while all others are reachable and long without a leader.
  void Elect(std::uint64_t number) {
    for (auto& p : peers) {
      if (p->c && p->id.value() != number) p->Tick(9);
    }
    At(number).Tick(10);
    Carry();
    for (int i = 0; i < 40 && !At(number).leads(); ++i) {
      At(number).Tick();
      Carry();
    }
    ASSERT_TRUE(At(number).leads());
  }

  std::vector<std::unique_ptr<Peer>> peers;
  std::deque<Letter> letters;
};

TEST(Consensus, CommitsOnAMajority) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  const Proposed p = post.At(1).c->Propose("hello");
  ASSERT_EQ(p.verdict, Verdict::kAccepted);
  post.Carry(Post::Between({1, 2}));
  EXPECT_EQ(post.At(1).applied, p.index);
  EXPECT_EQ(post.At(3).applied, LogIndex(p.index.value() - 1));
  EXPECT_EQ(post.At(2).c->Propose("x").verdict, Verdict::kNotLeader);
  EXPECT_EQ(post.At(1).c->GetProgress(MemberId(2))->matched, p.index);
  EXPECT_LT(post.At(1).c->GetProgress(MemberId(3))->matched, p.index);
  EXPECT_FALSE(post.At(1).c->GetProgress(MemberId(9)).has_value());
  EXPECT_FALSE(post.At(2).c->GetProgress(MemberId(1)).has_value());
}

TEST(Consensus, ALeaderMayResign) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  const Term term = post.At(1).term();
  post.At(1).c->Resign();
  EXPECT_FALSE(post.At(1).leads());
  EXPECT_EQ(post.At(1).c->Propose("x").verdict, Verdict::kNotLeader);
  post.Elect(2);
  EXPECT_GT(post.At(2).term(), term);
}

TEST(Consensus, AChangeOfMembersKeepsItsContext) {
  Post post(2);
  post.At(1).Start(Post::Voters({1}));
  post.At(1).c->Campaign();
  post.Carry();
  ASSERT_TRUE(post.At(1).leads());
  ASSERT_EQ(post.At(1).c->AddLearner(MemberId(2), "shard-0-1").verdict, Verdict::kAccepted);
  EXPECT_EQ(post.At(1).c->AddLearner(MemberId(3), "").verdict, Verdict::kChangePending);
  post.Carry();
  EXPECT_EQ(post.At(1).members, (Members{{MemberId(1)}, {MemberId(2)}}));
  EXPECT_EQ(post.At(1).context, "shard-0-1");
  EXPECT_EQ(post.At(1).c->Remove(MemberId(1), "").verdict, Verdict::kLeaderItself);
}

// Were its messages sent before its vote is durable, a sole voter could come back after a crash,
// lead in the same term again, and give other commands the same index and term.
TEST(Consensus, ASoleVoterSendsNothingBeforeItsVoteIsDurable) {
  Peer p(1);
  p.Start({{MemberId(1)}, {MemberId(2)}});
  p.c->Campaign();
  ASSERT_EQ(p.c->Propose("x").verdict, Verdict::kAccepted);
  std::size_t sent = 0;
  std::uint64_t number = 0;
  const auto take = [&] {
    while (const Output* out = p.c->Take()) {
      sent += out->send.size();
      number = std::max(number, out->number);
    }
  };
  take();
  EXPECT_EQ(sent, 0u);
  ASSERT_NE(number, 0u);
  p.c->Durable(number);
  take();
  EXPECT_GT(sent, 0u);
}

// ---- silence ----

// Peer 1 leads, 2 has just answered it, 3 asks 2 for its vote. Whether it gets it.
bool GetsVote(std::uint64_t holdoff, bool restart, int ticks_after) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  post.Carry();
  // 3 hears nothing for long; 2 does.
  post.At(3).Tick(9);
  EXPECT_TRUE(post.At(1).c->Read(7));
  post.Carry(Post::Between({1, 2}));
  EXPECT_EQ(post.At(1).reads.size(), 1u);
  post.letters.clear();
  if (restart) post.At(2).Start(Post::Voters({1, 2, 3}), post.At(2).applied, holdoff);
  post.At(2).Tick(ticks_after);
  post.At(3).Tick(10);
  post.Carry(Post::Between({2, 3}));
  return post.At(3).leads();
}

TEST(Consensus, AVoterThatAnsweredALeaderIsSilent) {
  EXPECT_FALSE(GetsVote(10, false, 0));
  EXPECT_FALSE(GetsVote(10, false, 9));
}

TEST(Consensus, ARestartedVoterIsSilentToo) {
  EXPECT_FALSE(GetsVote(10, true, 0));
  EXPECT_FALSE(GetsVote(10, true, 9));
  EXPECT_TRUE(GetsVote(0, true, 0));  // what it would do otherwise
}

// Peer 1 was alone when it last took a checkpoint, at index 1. Its log makes 2 and 3 members as
// well.
void Grow(Post& post, bool to_voters) {
  post.At(1).Start(Post::Voters({1}));
  post.At(1).c->Campaign();
  post.Carry();
  for (std::uint64_t id : {2, 3}) {
    ASSERT_EQ(post.At(1).c->AddLearner(MemberId(id), "").verdict, Verdict::kAccepted);
    post.Carry();
    post.At(id).Start(post.At(1).members);  // what a snapshot would bring; the log is whole
    if (to_voters) {
      ASSERT_EQ(post.At(1).c->AddVoter(MemberId(id), "").verdict, Verdict::kAccepted);
    }
    for (int i = 0; i < 6; ++i) {
      post.At(1).Tick();
      post.Carry();
    }
  }
}

TEST(Consensus, ASoleVoterWithLearnersNeedNotBeSilent) {
  Post post(3);
  Grow(post, false);
  ASSERT_EQ(post.At(1).members.learners.size(), 2u);
  post.At(1).Start(Post::Voters({1}));
  post.Collect(post.At(1));
  post.At(1).c->Campaign();
  post.Collect(post.At(1));
  EXPECT_TRUE(post.At(1).leads());
}

TEST(Consensus, WhoMayBeASoleVoterIsJudgedByTheWholeLog) {
  Post post(3);
  Grow(post, true);
  ASSERT_EQ(post.At(1).members.voters.size(), 3u);
  post.At(1).log.tape.hard.commit = LogIndex(1);  // so that it cannot learn it by applying
  post.At(1).Start(Post::Voters({1}));
  post.At(1).c->Campaign();
  post.At(3).Tick(10);
  post.Carry(Post::Between({1, 3}));
  EXPECT_FALSE(post.At(1).leads());
  EXPECT_FALSE(post.At(3).leads());
  post.At(1).Tick(9);
  post.At(3).Tick(10);
  post.Carry(Post::Between({1, 3}));
  EXPECT_FALSE(post.At(3).leads());
}

// 2 and 3 lose their leader 1 at the same time; 3 gets as far as asking for votes in the next term,
// when 1 is back and 2 answers it. Then 3's refusal of an earlier question of 2 arrives, in that
// next term: the crate alone would forget its leader, and give 3 the vote that it asked for (pinned
// in raft_glue/tests).
TEST(Consensus, AStrayReplyOfAHigherTermDoesNotEndTheSilence) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  const Term term = post.At(1).term();
  const auto take = [&post](std::uint32_t kind, std::uint64_t from, std::uint64_t to) {
    const auto found = std::find_if(post.letters.begin(), post.letters.end(), [&](const Letter& l) {
      return l.kind == kind && l.from == MemberId(from) && l.to == MemberId(to);
    });
    return found == post.letters.end() ? Letter{} : *found;
  };
  post.At(2).Tick(10);
  post.Collect(post.At(2));
  const Letter question = take(kRequestPreVote, 2, 3);
  ASSERT_TRUE(question.to);
  post.letters.clear();
  post.At(3).Tick(10);
  post.Carry([](const Letter& l) { return l.to != MemberId(1) && l.kind != kRequestVote; });
  ASSERT_EQ(post.At(3).term(), term.Next());
  const Letter request = take(kRequestVote, 3, 2);
  ASSERT_TRUE(request.to);
  post.letters.clear();

  ASSERT_TRUE(post.At(1).c->Read(7));
  post.Carry(Post::Between({1, 2}));
  ASSERT_EQ(post.At(1).reads.size(), 1u);  // so 1 has a lease

  post.letters = {question};
  post.Carry(Post::Between({2, 3}));
  ASSERT_EQ(post.At(2).term(), term.Next());
  post.letters = {request};
  post.Carry(Post::Between({2, 3}));
  EXPECT_EQ(post.At(2).log.tape.hard.vote, MemberId());
  EXPECT_FALSE(post.At(3).leads());
  // The request itself is as good as any.
  post.At(2).Start(Post::Voters({1, 2, 3}), post.At(2).applied, 0);
  post.letters = {request};
  post.Carry(Post::Between({2, 3}));
  EXPECT_EQ(post.At(2).log.tape.hard.vote, MemberId(3));
  EXPECT_TRUE(post.At(3).leads());
}

TEST(Consensus, AHandOverPassesTheSilence) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  ASSERT_TRUE(post.At(1).c->Transfer(MemberId(2)));
  EXPECT_EQ(post.At(1).c->GetStatus().transferee, MemberId(2));
  EXPECT_EQ(post.At(1).c->Propose("x").verdict, Verdict::kTransferring);
  post.Carry();
  EXPECT_TRUE(post.At(2).leads());
}

// ---- the commit index in the log ----

// Peer 1 grows from the sole voter to one of two. Every prefix of what it wrote may be what a crash
// leaves; from a checkpoint at index 1 it must never lead alone once an entry after its companion's
// promotion is in its log.
int LedAlone(bool keep_commit_records) {
  Post post(2);
  post.At(1).Start(Post::Voters({1}));
  post.At(1).c->Campaign();
  post.Carry();
  EXPECT_EQ(post.At(1).c->AddLearner(MemberId(2), "").verdict, Verdict::kAccepted);
  post.Carry();
  post.At(2).Start(post.At(1).members);
  const Proposed promoted = post.At(1).c->AddVoter(MemberId(2), "");
  EXPECT_EQ(promoted.verdict, Verdict::kAccepted);
  for (int i = 0; i < 6; ++i) {
    post.At(1).Tick();
    post.Carry();
  }
  for (const char* data : {"a", "b"}) {
    EXPECT_EQ(post.At(1).c->Propose(data).verdict, Verdict::kAccepted);
    post.Carry();
  }
  const std::vector<Write> written = post.At(1).log.written;
  int led = 0;
  for (std::size_t prefix = 0; prefix <= written.size(); ++prefix) {
    Peer p(1);
    for (std::size_t i = 0; i < prefix; ++i) {
      if (written[i].sync || keep_commit_records) written[i].To(&p.log.tape);
    }
    if (p.log.tape.Last() <= promoted.index) continue;
    if (!keep_commit_records && p.log.tape.hard.commit >= promoted.index) continue;
    p.Start(Post::Voters({1}));
    Post alone(0);
    bool ever = false;
    for (int i = 0; i < 40; ++i) {
      p.Tick();
      alone.Collect(p);
      ever |= p.leads();
    }
    led += ever;
  }
  return led;
}

TEST(Consensus, AFormerSoleVoterNeverLeadsAloneWhateverPrefixACrashLeaves) {
  EXPECT_EQ(LedAlone(true), 0);
}

// Why a Persist without sync must be in the log before later ones (types.h).
TEST(Consensus, ALogThatLosesCommitRecordsWouldLetItLeadAlone) { EXPECT_GT(LedAlone(false), 0); }

// ---- snapshots ----

// Peer 3 of three is behind the trimmed log of leader 1, which has the given snapshot.
void FallBehind(Post& post, Members named) {
  post.StartAll();
  post.Elect(1);
  Peer& leader = post.At(1);
  const LogIndex seen = post.At(3).applied;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(leader.c->Propose("x").verdict, Verdict::kAccepted);
    post.Carry(Post::Between({1, 2}));
  }
  post.letters.clear();
  ASSERT_GT(leader.applied, seen);
  Tape& tape = leader.log.tape;
  leader.log.snapshot = Snapshot{leader.applied, leader.term(), std::move(named), "g-1"};
  tape.base_term = tape.At(leader.applied).term;
  tape.records.erase(tape.records.begin(),
                     tape.records.begin() +
                         static_cast<std::ptrdiff_t>(leader.applied.value() - tape.base.value()));
  tape.base = leader.applied;
  for (int i = 0; i < 8; ++i) {
    leader.Tick();
    post.Carry();
  }
}

TEST(Consensus, ASnapshotIsOfferedInstalledAndReported) {
  Post post(3);
  FallBehind(post, Post::Voters({1, 2, 3}));
  Peer& behind = post.At(3);
  ASSERT_EQ(behind.offers.size(), 1u);
  EXPECT_EQ(behind.offers[0].from, MemberId(1));
  EXPECT_EQ(behind.offers[0].snapshot.name, "g-1");
  EXPECT_EQ(post.At(1).c->GetProgress(MemberId(3))->state, Progress::State::kSnapshot);
  ASSERT_TRUE(behind.c->Install(behind.offers[0]));
  post.Carry();
  EXPECT_EQ(behind.applied, post.At(1).applied);
  EXPECT_EQ(behind.log.First(), behind.applied.Next());
  post.At(1).c->SnapshotDone(MemberId(3), true);
  ASSERT_EQ(post.At(1).c->Propose("after").verdict, Verdict::kAccepted);
  for (int i = 0; i < 4; ++i) {
    post.At(1).Tick();
    post.Carry();
  }
  EXPECT_EQ(behind.applied, post.At(1).applied);
}

TEST(Consensus, ASnapshotThatDoesNotNameItsReceiverIsNotSent) {
  Post post(3);
  FallBehind(post, Post::Voters({1, 2}));
  EXPECT_TRUE(post.At(3).offers.empty());
  EXPECT_NE(post.At(1).c->GetProgress(MemberId(3))->state, Progress::State::kSnapshot);
}

TEST(Consensus, AnOfferOfAFormerLeaderIsInstalledUnderTheNewOne) {
  Post post(3);
  FallBehind(post, Post::Voters({1, 2, 3}));
  Peer& behind = post.At(3);
  ASSERT_EQ(behind.offers.size(), 1u);
  const LogIndex index = behind.offers[0].snapshot.index;
  ASSERT_TRUE(post.At(1).c->Transfer(MemberId(2)));
  post.Carry(Post::Between({1, 2}));
  ASSERT_TRUE(post.At(2).leads());
  post.letters.clear();
  post.At(2).Tick(2);
  post.Carry([](const Letter& l) { return l.kind == kHeartbeat; });  // 3 learns who leads
  ASSERT_EQ(behind.c->GetStatus().leader, MemberId(2));
  ASSERT_TRUE(behind.c->Install(behind.offers[0]));
  post.Carry();
  EXPECT_GE(behind.applied, index);
  EXPECT_EQ(behind.log.First(), index.Next());
}

TEST(Consensus, IgnoresWhatIsNotForIt) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  ASSERT_EQ(post.At(1).c->Propose("x").verdict, Verdict::kAccepted);
  post.Collect(post.At(1));
  const auto to_2 = std::find_if(post.letters.begin(), post.letters.end(), [](const Letter& l) {
    return l.kind == kAppend && l.to == MemberId(2);
  });
  ASSERT_NE(to_2, post.letters.end());
  const LogIndex last = post.At(3).log.Last();
  EXPECT_FALSE(post.At(3).c->Step(to_2->bytes).has_value());
  EXPECT_FALSE(post.At(3).c->Step("\xff\xff nonsense").has_value());
  EXPECT_FALSE(post.At(3).c->Step("").has_value());
  post.Collect(post.At(3));
  EXPECT_EQ(post.At(3).log.Last(), last);
}

TEST(Consensus, ALeaderBeginsANewTermPastTheSilence) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  const Term term = post.At(1).term();
  post.At(2).c->Reelect();  // does not lead: ignored
  EXPECT_EQ(post.At(2).term(), term);
  ASSERT_TRUE(post.At(1).c->Transfer(MemberId(2)));
  post.At(1).c->Reelect();  // hands over: ignored
  EXPECT_TRUE(post.At(1).leads());
  post.letters.clear();
  for (int i = 0; i < 20 && post.At(1).c->GetStatus().transferee; ++i) {
    post.At(1).Tick();
    post.Carry(Post::Between({1, 3}));
  }
  ASSERT_TRUE(post.At(1).leads());
  post.At(1).c->Reelect();
  EXPECT_FALSE(post.At(1).leads());
  post.Carry(Post::Between({1, 3}));  // 3 has heard from the leader just now
  EXPECT_TRUE(post.At(1).leads());
  EXPECT_EQ(post.At(1).term(), term.Next());
}

// A hand-over's message of an earlier term forces nothing.
TEST(Consensus, ALateHandOverOfAnEarlierTermIsIgnored) {
  Post post(3);
  post.StartAll();
  post.Elect(1);
  ASSERT_TRUE(post.At(1).c->Transfer(MemberId(2)));
  post.Collect(post.At(1));
  const auto found = std::find_if(post.letters.begin(), post.letters.end(),
                                  [](const Letter& l) { return l.kind == kTimeoutNow; });
  ASSERT_NE(found, post.letters.end());
  const Letter late = *found;
  post.letters.erase(found);
  post.At(1).c->Resign();
  post.Elect(3);
  const Term term = post.At(3).term();
  EXPECT_FALSE(post.At(2).c->Step(late.bytes).has_value());
  post.Carry();
  EXPECT_TRUE(post.At(3).leads());
  EXPECT_EQ(post.At(3).term(), term);
}

}  // namespace
}  // namespace etalon::consensus
