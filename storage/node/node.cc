#include "storage/node/node.h"

#include <algorithm>
#include <utility>

#include "engine/bucket/meta_codec.h"
#include "proto/wire.h"
#include "storage/node/map_runs.h"

namespace etalon::storage {

namespace {

constexpr char kLogDir[] = "log";
constexpr char kStoreDir[] = "store";
constexpr char kFormFile[] = "FORM";
constexpr char kFormGeneration[] = "g-form";
// What found no room in a stream tries again after.
constexpr Duration kReplyRetry = std::chrono::milliseconds(5);

v1::FormRequest Canonical(v1::FormRequest request) {
  auto& members = *request.mutable_members();
  std::sort(members.begin(), members.end(),
            [](const auto& a, const auto& b) { return a.member() < b.member(); });
  return request;
}

}  // namespace

Node::Node(Env env, NodeOptions options, store::StoreFactory& stores,
           UniqueFunction<void(const Status&)> fatal)
    : env_(env),
      options_(std::move(options)),
      factory_(stores),
      fatal_(std::move(fatal)),
      started_(env.clock.Now()) {}

Node::~Node() {
  admin_.reset();
  shard_.reset();
}

UniqueFunction<void()> Node::Guarded(UniqueFunction<void()> task) {
  return [alive = std::weak_ptr<bool>(alive_), task = std::move(task)]() mutable {
    if (!alive.expired()) task();
  };
}

Status Node::Start() {
  const Identity wanted{options_.collection, options_.shard, options_.replica, MemberId()};
  auto found = ReadIdentity(env_.disk);
  if (found.ok()) {
    ETALON_RETURN_IF_ERROR(CheckIdentity(*found, wanted));
    identity_ = *found;
    return OpenShard();
  }
  if (found.status().code() != Code::kNotFound) return found.status();
  if (auto names = env_.disk.List(""); names.ok()) {
    for (const std::string& name : *names) {
      if (name == std::string(kLogDir) + "/" || name == std::string(kStoreDir) + "/" ||
          name == kFormFile) {
        return DataLoss(
            "the data directory holds '" + name +
            "' but no identity: it is no disk of ours or lost a part; nothing was touched");
      }
    }
  }
  identity_ = wanted;
  identity_.member = MemberId(env_.random.NextId());
  // Nothing of this disk may be known to anybody before its incarnation is durable.
  env_.disk.Submit(WriteIdentity(identity_),
                   [this, alive = std::weak_ptr<bool>(alive_)](Status status) {
                     if (alive.expired()) return;
                     if (status.ok()) status = OpenShard();
                     if (!status.ok()) Fatal(status.Annotate("beginning a new disk"));
                   });
  return OkStatus();
}

Status Node::OpenLog() {
  log_.reset();
  log::SegmentedLog::Options options;
  options.dir = kLogDir;
  options.segment_bytes = options_.log_segment_bytes;
  ETALON_ASSIGN_OR_RETURN(log_, log::SegmentedLog::Open(env_.disk, env_.core, env_.clock,
                                                        env_.random.Fork(), env_.log, options));
  return OkStatus();
}

Status Node::OpenShard() {
  admin_.reset();
  shard_.reset();
  ETALON_RETURN_IF_ERROR(OpenLog());
  const auto& recovered = log_->recovered();
  stores_ = std::make_unique<store::StoreSet>(env_.disk, factory_, kStoreDir);
  // A snapshot that the log begins at was complete before the log said so; only the pointer to it
  // may be older.
  const bool named = recovered.snapshot && recovered.snapshot->name != kFormGeneration;
  ETALON_RETURN_IF_ERROR(stores_->Open(named ? recovered.snapshot->name : ""));

  auto form_bytes = ReadWhole(env_.disk, kFormFile);
  if (!form_bytes.ok() && form_bytes.status().code() != Code::kNotFound) return form_bytes.status();
  if (form_bytes.ok() && stores_->Current() == nullptr) {
    v1::FormRequest form;
    if (!form.ParseFromString(*form_bytes))
      return DataLoss("the file FORM is damaged: this disk counts as lost");
    busy_ = true;
    FinishForm(form, [this](const Status& status) {
      if (!status.ok()) Fatal(status.Annotate("finishing a form that was cut short"));
    });
    return OkStatus();
  }
  if (stores_->Current() != nullptr && recovered.blank) {
    return DataLoss("the log is gone but the store is not: this disk counts as lost");
  }
  ETALON_ASSIGN_OR_RETURN(shard_,
                          Shard::Open(env_, options_, identity_, *stores_, *log_, stats_, *this));
  admin_ = std::make_unique<Admin>(env_, *shard_, identity_, stats_, *log_, started_);
  return OkStatus();
}

// ---- forming
// ------------------------------------------------------------------------------------------------------
//
// In this order, each step durable before the next, and each done again by a restart that finds it
// undone: the file FORM (what this shard is made of), the log's first record (term 1, index 1), the
// first generation.

void Node::Form(const v1::FormRequest& raw, UniqueFunction<void(Status)> done) {
  const v1::FormRequest request = Canonical(raw);
  if (busy_)
    return done(Unavailable(Reason::kNone, "a form is under way on this replica: ask again"));
  if (CollectionId(request.collection()) != identity_.collection ||
      ShardUid(request.shard()) != identity_.shard) {
    return done(FailedPrecondition(
        Reason::kForeignDisk, "this replica belongs to shard " + ToHex(identity_.shard.value()) +
                                  " of collection " + ToHex(identity_.collection.value()) +
                                  ", not to the one that is to be formed"));
  }
  if (auto formed = ReadWhole(env_.disk, kFormFile); formed.ok()) {
    if (*formed == request.SerializeAsString()) return done(OkStatus());
    return done(
        FailedPrecondition(Reason::kNonEmpty, "this shard is formed already, with other content"));
  }
  if (shard_ == nullptr || shard_->formed() || !log_->recovered().blank) {
    return done(FailedPrecondition(Reason::kNonEmpty, "this disk already takes part in a shard"));
  }
  const bool named =
      std::any_of(request.members().begin(), request.members().end(), [&](const auto& m) {
        return m.member() == identity_.member.value() && m.name() == identity_.replica &&
               !m.learner();
      });
  if (!named)
    return done(InvalidArgument("the members of the form do not name this replica with its disk"));
  if (auto state = bucket::StateMachine::FormState(request); !state.ok())
    return done(state.status());

  busy_ = true;
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  env_.disk.Submit(
      ReplaceFile(kFormFile, request.SerializeAsString()),
      [this, alive = std::weak_ptr<bool>(alive_), request, shared](const Status& status) {
        if (alive.expired()) return;
        if (!status.ok()) {
          busy_ = false;
          return (*shared)(status);
        }
        admin_.reset();
        shard_.reset();
        if (Status s = OpenLog(); !s.ok()) return Fatal(s);
        FinishForm(request, [shared](const Status& s) { (*shared)(s); });
      });
}

void Node::FinishForm(const v1::FormRequest& form, UniqueFunction<void(Status)> done) {
  if (!log_->recovered().blank) return ActivateForm(form, std::move(done));
  consensus::Snapshot base{LogIndex(1), Term(1), {}, kFormGeneration};
  for (const auto& m : form.members()) {
    (m.learner() ? base.members.learners : base.members.voters).push_back(MemberId(m.member()));
  }
  std::sort(base.members.voters.begin(), base.members.voters.end());
  std::sort(base.members.learners.begin(), base.members.learners.end());
  consensus::Persist persist;
  persist.number = 1;
  persist.sync = true;
  persist.hard_state = consensus::HardState{Term(1), MemberId(), LogIndex(1)};
  persist.snapshot = std::move(base);
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  log::SegmentedLog::Callbacks callbacks;
  callbacks.ready = [] {};
  callbacks.fetched = [] {};
  callbacks.snapshot_provider = [](MemberId, LogIndex) { return std::nullopt; };
  callbacks.failed = [this](const Status& status) { Fatal(status); };
  callbacks.durable = [this, form, shared](std::uint64_t) {
    env_.core.Post(
        Guarded([this, form, shared] {  // not from within the log's own callback: it is opened anew
          if (Status s = OpenLog(); !s.ok()) return Fatal(s);
          ActivateForm(form, [shared](const Status& s) { (*shared)(s); });
        }));
  };
  log_->SetCallbacks(std::move(callbacks));
  log_->Append(persist);
}

void Node::ActivateForm(const v1::FormRequest& form, UniqueFunction<void(Status)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  stores_->CreateFresh(kFormGeneration, [this, form, shared](Result<store::Store*> fresh) {
    const auto fail = [this, shared](const Status& status) {
      busy_ = false;
      (*shared)(status);
      Fatal(status.Annotate("forming this replica"));
    };
    if (!fresh.ok()) return fail(fresh.status());
    auto batch = bucket::StateMachine::FormState(form);
    if (!batch.ok()) return fail(batch.status());
    if (Status s = (*fresh)->Write(std::move(*batch)); !s.ok()) return fail(s);
    stores_->Activate(kFormGeneration, [this, shared, fail](Status status) {
      if (status.ok()) status = OpenShard();
      if (!status.ok()) return fail(status);
      busy_ = false;
      (*shared)(OkStatus());
    });
  });
}

// ---- recovery after the loss of a majority
// --------------------------------------------------------------------------
//
// This replica goes on alone. The term comes first: once the members are changed it may campaign,
// and must do so above every term that anybody has seen, so that transfer IDs stay unique.

void Node::Recover(const v1::RecoverRequest& request, UniqueFunction<void(Status)> done) {
  if (busy_ || shard_ == nullptr || !shard_->formed()) return done(Unformed());
  if (ShardUid(request.shard()) != identity_.shard ||
      MemberId(request.member()) != identity_.member) {
    return done(InvalidArgument("recovery must name this very shard and disk: shard " +
                                ToHex(identity_.shard.value()) + ", disk " +
                                ToHex(identity_.member.value())));
  }
  // A follower that went on alone while the others have a majority would make two shards of one.
  if (Status may = shard_->MajorityIsLost(); !may.ok()) return done(may);
  busy_ = true;
  env_.log.Warning("recover_alone", {{"term_above", request.term_above()}});
  const auto raft = shard_->replica().status();
  const LogIndex commit = raft.commit;
  admin_.reset();
  shard_.reset();
  consensus::HardState hard_state{std::max(raft.term, Term(request.term_above())), MemberId(),
                                  commit};
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  const auto finish = [this, shared](const Status& status) {
    busy_ = false;
    (*shared)(status);
    if (!status.ok()) Fatal(status.Annotate("recovering alone"));
  };
  ReplaceHardState(hard_state, [this, finish](Status status) {
    if (!status.ok()) return finish(status);
    store::Store& store = *stores_->Current();
    auto bytes = store.Get(bucket::HeaderKey());
    v1::StateHeader header;
    if (!bytes.ok() || !*bytes || !header.ParseFromString(**bytes))
      return finish(DataLoss("the state's header is damaged"));
    header.clear_members();
    v1::MemberInfo& self = *header.add_members();
    self.set_member(identity_.member.value());
    self.set_name(identity_.replica);
    store::Batch batch;
    batch.Put(bucket::HeaderKey(), header.SerializeAsString());
    if (Status s = store.Write(std::move(batch)); !s.ok()) return finish(s);
    store.Checkpoint([this, alive = std::weak_ptr<bool>(alive_), finish](Status s) {
      if (alive.expired()) return;
      finish(s.ok() ? OpenShard() : s);
    });
  });
}

void Node::ReplaceHardState(const consensus::HardState& hard_state,
                            UniqueFunction<void(Status)> done) {
  if (Status s = OpenLog(); !s.ok()) return done(s);
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  log::SegmentedLog::Callbacks callbacks;
  callbacks.ready = [] {};
  callbacks.fetched = [] {};
  callbacks.snapshot_provider = [](MemberId, LogIndex) { return std::nullopt; };
  callbacks.failed = [this](const Status& status) { Fatal(status); };
  callbacks.durable = [this, shared](std::uint64_t) {
    env_.core.Post(Guarded([shared] { (*shared)(OkStatus()); }));
  };
  log_->SetCallbacks(std::move(callbacks));
  consensus::Persist persist;
  persist.number = 1;
  persist.sync = true;
  persist.hard_state = hard_state;
  log_->Append(persist);
}

// ---- messages
// -----------------------------------------------------------------------------------------------------

void Node::OnMessage(const NodeName& from, Lane, std::string_view bytes) {
  if (ended_) return;
  v1::NodeMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    stats_.Count("malformed_messages");
    return;
  }
  if (message.collection() != 0 && message.collection() != identity_.collection.value()) {
    stats_.Count("foreign_messages");
    return;
  }
  switch (message.body_case()) {
    case v1::NodeMessage::kRaft:
      if (shard_ && message.raft().shard() == identity_.shard.value())
        shard_->OnRaft(from, message.raft());
      return;
    case v1::NodeMessage::kTransfer:
      if (shard_) shard_->OnTransfer(from, message.transfer());
      return;
    case v1::NodeMessage::kBalance:
      if (shard_) shard_->OnBalance(from, message.balance());
      return;
    case v1::NodeMessage::kSubscribe: {
      if (shard_ && shard_->formed()) return shard_->OnSubscribe(from, message.subscribe());
      v1::NodeMessage out;
      out.mutable_feed()->set_subscription(message.subscribe().subscription());
      out.mutable_feed()->set_shard(identity_.shard.value());
      *out.mutable_feed()->mutable_status() = ToProto(Unformed());
      return Send(from, Lane::kControl, std::move(out));
    }
    case v1::NodeMessage::kCallFrame:
      return OnCalls(from, message.call_frame());
    case v1::NodeMessage::kAdminCall:
      return OnAdmin(from, message.admin_call());
    case v1::NodeMessage::kMapRun:
      return OnMapRun(from, message.map_run());
    case v1::NodeMessage::kPing:
      return OnPing(from, message.ping());
    case v1::NodeMessage::kSuspicion:
      if (shard_ && message.suspicion().shard() == identity_.shard.value())
        shard_->OnSuspicion(message.suspicion());
      return;
    case v1::NodeMessage::kFetchTopology:
      return OnFetchTopology(from, message.fetch_topology());
    case v1::NodeMessage::kTopology:
      if (shard_ && !shard_->formed()) shard_->peers().SetTopology(message.topology(), &env_.net);
      return;
    case v1::NodeMessage::kFeed:
    case v1::NodeMessage::kReplyFrame:
    case v1::NodeMessage::kAdminReply:
    case v1::NodeMessage::kMapRunReply:
    case v1::NodeMessage::kClientRequest:
    case v1::NodeMessage::kClientReply:
    case v1::NodeMessage::kPong:
    case v1::NodeMessage::BODY_NOT_SET:
      stats_.Count("unexpected_messages");
      return;
  }
}

