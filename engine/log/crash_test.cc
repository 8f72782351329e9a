// Crashes at every operation of the disk: what was reported durable is there, what is there is a
// prefix of what was appended, and the log goes on from it.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "engine/log/testing.h"

namespace etalon::log {
namespace {

using std::chrono::microseconds;

// What a log that took all of its Persists up to some number holds.
struct State {
  std::uint64_t number = 0;
  std::uint64_t base = 0;  // of the last reset
  std::uint64_t base_term = 0;
  std::string snapshot;                          // its name
  std::map<std::uint64_t, std::uint64_t> terms;  // by index, as far as not reset
  HardState hard;
  std::uint64_t last() const { return terms.empty() ? base : terms.rbegin()->first; }
  std::uint64_t TermOf(std::uint64_t index) const {
    const auto it = terms.find(index);
    return it == terms.end() ? base_term : it->second;
  }
};

// Does random things to a log and remembers every state it went through in this life.
class Workload {
 public:
  Workload(LogNode& node, std::uint64_t seed) : n_(node), random_(seed) { history_.push_back({}); }

  void Step() {
    State next = history_.back();
    const std::uint64_t last = next.last();
    const std::uint64_t commit = std::max(next.hard.commit.value(), next.base);
    switch (random_.Below(12)) {
      case 0:  // a vote
        next.hard.term = next.hard.term.Next();
        next.hard.vote = MemberId(random_.Between(1, 3));
        return Persist(std::move(next), 0, 0, true);
      case 1:
      case 2:  // the commit index moves
        next.hard.commit = LogIndex(random_.Between(commit, last));
        return Persist(std::move(next), 0, 0, false);
      case 3:  // another leader overwrites what is not committed
        next.hard.term = next.hard.term.Next();
        return Persist(std::move(next), random_.Between(commit, last) + 1, random_.Between(1, 4),
                       true);
      case 4: {
        if (commit <= next.base || n_.log->First().value() > commit) return;
        const std::uint64_t to = random_.Between(n_.log->First().value(), commit);
        trimmed_ = std::max(trimmed_, to);
        n_.log->Trim(LogIndex(to));
        return;
      }
      case 5:
        if (random_.Below(4) != 0) return;
        next.hard.term = next.hard.term.Next();
        next.base = last + random_.Between(1, 50);
        next.base_term = next.hard.term.value();
        next.snapshot = "s" + std::to_string(next.base);
        next.terms.clear();
        next.hard.commit = LogIndex(next.base);
        return Persist(std::move(next), next.base + 1, random_.Below(3), true);
      default:
        if (next.hard.term.value() == 0) next.hard.term = Term(1);
        return Persist(std::move(next), last + 1, random_.Between(1, 5), true);
    }
  }

  // Finds the state that a recovered log is in, checks all of it, and goes on from there.
  void Match() {
    SegmentedLog& log = *n_.log;
    const std::uint64_t durable = std::exchange(n_.durable, 0);
    std::string why;
    for (const State& state : history_) {
      if (state.number < durable) continue;
      const std::string difference = Differs(state);
      why += "; " + difference;
      if (!difference.empty()) continue;
      State kept = state;
      kept.hard = log.recovered().hard_state;
      if (!log.recovered().snapshot) kept.snapshot.clear();  // trimmed away
      kept.number = 0;
      n_.number = 0;
      history_ = {std::move(kept)};
      trimmed_ = log.First().value() - 1;
      return;
    }
    FAIL() << n_.Describe() << " after " << durable << " were durable of " << history_.back().number
           << ", which differ" << why;
  }

  std::uint64_t Below(std::uint64_t n) { return random_.Below(n); }

 private:
  void Persist(State next, std::uint64_t first, std::uint64_t count, bool sync) {
    const State& before = history_.back();
    std::vector<std::string> data;
    std::vector<Entry> entries;
    next.terms.erase(count == 0 ? next.terms.end() : next.terms.lower_bound(first),
                     next.terms.end());
    for (std::uint64_t i = first; i < first + count; ++i) {
      const std::size_t size = random_.Chance(1, 40) ? 6000 : random_.Below(400) + 20;
      data.push_back(LogNode::Data(i, next.hard.term.value(), size));
      next.terms[i] = next.hard.term.value();
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      entries.push_back({LogIndex(first + i), next.hard.term, EntryKind::kCommands, data[i]});
    }
    next.number = ++n_.number;
    consensus::Persist persist{.number = next.number, .sync = sync, .entries = entries};
    if (!(next.hard == before.hard)) persist.hard_state = next.hard;
    if (next.base != before.base)
      persist.snapshot = Snapshot{LogIndex(next.base), Term(next.base_term), {}, next.snapshot};
    n_.log->Append(persist);
    history_.push_back(std::move(next));
  }

  std::string Differs(const State& state) {
    SegmentedLog& log = *n_.log;
    const std::uint64_t first = log.First().value();
    if (log.Last().value() != state.last()) return "last is " + std::to_string(log.Last().value());
    if (first <= state.base) return "first is before the snapshot";
    if (first > std::max(state.base, trimmed_) + 1) return "more is trimmed than was asked for";
    if (log.TermAt(LogIndex(first - 1)) != Term(state.TermOf(first - 1)))
      return "the term before the first";
    for (std::uint64_t i = first; i <= state.last(); ++i) {
      if (log.TermAt(LogIndex(i)) != Term(state.TermOf(i)))
        return "the term at " + std::to_string(i);
    }
    HardState hard = state.hard;
    hard.commit = std::max(hard.commit, LogIndex(first - 1));
    if (!(log.recovered().hard_state == hard)) return "the hard state";
    const bool snapshot = log.recovered().snapshot.has_value();
    if (snapshot && log.recovered().snapshot->name != state.snapshot) return "the snapshot";
    if (snapshot && first != state.base + 1) return "the snapshot is not at the start";
    if (!snapshot && first == state.base + 1 && !state.snapshot.empty() && trimmed_ <= state.base)
      return "the snapshot is missing";
    const std::string text = n_.Describe();
    return text.find("wrong") != std::string::npos || text.find("unreadable") != std::string::npos
               ? text
               : "";
  }

