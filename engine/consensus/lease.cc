#include "engine/consensus/lease.h"

#include <algorithm>

#include "common/check.h"

namespace etalon::consensus {

Duration Lease::Bound(const Options& options) {
  ETALON_CHECK(options.election_ticks > 1 && options.drift_percent < 100,
               "no lease can be had with these options");
  const auto silence =
      options.smallest_gap * static_cast<Duration::rep>(options.election_ticks - 1);
  return silence * (100 - options.drift_percent) / 100;
}

void Lease::Observe(bool leads, Term term) {
  if (leads == leads_ && term == term_) return;
  leads_ = leads;
  term_ = term;
  applied_ = false;
  given_up_ = false;
  sent_.clear();
  until_.reset();
}

void Lease::Applied(Term term) {
  if (leads_ && term == term_) applied_ = true;
}

void Lease::RoundSent(std::uint64_t tag, SteadyTime before) {
  if (leads_) sent_.emplace(tag, before);
}

void Lease::RoundConfirmed(std::uint64_t tag) {
  const auto round = sent_.find(tag);
  if (round == sent_.end()) return;
  const SteadyTime end = round->second + bound_;
  until_ = until_ ? std::max(*until_, end) : end;
  sent_.erase(sent_.begin(), std::next(round));
}

void Lease::GiveUp() {
  if (leads_) given_up_ = true;
}

}  // namespace etalon::consensus
