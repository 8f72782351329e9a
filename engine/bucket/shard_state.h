// The replicated state of one shard except its records: mirrored in memory, each change also put
// into the pending batch and told to the observer after it is written. Who may change what when is
// commands.h's matter; here only the table of bucket states is enforced.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "engine/bucket/changes.h"
#include "engine/bucket/rows.h"
#include "engine/store/store.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/call.pb.h"
#include "etalon/v1/log.pb.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::bucket {

inline constexpr std::uint64_t kModulusCap = std::uint64_t{1} << 20;
// Routers keep epochs in 48 bits.
inline constexpr std::uint64_t kEpochEnd = std::uint64_t{1} << 48;

class ShardState {
 public:
  // Empty; `changes` must outlive it.
  explicit ShardState(Changes& changes) : changes_(changes) {}
  ShardState(const ShardState&) = delete;
  ShardState& operator=(const ShardState&) = delete;

  // Into an empty one. Errors as StateMachine::Load.
  Status Load(const store::Store& store);

  // ---- what it is ----
  const v1::StateHeader& header() const { return header_; }
  const std::vector<v1::MemberInfo>& members() const { return members_; }
  ShardUid shard() const { return ShardUid(header_.shard()); }
  LogTime log_time() const { return LogTime(header_.log_time_millis()); }
  std::uint8_t level() const { return static_cast<std::uint8_t>(header_.level()); }
  bool retired() const { return header_.retired(); }
  const v1::Topology& topology() const { return topology_; }
  const v1::Settings& settings() const { return settings_; }
  std::uint32_t bucket_count() const { return topology_.bucket_count(); }
  std::uint64_t modulus() const { return std::uint64_t{bucket_count()} << level(); }
  std::uint32_t BucketAt(RoutingValue v) const {
    return static_cast<std::uint32_t>(v.value() % modulus());
  }
  const std::map<std::uint32_t, Row>& rows() const { return rows_; }
  const std::map<std::uint32_t, Marks>& marks() const { return marks_; }
  const std::map<TransferId, Outgoing>& outgoing() const { return outgoing_; }
  const std::map<TransferId, Incoming>& incoming() const { return incoming_; }
  const std::map<std::string, SplitTask>& splits() const { return splits_; }
  const Row* FindRow(std::uint32_t bucket) const;
  Marks FindMarks(std::uint32_t bucket) const;
  std::uint64_t CountOf(RowStatus status) const {
    return counts_[static_cast<std::size_t>(status)];
  }
  bool locked() const { return locked_; }
  // The task that is neither Done nor Aborted; null: none. There is at most one.
  const SplitTask* OpenSplit() const;
  Result<SpaceId> FindSpace(std::string_view name) const;
  std::string_view SpaceName(SpaceId space) const;  // empty: no such space

  // The buckets of our level that a bucket of a lower one stands for, ascending.
  std::vector<std::uint32_t> Expand(std::uint32_t bucket, std::uint8_t level) const;
  // The same for a set, with its epochs; sorted by bucket.
  std::vector<BucketEpoch> Expand(const std::vector<BucketEpoch>& set, std::uint8_t level) const;

  // As StateMachine's.
  Status CheckWrite(RoutingValue v, Epoch named) const;
  Status CheckRead(RoutingValue v, Epoch named) const;
  Status CheckLevel(const v1::Call& call) const;

  // ---- changes ----
  void SetApplied(LogIndex index, Term term);  // in memory; PutHeader brings it into the batch
  void AdvanceTime(LogTime now);               // never back
  void SetMembers(std::vector<v1::MemberInfo> members);
  void SetVersion(std::uint32_t version) { header_.set_version(version); }
  void SetRetired() { header_.set_retired(true); }
  void PutHeader();

  // The transition must be in the table.
  void SetRow(std::uint32_t bucket, const Row& row);
  void EraseRow(std::uint32_t bucket);
  void SetMarks(std::uint32_t bucket, const Marks& marks);
  void SetOutgoing(Outgoing transfer);
  void EraseOutgoing(const TransferId& id);
  void AddIncoming(Incoming transfer);
  void UpdateIncoming(const Incoming& transfer);  // its set stays as it is
  void EraseIncoming(const TransferId& id);
  void SetSplit(SplitTask task);
  void SetTopology(v1::Topology topology);
  void SetSettings(v1::Settings settings);
  // Each row and mark r is copied to r + M, r + 2M, ... up to that level, which must be above ours
  // and within kModulusCap.
  void Rebase(std::uint8_t level);

  // For FormState: sets identity and version.
  void Form(CollectionId collection, ShardUid shard, std::uint32_t version);

 private:
  void Count(RowStatus status, std::uint64_t change) {
    counts_[static_cast<std::size_t>(status)] += change;
  }
  void PutRow(std::uint32_t bucket, const Row& row);
  void PutMarks(std::uint32_t bucket, const Marks& marks);
  void IndexTopology();
  void IndexSettings();
  Status CheckLoaded() const;
  // A bucket without a row, or whose row says that it is somewhere else.
  Status Elsewhere(std::uint32_t bucket) const;
  Status CheckEpoch(std::uint32_t bucket, Epoch here, Epoch named) const;

  Changes& changes_;
  v1::StateHeader header_;  // without the members
  std::vector<v1::MemberInfo> members_;
  v1::Topology topology_;
  v1::Settings settings_;
  std::map<std::uint32_t, Row> rows_;
  std::map<std::uint32_t, Marks> marks_;
  std::map<TransferId, Outgoing> outgoing_;
  std::map<TransferId, Incoming> incoming_;
  std::map<std::string, SplitTask> splits_;
  // Follow from the above.
  std::array<std::uint64_t, 8> counts_{};  // by RowStatus
  std::map<std::string, SpaceId, std::less<>> spaces_;
  std::map<SpaceId, std::string> space_names_;
  bool locked_ = false;
};

}  // namespace etalon::bucket
