// The rebalancer: asks every shard what it holds, computes etalons, gives orders. It acts while
// this replica leads the shard that the settings name, and keeps nothing that it could not ask for
// again.
//
// An order can never move too much, however old the picture it was planned from: the source keeps
// at least its etalon and the target refuses to go above its own (see v1::BalanceOrder), each
// judged by its own applied state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/random.h"
#include "engine/balance/io.h"
#include "engine/bucket/state_machine.h"
#include "engine/transfer/peers.h"
#include "etalon/v1/admin.pb.h"
#include "placement/etalon.h"

namespace etalon::balance {

struct RebalancerOptions {
  Duration collect_timeout =
      std::chrono::seconds(1);  // then the plan is made without those who did not answer
  Duration tick = std::chrono::seconds(10);
  Duration settle =
      std::chrono::milliseconds(20);  // from news to the next plan: news comes in bursts
  Duration ask_again = std::chrono::milliseconds(
      250);  // first wait for a shard that does not answer; grows, jittered
  Duration ask_cap = std::chrono::seconds(10);
  Duration unreachable_after = std::chrono::seconds(15);
};

class Rebalancer {
 public:
  Rebalancer(const bucket::StateMachine& state, Random random, RebalancerOptions options = {});
  ~Rebalancer();

  Output Step(SteadyTime now, const Input& input);

  // For `etalonctl rebalancer` and the operator; `runs_here` false elsewhere.
  v1::RebalancerStateResponse State() const;

 private:
  struct Shard;

  bool Runs() const;
  void OnRole(const RoleChanged& role);
  void OnMessage(const v1::BalanceMessage& message);
  void OnReport(Shard& shard, const v1::BalanceReport& report);
  void OnResult(Shard& shard, const v1::BalanceResult& result);
  void LoadConfiguration();
  void BeginRound();
  void Drive();
  void Plan();
  void GiveOrders(const std::map<ShardUid, v1::BalanceOrder>& wanted);
  void SendQuery(Shard& shard);
  void SendOrder(Shard& shard);
  void Emit(ShardUid to, v1::BalanceMessage message);
  void WakeBy(SteadyTime when);

  const bucket::StateMachine& state_;
  Random random_;
  RebalancerOptions options_;
  bool leader_ = false;
  Term term_;
  bool running_ = false;

  std::uint64_t next_number_ = 1;
  SettingsVersion settings_version_;
  std::string configuration_;  // what of settings and topology matters here, to notice its change
  std::map<ShardUid, Shard> shards_;  // of the topology
  transfer::PeerTerms peers_;
  transfer::AlertBook alerts_;
  bool collecting_ = false;
  SteadyTime collect_until_;
  SteadyTime plan_at_ = SteadyTime::max();
  SteadyTime tick_at_;
  bool moving_ = false;  // began, and has not reached the etalon: the threshold does not stop it
  SteadyTime campaign_began_;
  v1::RebalancerStateResponse shown_;

  SteadyTime now_;
  Output out_;
};

}  // namespace etalon::balance
