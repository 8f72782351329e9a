#include "rpc/endpoint.h"

#include <fmt/format.h>

#include <utility>

namespace etalon::rpc {

Endpoint::Endpoint(Executor& core, Logger& log, const Limits& limits, Reason stopping)
    : core_(core),
      log_(log),
      limits_(limits),
      stopping_(stopping),
      inbox_(std::make_shared<Inbox>()) {}

void Endpoint::SetReceiver(Receiver receiver) {
  std::lock_guard lock(inbox_->mutex);
  inbox_->receiver = std::move(receiver);
}

void Endpoint::Deliver(NodeName from, Lane lane, std::vector<std::string> messages,
                       UniqueFunction<void()> handled) {
  counters_.messages_received += messages.size();
  std::lock_guard lock(inbox_->mutex);
  if (!inbox_->open) return;
  core_.Post([inbox = inbox_, from = std::move(from), lane, messages = std::move(messages),
              handled = std::move(handled)]() mutable {
    // Close runs on this executor, or when it stands still: `open` cannot change below.
    {
      std::lock_guard inner(inbox->mutex);
      if (!inbox->open) return;
    }
    for (std::string& bytes : messages) inbox->receiver(from, lane, std::move(bytes));
    handled();
  });
}

void Endpoint::SetEndWatcher(EndWatcher watcher) {
  std::lock_guard lock(inbox_->mutex);
  inbox_->end_watcher = std::move(watcher);
}

void Endpoint::DeliverEnd(NodeName peer, Lane lane, UniqueFunction<void()> first) {
  std::lock_guard lock(inbox_->mutex);
  if (!inbox_->open) return;
  core_.Post([inbox = inbox_, peer = std::move(peer), lane, first = std::move(first)]() mutable {
    {
      std::lock_guard inner(inbox->mutex);
      if (!inbox->open) return;
    }
    first();
    if (inbox->end_watcher) inbox->end_watcher(peer, lane);
  });
}

NodeName Endpoint::Register(std::string_view prefix, std::shared_ptr<Sink> sink) {
  std::lock_guard lock(mutex_);
  if (closing_) return {};
  NodeName name = fmt::format("{}-{}", prefix, next_number_++);
  sinks_.emplace(name, std::move(sink));
  return name;
}

void Endpoint::Unregister(const NodeName& name) {
  std::shared_ptr<Sink> last;  // destroyed after the lock
  std::lock_guard lock(mutex_);
  const auto it = sinks_.find(name);
  if (it == sinks_.end()) return;
  last = std::move(it->second);
  sinks_.erase(it);
}

std::shared_ptr<Sink> Endpoint::Find(const NodeName& name) const {
  std::lock_guard lock(mutex_);
  const auto it = sinks_.find(name);
  return it == sinks_.end() ? nullptr : it->second;
}

bool Endpoint::AdmitUnary() {
  std::lock_guard lock(mutex_);
  if (unary_calls_ >= limits_.unary_calls) return false;
  ++unary_calls_;
  return true;
}

void Endpoint::ReleaseUnary() {
  std::lock_guard lock(mutex_);
  --unary_calls_;
}

void Endpoint::BeginClose() {
  std::map<NodeName, std::shared_ptr<Sink>> sinks;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
    sinks = sinks_;
  }
  for (auto& [name, sink] : sinks) sink->BeginClose();
}

void Endpoint::Close() {
  std::lock_guard lock(inbox_->mutex);
  inbox_->open = false;
}

void Endpoint::Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  std::lock_guard lock(inbox_->mutex);
  if (inbox_->open) log_.Log(level, event, fields);
}

}  // namespace etalon::rpc
