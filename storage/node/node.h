// One storage process without gRPC: identity, forming, the shard's replica, and what other nodes
// ask of it.
//
// Threads: everything on env.core. A crash is the destruction of the node; destructors write
// nothing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/log.h"
#include "engine/store/store_set.h"
#include "env/env.h"
#include "etalon/v1/peer.pb.h"
#include "storage/node/admin.h"
#include "storage/node/identity.h"
#include "storage/node/options.h"
#include "storage/node/replies.h"
#include "storage/node/shard.h"
#include "storage/node/stats.h"

namespace etalon::storage {

class Node final : private Shard::Host {
 public:
  // `stores` is not opened yet: the node does that. `fatal` is called once when the node cannot go
  // on; the process must end then, and start again only if the status says so.
  Node(Env env, NodeOptions options, store::StoreFactory& stores,
       UniqueFunction<void(const Status&)> fatal);
  ~Node() override;

  // Reads the disk (synchronously) and begins to serve. Failures, with nothing wiped: FOREIGN_DISK,
  // NEWER_FORMAT, DATA_LOSS ("this disk counts as lost").
  Status Start();
  void OnMessage(const NodeName& from, Lane lane, std::string_view bytes);
  // Hands leadership over if it leads, finishes what is in flight, then calls `done`; at the
  // deadline at the latest.
  void Shutdown(Deadline deadline, UniqueFunction<void()> done);
  // Replay done, identity right, serving. Never leadership, quorum or lag. A blank disk that waits
  // to join serves too: it answers "unformed".
  bool Serving() const { return shard_ != nullptr && !ended_; }

  const Identity& identity() const { return identity_; }
  const Shard* shard() const { return shard_.get(); }

 private:
  // Shard::Host
  void Send(const NodeName& to, Lane lane, v1::NodeMessage message) override;
  void SendReply(const NodeName& to, v1::CallReply reply) override;
  bool MayReply(const NodeName& to) const override { return !replies_.Enough(to); }
  void Fatal(const Status& status) override;

  Status OpenShard();
  Status OpenLog();
  void FinishForm(const v1::FormRequest& form, UniqueFunction<void(Status)> done);
  void ActivateForm(const v1::FormRequest& form, UniqueFunction<void(Status)> done);
  void Form(const v1::FormRequest& request, UniqueFunction<void(Status)> done);
  void Recover(const v1::RecoverRequest& request, UniqueFunction<void(Status)> done);
  void ReplaceHardState(const consensus::HardState& hard_state, UniqueFunction<void(Status)> done);

  void OnAdmin(const NodeName& from, const v1::AdminCall& call);
  void OnCalls(const NodeName& from, std::string_view bytes);
  void OnPing(const NodeName& from, const v1::Ping& ping);
  void OnFetchTopology(const NodeName& from, const v1::FetchTopology& request);
  void OnMapRun(const NodeName& from, const v1::MapRun& request);
  void FlushReplies();
  void WaitQuiet(Deadline deadline, std::shared_ptr<UniqueFunction<void()>> done);
  Status Unformed() const;
  UniqueFunction<void()> Guarded(UniqueFunction<void()> task);

  Env env_;
  const NodeOptions options_;
  store::StoreFactory& factory_;
  UniqueFunction<void(const Status&)> fatal_;
  Identity identity_;
  Stats stats_;
  SteadyTime started_;
  bool ended_ = false;
  bool busy_ = false;  // a Form or Recover runs

  std::unique_ptr<store::StoreSet> stores_;
  std::unique_ptr<log::SegmentedLog> log_;
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<Admin> admin_;

  Replies replies_;
  bool flush_scheduled_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks hold it weakly
};

}  // namespace etalon::storage
