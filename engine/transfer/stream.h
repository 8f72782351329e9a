// The data of one transfer, cut into numbered chunks: a snapshot, then rounds of the keys that were
// written since.
//
// The capture is complete because it starts inside the apply of OPEN: the snapshot shows the state
// of that entry, and every key written from then on is noted; a round reads the noted keys from a
// snapshot that is taken when the note book is emptied. A chunk once cut keeps its number and its
// bytes until the target has applied it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "engine/transfer/chunks.h"
#include "engine/transfer/rate.h"
#include "etalon/v1/log.pb.h"

namespace etalon::transfer {

struct StreamOptions {
  std::uint64_t window_bytes = 1 << 20;  // unacknowledged; a single chunk may be larger
  std::uint64_t dirty_bytes = 64 << 20;  // of noted keys
  Duration resend_after = std::chrono::milliseconds(200);
  Duration resend_cap = std::chrono::seconds(2);
  double assumed_rate = 16 << 20;  // bytes per second, until measured
  int flat_rounds = 5;             // rounds that did not shrink by a fifth
  int max_rounds = 50;
};

class Stream {
 public:
  // Inside the apply of OPEN.
  Stream(const bucket::StateMachine& state, const store::Store& store,
         const bucket::Outgoing& transfer, StreamOptions options);

  // Inside each apply from then on, for keys of the set.
  void NoteKey(std::string_view store_key);

  // Chunks to be sent now, as far as the window and the budget allow: new ones, and all
  // unacknowledged ones again when nothing was acknowledged for long. Cuts further rounds only if
  // `may_begin_round`. Not OK: the store failed, or the rounds do not shrink (RESOURCE_EXHAUSTED);
  // the transfer must be given up.
  Result<std::vector<v1::Chunk>> Pump(SteadyTime now, ByteBudget& budget, bool may_begin_round,
                                      Random& random);

  // The target has applied everything below `next_number`.
  // True: that is news.
  bool OnAcknowledged(std::uint64_t next_number, SteadyTime now);
  // The target has a new leader or lost something: send the unacknowledged again soon.
  void ResendSoon(SteadyTime now);

  // Everything is cut but the keys noted since, and sending what is unacknowledged and these takes
  // no longer than `freeze`.
  bool NearEnd(Duration freeze) const;
  // After SENDING was applied: the next chunks are the last round, ending with the last chunk.
  void Finish();

  SteadyTime next_at(SteadyTime now, const ByteBudget& budget) const;
  std::uint64_t bytes_cut() const { return bytes_; }
  int rounds() const { return rounds_; }

 private:
  Status BeginRound();
  Status Cut();
  std::uint64_t DirtyBytes() const;

  const bucket::StateMachine& state_;
  const store::Store& store_;
  StreamOptions options_;
  TransferId id_;

  std::unique_ptr<ChunkReader> reader_;  // of the round that is being cut; null: exhausted
  std::set<std::string, std::less<>> dirty_;
  std::uint64_t dirty_key_bytes_ = 0;
  bool overflow_ = false;

  struct Unacknowledged {
    v1::Chunk chunk;
    RateMeter::Mark sent;
  };
  std::deque<Unacknowledged> unacknowledged_;
  std::size_t unsent_ = 0;  // of its tail: not sent yet
  std::uint64_t unacknowledged_bytes_ = 0;
  std::uint64_t acknowledged_ = 1;  // the target's next number
  std::uint64_t next_number_ = 1;   // of the chunk to be cut next
  std::uint64_t hash_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t bytes_ = 0;

  bool finishing_ = false;
  bool last_round_ = false;  // the round that is being cut began after SENDING
  bool finished_ = false;    // the last chunk is cut
  int rounds_ = 0;           // begun after the snapshot
  int flat_ = 0;
  std::uint64_t round_bytes_ = 0;
  std::uint64_t round_records_ = 0;
  std::uint64_t previous_round_bytes_ = 0;

  RateMeter meter_;
  Backoff resend_;
  SteadyTime resend_at_ = SteadyTime::max();
};

}  // namespace etalon::transfer
