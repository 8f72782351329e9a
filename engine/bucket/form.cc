#include <algorithm>
#include <set>

#include "engine/bucket/commands.h"
#include "engine/bucket/shard_state.h"
#include "engine/bucket/state_machine.h"
#include "engine/bucket/topology_rules.h"

namespace etalon::bucket {

Result<store::Batch> StateMachine::FormState(const v1::FormRequest& request) {
  const v1::Topology& topology = request.topology();
  if (request.collection() == 0 || request.shard() == 0) {
    return InvalidArgument("a shard is formed with the IDs of its collection and its own");
  }
  ETALON_RETURN_IF_ERROR(CheckTopology(topology));
  if (topology.collection() != request.collection()) {
    return InvalidArgument("the topology is of another collection");
  }
  if (std::none_of(topology.shards().begin(), topology.shards().end(),
                   [&](const v1::ShardInfo& shard) { return shard.uid() == request.shard(); })) {
    return InvalidArgument("the topology does not name the shard that is formed");
  }
  if (request.members().empty()) return InvalidArgument("a shard has members");
  std::set<std::uint64_t> members;
  std::set<std::string> names;
  for (const v1::MemberInfo& member : request.members()) {
    if (member.member() == 0 || member.name().empty() || !members.insert(member.member()).second ||
        !names.insert(member.name()).second) {
      return InvalidArgument("members have an ID and a name, each its own");
    }
  }
  std::set<std::uint32_t> buckets;
  for (const v1::BucketRange& range : request.ranges()) {
    if (range.first() > range.last() || range.last() >= topology.bucket_count()) {
      return InvalidArgument("bucket range " + std::to_string(range.first()) + " to " +
                                 std::to_string(range.last()) + " is not within " +
                                 std::to_string(topology.bucket_count()) + " buckets",
                             Reason::kBucketOutOfRange);
    }
    for (std::uint32_t bucket = range.first(); bucket <= range.last(); ++bucket) {
      if (!buckets.insert(bucket).second) {
        return InvalidArgument("bucket " + std::to_string(bucket) + " is in two ranges");
      }
    }
  }

  Changes changes;
  ShardState state(changes);
  state.Form(CollectionId(request.collection()), ShardUid(request.shard()), kStateVersion);
  state.SetApplied(LogIndex(1), Term(1));
  state.SetMembers({request.members().begin(), request.members().end()});
  state.SetTopology(topology);
  state.SetSettings(request.settings());
  for (const std::uint32_t bucket : buckets) {
    state.SetRow(bucket, {.status = RowStatus::kActive, .epoch = Epoch(1)});
    state.SetMarks(bucket, {.own = Epoch(1)});
  }
  state.PutHeader();
  return std::move(changes.batch());
}

}  // namespace etalon::bucket
