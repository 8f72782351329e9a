#include "storage/node/admin.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/bucket/meta_codec.h"
#include "engine/bucket/topology_rules.h"
#include "engine/store/keys.h"
#include "proto/wire.h"
#include "storage/node/alerts.h"

namespace etalon::storage {

namespace {

constexpr Duration kDefaultTimeout = std::chrono::seconds(10);

std::uint64_t Millis(Duration d) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(d).count());
}

}  // namespace

v1::AdminResponse AdminFailure(const Status& status) {
  v1::AdminResponse out;
  *out.mutable_status() = ToProto(status);
  return out;
}

v1::AdminResponse AdminDone() {
  v1::AdminResponse out;
  out.mutable_done();
  return out;
}

void Admin::Handle(const v1::AdminRequest& request, Done done) {
  const Duration timeout = request.timeout_millis() == 0
                               ? kDefaultTimeout
                               : Duration(std::chrono::milliseconds(request.timeout_millis()));
  const Deadline deadline = Deadline::After(env_.clock.Now(), timeout);
  v1::Control control;
  switch (request.request_case()) {
    case v1::AdminRequest::kInfo: {
      v1::AdminResponse out;
      *out.mutable_info() = Info();
      return done(std::move(out));
    }
    case v1::AdminRequest::kBucketsInfo:
      return done(BucketsInfo(request.buckets_info()));
    case v1::AdminRequest::kChangeMembers: {
      const auto& change = request.change_members();
      if (change.member() == 0 ||
          (change.kind() == v1::ChangeMembersRequest::ADD_LEARNER && change.name().empty())) {
        return done(AdminFailure(InvalidArgument(
            "a change of members needs the member's disk, and its name when it is added")));
      }
      const auto kind =
          change.kind() == v1::ChangeMembersRequest::ADD_LEARNER ? Shard::MemberChange::kAddLearner
          : change.kind() == v1::ChangeMembersRequest::PROMOTE   ? Shard::MemberChange::kPromote
                                                                 : Shard::MemberChange::kRemove;
      return shard_.ChangeMembers(kind, MemberId(change.member()), change.name(),
                                  [done = std::move(done)](const Status& status) mutable {
                                    done(status.ok() ? AdminDone() : AdminFailure(status));
                                  });
    }
    case v1::AdminRequest::kTransferLeader:
      return TransferLeader(request.transfer_leader(), deadline, std::move(done));
    case v1::AdminRequest::kApplyTopology:
      return ApplyTopology(request.apply_topology(), std::move(done));
    case v1::AdminRequest::kApplySettings:
      return ApplySettings(request.apply_settings(), std::move(done));
    case v1::AdminRequest::kReleaseQuarantine:
      control.mutable_release()->set_bucket(request.release_quarantine().bucket());
      control.mutable_release()->set_level(request.release_quarantine().level());
      control.mutable_release()->set_to_active(request.release_quarantine().to_active());
      return Change(std::move(control), std::move(done));
    case v1::AdminRequest::kSplit:
      control.mutable_split()->set_task(request.split().task());
      control.mutable_split()->set_target(request.split().target());
      return Split(std::move(control), request.split().task(), std::move(done));
    case v1::AdminRequest::kSplitStatus:
      return done(SplitStatus(request.split_status()));
    case v1::AdminRequest::kAbortSplit:
      control.mutable_abort_split()->set_task(request.abort_split().task());
      control.mutable_abort_split()->set_why(request.abort_split().why());
      return Split(std::move(control), request.abort_split().task(), std::move(done));
    case v1::AdminRequest::kRetire:
      control.mutable_retire();
      return Change(std::move(control), std::move(done));
    case v1::AdminRequest::kPin:
      *control.mutable_pin()->mutable_buckets() = request.pin().buckets();
      control.mutable_pin()->set_level(request.pin().level());
      control.mutable_pin()->set_unpin(request.pin().unpin());
      return Change(std::move(control), std::move(done));
    case v1::AdminRequest::kSend:
      return shard_.StartMove(request.send(),
                              [done = std::move(done)](Result<TransferId> id) mutable {
                                if (!id.ok()) return done(AdminFailure(id.status()));
                                v1::AdminResponse out;
                                *out.mutable_send()->mutable_id() = ToProto(*id);
                                done(std::move(out));
                              });
    case v1::AdminRequest::kRebalancerState: {
      v1::AdminResponse out;
      *out.mutable_rebalancer_state() = shard_.RebalancerState();
      return done(std::move(out));
    }
    case v1::AdminRequest::kCheckpoint:
      return shard_.Checkpoint([done = std::move(done)](const Status& status) mutable {
        done(status.ok() ? AdminDone() : AdminFailure(status));
      });
    case v1::AdminRequest::kChecksum: {
      if (shard_.state().applied_index().value() < request.checksum().at_least_index()) {
        return done(AdminFailure(
            Unavailable(Reason::kNone, "this replica has not applied that index yet")));
      }
      auto checksum = shard_.state().Checksum();
      if (!checksum.ok()) return done(AdminFailure(checksum.status()));
      v1::AdminResponse out;
      *out.mutable_checksum() = *checksum;
      return done(std::move(out));
    }
    case v1::AdminRequest::kForm:
    case v1::AdminRequest::kRecover:
    case v1::AdminRequest::REQUEST_NOT_SET:
      break;
  }
  done(AdminFailure(Status(Code::kUnimplemented, Reason::kUnknownFunction,
                           "this program does not know that request")));
}

