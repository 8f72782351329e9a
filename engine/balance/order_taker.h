// Carries out the rebalancer's orders at one shard: picks buckets, feeds the Source, reports. Acts
// while this replica leads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/random.h"
#include "engine/balance/io.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "engine/transfer/peers.h"

namespace etalon::balance {

struct OrderTakerOptions {
  Duration report_delay = std::chrono::milliseconds(50);  // from a change to the report of it
  Duration full_backoff =
      std::chrono::milliseconds(20);  // after TOO_MANY_RECEIVING; grows to full_cap, jittered
  Duration full_cap = std::chrono::milliseconds(500);
  Duration failure_backoff = std::chrono::milliseconds(200);
  Duration failure_cap = std::chrono::seconds(10);
};

class OrderTaker {
 public:
  OrderTaker(const bucket::StateMachine& state, const store::Store& store,
             transfer::RebaseGate& gate, Random random, OrderTakerOptions options = {});
  ~OrderTaker();

  Output Step(SteadyTime now, const Input& input);

  // What the rebalancer last told; unknown on other replicas and until it did. The disbalance is a
  // ratio.
  std::optional<double> etalon() const { return etalon_; }
  std::optional<double> disbalance() const { return disbalance_; }

 private:
  struct Route {
    std::uint64_t left = 0;  // not begun yet
    std::uint64_t limit = 0;
    SteadyTime try_at;
    Backoff full;
    Backoff failure;
  };
  struct Running {
    ShardUid target;
    std::uint32_t bucket = 0;
    std::uint8_t level = 0;
  };

  bool ready() const { return leader_ && state_.applied_term() == term_; }
  void Handle(const RoleChanged& role);
  void Handle(const Message& message);
  void Handle(const Applied&);
  void Handle(const Wake&) {}
  void Handle(const Proposed& proposed);
  void Handle(const OrderOpened&) {}
  void Handle(const OrderFinished& finished);
  void OnOrder(ShardUid from, Term term, const v1::BalanceOrder& order);
  Status CheckOrder(ShardUid from, const v1::BalanceOrder& order) const;

  void Drive();
  void BeginMoves();
  void RaiseLevel();
  std::map<ShardUid, Route>::iterator NextRoute();
  std::optional<std::uint32_t> PickBucket();
  // Whether the state does not show it yet: OPEN is not applied.
  bool IsOnItsWay(const Running& run) const;
  // What stays here if every transfer that has begun succeeds.
  std::uint64_t Staying() const;
  std::uint64_t Left() const;
  v1::BalanceReport Report(std::uint64_t number) const;
  void SendResult(ShardUid to, std::uint64_t number, const Status& status);
  void Emit(ShardUid to, v1::BalanceMessage message);
  void WakeBy(SteadyTime when) { out_.wake_at = std::min(out_.wake_at, when); }

  const bucket::StateMachine& state_;
  const store::Store& store_;
  transfer::RebaseGate& gate_;
  Random random_;
  OrderTakerOptions options_;
  bool leader_ = false;
  Term term_;

  transfer::PeerTerms peers_;
  std::optional<double> etalon_;
  std::optional<double> disbalance_;

  // The order that is being carried out.
  ShardUid issuer_;
  Term issuer_term_;
  SettingsVersion settings_version_;
  std::uint64_t number_ = 0;
  std::uint8_t level_ = 0;
  std::uint64_t keep_ = 0;
  std::map<ShardUid, Route> routes_;
  ShardUid last_target_;      // they take turns
  v1::BalanceResult totals_;  // since the issuer's term began here

  std::map<transfer::OrderId, Running> running_;
  std::map<std::uint32_t, SteadyTime> avoid_;  // buckets that failed lately
  std::uint64_t next_order_ = 1;               // of orders, proposals and results
  transfer::Token rebase_ = 0;
  SteadyTime rebase_at_;  // not before
  std::string weights_;   // of the settings: a change cancels what the rebalancer planned
  std::string reported_;  // what the rebalancer should know by now
  SteadyTime report_at_ = SteadyTime::max();

  SteadyTime now_;
  Output out_;
};

}  // namespace etalon::balance
