#include "engine/consensus/base.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace etalon::consensus {

Snapshot FirstBase(Members members) {
  std::sort(members.voters.begin(), members.voters.end());
  std::sort(members.learners.begin(), members.learners.end());
  return {LogIndex(1), Term(1), std::move(members), ""};
}

Status WriteBase(log::SegmentedLog& log, const Snapshot& base, Term term,
                 UniqueFunction<void(Status)> done) {
  const log::Recovered& found = log.recovered();
  const HardState hard{term, MemberId(), base.index};
  const bool there = found.snapshot && found.snapshot->index == base.index &&
                     found.snapshot->term == base.term && found.snapshot->members == base.members &&
                     found.last == base.index && found.hard_state == hard;
  if (!found.blank && !there) {
    return FailedPrecondition(
        Reason::kForeignDisk,
        "the log of this replica already holds something else; it takes no new beginning");
  }
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  const auto finish = [shared](Status status) {
    if (*shared) std::exchange(*shared, {})(std::move(status));
  };
  log.SetCallbacks({
      .ready =
          [there, finish] {
            if (there) finish(OkStatus());
          },
      .durable = [finish](std::uint64_t) { finish(OkStatus()); },
      .fetched = [] {},
      .failed = finish,
      .snapshot_provider = [](MemberId, LogIndex) { return std::nullopt; },
  });
  if (!there)
    log.Append({.number = 1, .sync = true, .hard_state = hard, .snapshot = base, .entries = {}});
  return OkStatus();
}

}  // namespace etalon::consensus