Status Node::Unformed() const {
  return FailedPrecondition(
      Reason::kUnformed,
      "replica " + identity_.replica + " is unformed: it waits to be formed or to join its shard");
}

void Node::OnCalls(const NodeName& from, std::string_view bytes) {
  v1::CallFrame frame;
  if (!frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    stats_.Count("malformed_messages");
    return;
  }
  for (std::string& call_bytes : *frame.mutable_calls()) {
    if (shard_ && shard_->formed()) {
      shard_->calls().Handle(from, std::move(call_bytes));
      continue;
    }
    v1::Call call;
    if (!call.ParseFromString(call_bytes)) continue;
    v1::CallReply reply;
    reply.set_id(call.id());
    *reply.mutable_status() = ToProto(Unavailable(
        Reason::kStorageIsDisabled, "replica " + identity_.replica + " does not serve yet"));
    SendReply(from, std::move(reply));
  }
}

void Node::OnAdmin(const NodeName& from, const v1::AdminCall& call) {
  auto answer = [this, alive = std::weak_ptr<bool>(alive_), from,
                 id = call.id()](v1::AdminResponse response) {
    if (alive.expired()) return;
    v1::NodeMessage out;
    out.mutable_admin_reply()->set_id(id);
    *out.mutable_admin_reply()->mutable_response() = std::move(response);
    Send(from, Lane::kControl, std::move(out));
  };
  const auto finish = [answer](const Status& status) {
    answer(status.ok() ? AdminDone() : AdminFailure(status));
  };
  const auto& request = call.request();
  if (request.has_form()) return Form(request.form(), finish);
  if (request.has_recover()) return Recover(request.recover(), finish);
  if (shard_ && (shard_->formed() || request.has_info())) return admin_->Handle(request, answer);
  if (request.has_info()) {
    v1::AdminResponse out;
    out.mutable_info()->set_replica(identity_.replica);
    return answer(std::move(out));
  }
  finish(Unformed());
}

