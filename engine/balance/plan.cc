// The rebalancer's plan: from reports to etalons to orders.
#include <utility>

#include "engine/balance/rebalancer.h"
#include "placement/modulus.h"
#include "placement/moves.h"
#include "proto/wire.h"

namespace etalon::balance {
namespace {

// Where each transfer is counted once everything that runs has ended. A transfer that both sides
// report counts once; one past its commit point that the target does not report any more is in the
// target's own count already.
struct Flows {
  std::map<ShardUid, std::uint64_t> leaving;   // still in the source's count
  std::map<ShardUid, std::uint64_t> arriving;  // not in the target's count yet
};

}  // namespace

std::vector<placement::ShardLoad> Rebalancer::Loads(std::uint8_t level,
                                                    std::uint64_t* unheard) const {
  Flows flows;
  std::map<TransferId, ShardUid>
      reported;  // by their source, and so not to be counted at the target
  for (const auto& [uid, shard] : shards_) {
    if (!shard.report) continue;
    const unsigned up = level - shard.report->level();
    for (const v1::BalanceFlow& flow : shard.report->outgoing()) {
      const TransferId id = FromProto(flow.id());
      if (flow.sent()) continue;
      reported[id] = ShardUid(flow.target());
      flows.leaving[uid] += flow.buckets() << up;
      flows.arriving[ShardUid(flow.target())] += flow.buckets() << up;
    }
  }
  for (const auto& [uid, shard] : shards_) {
    if (!shard.report) continue;
    for (const v1::BalanceFlow& flow : shard.report->incoming()) {
      if (reported.count(FromProto(flow.id())) != 0) continue;
      flows.arriving[uid] += flow.buckets() << (level - shard.report->level());
    }
  }
  std::uint64_t heard = 0;
  std::vector<placement::ShardLoad> loads;
  for (const auto& [uid, shard] : shards_) {
    placement::ShardLoad load;
    load.name = shard.name;
    load.uid = uid;
    load.weight = shard.weight;
    load.locked = shard.locked || (shard.report && shard.report->locked());
    load.buckets = flows.arriving.count(uid) != 0 ? flows.arriving.at(uid) : 0;
    if (shard.report) {
      const unsigned up = level - shard.report->level();
      load.pinned = shard.report->pinned() << up;
      load.buckets += shard.report->buckets() << up;
      const auto leaving = flows.leaving.find(uid);
      if (leaving != flows.leaving.end()) {
        load.buckets -= std::min(load.buckets, leaving->second);
      }
    }
    heard += load.buckets;
    loads.push_back(std::move(load));
  }
  const std::uint64_t all = placement::Modulus(state_.bucket_count(), level);
  *unheard = all - std::min(all, heard);
  return loads;
}

void Rebalancer::Plan() {
  std::uint8_t level = state_.level();
  for (const auto& [uid, shard] : shards_) {
    if (shard.report) {
      level = std::max(level, static_cast<std::uint8_t>(shard.report->level()));
    }
  }
  std::uint64_t unheard = 0;
  const std::vector<placement::ShardLoad> loads = Loads(level, &unheard);

  // What nobody has reported is with the shards that did not answer: as free buckets of one, as
  // pinned ones of each, or behind a lock. The etalon of everybody else lies between what these
  // extremes give.
  std::vector<std::vector<placement::ShardLoad>> guesses;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    if (shards_.at(loads[i].uid).report) continue;
    if (guesses.empty() && !loads[i].locked) {
      guesses.push_back(loads);
      guesses.back()[i].buckets += unheard;
    }
    guesses.push_back(loads);
    guesses.back()[i].buckets += unheard;
    if (!loads[i].locked) guesses.back()[i].pinned = guesses.back()[i].buckets;
  }
  const bool everybody_known = guesses.empty();
  if (everybody_known) guesses.push_back(loads);

  const placement::EtalonResult first = placement::ComputeEtalon(guesses.front());
  if (CannotPlan(first.state)) {
    moving_ = false;
    return GiveOrders(level, {}, {});
  }
  std::map<ShardUid, Bounds> bounds;
  double worst = 0;
  for (const placement::ShardEtalon& e : first.shards) {
    bounds[e.uid] = {e.etalon, e.etalon};
    Shard& shard = shards_.at(e.uid);
    shard.plan = e;
    if (shard.report) worst = std::max(worst, e.disbalance_percent);
  }
  for (std::size_t g = 1; g < guesses.size(); ++g) {
    for (const placement::ShardEtalon& e : placement::ComputeEtalon(guesses[g]).shards) {
      bounds[e.uid].keep = std::max(bounds[e.uid].keep, e.etalon);
      bounds[e.uid].limit = std::min(bounds[e.uid].limit, e.etalon);
    }
  }

  std::vector<placement::MoveShard> movers;
  std::map<std::string, ShardUid> by_name;
  std::string waits_for;
  bool at_etalon = everybody_known;
  for (const placement::ShardLoad& load : guesses.front()) {
    const Shard& shard = shards_.at(load.uid);
    const Bounds& b = bounds[load.uid];
    const bool silent = Silent(shard);
    placement::MoveShard mover;
    mover.name = load.name;
    mover.buckets = load.buckets;
    mover.etalon = load.buckets > b.keep ? b.keep : std::max(load.buckets, b.limit);
    mover.pinned = load.pinned;
    mover.locked = load.locked || silent || !shard.report;
    by_name[load.name] = load.uid;
    if (silent) {
      waits_for += (waits_for.empty() ? "" : ", ") + load.name + " does not answer";
    }
    if (!load.locked && mover.buckets != b.keep) at_etalon = false;
    if (shard.report) {
      mover.sending = shard.report->sending();
      mover.receiving = shard.report->receiving();
    }
    movers.push_back(std::move(mover));
  }

