// For tests of what answers calls: a shard of one replica, whose owner does what the test says and
// when it says so.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/bucket/testing.h"
#include "storage/node/calls.h"

namespace etalon::storage::testing {

namespace buckets = ::etalon::bucket::testing;

struct Answer {
  Status status;
  std::string result;
};

class CallWorld final : public CallHost {
 public:
  explicit CallWorld(std::uint32_t bucket_count = buckets::kBuckets)
      : shard(buckets::kA, bucket_count), calls(*this, stats, Random(1)) {}

  // ---- the test's side ----
  // Sends the call and returns its ID.
  std::uint64_t Send(v1::Call call) {
    call.set_id(++last_id_);
    calls.Handle("router", call.SerializeAsString());
    return last_id_;
  }
  bool Answered(std::uint64_t id) const { return answers.contains(id); }
  Status StatusOf(std::uint64_t id) const {
    const auto it = answers.find(id);
    return it == answers.end() ? Internal("no answer") : it->second.status;
  }
  // The turn of the loop ends: what was put off until then runs.
  void EndTurn() {
    for (auto& task : std::exchange(later_, {})) task();
  }
  // Applies what was proposed, an entry after the other.
  void ApplyAll() {
    for (auto& batch : std::exchange(proposed, {})) {
      v1::LogEntry entry = shard.Entry();
      for (const CallTicket& ticket : batch) entry.add_calls(ticket.bytes);
      auto outcomes = shard.Apply({entry});
      ASSERT_EQ(outcomes.size(), 1u);
      for (std::size_t i = 0; i < batch.size(); ++i) {
        calls.OnOutcome(std::move(batch[i]), std::move(outcomes[0].calls[i]));
      }
    }
  }
  // The call, decided at once.
  Answer Do(v1::Call call) {
    const std::uint64_t id = Send(std::move(call));
    EndTurn();
    ApplyAll();
    EXPECT_TRUE(Answered(id));
    return answers[id];
  }
  // A control command, which the calls hear of as from a real shard.
  void Control(const v1::Control& control) {
    const auto level = shard.sm->level();
    const auto before = shard.sm->rows();
    const Status s = shard.Do(control);
    ASSERT_TRUE(s.ok()) << s.ToString();
    if (shard.sm->level() != level) return calls.OnRebase();
    for (const auto& [bucket, row] : before) {
      const bucket::Row* after = shard.sm->FindRow(bucket);
      if (after == nullptr || *after != row) calls.OnRow(bucket, after);
    }
  }
  // Opens a transfer of one bucket to shard B and returns its ID.
  TransferId Open(std::uint32_t bucket) {
    const bucket::Row* row = shard.sm->FindRow(bucket);
    Control(buckets::OpenCommand(buckets::kB, shard.sm->level(), {{bucket, row->epoch.value()}}));
    return shard.Opened();
  }
  // Moves a bucket to shard B: from now on it is not here.
  void MoveAway(std::uint32_t bucket) {
    const TransferId id = Open(bucket);
    Control(buckets::StepCommand(v1::TransferStep::SENDING, id));
    Control(buckets::StepCommand(v1::TransferStep::SENT, id));
  }

  // ---- CallHost ----
  SteadyTime Now() const override { return now; }
  const bucket::StateMachine& State() const override { return *shard.sm; }
  const store::Store& Store() const override { return shard.store; }
  bool IsLeader() const override { return leader; }
  Status NotLeader() const override {
    return Unavailable(Reason::kNonMaster, "not the leader", {.leader = "s-1", .term = Term(7)});
  }
  Status WritesAllowed() const override { return writes; }
  Duration Staleness() const override { return staleness; }
  void ReadBarrier(Deadline, UniqueFunction<void(Status)> done) override {
    if (!barriers_open) return barriers.push_back(std::move(done));
    done(OkStatus());
  }
  Status ProposeCalls(std::vector<CallTicket>& tickets) override {
    if (!propose.ok()) return propose;
    proposed.push_back(std::move(tickets));
    return OkStatus();
  }
  void Reply(const CallTicket& ticket, const Status& status, std::string result) override {
    if (ticket.sink) return (*ticket.sink)(status, std::move(result));
    EXPECT_TRUE(answers.emplace(ticket.id, Answer{status, std::move(result)}).second)
        << "a second answer to call " << ticket.id;
  }
  bool MayReply(const NodeName&) const override { return replies_fit; }
  void Later(UniqueFunction<void()> task) override { later_.push_back(std::move(task)); }

  buckets::Shard shard;
  SteadyTime now{std::chrono::seconds(1000)};
  bool leader = true;
  Status writes;
  Status propose;
  Duration staleness{};
  bool barriers_open = true;
  bool replies_fit = true;
  std::vector<UniqueFunction<void(Status)>> barriers;
  std::vector<std::vector<CallTicket>> proposed;
  std::map<std::uint64_t, Answer> answers;
  Stats stats;
  Calls calls;

 private:
  std::vector<UniqueFunction<void()>> later_;
  std::uint64_t last_id_ = 0;
};

inline v1::Call GetCall(std::uint64_t value, std::string key, v1::Mode mode = v1::MODE_RW) {
  v1::GetArgs args;
  args.set_space("orders");
  args.set_key(std::move(key));
  v1::Call call;
  call.set_routing_value(value);
  call.set_mode(mode);
  call.set_function("get");
  call.set_args(args.SerializeAsString());
  return call;
}

inline v1::Call ScanCall(std::uint64_t value, const v1::ScanArgs& args) {
  v1::Call call;
  call.set_routing_value(value);
  call.set_function("scan");
  call.set_args(args.SerializeAsString());
  return call;
}

inline std::vector<std::string> KeysOf(const v1::ScanResult& page) {
  std::vector<std::string> out;
  for (const v1::Record& record : page.records()) out.push_back(record.key());
  return out;
}

}  // namespace etalon::storage::testing
