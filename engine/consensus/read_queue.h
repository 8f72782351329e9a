// Reads that wait for a read index: for a round that was sent after they came and that a majority
// confirms, then for the apply of the index that the round names. A pure machine; it calls the
// reads' functions itself, in the order of coming.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"

namespace etalon::consensus {

class ReadQueue {
 public:
  using Done = UniqueFunction<void(Status)>;  // may add reads

  std::size_t size() const { return size_; }
  void Add(Deadline deadline, Done done);
  // Some read waits for a round that is still to be sent.
  bool WantsRound() const { return !new_.empty(); }
  // Tags increase. The round serves all reads that came until now.
  void RoundSent(std::uint64_t tag);
  // The round of that tag, and so every earlier one, is linearizable once `index` is applied.
  void RoundConfirmed(std::uint64_t tag, LogIndex index);
  void Applied(LogIndex index);
  void FailAll(const Status& status);
  void Expire(SteadyTime now);

 private:
  struct Read {
    Deadline deadline;
    Done done;
  };
  using Reads = std::vector<Read>;

  void Call(Reads reads, const Status& status);
  static void MoveExpired(Reads* from, SteadyTime now, Reads* to);

  std::size_t size_ = 0;
  Reads new_;
  std::map<std::uint64_t, Reads> rounds_;  // by tag
  std::map<LogIndex, Reads> confirmed_;    // by the index that has to be applied
};

}  // namespace etalon::consensus
