#include "engine/balance/rebalancer.h"

#include <limits>
#include <utility>

#include "placement/modulus.h"
#include "proto/wire.h"

namespace etalon::balance {
namespace {

constexpr Duration kResend = std::chrono::milliseconds(200);
constexpr Duration kResendCap = std::chrono::seconds(5);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

std::string ConfigurationOf(const v1::Topology& topology, const v1::Settings& settings) {
  v1::Settings relevant = settings;
  relevant.clear_closed_splits();
  relevant.clear_leader_zone();
  std::string text = relevant.SerializeAsString() + (topology.complete() ? "complete" : "");
  for (const v1::ShardInfo& shard : topology.shards()) {
    text += '\n' + shard.name() + ' ' + std::to_string(shard.uid());
  }
  return text;
}

}  // namespace

Rebalancer::Rebalancer(const bucket::StateMachine& state, Random random, RebalancerOptions options)
    : state_(state), random_(random), options_(options) {}

Rebalancer::~Rebalancer() = default;

Rebalancer::Shard::Shard(const RebalancerOptions& options)
    : ask(options.ask_again, options.ask_cap), resend(kResend, kResendCap) {}

Output Rebalancer::Step(SteadyTime now, const Input& input) {
  now_ = now;
  out_ = Output();
  std::visit([&](const auto& event) { Handle(event); }, input);
  Drive();
  return std::exchange(out_, {});
}

void Rebalancer::Handle(const RoleChanged& role) {
  if (role.leader == leader_ && role.term == term_) return;
  if (running_) Stop();
  leader_ = role.leader;
  term_ = role.term;
}

void Rebalancer::Stop() {
  transfer::Output cleared;
  alerts_.Reset(&cleared);
  for (transfer::Action& action : cleared.actions) {
    out_.actions.push_back(std::get<Alert>(std::move(action)));
  }
  running_ = false;
  configuration_.clear();
  shards_.clear();
  peers_.Clear();
  collecting_ = false;
  moving_ = false;
  plan_at_ = tick_at_ = SteadyTime::max();
}

void Rebalancer::Handle(const Message& input) {
  if (!running_) return;
  const v1::BalanceMessage& m = input.message;
  const auto it = shards_.find(ShardUid(m.from_shard()));
  if (it == shards_.end() || !peers_.Admit(it->first, Term(m.from_term()))) return;
  if (m.has_report()) OnReport(it->second, m.report());
  if (m.has_result()) OnResult(it->second, Term(m.from_term()), m.result());
}

void Rebalancer::OnReport(Shard& shard, const v1::BalanceReport& report) {
  if (report.level() > 20) return;  // no collection can have that
  const bool news = !shard.report || shard.report->level() != report.level() ||
                    shard.report->buckets() != report.buckets() ||
                    shard.report->pinned() != report.pinned() ||
                    shard.report->locked() != report.locked();
  const bool locks = shard.report && shard.report->locked() != report.locked();
  const bool back = Silent(shard) && !collecting_;
  if (report.number() != 0 && report.number() == shard.asked) {
    shard.asked = 0;
    shard.ask.Reset();
    shard.ask_at = shard.silent_since = SteadyTime::max();
  }
  shard.report = report;
  // While orders are being carried out counts change all the time: that is no news.
  if (back || locks || (news && !OrdersOut() && !collecting_)) PlanBy(now_ + options_.settle);
}

void Rebalancer::OnResult(Shard& shard, Term term, const v1::BalanceResult& result) {
  if (result.number() != shard.order.number() || result.number() == 0) return;
  if (!FromProto(result.status()).ok()) {
    // Other settings than ours, or another level: one of us learns of it soon.
    shard.taken = shard.finished = true;
    shard.order_at = SteadyTime::max();
    return PlanBy(now_ + random_.Between(kAfterFailure / 2, kAfterFailure));
  }
  if (term != shard.totals_term) {
    shard.totals.Clear();  // its new leader counts from nothing
  } else if (result.sequence() <= shard.totals.sequence()) {
    return;
  }
  shard.totals_term = term;
  const bool failed = result.failed() > shard.totals.failed();
  const auto grown = [](std::uint64_t now, std::uint64_t before) {
    return now - std::min(now, before);
  };
  campaign_.set_moved(campaign_.moved() + grown(result.moved(), shard.totals.moved()));
  campaign_.set_bytes(campaign_.bytes() + grown(result.bytes(), shard.totals.bytes()));
  for (const auto& [reason, n] : result.failures()) {
    (*campaign_.mutable_failures())[reason] += grown(n, (*shard.totals.mutable_failures())[reason]);
  }
  shard.totals = result;
  shard.taken = true;
  shard.resend.Reset();
  shard.order_at = now_ + kResendCap;
  if (result.finished() && !shard.finished) {
    shard.finished = true;
    shard.order_at = SteadyTime::max();
    PlanBy(now_ + options_.settle);
  } else if (failed) {
    PlanBy(now_ + random_.Between(kAfterFailure, 2 * kAfterFailure));
  }
}

void Rebalancer::Handle(const Applied&) {
  if (running_) LoadConfiguration();
}

void Rebalancer::LoadConfiguration() {
  std::string configuration = ConfigurationOf(state_.topology(), state_.settings());
  if (configuration == configuration_) return;
  configuration_ = std::move(configuration);
  Shards shards;
  for (const v1::ShardInfo& info : state_.topology().shards()) {
    const ShardUid uid(info.uid());
    const auto old = shards_.find(uid);
    Shard shard = old != shards_.end() ? std::move(old->second) : Shard(options_);
    shard.name = info.name();
    shard.weight = 0;
    shard.locked = false;
    for (const v1::ShardSettings& s : state_.settings().shards()) {
      if (s.uid() != info.uid()) continue;
      shard.weight = s.weight();
      shard.locked = s.locked();
    }
    shards.emplace(uid, std::move(shard));
  }
  shards_ = std::move(shards);
  PlanBy(now_);
}

// ---- the rounds ---------------------------------------------------------------------------------

void Rebalancer::Drive() {
  const bool runs = ready() && state_.settings().rebalancer() == state_.shard().value() &&
                    state_.settings().mode() != v1::REBALANCER_DISABLED;
  if (!runs) {
    if (running_) Stop();
    return;
  }
  if (!running_) {
    running_ = true;
    Show("WAITING", "asking the shards what they hold");
    LoadConfiguration();
  }
  if (!state_.topology().complete()) {
    Show("INCOMPLETE", "not every shard of the collection is formed; nothing moves before that");
    return;
  }
  if (now_ >= std::min(plan_at_, tick_at_) && !collecting_) BeginRound();
  if (collecting_) {
    if (AllAnswered() || now_ >= collect_until_) {
      collecting_ = false;
      Plan();
    } else {
      WakeBy(collect_until_);
    }
  }
  for (auto& [uid, shard] : shards_) {
    if (shard.asked != 0) {
      if (now_ >= shard.ask_at) SendQuery(uid, shard);
      WakeBy(shard.ask_at);
    }
    if (!shard.finished) {
      if (now_ >= shard.order_at) SendOrder(uid, shard);
      WakeBy(shard.order_at);
    }
  }
  if (!collecting_) WakeBy(std::min(plan_at_, tick_at_));
}

void Rebalancer::BeginRound() {
  collecting_ = true;
  collect_until_ = now_ + options_.collect_timeout;
  plan_at_ = SteadyTime::max();
  tick_at_ = now_ + options_.tick;
  for (auto& [uid, shard] : shards_) SendQuery(uid, shard);
}

bool Rebalancer::Silent(const Shard& shard) const {
  return shard.silent_since != SteadyTime::max() &&
         now_ - shard.silent_since >= options_.collect_timeout;
}

// Those that did not answer before are not waited for again.
bool Rebalancer::AllAnswered() const {
  return std::all_of(shards_.begin(), shards_.end(),
                     [&](const auto& s) { return s.second.asked == 0 || Silent(s.second); });
}

bool Rebalancer::OrdersOut() const {
  return std::any_of(shards_.begin(), shards_.end(),
                     [&](const auto& s) { return !s.second.finished && !Silent(s.second); });
}

// ---- sending ------------------------------------------------------------------------------------

void Rebalancer::SendQuery(ShardUid uid, Shard& shard) {
  if (shard.asked == 0) shard.silent_since = now_;
  shard.asked = next_number_++;
  shard.ask_at = now_ + shard.ask.Next(random_);
  v1::BalanceMessage message;
  v1::BalanceQuery& query = *message.mutable_query();
  query.set_number(shard.asked);
  query.set_settings_version(state_.settings().version());
  if (shard.etalon) query.set_etalon(*shard.etalon);
  if (shard.disbalance) query.set_disbalance(*shard.disbalance);
  Emit(uid, std::move(message));
}

void Rebalancer::SendOrder(ShardUid uid, Shard& shard) {
  v1::BalanceMessage message;
  *message.mutable_order() = shard.order;
  Emit(uid, std::move(message));
  shard.order_at = now_ + (shard.taken ? kResendCap : shard.resend.Next(random_));
}

void Rebalancer::Emit(ShardUid to, v1::BalanceMessage message) {
  message.set_from_shard(state_.shard().value());
  message.set_from_term(term_.value());
  message.set_to_shard(to.value());
  out_.actions.push_back(Send{to, std::move(message)});
}

void Rebalancer::Show(std::string_view state, std::string explanation) {
  shown_state_ = state;
  shown_explanation_ = std::move(explanation);
}

v1::RebalancerStateResponse Rebalancer::State() const {
  v1::RebalancerStateResponse state;
  state.set_runs_here(running_);
  if (!running_) {
    const bool disabled = state_.settings().mode() == v1::REBALANCER_DISABLED;
    state.set_state(disabled ? "DISABLED" : "");
    return state;
  }
  state.set_state(shown_state_);
  state.set_explanation(shown_explanation_);
  const std::uint64_t moved = campaign_.moved();
  std::uint64_t remaining = 0;
  for (const auto& [reason, n] : campaign_.failures()) (*state.mutable_failed())[reason] = n;
  for (const auto& [uid, shard] : shards_) {
    if (!shard.finished) {
      std::uint64_t ordered = 0;
      for (const v1::BalanceRoute& route : shard.order.routes()) ordered += route.count();
      remaining +=
          shard.totals.number() == shard.order.number() ? shard.totals.remaining() : ordered;
    }
    v1::ShardBalance& b = *state.add_shards();
    b.set_uid(uid.value());
    b.set_name(shard.name);
    b.set_known(shard.report.has_value());
    b.set_weight(shard.weight);
    b.set_locked(shard.locked || (shard.report && shard.report->locked()));
    if (shard.report) {
      b.set_buckets(shard.report->buckets());
      b.set_pinned(shard.report->pinned());
    }
    if (shard.etalon) b.set_etalon(*shard.etalon);
    if (shard.disbalance) b.set_disbalance(*shard.disbalance);
  }
  state.set_moved(moved);
  state.set_remaining(remaining);
  state.set_planned(moved + remaining);
  state.set_bytes(campaign_.bytes());
  if (moved > 0 && remaining > 0) {
    const auto spent =
        std::chrono::duration_cast<std::chrono::milliseconds>(now_ - campaign_began_).count();
    state.set_eta_millis(static_cast<std::uint64_t>(spent) * remaining / moved);
  }
  return state;
}

}  // namespace etalon::balance
