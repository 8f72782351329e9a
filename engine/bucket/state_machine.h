// The replicated state machine of one shard: a function of (state, entries). It reads no clock, no
// refs and no settings that are not in the log. State is kept in the store beside the records (one
// store write an apply group, the applied index in the same write) and mirrored in memory.
//
// Threads: the core executor only. Errors: a Status from Apply means that the store failed (disk
// full, corruption) or that this program is too old for an entry; what a command did wrong is in
// its own outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "engine/bucket/rows.h"
#include "engine/consensus/types.h"
#include "engine/store/store.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/call.pb.h"
#include "etalon/v1/log.pb.h"

namespace etalon::bucket {

// The newest version of the state machine that this program can run, and the one a new shard starts
// with.
inline constexpr std::uint32_t kStateVersion = 1;

struct CallOutcome {
  Status status;
  std::string result;  // the function's serialized result
};

// What one entry did, in the order of the entries. An entry holds calls or one control command, or
// neither.
struct EntryOutcome {
  LogIndex index;
  Term term;
  std::vector<CallOutcome> calls;  // parallel to LogEntry.calls
  std::optional<Status> control;   // set if the entry held a control command
};

// Told about changes. Called inside Apply, in the order of the changes, right after the store write
// that holds them: after each entry with a control command (it ends a write), and at the end of the
// group for what calls did. Must not call Apply.
class Observer {
 public:
  virtual ~Observer() = default;
  // The row of `bucket` changed, came or went (row == null). Marks are already up to date.
  virtual void OnRow(std::uint32_t bucket, const Row* row) = 0;
  // Every row and mark now stands at `level`.
  virtual void OnRebase(std::uint8_t level) = 0;
  // OPEN was applied. The store and its snapshots show exactly the state of this entry now: a
  // snapshot taken here plus every OnDataKey of the set from here on is all there is to send.
  virtual void OnOpened(const Outgoing& transfer) = 0;
  virtual void OnOutgoingChanged(
      const TransferId& id) = 0;  // SENDING, SENT, ABORT, GARBAGE, REMOVE
  virtual void OnIncomingChanged(
      const TransferId& id) = 0;  // RECEIVING, chunk, PREPARED, ACTIVE, GARBAGE, REMOVE
  // A call wrote or deleted a record (or wrote the result of a request ID) of a bucket whose row
  // carries an outgoing transfer. Results that expire are not told: the target's copy expires by
  // itself.
  virtual void OnDataKey(std::uint32_t bucket, std::string_view store_key) = 0;
  virtual void OnSplit(const SplitTask& task) = 0;
  virtual void OnTopology() = 0;
  virtual void OnSettings() = 0;
};

class StateMachine {
 public:
  // The state of a new shard, as metadata to be written into an empty store: applied index 1, term
  // 1 (the bootstrap of the log), rows ACTIVE in the request's ranges with epoch = own = 1.
  // INVALID_ARGUMENT for overlapping or out-of-range ranges, no members, a topology that does not
  // name the shard, wrong bucket counts.
  static Result<store::Batch> FormState(const v1::FormRequest& request);

  // Loads what the store holds. FAILED_PRECONDITION/UNFORMED for an empty store; NEWER_FORMAT;
  // DATA_LOSS.
  static Result<std::unique_ptr<StateMachine>> Load(store::Store& store, Observer& observer);
  ~StateMachine();
  StateMachine(const StateMachine&) = delete;
  StateMachine& operator=(const StateMachine&) = delete;

  // Applies a group of committed entries in order. `members_after` is called for entries of kind
  // kMembers and gives the members that result, to be stored with the state. An unknown kind of
  // entry, or a version above kStateVersion, is a FAILED_PRECONDITION/NEWER_FORMAT status: this
  // replica must stop; what stood before that entry is applied.
  //
  // The first entry must be the one after applied_index(). When the store refuses a write, its
  // status is returned and the write is kept: once the store is well again, call Apply with the
  // same entries, it goes on where it stopped and returns the outcomes of all. Until then rows may
  // be ahead of the store and of applied_index(): serve nothing.
  using MembersAfter = std::function<std::vector<v1::MemberInfo>(const consensus::Entry&)>;
  Result<std::vector<EntryOutcome>> Apply(std::span<const consensus::Entry> entries,
                                          const MembersAfter& members_after);

  // ---- applied state; references live until the next Apply ----
  LogIndex applied_index() const;
  Term applied_term() const;
  LogTime log_time() const;
  std::uint32_t version() const;
  CollectionId collection() const;
  ShardUid shard() const;
  bool retired() const;
  const std::vector<v1::MemberInfo>& members() const;
  const v1::Topology& topology() const;
  const v1::Settings& settings() const;
  std::uint32_t bucket_count() const;
  std::uint8_t level() const;
  std::uint64_t modulus() const { return std::uint64_t{bucket_count()} << level(); }
  std::uint32_t BucketAt(RoutingValue v) const {
    return static_cast<std::uint32_t>(v.value() % modulus());
  }

  const Row* FindRow(std::uint32_t bucket) const;  // null: not here
  Marks FindMarks(std::uint32_t bucket) const;     // zeros when there are none
  const std::map<std::uint32_t, Row>& rows() const;
  const std::map<std::uint32_t, Marks>& marks() const;
  const std::map<TransferId, Outgoing>& outgoing() const;
  const std::map<TransferId, Incoming>& incoming() const;
  const std::map<std::string, SplitTask>& splits() const;
  v1::BucketCounts counts() const;  // kept up to date, not counted anew
  bool locked() const;              // by the settings
  // Source or target of a split task that is not Done or Aborted (the target: holds an incoming
  // set).
  bool busy_with_split() const;
  std::size_t live_request_ids() const;  // about 200 bytes of memory each

  // ---- checks that a leader makes before it proposes; the same ones decide at apply ----
  // OK, or why a write of this routing value cannot be applied now: WRONG_BUCKET (with the
  // destination and its epoch when `left` knows it), TRANSFER_IS_IN_PROGRESS, QUARANTINED.
  Status CheckWrite(RoutingValue v, Epoch named) const;
  Status CheckRead(RoutingValue v, Epoch named) const;
  // ABORTED/BUCKET_OUT_OF_RANGE when the call means a whole bucket (Call.level) that is none of
  // this shard's any more, because its modulus has doubled; hint.number = the level now.
  Status CheckLevel(const v1::Call& call) const;
  // Whether the call's function and arguments are well-formed, its spaces exist and its sizes are
  // within the limits (value 1 MiB, transaction 4 MiB, key 4 KiB). Writes only.
  Status CheckArguments(const v1::Call& call) const;
  // Space number of a name; NOT_FOUND/UNKNOWN_SPACE with the names there are.
  Result<SpaceId> FindSpace(std::string_view name) const;
  std::string_view SpaceName(SpaceId space) const;

  // ---- reads of applied records ----
  Result<v1::GetResult> Get(RoutingValue v, const v1::GetArgs& args) const;

  // Order-independent over replicas: equal for equal state at one applied index. Reads everything.
  Result<v1::ChecksumResponse> Checksum() const;

 private:
  class Impl;
  explicit StateMachine(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace etalon::bucket
