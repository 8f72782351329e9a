// A cluster of transfer/testing whose shards have an OrderTaker and a Rebalancer each.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/balance/order_taker.h"
#include "engine/balance/rebalancer.h"
#include "engine/transfer/testing/cluster.h"

namespace etalon::balance::testing {

using transfer::testing::Cluster;
using transfer::testing::ClusterOptions;

class BalancedShard final : public transfer::testing::Shard {
 public:
  BalancedShard(Cluster& cluster, ShardUid uid, const v1::FormRequest& form);

  void Hear(const v1::BalanceMessage& message);
  OrderTaker& taker() { return *taker_; }
  Rebalancer& rebalancer() { return *rebalancer_; }

  std::set<std::pair<std::string, std::string>> balance_alerts;  // standing
  std::vector<StartTransfer> begun;                              // by orders
  std::map<std::string, int> said;                               // messages, by kind

 protected:
  void AfterApply() override;
  void OnRole(const RoleChanged& role) override;
  void OnOrderOpened(const OrderOpened& opened) override;
  void OnOrderFinished(const OrderFinished& finished) override;

 private:
  // Later, and in order: a machine is never stepped while the actions of another step are carried
  // out.
  void Queue(bool taker, Input input);
  void Carry(bool taker, Output output);

  std::unique_ptr<OrderTaker> taker_;
  std::unique_ptr<Rebalancer> rebalancer_;
  SteadyTime wakes_[2] = {SteadyTime::max(), SteadyTime::max()};
};

class Balanced {
 public:
  // With `begin` the rebalancer runs on shard 0 from the start.
  explicit Balanced(ClusterOptions options, bool begin = true);
  void Begin();

  Cluster& cluster() { return cluster_; }
  BalancedShard& shard(int i) { return static_cast<BalancedShard&>(cluster_.shard(i)); }
  v1::RebalancerStateResponse State(int at = 0) { return shard(at).rebalancer().State(); }
  // Buckets of a shard, at its level.
  std::uint64_t Count(int i);
  // Whether every shard holds exactly its etalon and the rebalancer at `at` says so.
  bool AtEtalon(int at = 0);
  std::string Counts();
  // Copies that were begun and thrown away, over all shards.
  int WastedCopies();

 private:
  Cluster cluster_;
};

}  // namespace etalon::balance::testing