void Node::OnPing(const NodeName& from, const v1::Ping& ping) {
  v1::NodeMessage out;
  v1::Pong& pong = *out.mutable_pong();
  pong.set_id(ping.id());
  pong.set_replica(identity_.replica);
  pong.set_shard(identity_.shard.value());
  if (shard_ && shard_->formed()) {
    pong.set_ready(true);
    pong.set_leader(shard_->is_leader() && shard_->replica().HasLease());
    pong.set_leader_name(shard_->leader_name());
    pong.set_term(shard_->replica().status().term.value());
    pong.set_applied_index(shard_->state().applied_index().value());
    pong.set_lag_millis(
        static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                       std::max(shard_->lag(), shard_->since_leader()))
                                       .count()));
    pong.set_topology_version(shard_->state().topology().version());
  }
  Send(from, Lane::kControl, std::move(out));
}

void Node::OnFetchTopology(const NodeName& from, const v1::FetchTopology& request) {
  if (!shard_ || !shard_->formed() || shard_->state().topology().version() <= request.have())
    return;
  v1::NodeMessage out;
  *out.mutable_topology() = shard_->state().topology();
  Send(from, Lane::kControl, std::move(out));
}

void Node::OnMapRun(const NodeName& from, const v1::MapRun& request) {
  const auto answer = [this, alive = std::weak_ptr<bool>(alive_), from](v1::MapRunReply reply) {
    if (alive.expired()) return;
    v1::NodeMessage out;
    *out.mutable_map_run_reply() = std::move(reply);
    Send(from, Lane::kControl, std::move(out));
  };
  Status status;
  if (!shard_ || !shard_->formed()) {
    status = Unformed();
  } else if (!shard_->is_leader()) {
    status = shard_->NotLeader();
  }
  if (!status.ok()) {
    v1::MapRunReply reply;
    reply.set_id(request.id());
    *reply.mutable_status() = ToProto(status);
    return answer(std::move(reply));
  }
  RunMap(shard_->calls(), request, shard_->state().level(), shard_->state().bucket_count(), answer);
}

