// The replicated state machine of one shard: a function of (state, entries). It reads no clock, no refs and no settings
// that are not in the log. State is kept in the store beside the records (one store write an apply group, the applied
// index in the same write) and mirrored in memory.
//
// Threads: the core executor only. Errors: a Status from Apply means that the store failed (disk full, corruption): the
// state is unchanged and the owner must stop applying; what a command did wrong is in its own outcome.
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

// The newest version of the state machine that this program can run, and the one a new shard starts with.
inline constexpr std::uint32_t kStateVersion = 1;

struct CallOutcome {
  Status status;
  std::string result;  // the function's serialized result
};

// What one entry did, in the order of the entries. An entry holds calls or one control command, or neither.
struct EntryOutcome {
  LogIndex index;
  Term term;
  std::vector<CallOutcome> calls;   // parallel to LogEntry.calls
  std::optional<Status> control;    // set if the entry held a control command
};

// Told about changes while they are applied. Called inside Apply; must not call back into the state machine's Apply.
class Observer {
 public:
  virtual ~Observer() = default;
  // The row of `bucket` changed, came or went (row == null). Marks are already up to date.
  virtual void OnRow(std::uint32_t bucket, const Row* row) = 0;
  // Every row and mark now stands at `level`.
  virtual void OnRebase(std::uint8_t level) = 0;
  // OPEN was applied. The store and its snapshots show exactly the state of this entry now: a snapshot taken here plus
  // every OnDataKey of the set from here on is all there is to send.
  virtual void OnOpened(const Outgoing& transfer) = 0;
  virtual void OnOutgoingChanged(const TransferId& id) = 0;   // SENDING, SENT, ABORT, GARBAGE, REMOVE
  virtual void OnIncomingChanged(const TransferId& id) = 0;   // RECEIVING, chunk, PREPARED, ACTIVE, GARBAGE, REMOVE
  // A record (or the result of a request ID) of a bucket whose row carries an open transfer was written or deleted.
  virtual void OnDataKey(std::uint32_t bucket, std::string_view store_key) = 0;
  virtual void OnSplit(const SplitTask& task) = 0;
  virtual void OnTopology() = 0;
  virtual void OnSettings() = 0;
};

class StateMachine {
 public:
  // The state of a new shard, as metadata to be written into an empty store: applied index 1, term 1 (the bootstrap of
  // the log), rows ACTIVE in the request's ranges with epoch = own = 1. INVALID_ARGUMENT for overlapping or out-of-range
  // ranges, no members, a topology that does not name the shard, wrong bucket counts.
  static Result<store::Batch> FormState(const v1::FormRequest& request);

  // Loads what the store holds. FAILED_PRECONDITION/UNFORMED for an empty store; NEWER_FORMAT; DATA_LOSS.
  static Result<std::unique_ptr<StateMachine>> Load(store::Store& store, Observer& observer);
  virtual ~StateMachine() = default;

  // Applies a group of committed entries in order. `members_after` is called for entries of kind kMembers and gives the
  // members that result, to be stored with the state. An unknown kind of entry, or a version above kStateVersion, is a
  // FAILED_PRECONDITION/NEWER_FORMAT status: this replica must stop.
  using MembersAfter = std::function<std::vector<v1::MemberInfo>(const consensus::Entry&)>;
  virtual Result<std::vector<EntryOutcome>> Apply(std::span<const consensus::Entry> entries,
                                                  const MembersAfter& members_after) = 0;

  // ---- applied state; references live until the next Apply ----
  virtual LogIndex applied_index() const = 0;
  virtual Term applied_term() const = 0;
  virtual LogTime log_time() const = 0;
  virtual std::uint32_t version() const = 0;
  virtual CollectionId collection() const = 0;
  virtual ShardUid shard() const = 0;
  virtual bool retired() const = 0;
  virtual const std::vector<v1::MemberInfo>& members() const = 0;
  virtual const v1::Topology& topology() const = 0;
  virtual const v1::Settings& settings() const = 0;
  virtual std::uint32_t bucket_count() const = 0;
  virtual std::uint8_t level() const = 0;
  std::uint64_t modulus() const { return std::uint64_t{bucket_count()} << level(); }
  std::uint32_t BucketAt(RoutingValue v) const { return static_cast<std::uint32_t>(v.value() % modulus()); }

  virtual const Row* FindRow(std::uint32_t bucket) const = 0;  // null: not here
  virtual Marks FindMarks(std::uint32_t bucket) const = 0;     // zeros when there are none
  virtual const std::map<std::uint32_t, Row>& rows() const = 0;
  virtual const std::map<std::uint32_t, Marks>& marks() const = 0;
  virtual const std::map<TransferId, Outgoing>& outgoing() const = 0;
  virtual const std::map<TransferId, Incoming>& incoming() const = 0;
  virtual const std::map<std::string, SplitTask>& splits() const = 0;
  virtual v1::BucketCounts counts() const = 0;  // kept up to date, not counted anew
  virtual bool locked() const = 0;              // by the settings
  // Source or target of a split task that is not Done or Aborted (the target: holds an incoming set).
  virtual bool busy_with_split() const = 0;

  // ---- checks that a leader makes before it proposes; the same ones decide at apply ----
  // OK, or why a write of this routing value cannot be applied now: WRONG_BUCKET (with the destination and its epoch
  // when `left` knows it), TRANSFER_IS_IN_PROGRESS, QUARANTINED.
  virtual Status CheckWrite(RoutingValue v, Epoch named) const = 0;
  virtual Status CheckRead(RoutingValue v, Epoch named) const = 0;
  // Whether the call's function and arguments are well-formed, its spaces exist and its sizes are within the limits
  // (value 1 MiB, transaction 4 MiB, key 4 KiB). Writes only.
  virtual Status CheckArguments(const v1::Call& call) const = 0;
  // Space number of a name; NOT_FOUND/UNKNOWN_SPACE with the names there are.
  virtual Result<SpaceId> FindSpace(std::string_view name) const = 0;
  virtual std::string_view SpaceName(SpaceId space) const = 0;

  // ---- reads of applied records ----
  virtual Result<v1::GetResult> Get(RoutingValue v, const v1::GetArgs& args) const = 0;

  // Order-independent over replicas: equal for equal state at one applied index. Reads everything.
  virtual Result<v1::ChecksumResponse> Checksum() const = 0;

 protected:
  StateMachine() = default;
};

}  // namespace etalon::bucket