void Admin::Change(v1::Control control, Done done) {
  shard_.ProposeControl(std::move(control), [done = std::move(done)](const Status& status) mutable {
    done(status.ok() ? AdminDone() : AdminFailure(status));
  });
}

void Admin::Split(v1::Control control, const std::string& task, Done done) {
  shard_.ProposeControl(std::move(control),
                        [this, task, done = std::move(done)](const Status& status) mutable {
                          if (!status.ok()) return done(AdminFailure(status));
                          v1::AdminResponse out;
                          const auto it = shard_.state().splits().find(task);
                          if (it != shard_.state().splits().end())
                            *out.mutable_split() = bucket::ToProto(it->second);
                          done(std::move(out));
                        });
}

v1::AdminResponse Admin::SplitStatus(const v1::SplitStatusRequest& request) const {
  v1::AdminResponse out;
  auto& answer = *out.mutable_split_status();
  for (const auto& [name, task] : shard_.state().splits()) {
    if (request.task().empty() || request.task() == name)
      *answer.add_tasks() = bucket::ToProto(task);
  }
  if (!request.task().empty() && answer.tasks_size() == 0) {
    return AdminFailure(NotFound("this shard has no split task '" + request.task() + "'"));
  }
  return out;
}

void Admin::ApplyTopology(const v1::ApplyTopologyRequest& request, Done done) {
  if (!shard_.is_leader()) return done(AdminFailure(shard_.NotLeader()));
  const Status check = bucket::CheckTopologyChange(shard_.state().topology(), request.topology());
  if (!check.ok() || request.dry_run()) return done(check.ok() ? AdminDone() : AdminFailure(check));
  if (request.topology().version() == shard_.state().topology().version()) return done(AdminDone());
  v1::Control control;
  *control.mutable_topology() = request.topology();
  Change(std::move(control), std::move(done));
}

void Admin::ApplySettings(const v1::ApplySettingsRequest& request, Done done) {
  if (!shard_.is_leader()) return done(AdminFailure(shard_.NotLeader()));
  v1::Control control;
  *control.mutable_settings() = request.settings();
  Change(std::move(control), std::move(done));
}

void Admin::TransferLeader(const v1::TransferLeaderRequest& request, Deadline deadline, Done done) {
  if (!shard_.is_leader()) return done(AdminFailure(shard_.NotLeader()));
  std::optional<MemberId> to;
  if (!request.to().empty()) {
    to = shard_.peers().MemberOf(request.to());
    if (!to) return done(AdminFailure(NotFound("this shard has no member '" + request.to() + "'")));
    if (*to == identity_.member) return done(AdminDone());
  }
  shard_.HandOver(to, deadline, [done = std::move(done)](const Status& status) mutable {
    done(status.ok() ? AdminDone() : AdminFailure(status));
  });
}

v1::AdminResponse Admin::BucketsInfo(const v1::BucketsInfoRequest& request) const {
  const auto& state = shard_.state();
  v1::AdminResponse response;
  auto& out = *response.mutable_buckets_info();
  out.set_level(state.level());
  out.set_applied_index(state.applied_index().value());
  const auto add = [&](std::uint32_t number, const bucket::Row* row) {
    v1::BucketDetail& detail = *out.add_buckets();
    const bucket::Marks marks = state.FindMarks(number);
    if (row != nullptr) {
      *detail.mutable_row() = bucket::ToProto(number, *row);
      if (auto it = state.outgoing().find(row->transfer); it != state.outgoing().end()) {
        detail.set_peer(it->second.target.value());
      } else {
        detail.set_peer(row->transfer.source.value());
      }
      const auto range = store::BucketRange({state.level(), number}, state.bucket_count());
      detail.set_approximate_bytes(shard_.store().ApproximateBytes(range.begin, range.end));
      detail.set_refs_ro(shard_.calls().scans().RefsOf(number));
    }
    if (request.with_marks() || row == nullptr)
      *detail.mutable_marks() = bucket::ToProto(number, marks);
  };
  if (request.has_bucket()) {
    // A coarser question is answered with all of its parts, a finer one with the bucket it lies in.
    const std::uint64_t asked = std::uint64_t{state.bucket_count()}
                                << std::min<std::uint32_t>(request.level(), 32);
    if (request.bucket() >= asked) {
      return AdminFailure(Status(Code::kOutOfRange, Reason::kBucketOutOfRange,
                                 "bucket " + std::to_string(request.bucket()) +
                                     " is out of range: there are " + std::to_string(asked) +
                                     " at that level"));
    }
    const std::uint64_t step = std::min<std::uint64_t>(asked, state.modulus());
    for (std::uint64_t b = request.bucket() % step; b < state.modulus(); b += step) {
      const auto number = static_cast<std::uint32_t>(b);
      add(number, state.FindRow(number));
    }
    out.set_total(static_cast<std::uint64_t>(out.buckets_size()));
    return response;
  }
  const std::uint32_t limit = request.limit() == 0 ? 1000 : request.limit();
  std::uint64_t seen = 0;
  for (const auto& [number, row] : state.rows()) {
    if (request.status() != v1::BUCKET_NONE &&
        static_cast<int>(row.status) != static_cast<int>(request.status()))
      continue;
    if (seen++ >= request.offset() && out.buckets_size() < static_cast<int>(limit))
      add(number, &row);
  }
  out.set_total(seen);
  return response;
}

