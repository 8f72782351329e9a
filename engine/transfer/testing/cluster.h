// Several shards in one process, each with its real state machine, store, Source and Target, and a
// log that commits what is proposed after a while. Time is virtual, everything is drawn from one
// seed. Leaders change: the machines forget, and proposals that were not applied survive up to some
// point. Messages are lost, doubled and reordered.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/random.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/memory_store.h"
#include "engine/transfer/source.h"
#include "engine/transfer/target.h"
#include "sim/world/disk.h"
#include "sim/world/events.h"

namespace etalon::transfer::testing {

struct ClusterOptions {
  std::uint64_t seed = 1;
  int shards = 3;
  std::uint32_t bucket_count = 6;
  bool complete = true;
  // Shard i begins with these buckets ({1, 0}: none); empty: all on shard 0.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;  // [first, last]
  v1::Settings settings;                                        // shards and version are filled in
  Duration commit_min = std::chrono::microseconds(200);
  Duration commit_max = std::chrono::milliseconds(2);
  SourceOptions source;
  TargetOptions target;
};

class Cluster;

class Shard : public bucket::Observer, public RefCounter {
 public:
  Shard(Cluster& cluster, ShardUid uid, const v1::FormRequest& form);
  ~Shard() override;

  void Start();  // the first leader

  // ---- what a test does ----
  using Done = std::function<void(const Status&)>;
  // Called when the entry is applied, under a later leader too; never, if the entry is lost.
  void Propose(v1::Control control, Done done = {});
  void ProposePut(std::uint32_t bucket, const std::string& key, const std::string& value,
                  std::uint64_t request = 0, Done done = {});
  void ProposeDelete(std::uint32_t bucket, const std::string& key, Done done = {});
  // A new leader; the first `survive` entries of the log that are not applied yet are kept.
  void ChangeLeader(std::size_t survive);
  std::size_t unapplied() const { return log_.size(); }
  OrderId Move(ShardUid target, std::vector<std::uint32_t> buckets);
  void FeedSource(decltype(Input::event) event);
  void FeedTarget(decltype(Input::event) event);
  void Deliver(const v1::TransferMessage& message);

  std::optional<std::string> Get(std::uint32_t bucket, const std::string& key) const;
  std::size_t RecordsInStore() const;
  bool Idle() const;  // no transfer, no order, nothing held

  ShardUid uid() const { return uid_; }
  Term term() const { return term_; }
  const bucket::StateMachine& state() const { return *state_; }
  bucket::StateMachine& mutable_state() { return *state_; }
  Source& source() { return *source_; }
  Target& target() { return *target_; }
  RebaseGate& gate() { return gate_; }
  store::Store& store() { return *store_; }

  std::map<OrderId, Status> finished;  // orders
  std::map<OrderId, TransferId> opened;
  std::map<TransferId, HoldWrites> held;
  std::vector<std::pair<TransferId, ReleaseWrites>> released;
  std::set<std::pair<std::string, std::string>> alerts;  // standing: (code, key)
  std::multiset<std::string> raised;                     // codes, ever
  std::map<std::uint32_t, int> refs;                     // rw, by bucket
  std::set<std::uint32_t> closed;
  std::uint64_t headroom = std::uint64_t{1} << 40;
  std::map<std::string, int> applied_controls;  // names of applied commands that were accepted
  std::map<std::string, int> refused_controls;
  bool silent = false;  // receives and sends nothing
  // The log takes no such proposal of a machine now, and says so at once.
  std::function<bool(const v1::Control&)> full;
  int refused_at_once = 0;

  // ---- RefCounter ----
  void CloseRw(std::uint8_t level, const std::vector<std::uint32_t>& buckets) override;
  bool Drained(std::uint8_t level, const std::vector<std::uint32_t>& buckets) const override;
  void OpenRw(std::uint8_t level, const std::vector<std::uint32_t>& buckets) override;
  // ---- Observer ----
  void OnRow(std::uint32_t, const bucket::Row*) override {}
  void OnRebase(std::uint8_t) override {}
  void OnOpened(const bucket::Outgoing& transfer) override;
  void OnOutgoingChanged(const TransferId&) override {}
  void OnIncomingChanged(const TransferId&) override {}
  void OnDataKey(std::uint32_t bucket, std::string_view store_key) override;
  void OnSplit(const bucket::SplitTask&) override {}
  void OnTopology() override {}
  void OnSettings() override {}

