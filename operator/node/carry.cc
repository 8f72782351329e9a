// Carrying out actions: those of processes and records are the platform's; the others are calls to
// leaders.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "operator/node/node.h"
#include "operator/plan/view.h"
#include "proto/wire.h"

namespace etalon::controller {
namespace {

constexpr Duration kFirstRetry = std::chrono::milliseconds(100);

Status StatusOf(const Result<v1::AdminResponse>& response) {
  if (!response.ok()) return response.status();
  return FromProto(response.value().status());
}

Status FirstFailure(const std::map<std::string, Status>& answers) {
  for (const auto& [address, status] : answers) {
    if (!status.ok()) return status.Annotate(address);
  }
  return OkStatus();
}

// No answer, or not now: as opposed to a refusal.
bool MayPass(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded ||
         status.code() == Code::kResourceExhausted;
}

}  // namespace

void Node::Finish(const std::string& key, const Status& status) {
  in_flight_.erase(key);
  if (status.ok()) {
    pauses_.erase(key);
    log_.Info("done", {{"action", key}});
  } else {
    const SteadyTime now = clock_.Now();
    Pause& pause = pauses_
                       .try_emplace(key, Pause{{status.message(), now, 0},
                                               Backoff(kFirstRetry, options_.retry_cap),
                                               now})
                       .first->second;
    pause.failure.sentence = status.message();
    ++pause.failure.times;
    pause.until = now + pause.backoff.Next(random_);
    log_.Warning("failed",
                 {{"action", key}, {"times", pause.failure.times}, {"why", status.ToString()}});
  }
  WakeAt(clock_.Now() + options_.after_action);
}

void Node::Carry(const Action& action) {
  const std::string key = Key(action);
  v1::AdminRequest request;
  if (const auto* form = std::get_if<Form>(&action)) return CarryForm(*form, key);
  if (const auto* apply = std::get_if<ApplyTopology>(&action)) return CarryTopology(*apply, key);
  if (const auto* gone = std::get_if<DeleteShard>(&action)) return CarryDelete(*gone, key);
  if (const auto* push = std::get_if<PushTopology>(&action)) {
    return admin_.PushTopology(
        seen_.routers.value().at(push->router).process.address,
        seen_.topologies.value().at(push->version), options_.act_timeout,
        [this, key, alive = std::weak_ptr<bool>(alive_)](const Status& status) {
          if (!alive.expired()) Finish(key, status);
        });
  }
  if (const auto* apply = std::get_if<ApplySettings>(&action)) {
    *request.mutable_apply_settings()->mutable_settings() =
        seen_.settings.value().at(apply->version);
    return AskLeader(apply->shard, std::move(request), key);
  }
  if (const auto* change = std::get_if<ChangeMember>(&action)) {
    request.mutable_change_members()->set_kind(change->kind);
    request.mutable_change_members()->set_member(change->member.value());
    request.mutable_change_members()->set_name(change->name);
    return AskLeader(change->shard, std::move(request), key);
  }
  if (const auto* transfer = std::get_if<TransferLeader>(&action)) {
    request.mutable_transfer_leader()->set_to(transfer->to);
    return AskLeader(transfer->shard, std::move(request), key);
  }
  if (const auto* split = std::get_if<Split>(&action)) {
    request.mutable_split()->set_task(split->task);
    request.mutable_split()->set_target(split->target.value());
    return AskLeader(split->source, std::move(request), key);
  }
  if (const auto* abort = std::get_if<AbortSplit>(&action)) {
    request.mutable_abort_split()->set_task(abort->task);
    request.mutable_abort_split()->set_why(abort->why);
    return AskLeader(abort->source, std::move(request), key);
  }
  if (const auto* retire = std::get_if<Retire>(&action)) {
    request.mutable_retire();
    return AskLeader(retire->shard, std::move(request), key);
  }
  Finish(key, platform_.Carry(clock_.Now(), action));
}

std::string Node::LeaderAddress(ShardUid shard) const {
  std::string address;
  std::uint64_t term = 0;
  for (const auto& [name, storage] : seen_.storages.value()) {
    if (storage.uid != shard || !storage.info.known()) continue;
    const v1::InfoResponse& info = storage.info.value();
    if (!info.lease() || ShardUid(info.shard()) != shard || info.term() <= term) continue;
    term = info.term();
    address = storage.process.address;
  }
  return address;
}

void Node::AskLeader(ShardUid shard, v1::AdminRequest request, const std::string& key) {
  AskAll({{LeaderAddress(shard), std::move(request)}},
         [this, key](const Answers& answers) { Finish(key, FirstFailure(answers)); });
}

void Node::AskAll(std::map<std::string, v1::AdminRequest> requests,
                  UniqueFunction<void(Answers)> done) {
  struct Gather {
    std::size_t open = 0;
    Answers answers;
    UniqueFunction<void(Answers)> done;
  };
  auto gather = std::make_shared<Gather>();
  gather->open = requests.size();
  gather->done = std::move(done);
  for (auto& [address, request] : requests) {
    request.set_timeout_millis(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(options_.act_timeout).count()));
    admin_.AskStorage(address, std::move(request), options_.act_timeout,
                      [gather, address = address,
                       alive = std::weak_ptr<bool>(alive_)](const Result<v1::AdminResponse>& r) {
                        if (alive.expired()) return;
                        gather->answers[address] = StatusOf(r);
                        if (--gather->open == 0) gather->done(std::move(gather->answers));
                      });
  }
}