  LogNode& n_;
  Random random_;
  std::vector<State> history_;
  std::uint64_t trimmed_ = 0;
};

constexpr int kSteps = 60;

// Runs steps until that many disk operations are done; true when it got so far.
bool RunTo(LogNode& n, Workload& work, std::uint64_t ops, int steps) {
  const auto reached = [&] { return n.world.disk("n").ops() >= ops; };
  for (int i = 0; i < steps; ++i) {
    work.Step();
    if (n.world.RunUntil(reached, microseconds(work.Below(4) * work.Below(300)))) return true;
  }
  return n.world.RunUntil(reached, kSoon);
}

TEST(LogCrash, AtEveryOperationOfTheDisk) {
  std::uint64_t crashes = 0;
  std::uint64_t torn = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::uint64_t ops = 0;; ++ops) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", crash after " + std::to_string(ops));
      LogNode n(seed);
      Workload work(n, seed);
      n.MustOpen();
      const bool more = RunTo(n, work, ops, kSteps);
      n.log.reset();
      const std::uint64_t durable = n.durable;
      n.Crash();
      n.durable = durable;
      const Status status = n.Open();
      ASSERT_TRUE(status.ok()) << status.ToString();
      torn += n.log->recovered().torn_bytes != 0;
      ASSERT_NO_FATAL_FAILURE(work.Match());
      ++crashes;
      // It goes on, and what it says then holds as well.
      for (int i = 0; i < 10; ++i) work.Step();
      n.Append(n.log->Last().value() + 1, 1, n.log->hard_state().term.value() + 1);
      ASSERT_TRUE(n.WaitDurable()) << n.log->Health().ToString();
      const std::string before = n.Describe();
      const LogIndex first = n.log->First();
      n.Restart();
      if (n.log->First() == first) {
        ASSERT_EQ(n.Describe(), before);
      }
      ASSERT_EQ(n.log->hard_state().vote, MemberId(7));
      if (!more) break;
    }
  }
  EXPECT_GT(crashes, 400u);
  EXPECT_GT(torn, 10u) << "the disk tore nothing: this test tests nothing";
}

TEST(LogCrash, AgainAndAgain) {
  std::uint64_t torn = 0;
  for (std::uint64_t seed = 100; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LogNode n(seed);
    Workload work(n, seed);
    n.MustOpen();
    for (int life = 0; life < 15; ++life) {
      RunTo(n, work, n.world.disk("n").ops() + work.Below(50), 20);
      n.log.reset();
      const std::uint64_t durable = n.durable;
      n.Crash();
      n.durable = durable;
      const Status status = n.Open();
      ASSERT_TRUE(status.ok()) << status.ToString();
      torn += n.log->recovered().torn_bytes != 0;
      ASSERT_NO_FATAL_FAILURE(work.Match());
    }
  }
  EXPECT_GT(torn, 20u);
}

// The process dies, the machine does not: everything that was written is there, and must be made
// durable before it is relied on.
TEST(LogCrash, WhatIsRecoveredIsDurableWhenReady) {
  bool more_than_durable = false;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    LogNode n(seed);
    n.MustOpen();
    n.Append(1, 2, 1);
    ASSERT_TRUE(n.WaitDurable());
    n.Settle();
    const std::uint64_t ops = n.world.disk("n").ops();
    n.Append(3, 2, 1);
    ASSERT_TRUE(n.world.RunUntil([&] { return n.world.disk("n").ops() == ops + 1; },
                                 kSoon));  // written, not synced
    n.Crash(sim::CrashKind::kProcess);
    n.MustOpen();
    const std::string recovered = n.Describe();
    more_than_durable |= n.log->Last() == LogIndex(4);
    ASSERT_TRUE(n.world.RunUntil([&] { return n.ready; }, kSoon));
    n.Restart();
    EXPECT_EQ(n.Describe(), recovered);
  }
  EXPECT_TRUE(more_than_durable);
}

// What is kept overwrote what goes: it must be durable first.
TEST(LogCrash, TrimmingBelowAReplacedSuffix) {
  bool removed = false;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (std::uint64_t ops = 0; ops < 10; ++ops) {
      LogNode n(seed);
      n.MustOpen();
      for (std::uint64_t i = 1; i <= 18; ++i) n.Append(i, 1, 1, 300);
      ASSERT_TRUE(n.WaitDurable());
      n.Settle();
      const std::size_t segments = n.Segments().size();
      const std::uint64_t before = n.world.disk("n").ops();
      n.Append(19, 1, 1);  // in flight, so that the next one waits
      n.Append(5, 1, 2, 300);
      n.log->Trim(LogIndex(4));
      n.world.RunUntil([&] { return n.world.disk("n").ops() == before + ops; }, kSoon);
      removed |= n.Segments().size() < segments;
      n.Restart();
      ASSERT_LE(n.log->First(), LogIndex(5)) << n.Describe();
      ASSERT_EQ(n.log->TermAt(LogIndex(4)), Term(1));
    }
  }
  EXPECT_TRUE(removed);
}

TEST(LogCrash, TheSameSeedIsTheSameHistory) {
  const auto run = [](std::uint64_t seed) {
    LogNode n(seed);
    Workload work(n, seed);
    n.MustOpen();
    RunTo(n, work, 200, kSteps);
    return n.world.trace();
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace
}  // namespace etalon::log
