// The loop with a model of a collection behind its two ports: what it asks for over the wire does
// what the planner meant.
#include "operator/node/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "operator/plan/testing/fake_cluster.h"
#include "proto/wire.h"

namespace etalon::controller {
namespace {

using testing::FakeCluster;
using testing::Faults;
using ::testing::IsEmpty;

class ManualExecutor final : public Executor, public Clock {
 public:
  void Post(Task task) override { PostAt(now_, std::move(task)); }
  TimerId PostAt(SteadyTime when, Task task) override {
    tasks_.emplace(std::pair(std::max(when, now_), ++next_), std::move(task));
    return next_;
  }
  void Cancel(TimerId timer) override {
    for (auto it = tasks_.begin(); it != tasks_.end(); ++it) {
      if (it->first.second == timer) {
        tasks_.erase(it);
        return;
      }
    }
  }
  SteadyTime Now() const override { return now_; }
  void RunUntil(SteadyTime until) {
    while (!tasks_.empty() && tasks_.begin()->first.first <= until) {
      now_ = tasks_.begin()->first.first;
      Task task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
    }
    now_ = until;
  }

 private:
  SteadyTime now_ = SteadyTime(std::chrono::hours(1));
  TimerId next_ = 0;
  std::map<std::pair<SteadyTime, TimerId>, Task> tasks_;
};

class FakePorts final : public Platform, public AdminPort {
 public:
  FakePorts(FakeCluster& cluster, ManualExecutor& executor)
      : cluster_(cluster), executor_(executor) {}

  Observed Observe(SteadyTime) override {
    seen_ = cluster_.Observe();
    Observed out = seen_;
    if (out.storages.get() != nullptr) {
      for (auto& [name, storage] : *out.storages.get()) storage.info = {};
    }
    if (out.routers.get() != nullptr) {
      for (auto& [name, router] : *out.routers.get()) {
        router.info = {};
        router.process.address = name;
      }
    }
    out.rebalancer = {};
    return out;
  }
  Status Carry(SteadyTime, const Action& action) override { return cluster_.Execute(action); }

  void AskStorage(const std::string& address, v1::AdminRequest request, Duration,
                  UniqueFunction<void(Result<v1::AdminResponse>)> done) override {
    auto shared =
        std::make_shared<UniqueFunction<void(Result<v1::AdminResponse>)>>(std::move(done));
    executor_.PostAt(executor_.Now() + std::chrono::milliseconds(1),
                     [this, address, request, shared] { (*shared)(Answer(address, request)); });
  }
  void AskRouter(const std::string& address, Duration,
                 UniqueFunction<void(Result<v1::RouterInfoResponse>)> done) override {
    auto shared =
        std::make_shared<UniqueFunction<void(Result<v1::RouterInfoResponse>)>>(std::move(done));
    executor_.Post([this, address, shared] {
      const auto* routers = seen_.routers.get();
      if (routers == nullptr || !routers->contains(address) || !routers->at(address).info.known()) {
        return (*shared)(Unavailable(Reason::kNone, "no answer"));
      }
      (*shared)(routers->at(address).info.value());
    });
  }
  void PushTopology(const std::string& address, v1::Topology topology, Duration,
                    UniqueFunction<void(Status)> done) override {
    auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
    executor_.Post([this, address, topology, shared] {
      (*shared)(cluster_.Execute(controller::PushTopology{address, topology.version()}));
    });
  }

  std::size_t asked_dry = 0;

 private:
  Result<v1::AdminResponse> Answer(const std::string& address, const v1::AdminRequest& request) {
    const StorageSeen* storage = nullptr;
    std::string name;
    if (seen_.storages.known()) {
      for (const auto& [n, s] : seen_.storages.value()) {
        if (s.process.address == address) {
          storage = &s;
          name = n;
        }
      }
    }
    if (storage == nullptr || !storage->info.known())
      return Unavailable(Reason::kNone, "no answer");
    v1::AdminResponse out;
    const ShardUid uid = storage->uid;
    const auto act = [&](const Action& action) {
      *out.mutable_status() = ToProto(cluster_.Execute(action));
    };
    switch (request.request_case()) {
      case v1::AdminRequest::kInfo:
        *out.mutable_info() = storage->info.value();
        break;
      case v1::AdminRequest::kRebalancerState:
        out.mutable_rebalancer_state()->set_runs_here(true);
        out.mutable_rebalancer_state()->set_state("BALANCED");
        break;
      case v1::AdminRequest::kForm:
        EXPECT_EQ(request.form().SerializeAsString(),
                  seen_.forms.value().at(uid).SerializeAsString());
        act(Form{uid, {name}});
        break;
      case v1::AdminRequest::kApplyTopology:
        EXPECT_EQ(request.apply_topology().topology().SerializeAsString(),
                  seen_.topologies.value()
                      .at(request.apply_topology().topology().version())
                      .SerializeAsString());
        if (request.apply_topology().dry_run()) {
          ++asked_dry;
        } else {
          act(ApplyTopology{request.apply_topology().topology().version(), {uid}});
        }
        break;
      case v1::AdminRequest::kApplySettings:
        act(ApplySettings{request.apply_settings().settings().version(), uid});
        break;
      case v1::AdminRequest::kChangeMembers:
        act(ChangeMember{uid, request.change_members().kind(),
                         MemberId(request.change_members().member()),
                         request.change_members().name()});
        break;
      case v1::AdminRequest::kTransferLeader:
        act(TransferLeader{uid, request.transfer_leader().to()});
        break;
      case v1::AdminRequest::kSplit:
        act(Split{uid, ShardUid(request.split().target()), request.split().task()});
        break;
      case v1::AdminRequest::kAbortSplit:
        act(AbortSplit{uid, request.abort_split().task(), request.abort_split().why()});
        break;
      case v1::AdminRequest::kRetire:
        act(Retire{uid});
        break;
      default:
        ADD_FAILURE() << "asked for " << request.request_case();
    }
    return out;
  }

