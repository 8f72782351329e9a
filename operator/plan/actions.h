// What the planner asks for. Every action may be done twice, or be found done already: that is
// success. Each carries what it needs to refuse work that is out of date (a UID, a version, a
// disk); whoever carries it out checks that again.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/topology.pb.h"

namespace etalon::controller {

// ---- processes ----
struct Adopt {  // go on as that collection; only while no topology is stored
  CollectionId collection;
};
struct StartStorage {  // with the data directory that it has, or a new one
  std::string name;    // "orders-shard-0-1"
  std::string shard;   // "shard-0"
  ShardUid uid;
};
// Only for a replica that its shard's log no longer names, or that was never formed. `discard`: its
// disk is put aside, so that a later start begins with a new one.
struct StopStorage {
  std::string name;
  bool discard = false;
};
struct ReplaceDisk {  // of a replica that does not run: the lost disk is put aside, a start begins
                      // with a new one
  std::string name;
};
// Loads topology `version`, or the newest. Does nothing if it runs.
struct StartRouter {
  std::string name;
  std::uint64_t version = 0;
};
struct RestartRouter {  // gracefully, with topology `version`
  std::string name;
  std::uint64_t version = 0;
};
struct StopRouter {  // gracefully
  std::string name;
};

// ---- declarations ----
// Creation allocates the version: refused when it is there with another content.
struct CreateTopology {
  v1::Topology topology;
};
struct CreateSettings {
  v1::Settings settings;
};
struct CreateForm {  // records what the shard will be formed with, once and for ever
  v1::FormRequest form;
};
struct PushTopology {  // to a router, configUpdate Live
  std::string router;
  std::uint64_t version = 0;
};
// A dry run on all of them; if none refuses, committed through the log of each.
struct ApplyTopology {
  std::uint64_t version = 0;
  std::vector<ShardUid> shards;
};
struct ApplySettings {
  std::uint64_t version = 0;
  ShardUid shard;
};

// ---- shards ----
struct Form {  // as recorded; on these replicas
  ShardUid shard;
  std::vector<std::string> replicas;
};
struct ChangeMember {
  ShardUid shard;
  v1::ChangeMembersRequest::Kind kind = v1::ChangeMembersRequest::ADD_LEARNER;
  MemberId member;
  std::string name;
};
struct TransferLeader {
  ShardUid shard;
  std::string to;
};
struct Split {
  ShardUid source;
  ShardUid target;
  std::string task;
};
struct AbortSplit {
  ShardUid source;
  std::string task;
  std::string why;
};
struct Retire {
  ShardUid shard;
};
// Reads the state of the shard from its leader once more: retired, no rows. Then puts the proof on
// record, stops the processes and keeps the volumes under another name.
struct DeleteShard {
  ShardUid shard;
  std::string name;
};

using Action = std::variant<Adopt, StartStorage, StopStorage, ReplaceDisk, StartRouter,
                            RestartRouter, StopRouter, CreateTopology, CreateSettings, CreateForm,
                            PushTopology, ApplyTopology, ApplySettings, Form, ChangeMember,
                            TransferLeader, Split, AbortSplit, Retire, DeleteShard>;

// "form shard 00c4..." : the same for the same purpose, whatever the details; also what people
// read.
std::string Key(const Action& action);

}  // namespace etalon::controller
