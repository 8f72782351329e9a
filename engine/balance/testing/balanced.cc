#include "engine/balance/testing/balanced.h"

#include "common/check.h"
#include "placement/etalon.h"

namespace etalon::balance::testing {

BalancedShard::BalancedShard(Cluster& cluster, ShardUid uid, const v1::FormRequest& form)
    : Shard(cluster, uid, form),
      taker_(std::make_unique<OrderTaker>(state(), store(), gate(), cluster.random().Fork())),
      rebalancer_(std::make_unique<Rebalancer>(state(), cluster.random().Fork())) {}

void BalancedShard::Queue(bool taker, Input input) {
  cluster().After(Duration(0), [this, taker, input = std::move(input)] {
    Carry(taker,
          taker ? taker_->Step(cluster().now(), input) : rebalancer_->Step(cluster().now(), input));
  });
}

void BalancedShard::Carry(bool taker, Output output) {
  for (Action& action : output.actions) {
    if (auto* send = std::get_if<Send>(&action)) {
      ++said[std::to_string(static_cast<int>(send->message.body_case()))];
      if (silent) continue;
      Random& random = cluster().random();
      const int copies = random.Chance(static_cast<std::uint64_t>(cluster().lost), 1000)      ? 0
                         : random.Chance(static_cast<std::uint64_t>(cluster().doubled), 1000) ? 2
                                                                                              : 1;
      for (int i = 0; i < copies; ++i) {
        cluster().After(random.Between(cluster().latency_min, cluster().latency_max),
                        [this, to = send->to, message = send->message] {
                          auto* shard = static_cast<BalancedShard*>(cluster().Find(to));
                          if (shard != nullptr && !shard->silent) shard->Hear(message);
                        });
      }
    } else if (auto* start = std::get_if<StartTransfer>(&action)) {
      begun.push_back(*start);
      FeedSource(*start);
    } else if (auto* cancel = std::get_if<CancelOrders>(&action)) {
      FeedSource(*cancel);
    } else if (auto* propose = std::get_if<balance::Propose>(&action)) {
      const Term now = term();
      if (RefusesAtOnce(propose->control)) {
        Queue(true, Proposed{propose->token, false, ResourceExhausted("full"), LogIndex(), now});
        continue;
      }
      Shard::Propose(propose->control, [this, now, token = propose->token](const Status& status) {
        if (term() == now) Queue(true, Proposed{token, true, status, LogIndex(), now});
      });
    } else if (auto* alert = std::get_if<Alert>(&action)) {
      const std::pair<std::string, std::string> key{alert->code, alert->key};
      if (alert->raised) {
        balance_alerts.insert(key);
      } else {
        ETALON_CHECK(balance_alerts.erase(key) == 1, "cleared an alert that did not stand");
      }
    }
  }
  SteadyTime& wake = wakes_[taker ? 1 : 0];
  wake = output.wake_at;
  if (wake == SteadyTime::max()) return;
  cluster().events().Schedule(wake, 0, sim::EventKind::kTimer, [this, taker, at = wake] {
    if (wakes_[taker ? 1 : 0] == at) Queue(taker, Wake{});
  });
}

void BalancedShard::Hear(const v1::BalanceMessage& message) {
  if (IsForOrderTaker(message)) Queue(true, Message{message});
  if (IsForRebalancer(message)) Queue(false, Message{message});
}

void BalancedShard::AfterApply() {
  Queue(true, Applied{});
  Queue(false, Applied{});
}

void BalancedShard::OnRole(const RoleChanged& role) {
  Queue(true, role);
  Queue(false, role);
}

void BalancedShard::OnOrderOpened(const OrderOpened& opened_order) {
  if (IsOwnOrder(opened_order.order)) Queue(true, opened_order);
}

void BalancedShard::OnOrderFinished(const OrderFinished& finished_order) {
  if (IsOwnOrder(finished_order.order)) Queue(true, finished_order);
}

Balanced::Balanced(ClusterOptions options, bool begin)
    : cluster_(std::move(options), [](Cluster& cluster, ShardUid uid, const v1::FormRequest& form) {
        return std::make_unique<BalancedShard>(cluster, uid, form);
      }) {
  if (begin) Begin();
}

void Balanced::Begin() {
  cluster_.ChangeSettings([](v1::Settings& s) { s.set_rebalancer(Cluster::Uid(0).value()); });
}

std::uint64_t Balanced::Count(int i) {
  const v1::BucketCounts counts = cluster_.shard(i).state().counts();
  return counts.active() + counts.pinned() + counts.sending();
}

std::string Balanced::Counts() {
  std::string text;
  for (int i = 0; i < cluster_.size(); ++i) text += std::to_string(Count(i)) + ' ';
  return text + State().state() + ": " + State().explanation();
}

bool Balanced::AtEtalon(int at) {
  if (State(at).state() != "BALANCED") return false;
  std::uint8_t level = 0;
  for (int i = 0; i < cluster_.size(); ++i) {
    level = std::max(level, cluster_.shard(i).state().level());
  }
  std::vector<placement::ShardLoad> loads;
  for (int i = 0; i < cluster_.size(); ++i) {
    const bucket::StateMachine& state = cluster_.shard(i).state();
    if (!state.outgoing().empty() || !state.incoming().empty()) return false;
    const v1::ShardSettings& settings = cluster_.settings().shards(i);
    placement::ShardLoad load;
    load.name = cluster_.topology().shards(i).name();
    load.uid = Cluster::Uid(i);
    load.weight = settings.weight();
    load.locked = settings.locked() || state.busy_with_split();
    load.pinned = state.counts().pinned() << (level - state.level());
    load.buckets = Count(i) << (level - state.level());
    loads.push_back(load);
  }
  for (const placement::ShardEtalon& shard : placement::ComputeEtalon(loads).shards) {
    if (shard.buckets != shard.etalon) return false;
  }
  return true;
}

int Balanced::WastedCopies() {
  int wasted = 0;
  for (int i = 0; i < cluster_.size(); ++i) {
    auto& shard = cluster_.shard(i);
    wasted += shard.applied_controls["ABORT"] + shard.applied_controls["TARGET_GARBAGE"] +
              shard.refused_controls["RECEIVING"] + shard.refused_controls["OPEN"];
  }
  return wasted;
}

}  // namespace etalon::balance::testing