 protected:
  // For machines that stand above these two.
  virtual void AfterApply() {}
  virtual void OnRole(const RoleChanged&) {}
  virtual void OnOrderOpened(const OrderOpened&) {}
  virtual void OnOrderFinished(const OrderFinished&) {}
  void Append(v1::LogEntry entry, Done done);
  bool RefusesAtOnce(const v1::Control& control);
  Cluster& cluster() { return cluster_; }

 private:
  struct Entry {
    LogIndex index;
    Term term;
    std::string data;
    std::string name;  // of the command
    v1::Control control;
    bool of_machine = false;  // whoever proposed it goes with the leader
    std::function<void(const bucket::EntryOutcome&)> done;
  };

  void AppendEntry(v1::LogEntry entry, bool of_machine,
                   std::function<void(const bucket::EntryOutcome&)> done);
  void Commit();
  template <class Machine>
  void Carry(Machine& machine, Output output);
  template <class Machine>
  void StepMachine(Machine& machine, decltype(Input::event) event);
  template <class Machine>
  SteadyTime& WakeOf(Machine& machine);

  Cluster& cluster_;
  ShardUid uid_;
  sim::SimDisk disk_;
  store::MemoryStoreFactory factory_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<bucket::StateMachine> state_;
  RebaseGate gate_;
  std::unique_ptr<Source> source_;
  std::unique_ptr<Target> target_;
  Term term_{1};
  LogIndex last_index_{1};
  std::deque<Entry> log_;
  bool committing_ = false;
  SteadyTime source_wake_ = SteadyTime::max();
  SteadyTime target_wake_ = SteadyTime::max();
  OrderId next_order_ = 1;
};

class Cluster {
 public:
  using MakeShard =
      std::function<std::unique_ptr<Shard>(Cluster&, ShardUid, const v1::FormRequest&)>;
  explicit Cluster(ClusterOptions options, MakeShard make = {});
  ~Cluster();

  static ShardUid Uid(int shard) { return ShardUid(0x100u + static_cast<std::uint64_t>(shard)); }
  Shard& shard(int i) { return *shards_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(shards_.size()); }
  Shard* Find(ShardUid uid);

  SteadyTime now() const { return events_.now(); }
  Random& random() { return random_; }
  const ClusterOptions& options() const { return options_; }
  sim::Events& events() { return events_; }
  void After(Duration delay, Task task);
  void RunFor(Duration duration);
  // False: not within the limit.
  bool RunUntil(const std::function<bool()>& done, Duration limit = std::chrono::seconds(120));
  bool RunUntilIdle(Duration limit = std::chrono::seconds(120));

  // Applies a control command at every shard, by its log.
  void Everywhere(const v1::Control& control);
  void ChangeSettings(const std::function<void(v1::Settings&)>& change);
  void ChangeTopology(const std::function<void(v1::Topology&)>& change);
  const v1::Settings& settings() const { return settings_; }
  const v1::Topology& topology() const { return topology_; }

  void Send(Shard& from, const transfer::Send& send);
  // Messages in a thousand.
  int lost = 0;
  int doubled = 0;
  int late = 0;  // comes again after up to `latest`
  Duration latency_min = std::chrono::microseconds(50);
  Duration latency_max = std::chrono::microseconds(500);
  Duration latest = std::chrono::seconds(15);
  bool confirmed_always = true;
  bool check_owners = true;  // after each apply
  // May change, or swallow (false) a message.
  std::function<bool(Shard& from, transfer::Send& send)> tap;
  // Before and after an entry with this command is applied. Groups are of one entry while it is
  // set.
  std::function<void(Shard& shard, const v1::Control& control, bool before)> probe;

  // A write of a client that finds the owner; the truth is what was acknowledged, in the order of
  // that.
  void RandomWrite(int keys);
  std::map<std::pair<std::uint32_t, std::string>, std::string> truth;  // (bucket of level 0, key)
  std::uint64_t acknowledged = 0;
  // Records r0, r1, ... of a bucket that this shard owns, applied when it returns.
  void Fill(int shard, std::uint32_t bucket, int records, std::size_t size);
  bool Owns(int shard, std::uint32_t bucket);
  // Moves and waits for the end.
  Status MoveAndWait(int from, int to, std::vector<std::uint32_t> buckets);

  // At most one shard writes to each bucket; empty: it is so.
  std::string CheckOwners() const;
  // Everything at rest: each bucket owned once, all data there and nowhere else, no alert. Empty:
  // it is so.
  std::string CheckAtRest();

 private:
  ClusterOptions options_;
  sim::Events events_;
  Random random_;
  v1::Topology topology_;
  v1::Settings settings_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::uint64_t next_value_ = 1;
};

}  // namespace etalon::transfer::testing
