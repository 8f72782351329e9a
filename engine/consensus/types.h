// What consensus and the log under it speak of. See consensus.h for the machine, engine/log/ for
// the log.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"

namespace etalon::consensus {

// Numbers are Raft's wire numbers of the crate.
enum class EntryKind : std::uint32_t {
  kCommands = 0,  // without data: a new leader's first entry; apply as nothing
  kMembers = 2,   // a change of members
};

struct Entry {
  LogIndex index;
  Term term;
  EntryKind kind = EntryKind::kCommands;
  std::string_view data = {};
};

struct HardState {
  Term term;
  MemberId vote;
  LogIndex commit;
  bool operator==(const HardState&) const = default;
};

struct Members {
  std::vector<MemberId> voters;    // sorted
  std::vector<MemberId> learners;  // sorted
  bool operator==(const Members&) const = default;
};

struct Snapshot {  // names the data; the data itself goes another way
  LogIndex index;
  Term term;
  Members members;  // as of index
  std::string name;
};

// What must become durable as one: first the snapshot (the log is then empty up to its index), then
// the entries (whatever the log holds from the first of them on is replaced), then the hard state.
struct Persist {
  std::uint64_t number = 0;
  // False: only the commit index moved. It must be in the log before later entries, but nobody
  // waits for Durable(number).
  bool sync = false;
  std::optional<HardState> hard_state = {};
  std::optional<Snapshot> snapshot = {};
  std::span<const Entry> entries = {};
};

// The log, as consensus sees it. Nothing here may throw or call back into Consensus.
class Log {
 public:
  enum class Answer { kOk = 0, kCompacted = 1, kAbsent = 2, kNotNow = 3 };

  virtual ~Log() = default;
  virtual LogIndex First() const = 0;  // first entry kept; First() - 1 is the compacted end
  virtual LogIndex Last() const = 0;   // First() - 1 when empty
  virtual std::optional<Term> TermAt(
      LogIndex index) const = 0;  // for index in [First() - 1, Last()]
  // Adds views of [low, high) to *out, at least one, until max_bytes of data. Without with_data
  // only index, term and kind are looked at. kNotNow only if may_wait; Consensus::Fetched() once
  // the entries are in memory. The views live until the next call of the log.
  virtual Answer Read(LogIndex low, LogIndex high, std::uint64_t max_bytes, bool with_data,
                      bool may_wait, std::vector<Entry>* out) = 0;
  // The newest snapshot for a member, of at least that index and naming it; nullopt: not yet, it is
  // asked for again.
  virtual std::optional<Snapshot> SnapshotFor(MemberId to, LogIndex at_least) = 0;
  // Readable at once, durable later.
  virtual void Append(const Persist& persist) = 0;
  virtual void Warn(std::string_view text) = 0;
};

}  // namespace etalon::consensus
