// Consensus of one replica: a state machine without I/O, threads or a clock, over the `raft` crate.
// The owner, one thread, drives it: Step, Tick and Propose put things in; Take hands out what to
// do, until it returns null; Durable and Applied report back. What Take hands out stays valid until
// the next Take; what another call hands out, until the next call.
//
// The names of kinds and states are Raft's. docs/protocols/replication.md says what is built on
// this.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "engine/consensus/types.h"

namespace etalon::consensus {

enum class Role : std::uint32_t { kFollower = 0, kCandidate = 1, kLeader = 2 };

struct Options {
  MemberId id;
  LogIndex applied;      // of the state machine as restored; not below First() - 1
  HardState hard_state;  // as persisted; all zero for a new replica
  Members members;       // as of applied; empty for a replica that is to join
  // Differs from one start of the process to the next: answers to the questions of an earlier life
  // are told apart by it.
  std::uint64_t life = 0;
  std::uint64_t election_ticks = 10;  // exactly: jitter is the owner's, in when it calls Tick
  std::uint64_t heartbeat_ticks = 2;
  // After a restart no vote is given for so many ticks, as the lease of a leader may rest on this
  // replica's silence. At least election_ticks; 0 only in tests. Not for the sole voter, judged by
  // the members as of applied and every change of members that the log holds.
  std::uint64_t vote_holdoff_ticks = 10;
  std::uint64_t max_message_bytes = 256 << 10;
  std::uint64_t max_inflight = 64;  // messages to one follower
  std::uint64_t max_committed_bytes = 1 << 20;
  std::uint64_t max_uncommitted_bytes = 64 << 20;
};

struct Message {
  MemberId to;
  std::uint32_t kind = 0;
  std::string_view bytes;
};

struct ReadState {  // a read tagged so is linearizable once index is applied
  std::uint64_t tag = 0;
  LogIndex index;
};

struct Output {
  std::vector<Message> send;     // all may leave now
  std::vector<Entry> committed;  // to apply in this order, each once
  std::vector<ReadState> reads;
  std::uint64_t number =
      0;  // of the Persist with sync that went to the log, so Durable(number) is due; 0: none
  bool restored =
      false;  // that Persist has a snapshot: the state machine is the snapshot's once it is durable
};

struct RaftStatus {
  Role role = Role::kFollower;
  MemberId leader;  // 0: unknown
  Term term;
  LogIndex commit;
  MemberId transferee;  // not 0: a hand-over to it is under way
  bool members_pending = false;
  bool operator==(const RaftStatus&) const = default;
};

// What a leader knows of a member.
struct Progress {
  enum class State : std::uint32_t { kProbe = 0, kReplicate = 1, kSnapshot = 2 };
  LogIndex matched;  // 0: it has never answered this leader
  State state = State::kProbe;
};

enum class Verdict {
  kAccepted = 0,
  kNotLeader = 1,
  kTransferring = 2,
  kOverLimit = 3,
  kChangePending = 4,
  kLeaderItself = 5,
};

struct Proposed {
  Verdict verdict = Verdict::kNotLeader;
  LogIndex index;  // committed at this index in this term, or never
  Term term;
};

struct Offer {  // a leader wants this replica to take a snapshot
  MemberId from;
  Snapshot snapshot;
  std::string message;  // for Install
};

struct MembersChange {
  Members members;      // as of the entry
  std::string context;  // as given with the change
};

class Consensus {
 public:
  Consensus(const Options& options,
            Log& log);  // ends the process if the log and the options contradict each other
  ~Consensus();
  Consensus(const Consensus&) = delete;
  Consensus& operator=(const Consensus&) = delete;

  void Tick();
  // Ignores what is malformed or not for this replica. An offer is not acted on until Install.
  std::optional<Offer> Step(std::string_view message);
  [[nodiscard]] bool Install(const Offer& offer);  // false: no leader is known, call again later
  const Output* Take();                            // null: nothing to do. Calls Log::Append
  void Durable(std::uint64_t number);              // and everything before it
  // Handed out by Take, or a snapshot's whose Persist is durable. The log may be compacted up to
  // here, no further: the crate would skip entries in silence.
  void Applied(LogIndex index);
  void Fetched();

  Proposed Propose(std::string_view commands);
  // The context is kept in the entry.
  Proposed AddVoter(MemberId member, std::string_view context);  // or promote a learner
  Proposed AddLearner(MemberId member, std::string_view context);
  Proposed Remove(MemberId member, std::string_view context);  // not the leader: transfer first
  // For each committed kMembers entry, once, when it is applied; the members are to be kept with
  // the state.
  MembersChange ApplyMembers(const Entry& entry);

  [[nodiscard]] bool Transfer(
      MemberId to);  // true: under way. It ends by a new term, or a status without transferee
  // Asks a majority of voters, at once, whether this replica leads. The answer is a ReadState, or
  // none ever: the caller has a deadline. False: not now.
  [[nodiscard]] bool Read(std::uint64_t tag);
  void Campaign();  // ignored while a vote is withheld
  void Resign();    // a leader leads no more
  // A leader that has given up its lease begins a new term, past the silence of the voters; ignored
  // while a hand-over is under way.
  void Reelect();
  void Unreachable(MemberId member);
  void SnapshotDone(MemberId member,
                    bool arrived);  // exactly one for each kSnapshotMessage sent, however it ends
  [[nodiscard]] bool
  RequestSnapshot();  // replication to this replica stands still until it arrives

  RaftStatus GetStatus() const;
  std::optional<Progress> GetProgress(
      MemberId member) const;  // nullopt: not the leader, or no such member

  static constexpr std::uint32_t kSnapshotMessage = 7;  // Message::kind: SnapshotDone is owed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etalon::consensus
