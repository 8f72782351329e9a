#include "engine/transfer/testing/cluster.h"

#include <algorithm>

#include "common/check.h"
#include "etalon/v1/call.pb.h"
#include "placement/modulus.h"

namespace etalon::transfer::testing {
namespace {

std::string NameOfCommand(const v1::Control& control) {
  switch (control.command_case()) {
    case v1::Control::kOpen:
      return "OPEN";
    case v1::Control::kReceiving:
      return "RECEIVING";
    case v1::Control::kChunk:
      return control.chunk().last() ? "PREPARED" : "CHUNK";
    case v1::Control::kStep:
      return v1::TransferStep::Kind_Name(control.step().kind());
    default:
      return std::to_string(static_cast<int>(control.command_case()));
  }
}

}  // namespace

Shard::Shard(Cluster& cluster, ShardUid uid, const v1::FormRequest& form)
    : cluster_(cluster),
      uid_(uid),
      disk_(cluster.events(), static_cast<sim::Events::Owner>(uid.value()),
            cluster.random().Fork()),
      factory_(disk_) {
  auto fresh = factory_.Open("store", store::OpenMode::kFresh);
  ETALON_CHECK(fresh.ok(), fresh.status().ToString());
  store_ = std::move(*fresh);
  auto batch = bucket::StateMachine::FormState(form);
  ETALON_CHECK(batch.ok(), batch.status().ToString());
  const Status written = store_->Write(std::move(*batch));
  ETALON_CHECK(written.ok(), written.ToString());
  auto state = bucket::StateMachine::Load(*store_, *this);
  ETALON_CHECK(state.ok(), state.status().ToString());
  state_ = std::move(*state);
  source_ = std::make_unique<Source>(*state_, *store_, *this, gate_, cluster.random().Fork(),
                                     cluster.options().source);
  target_ = std::make_unique<Target>(
      *state_, [this] { return headroom; }, gate_, cluster.random().Fork(),
      cluster.options().target);
}

Shard::~Shard() = default;

void Shard::Start() { ChangeLeader(0); }

void Shard::ChangeLeader(std::size_t survive) {
  log_.resize(std::min(survive, log_.size()));
  for (Entry& entry : log_) {
    if (entry.of_machine) entry.done = {};
  }
  last_index_ = log_.empty() ? state_->applied_index() : log_.back().index;
  FeedSource(RoleChanged{false, term_});
  FeedTarget(RoleChanged{false, term_});
  OnRole({false, term_});
  ETALON_CHECK(held.empty(), "a deposed leader holds no writes");
  ETALON_CHECK(closed.empty(), "a deposed leader keeps no references closed");
  alerts.clear();
  term_ = term_.Next();
  FeedSource(RoleChanged{true, term_});
  FeedTarget(RoleChanged{true, term_});
  OnRole({true, term_});
  AppendEntry(v1::LogEntry(), true, {});
}

void Shard::AppendEntry(v1::LogEntry entry, bool of_machine,
                        std::function<void(const bucket::EntryOutcome&)> done) {
  entry.set_version(bucket::kStateVersion);
  entry.set_log_time_millis(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(cluster_.now().time_since_epoch())
          .count()));
  last_index_ = last_index_.Next();
  std::string name = entry.has_control() ? NameOfCommand(entry.control()) : "";
  log_.push_back(Entry{last_index_, term_, entry.SerializeAsString(), std::move(name),
                       entry.control(), of_machine, std::move(done)});
  if (committing_) return;
  committing_ = true;
  cluster_.After(
      cluster_.random().Between(cluster_.options().commit_min, cluster_.options().commit_max),
      [this] { Commit(); });
}

void Shard::Commit() {
  committing_ = false;
  if (log_.empty()) return;
  if (cluster_.probe && !log_.front().name.empty()) {
    const LogIndex index = log_.front().index;
    const Term term = log_.front().term;
    cluster_.probe(*this, v1::Control(log_.front().control), true);
    if (log_.empty() || log_.front().index != index || log_.front().term != term) return Commit();
  }
  std::vector<Entry> group;
  const std::size_t size = cluster_.probe ? 1 : 1 + cluster_.random().Below(log_.size());
  for (std::size_t i = 0; i < size; ++i) {
    group.push_back(std::move(log_.front()));
    log_.pop_front();
  }
  std::vector<consensus::Entry> entries;
  for (const Entry& e : group) {
    entries.push_back({e.index, e.term, consensus::EntryKind::kCommands, e.data});
  }
  const auto outcomes = state_->Apply(entries, {});
  ETALON_CHECK(outcomes.ok(), outcomes.status().ToString());
  const std::string owners = cluster_.CheckOwners();
  ETALON_CHECK(owners.empty() || !cluster_.check_owners, owners);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].name.empty() || !(*outcomes)[i].control) continue;
    ++((*outcomes)[i].control->ok() ? applied_controls : refused_controls)[group[i].name];
    const Term before = term_;
    if (cluster_.probe) cluster_.probe(*this, group[i].control, false);
    if (term_ != before && group[i].of_machine) group[i].done = {};
  }
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].done) group[i].done((*outcomes)[i]);
  }
  FeedSource(Applied{});
  FeedTarget(Applied{});
  AfterApply();
  if (!log_.empty() && !committing_) {
    committing_ = true;
    cluster_.After(
        cluster_.random().Between(cluster_.options().commit_min, cluster_.options().commit_max),
        [this] { Commit(); });
  }
}

