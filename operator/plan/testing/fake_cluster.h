// A simple model of a collection: processes, disks, routers, replicated shards, a rebalancer,
// splits. It carries out what the planner asks for, may fail at it, and checks what must never
// happen.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/random.h"
#include "common/status.h"
#include "operator/plan/plan.h"

namespace etalon::controller::testing {

struct Faults {
  std::uint32_t silent_percent = 0;       // an answer that does not come
  std::uint32_t fail_percent = 0;         // an action that fails without effect
  std::uint32_t lost_reply_percent = 0;   // an action that is done and reported as failed
  std::uint32_t kill_permille = 0;        // per tick, some process ends
  std::uint32_t lose_disk_permille = 0;   // per tick, some disk is lost, if its shard survives it
  std::uint32_t abort_split_percent = 0;  // a freeze that is taken back
};

class FakeCluster {
 public:
  FakeCluster(std::uint32_t bucket_count, std::uint64_t seed, Faults faults = {});

  SteadyTime now() const { return now_; }
  Observed Observe();
  Status Execute(const Action& action);
  void Tick();  // 100 ms
  void StopFaults() { faults_ = {}; }

  // What must never be; each a sentence. Empty: nothing was.
  const std::vector<std::string>& violations() const { return violations_; }
  // Shards that own buckets, by name.
  std::map<std::string, std::uint64_t> Owned() const;
  std::set<std::string> Processes() const;  // that run
  std::set<ShardUid> deleted() const { return deleted_; }
  std::uint64_t modulus() const { return std::uint64_t{bucket_count_} << level_; }
  const v1::Topology& topology() const { return topologies_.rbegin()->second; }
  std::size_t ready_routers() const;

 private:
  struct Storage {
    ShardUid uid;
    std::string shard;
    std::string address;
    bool up = false;
    bool lost = false;
    std::uint64_t member = 0;
    bool formed = false;
    std::uint64_t match = 0;
    SteadyTime answers_at;
  };
  struct Router {
    bool up = false;
    std::uint64_t version = 0;
    SteadyTime answers_at;
    SteadyTime ready_at;
  };
  struct Shard {
    std::vector<v1::MemberInfo> members;
    std::uint64_t topology = 0;
    std::uint64_t settings = 0;
    std::uint64_t owned = 0;  // at level_
    std::uint64_t garbage = 0;
    bool retired = false;
    std::map<std::string, v1::SplitTask> splits;
    std::string leader;  // empty: none
    SteadyTime leader_since;
    std::uint64_t term = 1;
    std::string form;  // content
    SteadyTime prefer_until;
    std::string prefer;
  };

  Status Do(const Action& action);
  Status Do(const Adopt& action);
  Status Do(const StartStorage& action);
  Status Do(const StopStorage& action);
  Status Do(const ReplaceDisk& action);
  Status Do(const StartRouter& action);
  Status Do(const RestartRouter& action);
  Status Do(const StopRouter& action);
  Status Do(const CreateTopology& action);
  Status Do(const CreateSettings& action);
  Status Do(const CreateForm& action);
  Status Do(const PushTopology& action);
  Status Do(const ApplyTopology& action);
  Status Do(const ApplySettings& action);
  Status Do(const Form& action);
  Status Do(const ChangeMember& action);
  Status Do(const TransferLeader& action);
  Status Do(const Split& action);
  Status Do(const AbortSplit& action);
  Status Do(const Retire& action);
  Status Do(const DeleteShard& action);

  Result<Shard*> Led(ShardUid uid);
  bool Ready(const Router& router) const { return router.up && router.ready_at <= now_; }
  bool Knows(const Shard& shard, ShardUid other) const;
  void CheckRouters(std::uint64_t version, const std::string& what);
  void Elect(ShardUid uid, Shard* shard);
  void AdvanceSplits(Shard* shard);
  void Rebalance();
  void Check(bool good, const std::string& sentence);
  v1::InfoResponse InfoOf(const std::string& name, const Storage& storage) const;

  const std::uint32_t bucket_count_;
  Random random_;
  Faults faults_;
  SteadyTime now_ = SteadyTime(std::chrono::hours(1));
  std::uint32_t level_ = 0;
  std::uint32_t next_port_ = 7000;
  Topologies topologies_;
  SettingsByVersion settings_;
  Forms forms_;
  std::set<ShardUid> doomed_;
  std::set<ShardUid> deleted_;
  std::map<std::string, Storage> storages_;
  std::map<std::string, Router> routers_;
  std::map<ShardUid, Shard> shards_;
  std::vector<std::string> violations_;
};

}  // namespace etalon::controller::testing