v1::InfoResponse Admin::Info() const {
  v1::InfoResponse out;
  out.set_replica(identity_.replica);
  out.set_member(identity_.member.value());
  out.set_collection(identity_.collection.value());
  out.set_shard(identity_.shard.value());
  out.set_formed(shard_.formed());
  out.set_uptime_millis(Millis(env_.clock.Now() - started_));
  out.set_version(ETALON_VERSION);
  const auto alerts = StorageAlerts(shard_.Facts());
  for (const auto& alert : alerts) {
    v1::Alert& a = *out.add_alerts();
    a.set_code(alert.code);
    a.set_text(alert.text);
    a.set_status(static_cast<std::uint32_t>(alert.severity));
  }
  out.set_status(static_cast<std::uint32_t>(StatusOf(alerts)));
  const auto raft = shard_.replica().status();
  out.set_term(raft.term.value());
  out.set_commit_index(raft.commit.value());
  out.set_last_index(log_.Last().value());
  out.set_log_bytes(log_.SizeBytes());
  out.set_leader_name(shard_.leader_name());
  if (auto free = env_.disk.FreeBytes(); free.ok()) out.set_free_bytes(*free);
  if (!shard_.formed()) return out;

  const auto& state = shard_.state();
  out.set_retired(state.retired());
  out.set_leader(shard_.is_leader());
  out.set_lease(shard_.is_leader() && shard_.replica().HasLease());
  out.set_applied_index(state.applied_index().value());
  out.set_checkpoint_index(shard_.checkpoint_index().value());
  out.set_level(state.level());
  out.set_modulus(state.modulus());
  *out.mutable_buckets() = state.counts();
  if (auto etalon = shard_.etalon()) out.set_etalon(*etalon);
  if (auto disbalance = shard_.disbalance()) out.set_disbalance(*disbalance);
  out.set_topology_version(state.topology().version());
  out.set_settings_version(state.settings().version());
  for (const auto& shard : state.topology().shards()) {
    if (shard.uid() == identity_.shard.value()) out.set_shard_name(shard.name());
  }
  out.set_locked(state.locked());
  out.set_state_version(state.version());
  for (const auto& member : state.members()) {
    *out.add_members() = member;
    if (!shard_.is_leader()) continue;
    v1::MemberProgress& p = *out.add_progress();
    p.set_member(member.member());
    p.set_name(member.name());
    p.set_learner(member.learner());
    if (member.member() == identity_.member.value()) {
      p.set_match_index(log_.Last().value());
      p.set_recent(true);
    } else if (auto progress = shard_.replica().GetProgress(MemberId(member.member()))) {
      p.set_match_index(progress->matched.value());
      p.set_recent(shard_.heard_lately(MemberId(member.member())));
    }
  }
  for (auto& transfer : shard_.Transfers()) *out.add_transfers() = std::move(transfer);
  for (const auto& [name, task] : state.splits()) *out.add_splits() = bucket::ToProto(task);
  const auto data = store::DataRange();
  out.set_store_bytes(shard_.store().ApproximateBytes(data.begin, data.end));
  out.set_refs_ro(shard_.calls().scans().refs());
  for (const auto& [key, count] : stats_.calls) {
    v1::CallCounter& c = *out.add_calls();
    c.set_mode(std::get<0>(key));
    c.set_function(std::get<1>(key));
    c.set_code(std::string(CodeName(std::get<2>(key))));
    c.set_count(count);
  }
  *out.mutable_call_seconds() = stats_.call_seconds.ToProto();
  *out.mutable_freeze_seconds() = stats_.freeze_seconds.ToProto();
  for (const auto& [name, count] : stats_.counters) (*out.mutable_counters())[name] = count;
  return out;
}

}  // namespace etalon::storage
