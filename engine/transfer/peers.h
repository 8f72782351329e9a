// Small parts that both machines share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/random.h"
#include "common/time.h"
#include "engine/bucket/state_machine.h"
#include "engine/transfer/io.h"
#include "etalon/v1/peer.pb.h"

namespace etalon::transfer {

// Highest term seen of each shard. What comes from a lower one is from a deposed leader.
class PeerTerms {
 public:
  // False: of a lower term than seen.
  bool Admit(ShardUid peer, Term term);
  void Clear() { terms_.clear(); }

 private:
  std::map<ShardUid, Term> terms_;
};

// Which alerts stand. Tells changes only.
class AlertBook {
 public:
  void Raise(std::string_view code, std::string key, std::string text, Output* out);
  void Clear(std::string_view code, const std::string& key, Output* out);
  // All alerts about `key`.
  void ClearAll(const std::string& key, Output* out);
  void Reset(Output* out);

 private:
  std::map<std::pair<std::string, std::string_view>, std::string> raised_;  // (key, code) -> text
};

// A rebase is refused while any row is in flight. Whoever needs one says so here, and then neither
// machine begins anything new until it happened or the wish has expired.
class RebaseGate {
 public:
  void Want(std::uint8_t level, SteadyTime until);
  void Clear() {
    until_ = SteadyTime::min();
    level_ = 0;
  }
  // The level wished for, if it is above `level`.
  std::optional<std::uint8_t> Wanted(std::uint8_t level, SteadyTime now) const;

 private:
  std::uint8_t level_ = 0;
  SteadyTime until_ = SteadyTime::min();
};

// The answer to `question`, from applied state. INVALID_ARGUMENT for buckets that cannot exist. To
// be called only by a leader whose leadership is confirmed and that has applied an entry of its
// term.
Result<v1::Answer> AnswerQuestion(const bucket::StateMachine& state, Term term,
                                  const v1::Question& question);

// Before a proposal that was not taken, or had no effect, is made again. A log that is full says so
// at once: without a pause a machine would ask it again and again within one step of its owner.
inline Duration RetryPause(Random& random) {
  return random.Between(std::chrono::milliseconds(10), std::chrono::milliseconds(50));
}

std::vector<std::uint32_t> Numbers(const std::vector<bucket::BucketEpoch>& set);
// INVALID_ARGUMENT: not sorted, empty, or out of range at that level.
Result<std::vector<bucket::BucketEpoch>> ParseSet(
    const google::protobuf::RepeatedPtrField<v1::BucketEpoch>& set, std::uint32_t level,
    std::uint32_t bucket_count);
void FillSet(const std::vector<bucket::BucketEpoch>& set,
             google::protobuf::RepeatedPtrField<v1::BucketEpoch>* out);
bool IsRemoved(const v1::Topology& topology, ShardUid shard);
bool IsKnown(const v1::Topology& topology, ShardUid shard);
std::string NameOf(const v1::Topology& topology, ShardUid shard);  // the UID in hex if unknown

}  // namespace etalon::transfer
