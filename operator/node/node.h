// The operator's loop: observe, plan, act, and again. It keeps nothing that it could not observe
// again.
//
// Threads: everything on the executor.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "common/logger.h"
#include "common/random.h"
#include "env/clock.h"
#include "env/executor.h"
#include "operator/node/admin_port.h"
#include "operator/node/platform.h"
#include "operator/plan/plan.h"

namespace etalon::controller {

struct NodeOptions {
  Duration ask_timeout = std::chrono::milliseconds(700);  // of an observation
  Duration act_timeout = std::chrono::seconds(5);         // of an action
  Duration after_action = std::chrono::milliseconds(50);  // to the next round
  Duration while_waiting = std::chrono::milliseconds(250);
  Duration at_rest = std::chrono::seconds(1);
  Duration retry_cap =
      std::chrono::seconds(5);  // longest pause before a failed action is tried again
};

class Node {
 public:
  using OnReport = std::function<void(const Report&)>;

  // `on_report` hears the report of every round.
  Node(const Clock& clock, Executor& executor, Random random, Logger& log, Platform& platform,
       AdminPort& admin, NodeOptions options, OnReport on_report);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // What is asked for from now on; the first one starts the loop.
  void SetSpec(CollectionSpec spec);

 private:
  struct Pause {  // of an action that failed
    Failure failure;
    Backoff backoff;
    SteadyTime until;
  };

  UniqueFunction<void()> Guarded(UniqueFunction<void()> task);
  void WakeAt(SteadyTime when);
  void BeginRound();
  void AskEverybody();
  void EndRound();
  void Remember();

  // carry.cc
  void Carry(const Action& action);
  void Finish(const std::string& key, const Status& status);
  void CarryForm(const Form& action, const std::string& key);
  void CarryTopology(const ApplyTopology& action, const std::string& key);
  void CarryDelete(const DeleteShard& action, const std::string& key);
  void AskLeader(ShardUid shard, v1::AdminRequest request, const std::string& key);
  // Asks all, by address, and hands over what each answered.
  using Answers = std::map<std::string, Status>;
  void AskAll(std::map<std::string, v1::AdminRequest> requests, UniqueFunction<void(Answers)> done);
  std::string LeaderAddress(ShardUid shard) const;  // empty: nobody is known to lead

  const Clock& clock_;
  Executor& executor_;
  Random random_;
  Logger& log_;
  Platform& platform_;
  AdminPort& admin_;
  const NodeOptions options_;
  OnReport on_report_;
  std::optional<CollectionSpec> spec_;

  Observed seen_;  // of this round
  PlanOutput plan_;
  bool in_round_ = false;
  bool again_ = false;  // something happened during the round
  std::size_t open_questions_ = 0;
  std::set<std::string> in_flight_;  // keys of actions under way
  std::map<std::string, Pause> pauses_;
  std::map<ShardUid, SteadyTime> led_;
  std::map<std::string, SteadyTime> silent_since_;  // routers
  Report last_;
  Executor::TimerId timer_ = 0;
  SteadyTime armed_ = SteadyTime::max();
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // tasks hold it weakly
};

}  // namespace etalon::controller