void Shard::Append(v1::LogEntry entry, Done done) {
  if (!done) return AppendEntry(std::move(entry), false, {});
  AppendEntry(std::move(entry), false,
              [done = std::move(done)](const bucket::EntryOutcome& outcome) {
                done(outcome.control ? *outcome.control : outcome.calls.front().status);
              });
}

bool Shard::RefusesAtOnce(const v1::Control& control) {
  if (!full || !full(control)) return false;
  ++refused_at_once;
  return true;
}

void Shard::Propose(v1::Control control, Done done) {
  v1::LogEntry entry;
  *entry.mutable_control() = std::move(control);
  Append(std::move(entry), std::move(done));
}

void Shard::ProposePut(std::uint32_t bucket, const std::string& key, const std::string& value,
                       std::uint64_t request, Done done) {
  v1::PutArgs args;
  args.set_space("data");
  args.set_key(key);
  args.set_value(value);
  v1::Call call;
  call.set_routing_value(bucket);
  call.set_function("put");
  call.set_args(args.SerializeAsString());
  if (request != 0) {
    call.mutable_request()->set_client(7);
    call.mutable_request()->set_sequence(request);
    call.mutable_request()->set_ttl_millis(600'000);
  }
  v1::LogEntry entry;
  entry.add_calls(call.SerializeAsString());
  Append(std::move(entry), std::move(done));
}

void Shard::ProposeDelete(std::uint32_t bucket, const std::string& key, Done done) {
  v1::DeleteArgs args;
  args.set_space("data");
  args.set_key(key);
  v1::Call call;
  call.set_routing_value(bucket);
  call.set_function("delete");
  call.set_args(args.SerializeAsString());
  v1::LogEntry entry;
  entry.add_calls(call.SerializeAsString());
  Append(std::move(entry), std::move(done));
}

OrderId Shard::Move(ShardUid target, std::vector<std::uint32_t> buckets) {
  StartTransfer order;
  order.order = next_order_++;
  order.target = target;
  order.level = state_->level();
  order.buckets = std::move(buckets);
  FeedSource(order);
  return order.order;
}

template <>
SteadyTime& Shard::WakeOf(Source&) {
  return source_wake_;
}
template <>
SteadyTime& Shard::WakeOf(Target&) {
  return target_wake_;
}

template <class Machine>
void Shard::StepMachine(Machine& machine, decltype(Input::event) event) {
  const bool confirmed = cluster_.confirmed_always || cluster_.random().Chance(4, 5);
  const SteadyTime before = cluster_.now();
  Carry(machine, machine.Step(before, Input{confirmed, std::move(event)}));
}

void Shard::FeedSource(decltype(Input::event) event) { StepMachine(*source_, std::move(event)); }
void Shard::FeedTarget(decltype(Input::event) event) { StepMachine(*target_, std::move(event)); }

template <class Machine>
void Shard::Carry(Machine& machine, Output output) {
  for (Action& action : output.actions) {
    if (auto* propose = std::get_if<transfer::Propose>(&action)) {
      if (RefusesAtOnce(propose->control)) {
        cluster_.After(Duration::zero(), [this, &machine, token = propose->token, now = term_] {
          if (term_ != now) return;
          StepMachine(machine, Proposed{token, false, ResourceExhausted("full"), {}, {}});
        });
        continue;
      }
      v1::LogEntry entry;
      *entry.mutable_control() = std::move(propose->control);
      const Token token = propose->token;
      AppendEntry(
          std::move(entry), true, [this, &machine, token](const bucket::EntryOutcome& outcome) {
            StepMachine(machine,
                        Proposed{token, true, *outcome.control, outcome.index, outcome.term});
          });
    } else if (auto* send = std::get_if<transfer::Send>(&action)) {
      cluster_.Send(*this, *send);
    } else if (auto* hold = std::get_if<HoldWrites>(&action)) {
      ETALON_CHECK(held.emplace(hold->id, *hold).second, "held twice");
    } else if (auto* release = std::get_if<ReleaseWrites>(&action)) {
      ETALON_CHECK(held.erase(release->id) == 1, "released what was not held");
      released.emplace_back(release->id, *release);
    } else if (auto* open = std::get_if<OrderOpened>(&action)) {
      opened[open->order] = open->id;
      OnOrderOpened(*open);
    } else if (auto* finish = std::get_if<OrderFinished>(&action)) {
      ETALON_CHECK(finished.emplace(finish->order, finish->status).second, "finished twice");
      OnOrderFinished(*finish);
    } else if (auto* alert = std::get_if<Alert>(&action)) {
      const std::pair<std::string, std::string> key{alert->code, alert->key};
      if (alert->raised) {
        if (alerts.insert(key).second) raised.insert(std::string(alert->code));
      } else {
        ETALON_CHECK(alerts.erase(key) == 1, "cleared an alert that did not stand");
      }
    }
  }
  SteadyTime& wake = WakeOf(machine);
  wake = output.wake_at;
  if (output.want_confirmation) {
    cluster_.After(std::chrono::milliseconds(1), [this, &machine] {
      Carry(machine, machine.Step(cluster_.now(), Input{true, Wake{}}));
    });
  }
  if (wake == SteadyTime::max()) return;
  cluster_.events().Schedule(wake, 0, sim::EventKind::kTimer, [this, &machine, at = wake] {
    if (WakeOf(machine) == at) StepMachine(machine, Wake{});
  });
}

void Shard::Deliver(const v1::TransferMessage& message) {
  if (IsForSource(message, uid_)) FeedSource(Message{message});
  if (IsForTarget(message, uid_)) FeedTarget(Message{message});
}

std::optional<std::string> Shard::Get(std::uint32_t bucket, const std::string& key) const {
  v1::GetArgs args;
  args.set_space("data");
  args.set_key(key);
  const auto result = state_->Get(RoutingValue(bucket), args);
  ETALON_CHECK(result.ok(), result.status().ToString());
  if (!result->found()) return std::nullopt;
  return result->value();
}

std::size_t Shard::RecordsInStore() const {
  const store::KeyRange all = store::DataRange();
  const auto snapshot = store_->NewSnapshot();
  std::size_t records = 0;
  for (auto it = snapshot->NewIterator(all.begin, all.end); it->Valid(); it->Next()) {
    const auto parts = store::ParseDataKey(it->key(), state_->bucket_count());
    ETALON_CHECK(parts.ok(), "a key in the store is damaged");
    if (parts->space != store::kRequestSpace) ++records;
  }
  return records;
}

bool Shard::Idle() const {
  return state_->outgoing().empty() && state_->incoming().empty() && source_->slots_in_use() == 0 &&
         held.empty() && log_.empty();
}

void Shard::CloseRw(std::uint8_t, const std::vector<std::uint32_t>& buckets) {
  for (const std::uint32_t b : buckets) closed.insert(b);
}
bool Shard::Drained(std::uint8_t, const std::vector<std::uint32_t>& buckets) const {
  return std::all_of(buckets.begin(), buckets.end(), [&](std::uint32_t b) {
    const auto it = refs.find(b);
    return it == refs.end() || it->second == 0;
  });
}
void Shard::OpenRw(std::uint8_t, const std::vector<std::uint32_t>& buckets) {
  for (const std::uint32_t b : buckets) closed.erase(b);
}
void Shard::OnOpened(const bucket::Outgoing& transfer) { source_->OnOpened(transfer); }
void Shard::OnDataKey(std::uint32_t bucket, std::string_view store_key) {
  source_->OnDataKey(bucket, store_key);
}

// ---- the cluster --------------------------------------------------------------------------------

Cluster::Cluster(ClusterOptions options, MakeShard make)
    : options_(std::move(options)), random_(options_.seed) {
  topology_.set_version(1);
  topology_.set_collection(9);
  topology_.set_collection_name("test");
  topology_.set_bucket_count(options_.bucket_count);
  topology_.set_complete(options_.complete);
  topology_.mutable_shard_by()->set_field("id");
  v1::Space& space = *topology_.add_spaces();
  space.set_name("data");
  space.set_number(1);
  settings_ = options_.settings;
  settings_.set_version(1);
  if (options_.ranges.empty()) options_.ranges = {{0, options_.bucket_count - 1}};
  for (int i = 0; i < options_.shards; ++i) {
    v1::ShardInfo& shard = *topology_.add_shards();
    shard.set_name("shard-" + std::to_string(i));
    shard.set_uid(Uid(i).value());
    shard.set_state(v1::SHARD_NORMAL);
    v1::ReplicaInfo& replica = *shard.add_replicas();
    replica.set_name(shard.name() + "-0");
    replica.set_address("host:" + std::to_string(i + 1));
    const auto n = static_cast<std::size_t>(i);
    if (n < options_.ranges.size() && options_.ranges[n].first <= options_.ranges[n].second) {
      shard.add_initial()->set_first(options_.ranges[n].first);
      shard.mutable_initial(0)->set_last(options_.ranges[n].second);
    }
    v1::ShardSettings& s = *settings_.add_shards();
    s.set_uid(Uid(i).value());
    s.set_weight(100);
  }
  for (int i = 0; i < options_.shards; ++i) {
    v1::FormRequest form;
    form.set_collection(9);
    form.set_shard(Uid(i).value());
    v1::MemberInfo& member = *form.add_members();
    member.set_member(1);
    member.set_name("shard-" + std::to_string(i) + "-0");
    *form.mutable_topology() = topology_;
    *form.mutable_settings() = settings_;
    for (const v1::BucketRange& range : topology_.shards(i).initial()) *form.add_ranges() = range;
    shards_.push_back(make ? make(*this, Uid(i), form)
                           : std::make_unique<Shard>(*this, Uid(i), form));
  }
  for (const auto& shard : shards_) shard->Start();
  RunFor(std::chrono::milliseconds(20));
}

Cluster::~Cluster() = default;

Shard* Cluster::Find(ShardUid uid) {
  for (const auto& shard : shards_) {
    if (shard->uid() == uid) return shard.get();
  }
  return nullptr;
}

void Cluster::After(Duration delay, Task task) {
  events_.Schedule(events_.now() + delay, 0, sim::EventKind::kWorld, std::move(task));
}

void Cluster::RunFor(Duration duration) {
  const SteadyTime end = events_.now() + duration;
  while (events_.RunOne(end)) {
  }
}

bool Cluster::RunUntil(const std::function<bool()>& done, Duration limit) {
  const SteadyTime end = events_.now() + limit;
  while (!done()) {
    if (!events_.RunOne(end)) return done();
  }
  return true;
}

bool Cluster::RunUntilIdle(Duration limit) {
  return RunUntil(
      [this] {
        return std::all_of(shards_.begin(), shards_.end(), [](const auto& s) { return s->Idle(); });
      },
      limit);
}

void Cluster::Everywhere(const v1::Control& control) {
  for (const auto& shard : shards_) shard->Propose(control);
}

void Cluster::ChangeSettings(const std::function<void(v1::Settings&)>& change) {
  change(settings_);
  settings_.set_version(settings_.version() + 1);
  v1::Control control;
  *control.mutable_settings() = settings_;
  Everywhere(control);
}

void Cluster::ChangeTopology(const std::function<void(v1::Topology&)>& change) {
  change(topology_);
  topology_.set_version(topology_.version() + 1);
  v1::Control control;
  *control.mutable_topology() = topology_;
  Everywhere(control);
}

void Cluster::Send(Shard& from, const transfer::Send& original) {
  transfer::Send send = original;
  ETALON_CHECK(send.to != from.uid(), "a shard sends nothing to itself");
  if (from.silent || (tap && !tap(from, send))) return;
  const auto deliver = [this](ShardUid to, const v1::TransferMessage& message, Duration delay) {
    After(delay, [this, to, message] {
      Shard* shard = Find(to);
      if (shard != nullptr && !shard->silent) shard->Deliver(message);
    });
  };
  if (random_.Chance(static_cast<std::uint64_t>(late), 1000)) {
    deliver(send.to, send.message, random_.Between(Duration(0), latest));
  }
  if (random_.Chance(static_cast<std::uint64_t>(lost), 1000)) return;
  deliver(send.to, send.message, random_.Between(latency_min, latency_max));
  if (random_.Chance(static_cast<std::uint64_t>(doubled), 1000)) {
    deliver(send.to, send.message, random_.Between(latency_min, 20 * latency_max));
  }
}

void Cluster::RandomWrite(int keys) {
  const auto bucket = static_cast<std::uint32_t>(random_.Below(options_.bucket_count));
  const std::string key = "k" + std::to_string(random_.Below(static_cast<std::uint64_t>(keys)));
  for (const auto& shard : shards_) {
    if (!shard->state().CheckWrite(RoutingValue(bucket), Epoch()).ok()) continue;
    if (random_.Chance(1, 4)) {
      shard->ProposeDelete(bucket, key, [this, bucket, key](const Status& status) {
        if (!status.ok()) return;
        truth.erase({bucket, key});
        ++acknowledged;
      });
      return;
    }
    const std::string value = std::to_string(next_value_++) + std::string(random_.Below(200), 'v');
    shard->ProposePut(bucket, key, value, random_.Chance(1, 3) ? next_value_ : 0,
                      [this, bucket, key, value](const Status& status) {
                        if (!status.ok()) return;
                        truth[{bucket, key}] = value;
                        ++acknowledged;
                      });
    return;
  }
}

void Cluster::Fill(int to, std::uint32_t bucket, int records, std::size_t size) {
  int left = records;
  for (int i = 0; i < records; ++i) {
    const std::string key = "r" + std::to_string(i);
    const std::string value = std::to_string(i) + std::string(size, 'x');
    shard(to).ProposePut(bucket, key, value, 0, [this, bucket, key, value, &left](auto& status) {
      ETALON_CHECK(status.ok(), status.ToString());
      truth[{bucket, key}] = value;
      --left;
    });
  }
  ETALON_CHECK(RunUntil([&] { return left == 0; }), "the records are not written");
}

bool Cluster::Owns(int owner, std::uint32_t bucket) {
  const bucket::Row* row = shard(owner).state().FindRow(bucket);
  return row != nullptr && bucket::IsWritable(row->status);
}

Status Cluster::MoveAndWait(int from, int to, std::vector<std::uint32_t> buckets) {
  Shard& source = shard(from);
  const OrderId order = source.Move(Uid(to), std::move(buckets));
  ETALON_CHECK(RunUntil([&] { return source.finished.count(order) != 0; }),
               "the move does not end");
  return source.finished.at(order);
}

std::string Cluster::CheckOwners() const {
  std::uint8_t level = 0;
  for (const auto& shard : shards_) level = std::max(level, shard->state().level());
  std::map<std::uint32_t, int> writers;
  for (const auto& shard : shards_) {
    const bucket::StateMachine& state = shard->state();
    for (const auto& [number, row] : state.rows()) {
      if (!bucket::IsWritable(row.status)) continue;
      for (const std::uint32_t b :
           placement::ExpandBucket(BucketId{state.level(), number}, level, options_.bucket_count)) {
        if (++writers[b] > 1) return "two shards write to bucket " + std::to_string(b);
      }
    }
  }
  return {};
}

std::string Cluster::CheckAtRest() {
  if (std::string bad = CheckOwners(); !bad.empty()) return bad;
  std::size_t stored = 0;
  for (const auto& shard : shards_) {
    for (const auto& [number, row] : shard->state().rows()) {
      if (!bucket::IsWritable(row.status) || row.transfer) {
        return "bucket " + std::to_string(number) + " is in flight at rest";
      }
    }
    if (!shard->alerts.empty()) return "alert at rest: " + shard->alerts.begin()->first;
    for (const std::string_view code : {kAlertLost, kAlertHold, kAlertDoubled}) {
      if (shard->raised.count(std::string(code)) != 0) return "false alarm " + std::string(code);
    }
    if (!shard->closed.empty()) return "references are still closed";
    stored += shard->RecordsInStore();
  }
  for (std::uint32_t bucket = 0; bucket < options_.bucket_count; ++bucket) {
    // A key of a call that names the bucket is in one half of it only; ownership of all halves is
    // judged by count.
    int owners = 0;
    for (const auto& shard : shards_) {
      if (shard->state().CheckWrite(RoutingValue(bucket), Epoch()).ok()) ++owners;
    }
    if (owners != 1) {
      return "bucket " + std::to_string(bucket) + " has " + std::to_string(owners) + " owners";
    }
  }
  for (const auto& [where, value] : truth) {
    for (const auto& shard : shards_) {
      if (!shard->state().CheckWrite(RoutingValue(where.first), Epoch()).ok()) continue;
      const auto found = shard->Get(where.first, where.second);
      if (!found) return "a write of " + where.second + " is lost";
      if (*found != value) return "an older value of " + where.second + " is there";
    }
  }
  if (stored != truth.size()) {
    return "the stores hold " + std::to_string(stored) + " records, " +
           std::to_string(truth.size()) + " were acknowledged";
  }
  return {};
}

}  // namespace etalon::transfer::testing