void Node::Send(const NodeName& to, Lane lane, v1::NodeMessage message) {
  message.set_collection(identity_.collection.value());
  (void)env_.net.Send(to, lane,
                      Serialize(message));  // may be lost anyway: every protocol above asks again
}

void Node::SendReply(const NodeName& to, v1::CallReply reply) {
  replies_.Add(to, reply.SerializeAsString());
  if (std::exchange(flush_scheduled_, true)) return;
  env_.core.Post(Guarded([this] { FlushReplies(); }));
}

void Node::FlushReplies() {
  flush_scheduled_ = false;
  const Replies::Flushed flushed = replies_.Flush([this](const NodeName& to, std::string frame) {
    v1::NodeMessage out;
    out.set_collection(identity_.collection.value());
    out.set_reply_frame(std::move(frame));
    return env_.net.Send(to, Lane::kControl, Serialize(out));
  });
  if (shard_ && shard_->formed()) {
    for (const NodeName& peer : flushed.gone) shard_->calls().Forget(peer);
    for (const NodeName& peer : flushed.ready) shard_->calls().Resume(peer);
  }
  if (replies_.empty() || std::exchange(flush_scheduled_, true)) return;
  env_.core.PostAt(env_.clock.Now() + kReplyRetry, Guarded([this] { FlushReplies(); }));
}

