#include "operator/node/node.h"

#include <algorithm>
#include <utility>

namespace etalon::controller {

Node::Node(const Clock& clock, Executor& executor, Random random, Logger& log, Platform& platform,
           AdminPort& admin, NodeOptions options, OnReport on_report)
    : clock_(clock),
      executor_(executor),
      random_(random),
      log_(log),
      platform_(platform),
      admin_(admin),
      options_(options),
      on_report_(std::move(on_report)) {}

Node::~Node() {
  if (timer_ != 0) executor_.Cancel(timer_);
}

UniqueFunction<void()> Node::Guarded(UniqueFunction<void()> task) {
  return [alive = std::weak_ptr<bool>(alive_), task = std::move(task)]() mutable {
    if (!alive.expired()) task();
  };
}

void Node::SetSpec(CollectionSpec spec) {
  if (spec_ == spec) return;
  spec_ = std::move(spec);
  WakeAt(clock_.Now());
}

void Node::WakeAt(SteadyTime when) {
  if (in_round_) {
    again_ = again_ || when <= clock_.Now() + options_.after_action;
    return;
  }
  if (when >= armed_) return;
  if (timer_ != 0) executor_.Cancel(timer_);
  armed_ = when;
  timer_ = executor_.PostAt(when, Guarded([this] {
                              timer_ = 0;
                              armed_ = SteadyTime::max();
                              BeginRound();
                            }));
}

void Node::BeginRound() {
  in_round_ = true;
  again_ = false;
  seen_ = platform_.Observe(clock_.Now());
  open_questions_ = 1;  // this function's own
  AskEverybody();
  if (--open_questions_ == 0) EndRound();
}

// Answers that come after the round ended would be of the past; the port's time-out ends the round,
// so there are none.
void Node::AskEverybody() {
  const auto answered = [this] {
    if (--open_questions_ == 0) EndRound();
  };
  if (auto* storages = seen_.storages.get()) {
    for (auto& [name, storage] : *storages) {
      if (storage.process.state != ProcessState::kUp || storage.process.address.empty()) continue;
      ++open_questions_;
      v1::AdminRequest request;
      request.mutable_info();
      admin_.AskStorage(storage.process.address, std::move(request), options_.ask_timeout,
                        [this, name = name, answered,
                         alive = std::weak_ptr<bool>(alive_)](Result<v1::AdminResponse> r) {
                          if (alive.expired()) return;
                          StorageSeen& seen = seen_.storages.get()->at(name);
                          if (r.ok() && r->has_info()) {
                            seen.info = std::move(*r->mutable_info());
                          } else {
                            seen.info = Seen<v1::InfoResponse>::Unknown(r.status().ToString());
                          }
                          answered();
                        });
    }
  }
  if (auto* routers = seen_.routers.get()) {
    for (auto& [name, router] : *routers) {
      if (router.process.state != ProcessState::kUp || router.process.address.empty()) continue;
      ++open_questions_;
      admin_.AskRouter(router.process.address, options_.ask_timeout,
                       [this, name = name, answered,
                        alive = std::weak_ptr<bool>(alive_)](Result<v1::RouterInfoResponse> r) {
                         if (alive.expired()) return;
                         RouterSeen& seen = seen_.routers.get()->at(name);
                         if (r.ok()) {
                           seen.info = std::move(*r);
                         } else {
                           seen.info = Seen<v1::RouterInfoResponse>::Unknown(r.status().ToString());
                         }
                         answered();
                       });
    }
  }
  // The rebalancer is asked where it ran when the last round ended.
  std::string runner;
  for (const ShardReport& shard : last_.shards) {
    const auto* settings = seen_.settings.get();
    if (settings == nullptr || settings->empty() ||
        settings->rbegin()->second.rebalancer() != shard.uid.value())
      continue;
    const auto* storages = seen_.storages.get();
    if (storages == nullptr || !storages->contains(shard.leader)) continue;
    runner = storages->at(shard.leader).process.address;
  }
  if (runner.empty()) return;
  ++open_questions_;
  v1::AdminRequest request;
  request.mutable_rebalancer_state();
  admin_.AskStorage(
      runner, std::move(request), options_.ask_timeout,
      [this, answered, alive = std::weak_ptr<bool>(alive_)](Result<v1::AdminResponse> r) {
        if (alive.expired()) return;
        if (r.ok() && r->has_rebalancer_state())
          seen_.rebalancer = std::move(*r->mutable_rebalancer_state());
        answered();
      });
}

void Node::Remember() {
  const SteadyTime now = clock_.Now();
  if (const auto* storages = seen_.storages.get()) {
    for (const auto& [name, storage] : *storages) {
      if (storage.info.known() && storage.info.value().lease()) led_[storage.uid] = now;
    }
  }
  if (auto* routers = seen_.routers.get()) {
    for (auto& [name, router] : *routers) {
      if (router.process.state != ProcessState::kUp || router.info.known()) {
        silent_since_.erase(name);
        continue;
      }
      router.silent_since = silent_since_.emplace(name, now).first->second;
    }
  }
  seen_.led = led_;
  seen_.last = last_;
  for (const auto& [key, pause] : pauses_) seen_.failures.emplace(key, pause.failure);
}

void Node::EndRound() {
  Remember();
  const SteadyTime now = clock_.Now();
  plan_ = Plan(*spec_, seen_, now);
  last_ = plan_.report;
  on_report_(last_);
  std::set<std::string> planned;
  for (const Action& action : plan_.actions) planned.insert(Key(action));
  for (auto it = pauses_.begin(); it != pauses_.end();)
    it = planned.contains(it->first) ? std::next(it) : pauses_.erase(it);

  bool acted = false;
  SteadyTime next = plan_.wake_at;
  for (const Action& action : plan_.actions) {
    const std::string key = Key(action);
    if (in_flight_.contains(key)) continue;
    if (const auto pause = pauses_.find(key); pause != pauses_.end() && now < pause->second.until) {
      next = std::min(next, pause->second.until);
      continue;
    }
    in_flight_.insert(key);
    Carry(action);
    acted = true;
  }
  const bool rest = plan_.actions.empty() && plan_.report.waits.empty();
  next = std::min(next, now + (acted || again_ ? options_.after_action
                               : rest          ? options_.at_rest
                                               : options_.while_waiting));
  in_round_ = false;
  WakeAt(std::max(next, now + options_.after_action));
}

}  // namespace etalon::controller
