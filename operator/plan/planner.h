// Inside of Plan(): one pass over the observations, step by step. The order of the steps is the
// order of the actions; no step depends on an action of another having been carried out, only on
// what was observed.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "operator/plan/plan.h"
#include "operator/plan/view.h"

namespace etalon::controller {

// How long a shard may be without a leader before another is named to run the rebalancer: longer
// than an election.
inline constexpr Duration kRebalancerGrace = std::chrono::seconds(10);
// A router that runs and does not answer for so long is started again.
inline constexpr Duration kRouterSilence = std::chrono::seconds(15);
// A learner this close to the end of the leader's log counts as caught up.
inline constexpr std::uint64_t kCaughtUpEntries = 256;
// Below so many buckets a shard the spread is coarse.
inline constexpr std::uint64_t kFewBuckets = 100;
// Head-room that the remaining shards must have to take over the data of those that go.
inline constexpr double kCapacityFactor = 1.2;

class Planner {
 public:
  Planner(const CollectionSpec& spec, const Observed& observed, SteadyTime now);

  PlanOutput Run();

 private:
  // What the splits that are open, and those that are to come, look like.
  struct Splits {
    bool by_split = false;           // new shards are born of splits, not by weights
    std::set<ShardUid> tried;        // targets of any task
    std::set<ShardUid> open;         // sources and targets of open tasks
    std::set<ShardUid> committed;    // targets of committed tasks
    std::set<std::string> to_close;  // task IDs: committed, and none is still on its way
    bool under_way = false;          // some open task is not committed
  };

  // scale.cc
  void ChooseVictims();
  std::string WhyNotDown(const std::vector<ShardView*>& victims);
  std::string WhyNoRoom(const std::vector<ShardView*>& victims);
  // processes.cc
  void StartStorages();
  void StartIfNotRunning(const ShardView& shard, const ReplicaView& replica);
  void StopStrays();
  void PlanRouters();
  void RollRouters(std::uint64_t version);
  // declarations.cc
  bool FirstReplicasReady(const ShardView& shard, bool must_be_blank);
  void PlanTopology();
  v1::Topology DesiredTopology();
  v1::Topology FirstTopology();
  void DescribeReplicas(const ShardView& shard, v1::ShardInfo* info);
  void DescribeSpec(v1::Topology* topology) const;
  void PlanSettings();
  v1::Settings DesiredSettings();
  std::uint32_t DesiredWeight(const ShardView& shard) const;
  bool MayTakeBuckets(const ShardView& shard) const;
  ShardUid ChooseRebalancer() const;
  void SpreadTopology();
  void SpreadSettings();
  // shards.cc
  void PlanForms();
  void PlanMembers();
  bool PlanMember(const ShardView& shard);
  void PlanLostDisks(const ShardView& shard);
  std::string WhyNoMajority(const ShardView& shard) const;
  void StopRemovedReplicas(const ShardView& shard);
  void PlanLeaderZones();
  void RetireVictims();
  void DeleteRemoved();
  bool EverybodyForgot(const ShardView& shard);
  // splits.cc
  void SurveySplits();
  bool BySplit() const;
  void PlanSplits();
  bool KnowsTarget(const ShardView& source, ShardUid target) const;
  // report.cc
  void MakeReport();
  void ReportShards(Report* report) const;
  Condition Ready() const;
  Condition Available() const;
  Condition Resharding() const;
  Condition Balanced() const;
  Condition FewBuckets() const;

  void Do(Action action) { actions_.push_back(std::move(action)); }
  void WaitFor(std::string key, std::string what, std::string left, std::string next);
  bool Rebalances() const;  // somebody is asked to move buckets
  bool complete() const { return view_.topology() != nullptr && view_.topology()->complete(); }

  const CollectionSpec& spec_;
  const Observed& seen_;
  const SteadyTime now_;
  View view_;
  Splits splits_;
  std::vector<Action> actions_;
  std::vector<Wait> waits_;
  std::vector<std::string> refused_;  // what keeps the planner from doing anything at all
  std::string down_blocked_;          // why no shard may go; empty: nothing stands against it
  bool resharding_ = false;           // shards come, go, or are born by a split
  Report report_;
  SteadyTime wake_at_ = SteadyTime::max();
};

}  // namespace etalon::controller