void Node::Fatal(const Status& status) {
  if (std::exchange(ended_, true)) return;
  env_.log.Error("fatal", {{"why", status.ToString()}});
  // Later: whoever found it out may still be in the middle of something.
  env_.core.Post(Guarded([this, status] { fatal_(status); }));
}

void Node::Shutdown(Deadline deadline, UniqueFunction<void()> done) {
  auto shared = std::make_shared<UniqueFunction<void()>>(std::move(done));
  if (!shard_ || !shard_->is_leader() || !shard_->replica().BestSuccessor())
    return WaitQuiet(deadline, shared);
  shard_->HandOver(std::nullopt, deadline, [this, deadline, shared](const Status& status) {
    if (!status.ok()) env_.log.Warning("hand_over_failed", {{"why", status.ToString()}});
    WaitQuiet(deadline, shared);
  });
}

void Node::WaitQuiet(Deadline deadline, std::shared_ptr<UniqueFunction<void()>> done) {
  const bool quiet = (!shard_ || shard_->Quiet()) && replies_.empty();
  if (quiet || deadline.Passed(env_.clock.Now())) return (*done)();
  env_.core.PostAt(env_.clock.Now() + std::chrono::milliseconds(10),
                   Guarded([this, deadline, done] { WaitQuiet(deadline, done); }));
}

}  // namespace etalon::storage