  FakeCluster& cluster_;
  ManualExecutor& executor_;
  Observed seen_;
};

CollectionSpec Spec(std::uint32_t shards) {
  CollectionSpec spec;
  spec.name = "orders";
  spec.shard_num = shards;
  spec.bucket_count = 120;
  spec.replicas_per_shard = 3;
  spec.shard_by_field = "id";
  return spec;
}

bool Until(FakeCluster& cluster, ManualExecutor& executor, const Report& report,
           std::size_t shards) {
  for (int i = 0; i < 3000; ++i) {
    cluster.Tick();
    executor.RunUntil(executor.Now() + std::chrono::milliseconds(100));
    const Condition* ready = report.Find("Ready");
    if (ready != nullptr && ready->status == ConditionStatus::kTrue &&
        cluster.Owned().size() == shards)
      return true;
  }
  const Condition* ready = report.Find("Ready");
  ADD_FAILURE() << (ready == nullptr ? "no report" : ready->message);
  return false;
}

void UpAndDown(Faults faults, std::uint64_t seed) {
  FakeCluster cluster(120, seed, faults);
  ManualExecutor executor;
  FakePorts ports(cluster, executor);
  NullLogger log;
  Report report;
  Node node(executor, executor, Random(seed), log, ports, ports, {},
            [&](const Report& r) { report = r; });
  for (const std::uint32_t shards : {2u, 4u, 3u, 1u}) {
    node.SetSpec(Spec(shards));
    ASSERT_TRUE(Until(cluster, executor, report, shards)) << shards;
    ASSERT_THAT(cluster.violations(), IsEmpty());
  }
  EXPECT_GT(ports.asked_dry, 0u);
}

TEST(Node, UpAndDown) { UpAndDown({}, 1); }

TEST(Node, UpAndDownWithFaults) {
  Faults faults;
  faults.fail_percent = 10;
  faults.lost_reply_percent = 10;
  faults.abort_split_percent = 30;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) UpAndDown(faults, seed);
}

TEST(Node, FailuresAreCountedAndTriedAgainLater) {
  Faults faults;
  faults.fail_percent = 100;
  FakeCluster cluster(120, 1, faults);
  ManualExecutor executor;
  FakePorts ports(cluster, executor);
  NullLogger log;
  Report report;
  Node node(executor, executor, Random(1), log, ports, ports, {},
            [&](const Report& r) { report = r; });
  node.SetSpec(Spec(1));
  executor.RunUntil(executor.Now() + std::chrono::minutes(1));
  ASSERT_NE(report.Find("Stalled"), nullptr);
  EXPECT_EQ(report.Find("Stalled")->status, ConditionStatus::kTrue);
  EXPECT_THAT(report.Find("Stalled")->message, ::testing::HasSubstr("it failed"));
  cluster.StopFaults();
  EXPECT_TRUE(Until(cluster, executor, report, 1));
  EXPECT_EQ(report.Find("Stalled")->status, ConditionStatus::kFalse);
}

TEST(Node, MayEndAtAnyMoment) {
  FakeCluster cluster(120, 1);
  ManualExecutor executor;
  FakePorts ports(cluster, executor);
  NullLogger log;
  std::size_t reports = 0;
  for (int i = 0; i < 300; ++i) {
    Node node(executor, executor, Random(1), log, ports, ports, {},
              [&](const Report&) { ++reports; });
    node.SetSpec(Spec(2));
    cluster.Tick();
    executor.RunUntil(executor.Now() + std::chrono::microseconds(500 * (i % 7)));
  }
  EXPECT_GT(reports, 100u);
  EXPECT_THAT(cluster.violations(), IsEmpty());
}

}  // namespace
}  // namespace etalon::controller
