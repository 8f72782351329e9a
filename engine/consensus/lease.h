// The lease of a leader: when it may answer a linearizable read from its applied state without
// asking anybody. A pure machine; PROTOCOLS.md section 1 is its specification and
// docs/protocols/replication.md has its table and the argument.
//
// A *round* is one question to all voters, known by its tag, that only a leader of this term can
// have answered by a majority (Consensus::Read). Each voter that answers stays silent afterwards:
// for election_ticks of its own ticks it neither votes nor campaigns. Its first tick may come at
// once, so this lasts at least (election_ticks - 1) gaps between two of its ticks. Every later
// majority contains such a voter, so nobody else leads before
//
//     bound = (election_ticks - 1) * smallest_gap * (1 - drift_percent / 100)
//
// after the round was sent. drift_percent covers clocks that run at different speeds: two that are
// each wrong by p percent differ by about 2p. smallest_gap and election_ticks are those of the
// *other* voters: they must not differ within a shard.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "common/ids.h"
#include "common/time.h"

namespace etalon::consensus {

class Lease {
 public:
  struct Options {
    std::uint64_t election_ticks = 10;
    Duration smallest_gap = std::chrono::milliseconds(50);
    unsigned drift_percent = 10;
  };

  explicit Lease(const Options& options) : bound_(Bound(options)) {}

  static Duration Bound(const Options& options);

  // To be called before Has after anything that may have changed role or term.
  void Observe(bool leads, Term term);
  // An entry of that term was applied here. A lease needs one of the leader's own term: only then
  // is everything that earlier leaders acknowledged known to be applied.
  void Applied(Term term);
  // `before` is a time before the round left. Tags increase within a term.
  void RoundSent(std::uint64_t tag, SteadyTime before);
  // A majority answered. An older round is as good as confirmed by that; an unknown tag is ignored.
  void RoundConfirmed(std::uint64_t tag);
  // Before a hand-over starts. It forces an election past the silence of the voters, and a late
  // copy of its message can do so at any time while the term lasts: there is no lease any more in
  // this term, even if the hand-over fails.
  void GiveUp();

  bool Has(SteadyTime now) const { return applied_ && !given_up_ && until_ && now < *until_; }
  bool given_up() const { return given_up_; }
  std::size_t rounds_open() const { return sent_.size(); }

 private:
  const Duration bound_;
  bool leads_ = false;
  Term term_;
  bool applied_ = false;
  bool given_up_ = false;
  std::map<std::uint64_t, SteadyTime> sent_;
  std::optional<SteadyTime> until_;
};

}  // namespace etalon::consensus