void Node::CarryForm(const Form& action, const std::string& key) {
  std::map<std::string, v1::AdminRequest> requests;
  for (const std::string& replica : action.replicas) {
    v1::AdminRequest request;
    *request.mutable_form() = seen_.forms.value().at(action.shard);
    requests.emplace(seen_.storages.value().at(replica).process.address, std::move(request));
  }
  AskAll(std::move(requests),
         [this, key](const Answers& answers) { Finish(key, FirstFailure(answers)); });
}

void Node::CarryTopology(const ApplyTopology& action, const std::string& key) {
  std::map<std::string, v1::AdminRequest> dry;
  for (const ShardUid shard : action.shards) {
    v1::AdminRequest request;
    *request.mutable_apply_topology()->mutable_topology() =
        seen_.topologies.value().at(action.version);
    request.mutable_apply_topology()->set_dry_run(true);
    dry.emplace(LeaderAddress(shard), std::move(request));
  }
  std::map<std::string, v1::AdminRequest> commit = dry;
  for (auto& [address, request] : commit) request.mutable_apply_topology()->set_dry_run(false);
  AskAll(std::move(dry), [this, key, commit = std::move(commit)](const Answers& answers) mutable {
    for (const auto& [address, status] : answers) {
      // Whoever refuses it stops it for all; whoever cannot be asked now gets it later.
      if (!status.ok() && !MayPass(status)) return Finish(key, status);
      if (!status.ok()) commit.erase(address);
    }
    if (commit.empty()) return Finish(key, FirstFailure(answers));
    AskAll(std::move(commit),
           [this, key](const Answers& results) { Finish(key, FirstFailure(results)); });
  });
}

void Node::CarryDelete(const DeleteShard& action, const std::string& key) {
  if (seen_.doomed.value().contains(action.shard))
    return Finish(key, platform_.Carry(clock_.Now(), action));
  v1::AdminRequest request;
  request.mutable_info();
  admin_.AskStorage(
      LeaderAddress(action.shard), std::move(request), options_.act_timeout,
      [this, action, key,
       alive = std::weak_ptr<bool>(alive_)](const Result<v1::AdminResponse>& response) {
        if (alive.expired()) return;
        if (Status status = StatusOf(response); !status.ok()) return Finish(key, status);
        const v1::InfoResponse& info = response.value().info();
        const bool empty = info.formed() && info.retired() && info.lease() && RowsOf(info) == 0 &&
                           ShardUid(info.shard()) == action.shard;
        if (!empty) {
          return Finish(
              key, FailedPrecondition(Reason::kNonEmpty,
                                      fmt::format("{} is not proven to be empty: it is not deleted",
                                                  action.name)));
        }
        Finish(key, platform_.Carry(clock_.Now(), action));
      });
}

}  // namespace etalon::controller
