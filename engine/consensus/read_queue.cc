#include "engine/consensus/read_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace etalon::consensus {

void ReadQueue::Add(Deadline deadline, Done done) {
  ++size_;
  new_.push_back({deadline, std::move(done)});
}

void ReadQueue::RoundSent(std::uint64_t tag) {
  if (!new_.empty()) rounds_.emplace(tag, std::exchange(new_, {}));
}

void ReadQueue::RoundConfirmed(std::uint64_t tag, LogIndex index) {
  const auto end = rounds_.upper_bound(tag);
  Reads& waiting = confirmed_[index];
  for (auto round = rounds_.begin(); round != end; ++round) {
    std::move(round->second.begin(), round->second.end(), std::back_inserter(waiting));
  }
  rounds_.erase(rounds_.begin(), end);
  if (waiting.empty()) confirmed_.erase(index);
}

void ReadQueue::Applied(LogIndex index) {
  while (!confirmed_.empty() && confirmed_.begin()->first <= index) {
    Call(std::move(confirmed_.extract(confirmed_.begin()).mapped()), OkStatus());
  }
}

void ReadQueue::FailAll(const Status& status) {
  Reads all;
  const auto take = [&all](Reads& reads) {
    std::move(reads.begin(), reads.end(), std::back_inserter(all));
  };
  for (auto& [index, reads] : confirmed_) take(reads);
  for (auto& [tag, reads] : rounds_) take(reads);
  take(new_);
  confirmed_.clear();
  rounds_.clear();
  new_.clear();
  Call(std::move(all), status);
}

void ReadQueue::Expire(SteadyTime now) {
  Reads expired;
  const auto expire = [&](auto& by_key) {
    for (auto it = by_key.begin(); it != by_key.end();) {
      MoveExpired(&it->second, now, &expired);
      it = it->second.empty() ? by_key.erase(it) : std::next(it);
    }
  };
  expire(confirmed_);
  expire(rounds_);
  MoveExpired(&new_, now, &expired);
  Call(std::move(expired),
       DeadlineExceeded("no majority confirmed in time that this replica still leads"));
}

void ReadQueue::Call(Reads reads, const Status& status) {
  size_ -= reads.size();
  for (Read& read : reads) read.done(status);
}

void ReadQueue::MoveExpired(Reads* from, SteadyTime now, Reads* to) {
  const auto first = std::stable_partition(
      from->begin(), from->end(), [now](const Read& r) { return !r.deadline.Passed(now); });
  std::move(first, from->end(), std::back_inserter(*to));
  from->erase(first, from->end());
}

}  // namespace etalon::consensus