  const double threshold = state_.settings().disbalance_threshold_percent();
  std::map<ShardUid, std::map<ShardUid, std::uint64_t>> routes;
  if (moving_ || worst > threshold) {
    placement::MoveLimits limits;
    const v1::Settings& settings = state_.settings();
    if (settings.max_sending() != 0) limits.max_sending = settings.max_sending();
    if (settings.max_receiving() != 0) limits.max_receiving = settings.max_receiving();
    limits.disbalance_threshold_percent = 0;
    for (const placement::Route& route : placement::PlanRoutes(movers, limits)) {
      routes[by_name.at(route.source)][by_name.at(route.target)] = route.count;
    }
  }
  if (!routes.empty() && !moving_) BeginCampaign();
  GiveOrders(level, bounds, routes);
  TellEtalons(level);

  bool unsettled = false;
  for (const auto& [uid, shard] : shards_) unsettled |= shard.report && shard.report->unsettled();
  if (!routes.empty() || OrdersOut()) {
    Show("MOVING", waits_for.empty() ? "" : "moving what does not depend on others; " + waits_for);
  } else if (!waits_for.empty() && !at_etalon && (moving_ || worst > threshold)) {
    Show("WAITING", waits_for);
  } else if (unsettled && moving_) {
    Show("MOVING", "the last transfers are about to end");
  } else {
    Show("BALANCED", at_etalon ? "" : "within the threshold of the disbalance");
    moving_ = false;
  }
}

bool Rebalancer::CannotPlan(placement::EtalonState state) {
  transfer::Output told;
  std::string why;
  switch (state) {
    case placement::EtalonState::kOk:
      alerts_.ClearAll("weights", &told);
      break;
    case placement::EtalonState::kAllWeightsZero:
      why = "every unlocked shard has weight 0: nothing moves; give one of them a weight";
      Show("ALL_WEIGHTS_ZERO", why);
      alerts_.Raise(kAlertAllWeightsZero, "weights", why, &told);
      alerts_.Clear(kAlertAllLocked, "weights", &told);
      break;
    case placement::EtalonState::kAllLocked:
      why = "every shard is locked: nothing moves; unlock those that may take buckets";
      Show("ALL_LOCKED", why);
      alerts_.Raise(kAlertAllLocked, "weights", why, &told);
      alerts_.Clear(kAlertAllWeightsZero, "weights", &told);
      break;
  }
  for (const auto& [uid, shard] : shards_) {
    const bool away = shard.silent_since != SteadyTime::max() &&
                      now_ - shard.silent_since >= options_.unreachable_after;
    if (away) {
      alerts_.Raise(kAlertUnreachable, shard.name,
                    shard.name + " does not answer the rebalancer; its buckets stay where they are",
                    &told);
    } else {
      alerts_.Clear(kAlertUnreachable, shard.name, &told);
    }
  }
  for (transfer::Action& action : told.actions) {
    out_.actions.push_back(std::get<Alert>(std::move(action)));
  }
  return state != placement::EtalonState::kOk;
}

void Rebalancer::TellEtalons(std::uint8_t level) {
  for (auto& [uid, shard] : shards_) {
    if (!shard.report) continue;
    const double parts = static_cast<double>(std::uint64_t{1} << (level - shard.report->level()));
    const double etalon = static_cast<double>(shard.plan.etalon) / parts;
    const double disbalance = shard.plan.disbalance_percent / 100;
    if (shard.etalon == etalon && shard.disbalance == disbalance) continue;
    shard.etalon = etalon;
    shard.disbalance = disbalance;
    SendQuery(uid, shard);
  }
}

void Rebalancer::BeginCampaign() {
  moving_ = true;
  campaign_began_ = now_;
  campaign_.Clear();
}

void Rebalancer::GiveOrders(std::uint8_t level, const std::map<ShardUid, Bounds>& bounds,
                            const std::map<ShardUid, std::map<ShardUid, std::uint64_t>>& routes) {
  for (auto& [uid, shard] : shards_) {
    const auto mine = routes.find(uid);
    if (mine == routes.end() && shard.finished) continue;  // nothing to do, nothing to cancel
    shard.order.Clear();
    shard.order.set_number(next_number_++);
    shard.order.set_settings_version(state_.settings().version());
    shard.order.set_level(level);
    if (mine != routes.end()) {
      shard.order.set_keep(bounds.at(uid).keep);
      for (const auto& [target, count] : mine->second) {
        v1::BalanceRoute& route = *shard.order.add_routes();
        route.set_target(target.value());
        route.set_count(count);
        route.set_limit(bounds.at(target).limit);
      }
    }
    shard.taken = false;
    shard.finished = false;
    shard.resend.Reset();
    shard.order_at = now_;
  }
}

}  // namespace etalon::balance
