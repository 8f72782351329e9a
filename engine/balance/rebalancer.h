// The rebalancer: asks every shard what it holds, computes etalons, gives orders. It acts while
// this replica leads the shard that the settings name, and keeps nothing that it could not ask for
// again.
//
// An order can never move too much, however old the picture it was planned from: the source keeps
// at least its etalon and the target refuses to go above its own (see v1::BalanceOrder), each
// judged by its own applied state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  struct Shard {
    explicit Shard(const RebalancerOptions& options);

    std::string name;
    std::uint32_t weight = 0;
    bool locked = false;  // by the settings

    std::optional<v1::BalanceReport> report;  // the last one in this term
    std::uint64_t asked = 0;                  // number of the query that is out; 0: answered
    SteadyTime silent_since = SteadyTime::max();
    SteadyTime ask_at = SteadyTime::max();
    Backoff ask;

    v1::BalanceOrder order;  // number 0: none yet
    bool taken = false;
    bool finished = true;
    SteadyTime order_at = SteadyTime::max();
    Backoff resend;

    Term totals_term;          // of the shard's leader that counts them
    v1::BalanceResult totals;  // as last heard

    std::optional<double> etalon;  // at the shard's level, as told
    std::optional<double> disbalance;
    placement::ShardEtalon plan;  // at the highest level
  };
  using Shards = std::map<ShardUid, Shard>;
  // Etalons that hold whatever the shards hold that nobody has heard of.
  struct Bounds {
    std::uint64_t keep = 0;   // never below
    std::uint64_t limit = 0;  // never above
  };

  bool ready() const { return leader_ && state_.applied_term() == term_; }
  void Handle(const RoleChanged& role);
  void Handle(const Message& message);
  void Handle(const Applied&);
  void Handle(const Wake&) {}
  // Not for this machine.
  void Handle(const Proposed&) {}
  void Handle(const OrderOpened&) {}
  void Handle(const OrderFinished&) {}
  void OnReport(Shard& shard, const v1::BalanceReport& report);
  void OnResult(Shard& shard, Term term, const v1::BalanceResult& result);

  void Stop();
  void LoadConfiguration();
  void Drive();
  void BeginRound();
  bool Silent(const Shard& shard) const;
  bool AllAnswered() const;
  bool OrdersOut() const;

  // plan.cc
  void Plan();
  std::vector<placement::ShardLoad> Loads(std::uint8_t level, std::uint64_t* unheard) const;
  bool CannotPlan(placement::EtalonState state);
  void TellEtalons(std::uint8_t level);
  void GiveOrders(std::uint8_t level, const std::map<ShardUid, Bounds>& bounds,
                  const std::map<ShardUid, std::map<ShardUid, std::uint64_t>>& routes);
  void BeginCampaign();

  void SendQuery(ShardUid uid, Shard& shard);
  void SendOrder(ShardUid uid, Shard& shard);
  void Emit(ShardUid to, v1::BalanceMessage message);
  void Show(std::string_view state, std::string explanation);
  void PlanBy(SteadyTime when) { plan_at_ = std::min(plan_at_, when); }
  void WakeBy(SteadyTime when) { out_.wake_at = std::min(out_.wake_at, when); }

  const bucket::StateMachine& state_;
  Random random_;
  RebalancerOptions options_;
  bool leader_ = false;
  Term term_;
  bool running_ = false;

  std::uint64_t next_number_ = 1;
  std::string configuration_;  // what of settings and topology matters here, to notice its change
  Shards shards_;              // of the topology
  transfer::PeerTerms peers_;
  transfer::AlertBook alerts_;
  bool collecting_ = false;
  SteadyTime collect_until_;
  SteadyTime plan_at_ = SteadyTime::max();
  SteadyTime tick_at_ = SteadyTime::max();
  bool moving_ = false;  // began, and has not reached the etalon: the threshold does not stop it
  SteadyTime campaign_began_;
  v1::BalanceResult campaign_;  // what the totals of all shards grew by since
  std::string shown_state_;
  std::string shown_explanation_;

  SteadyTime now_;
  Output out_;
};

}  // namespace etalon::balance
