#include "engine/balance/order_taker.h"

#include <utility>

#include "engine/store/keys.h"
#include "proto/wire.h"

namespace etalon::balance {
namespace {

constexpr std::uint32_t kDefaultMaxSending = 4;
constexpr std::size_t kMaxAvoided = 1024;
constexpr Duration kLockedRetry = std::chrono::seconds(1);
constexpr Duration kRebaseWish = std::chrono::seconds(5);

bool IsFull(Reason reason) {
  return reason == Reason::kTooManyReceiving || reason == Reason::kTransferPending ||
         reason == Reason::kOverloaded;
}

std::string WeightsOf(const v1::Settings& settings) {
  std::string text;
  for (const v1::ShardSettings& shard : settings.shards()) {
    text += std::to_string(shard.uid()) + ' ' + std::to_string(shard.weight()) +
            (shard.locked() ? " locked\n" : "\n");
  }
  return text;
}

}  // namespace

OrderTaker::OrderTaker(const bucket::StateMachine& state, const store::Store& store,
                       transfer::RebaseGate& gate, Random random, OrderTakerOptions options)
    : state_(state), store_(store), gate_(gate), random_(random), options_(options) {}

OrderTaker::~OrderTaker() = default;

Output OrderTaker::Step(SteadyTime now, const Input& input) {
  now_ = now;
  out_ = Output();
  std::visit([&](const auto& event) { Handle(event); }, input);
  if (ready()) Drive();
  return std::exchange(out_, {});
}

void OrderTaker::Handle(const RoleChanged& role) {
  if (role.leader == leader_ && role.term == term_) return;
  leader_ = role.leader;
  term_ = role.term;
  peers_.Clear();
  etalon_.reset();
  disbalance_.reset();
  issuer_ = ShardUid();
  issuer_term_ = Term();
  number_ = 0;
  routes_.clear();
  totals_.Clear();
  running_.clear();
  avoid_.clear();
  rebase_ = 0;
  weights_ = WeightsOf(state_.settings());
  reported_.clear();
  report_at_ = SteadyTime::max();
}

void OrderTaker::Handle(const Message& input) {
  if (!ready()) return;
  const v1::BalanceMessage& m = input.message;
  const ShardUid from(m.from_shard());
  if (!peers_.Admit(from, Term(m.from_term()))) return;
  if (m.has_query()) {
    if (m.query().has_etalon()) etalon_ = m.query().etalon();
    if (m.query().has_disbalance()) disbalance_ = m.query().disbalance();
    v1::BalanceMessage message;
    *message.mutable_report() = Report(m.query().number());
    Emit(from, std::move(message));
  }
  if (m.has_order()) OnOrder(from, Term(m.from_term()), m.order());
}

Status OrderTaker::CheckOrder(ShardUid from, const v1::BalanceOrder& order) const {
  if (order.routes().empty()) return OkStatus();  // to stop is always right
  const v1::Settings& settings = state_.settings();
  if (order.settings_version() != settings.version()) {
    return Aborted(Reason::kStaleTopology,
                   "the order is of settings " + std::to_string(order.settings_version()) +
                       ", this shard has " + std::to_string(settings.version()),
                   {.number = settings.version()});
  }
  if (settings.rebalancer() != from.value()) {
    return FailedPrecondition(Reason::kInvalidCfg,
                              "the settings name another shard as the rebalancer");
  }
  if (order.level() < state_.level()) {
    return Aborted(Reason::kBucketOutOfRange, "this shard has risen to level " +
                                                  std::to_string(state_.level()) + " meanwhile");
  }
  return OkStatus();
}

void OrderTaker::OnOrder(ShardUid from, Term term, const v1::BalanceOrder& order) {
  const bool same_issuer = from == issuer_ && term == issuer_term_;
  if (same_issuer && order.number() < number_) return;  // late
  if (same_issuer && order.number() == number_) return SendResult(from, number_, OkStatus());
  if (Status bad = CheckOrder(from, order); !bad.ok()) {
    return SendResult(from, order.number(), bad);
  }
  if (!same_issuer) totals_.Clear();
  issuer_ = from;
  issuer_term_ = term;
  settings_version_ = SettingsVersion(order.settings_version());
  number_ = order.number();
  level_ = static_cast<std::uint8_t>(order.level());
  keep_ = order.keep();
  std::map<ShardUid, Route> routes;
  for (const v1::BalanceRoute& r : order.routes()) {
    const ShardUid target(r.target());
    Route route{r.count(), r.limit(), now_, Backoff(options_.full_backoff, options_.full_cap),
                Backoff(options_.failure_backoff, options_.failure_cap)};
    // A new plan does not make a target more willing.
    if (const auto old = routes_.find(target); old != routes_.end()) {
      route.try_at = old->second.try_at;
      route.full = old->second.full;
      route.failure = old->second.failure;
    }
    routes.emplace(target, std::move(route));
  }
  routes_ = std::move(routes);
  Drive();
  SendResult(from, number_, OkStatus());
}

void OrderTaker::Handle(const Applied&) {
  if (!leader_) return;
  if (std::string weights = WeightsOf(state_.settings()); weights != weights_) {
    weights_ = std::move(weights);
    routes_.clear();
    out_.actions.push_back(CancelOrders{"the weights or locks of the shards have changed"});
  }
  const v1::BucketCounts counts = state_.counts();
  std::string now_true = std::to_string(state_.level()) + ' ' +
                         std::to_string(counts.active() + counts.sending()) + ' ' +
                         std::to_string(counts.pinned()) +
                         (state_.locked() || state_.busy_with_split() ? " locked" : "");
  if (now_true != reported_) {
    reported_ = std::move(now_true);
    report_at_ = std::min(report_at_, now_ + options_.report_delay);
  }
}

void OrderTaker::Handle(const Proposed& proposed) {
  if (proposed.token != rebase_) return;
  rebase_ = 0;
  if (!proposed.status.ok()) rebase_at_ = now_ + transfer::RetryPause(random_);
}

void OrderTaker::Handle(const OrderFinished& finished) {
  const auto it = running_.find(finished.order);
  if (it == running_.end()) return;
  const Running run = it->second;
  running_.erase(it);
  const auto route = routes_.find(run.target);
  totals_.set_bytes(totals_.bytes() + finished.bytes);
  if (finished.status.ok()) {
    totals_.set_moved(totals_.moved() + 1);
    if (route != routes_.end()) {
      route->second.full.Reset();
      route->second.failure.Reset();
    }
  } else {
    const Reason reason = finished.status.reason();
    // Cancelled ones are no failures: the plan they belonged to is gone.
    if (reason != Reason::kStaleTopology) {
      totals_.set_failed(totals_.failed() + 1);
      ++(*totals_.mutable_failures())[std::string(
          reason == Reason::kNone ? CodeName(finished.status.code()) : ReasonName(reason))];
    }
    if (route != routes_.end()) {
      ++route->second.left;
      Backoff& backoff = IsFull(reason) ? route->second.full : route->second.failure;
      route->second.try_at = now_ + backoff.Next(random_);
    }
    if (!IsFull(reason) && run.level == state_.level()) {
      // Another bucket may go well: one that fails must not hold up the rest.
      if (avoid_.size() >= kMaxAvoided) avoid_.clear();
      avoid_[run.bucket] = now_ + random_.Between(options_.failure_backoff, options_.failure_cap);
    }
  }
  if (ready()) {
    Drive();
    SendResult(issuer_, number_, OkStatus());
  }
}

// ---- carrying out -------------------------------------------------------------------------------

void OrderTaker::Drive() {
  if (now_ >= report_at_) {
    report_at_ = SteadyTime::max();
    const ShardUid rebalancer(state_.settings().rebalancer());
    if (rebalancer) {
      v1::BalanceMessage message;
      *message.mutable_report() = Report(0);
      Emit(rebalancer, std::move(message));
    }
  }
  if (report_at_ != SteadyTime::max()) WakeBy(report_at_);
  if (settings_version_.value() != state_.settings().version()) routes_.clear();
  if (Left() == 0) return;
  if (state_.level() > level_) {  // the numbers of the order are of another level: a new plan comes
    routes_.clear();
    return;
  }
  if (state_.level() < level_) return RaiseLevel();
  if (state_.locked() || state_.busy_with_split()) return WakeBy(now_ + kLockedRetry);
  BeginMoves();
}

void OrderTaker::RaiseLevel() {
  gate_.Want(level_, now_ + kRebaseWish);
  WakeBy(now_ + kRebaseWish / 2);
  if (rebase_ != 0 || !state_.outgoing().empty() || !state_.incoming().empty() ||
      !running_.empty()) {
    return;
  }
  if (now_ < rebase_at_) return WakeBy(rebase_at_);
  v1::Control control;
  control.mutable_rebase()->set_level(level_);
  rebase_ = next_order_++;
  out_.actions.push_back(Propose{rebase_, std::move(control)});
}

void OrderTaker::BeginMoves() {
  const std::uint32_t limit = state_.settings().max_sending();
  std::uint64_t slots = limit == 0 ? kDefaultMaxSending : limit;
  std::uint64_t used = 0;
  for (const auto& [id, x] : state_.outgoing()) {
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    if (row != nullptr && bucket::IsReadable(row->status)) ++used;
  }
  for (const auto& [order, run] : running_) {
    if (IsOnItsWay(run)) ++used;
  }
  std::uint64_t staying = Staying();
  while (used < slots && staying > keep_) {
    const auto route = NextRoute();
    if (route == routes_.end()) return;
    const std::optional<std::uint32_t> bucket = PickBucket();
    if (!bucket) return;
    StartTransfer order;
    order.order = kOwnOrders | next_order_++;
    order.target = route->first;
    order.level = state_.level();
    order.buckets = {*bucket};
    order.settings_version = settings_version_;
    order.issuer = issuer_;
    order.issuer_term = issuer_term_;
    order.limit = route->second.limit;
    running_[order.order] = {route->first, *bucket, state_.level()};
    last_target_ = route->first;
    --route->second.left;
    ++used;
    --staying;
    out_.actions.push_back(std::move(order));
  }
  // It must keep the rest: the plan was made from a picture that is gone.
  if (staying <= keep_ && running_.empty()) routes_.clear();
}

std::map<ShardUid, OrderTaker::Route>::iterator OrderTaker::NextRoute() {
  auto it = routes_.upper_bound(last_target_);
  for (std::size_t i = 0; i < routes_.size(); ++i, ++it) {
    if (it == routes_.end()) it = routes_.begin();
    if (it->second.left == 0) continue;
    if (now_ >= it->second.try_at) return it;
    WakeBy(it->second.try_at);
  }
  return routes_.end();
}

std::optional<std::uint32_t> OrderTaker::PickBucket() {
  for (auto it = avoid_.begin(); it != avoid_.end();) {
    it = now_ >= it->second ? avoid_.erase(it) : std::next(it);
  }
  for (const auto& [bucket, row] : state_.rows()) {
    if (row.status != bucket::RowStatus::kActive || row.transfer) continue;
    const bool taken = std::any_of(running_.begin(), running_.end(), [&, number = bucket](auto& r) {
      return r.second.bucket == number && r.second.level == state_.level();
    });
    if (taken) continue;
    const auto avoided = avoid_.find(bucket);
    if (avoided == avoid_.end()) return bucket;
    WakeBy(avoided->second);
  }
  return std::nullopt;
}

bool OrderTaker::IsOnItsWay(const Running& run) const {
  if (run.level != state_.level()) return false;
  const bucket::Row* row = state_.FindRow(run.bucket);
  return row != nullptr && row->status == bucket::RowStatus::kActive && !row->transfer;
}

std::uint64_t OrderTaker::Staying() const {
  const v1::BucketCounts counts = state_.counts();
  std::uint64_t owned = counts.active() + counts.pinned() + counts.sending();
  for (const auto& [id, x] : state_.outgoing()) {
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    if (row != nullptr && bucket::IsReadable(row->status)) owned -= x.set.size();
  }
  for (const auto& [order, run] : running_) {
    if (IsOnItsWay(run)) owned -= std::min<std::uint64_t>(owned, 1);
  }
  return owned;
}

std::uint64_t OrderTaker::Left() const {
  std::uint64_t left = 0;
  for (const auto& [target, route] : routes_) left += route.left;
  return left;
}

// ---- telling ------------------------------------------------------------------------------------

v1::BalanceReport OrderTaker::Report(std::uint64_t number) const {
  v1::BalanceReport report;
  const v1::BucketCounts counts = state_.counts();
  report.set_number(number);
  report.set_level(state_.level());
  report.set_buckets(counts.active() + counts.pinned() + counts.sending());
  report.set_pinned(counts.pinned());
  report.set_locked(state_.locked() || state_.busy_with_split());
  report.set_sending(static_cast<std::uint32_t>(state_.outgoing().size()));
  report.set_receiving(static_cast<std::uint32_t>(state_.incoming().size()));
  report.set_settings_version(state_.settings().version());
  const store::KeyRange all = store::DataRange();
  report.set_store_bytes(store_.ApproximateBytes(all.begin, all.end));
  report.set_unsettled(!state_.outgoing().empty() || !state_.incoming().empty());
  for (const auto& [id, x] : state_.outgoing()) {
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    if (row == nullptr || row->status == bucket::RowStatus::kGarbage) continue;
    v1::BalanceFlow& flow = *report.add_outgoing();
    *flow.mutable_id() = ToProto(id);
    flow.set_target(x.target.value());
    flow.set_buckets(x.set.size());
    flow.set_sent(row->status == bucket::RowStatus::kSent);
  }
  for (const auto& [id, x] : state_.incoming()) {
    const bucket::Row* row = state_.FindRow(x.set.front().bucket);
    if (row == nullptr || row->status != bucket::RowStatus::kReceiving) continue;
    v1::BalanceFlow& flow = *report.add_incoming();
    *flow.mutable_id() = ToProto(id);
    flow.set_target(state_.shard().value());
    flow.set_buckets(x.set.size() << (state_.level() - x.level));
  }
  return report;
}

void OrderTaker::SendResult(ShardUid to, std::uint64_t number, const Status& status) {
  if (!to) return;
  v1::BalanceMessage message;
  v1::BalanceResult& result = *message.mutable_result();
  result = totals_;
  result.set_number(number);
  result.set_sequence(next_order_++);
  if (!status.ok()) *result.mutable_status() = ToProto(status);
  result.set_remaining(Left() + running_.size());
  result.set_finished(result.remaining() == 0);
  Emit(to, std::move(message));
}

void OrderTaker::Emit(ShardUid to, v1::BalanceMessage message) {
  message.set_from_shard(state_.shard().value());
  message.set_from_term(term_.value());
  message.set_to_shard(to.value());
  out_.actions.push_back(Send{to, std::move(message)});
}

}  // namespace etalon::balance
