#include "operator/platform/local/local_platform.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "operator/platform/local/ports.h"

namespace etalon::controller {
namespace {

constexpr char kNode[] = "local";
// Exit codes of etalon-storage (rpc/program.h).
constexpr int kExitRefused = 3;   // the data directory is not its own
constexpr int kExitDiskLost = 5;  // the disk is damaged

std::string AddressOf(std::uint16_t port) { return fmt::format("127.0.0.1:{}", port); }

}  // namespace

LocalPlatform::LocalPlatform(LocalOptions options, Records records, Random random, Logger& log)
    : options_(std::move(options)), records_(std::move(records)), random_(random), log_(log) {
  // An operator that ended between the start of a process and the note of its number left one that
  // is found by its flags.
  const std::map<std::string, ProcessRecord> known = records_.processes();
  for (const auto& [name, record] : known) {
    if (record.process || record.port == 0) continue;
    ProcessRecord found = record;
    found.process =
        FindProcess({"--name", name, "--collection", ToHex(records_.collection().value()),
                     "--listen", AddressOf(record.port)});
    if (!found.process) continue;
    log_.Info("process_found", {{"process", name}, {"pid", found.process.pid}});
    if (Status status = records_.PutProcess(found); !status.ok()) {
      log_.Warning("record_failed", {{"process", name}, {"why", status.message()}});
    }
  }
}

// ---- what is seen
// ---------------------------------------------------------------------------------------------------------

Observed LocalPlatform::Observe(SteadyTime now) {
  Look(now);
  Observed seen;
  seen.collection = records_.collection();
  seen.topologies = records_.topologies();
  seen.settings = records_.settings();
  seen.forms = records_.forms();
  seen.doomed = records_.doomed();
  std::map<std::string, StorageSeen> storages;
  std::map<std::string, RouterSeen> routers;
  for (const auto& [name, record] : records_.processes()) {
    const Life& life = lives_[name];
    Process process;
    process.state = IsAlive(record.process) ? ProcessState::kUp : ProcessState::kDown;
    if (record.port != 0) process.address = AddressOf(record.port);
    process.node = kNode;
    if (const auto zone = zones_.find(name); zone != zones_.end()) process.zone = zone->second;
    process.restart_at = life.restart_at;
    process.last_words = life.last_words;
    process.disk_lost = life.disk_lost;
    process.disk_foreign = life.disk_foreign;
    if (record.kind == ProcessKind::kRouter) {
      routers[name].process = std::move(process);
    } else {
      StorageSeen& storage = storages[name];
      storage.uid = record.uid;
      storage.shard = record.shard;
      storage.process = std::move(process);
    }
  }
  seen.storages = std::move(storages);
  seen.routers = std::move(routers);
  return seen;
}

// Notices ends, and brings those that are wanted to their own.
void LocalPlatform::Look(SteadyTime now) {
  const std::map<std::string, ProcessRecord> records = records_.processes();
  for (const auto& [name, record] : records) {
    Life& life = lives_[name];
    if (IsAlive(record.process)) {
      life.seen_up = true;
      if (record.ending == Ending::kNone) continue;
      if (life.kill_at == SteadyTime::max()) {  // begun by an operator before this one
        SendSignal(record.process, SIGTERM);
        life.kill_at = now + (record.kind == ProcessKind::kRouter ? options_.router_grace
                                                                  : options_.storage_grace);
      }
      if (life.kill_at <= now) SendSignal(record.process, SIGKILL);
      continue;
    }
    if (record.process) NoteEnd(now, record);
    if (record.ending == Ending::kNone) continue;
    ProcessRecord ended = records_.processes().at(name);
    if (Status status = FinishEnding(now, ended); !status.ok()) {
      log_.Warning("ending_failed", {{"process", name}, {"why", status.message()}});
    }
  }
}

void LocalPlatform::NoteEnd(SteadyTime now, const ProcessRecord& record) {
  Life& life = lives_[record.name];
  const std::optional<Exit> exit = Reap(record.process);
  const std::string line = LastLine(records_.LogPath(record.name));
  life.last_words = (exit ? exit->words : std::string("it is gone")) +
                    (line.empty() ? "" : ", last said: " + line);
  const int code = record.kind == ProcessKind::kStorage && exit ? exit->code : 0;
  life.disk_lost = code == kExitDiskLost;
  // The code says that the disk was refused; why, only the sentence tells
  // (storage/node/identity.cc).
  life.disk_foreign =
      code == kExitRefused && line.find("data directory belongs to") != std::string::npos;
  if (!life.backoff || now - life.started > options_.stable_after) {
    life.backoff.emplace(options_.first_restart, options_.last_restart);
  }
  life.restart_at = now + life.backoff->Next(random_);
  if (record.ending == Ending::kNone)
    log_.Warning("process_ended", {{"process", record.name}, {"how", life.last_words}});
  ProcessRecord ended = record;
  ended.process = {};
  if (Status status = records_.PutProcess(ended); !status.ok()) {
    log_.Warning("record_failed", {{"process", record.name}, {"why", status.message()}});
  }
}

Status LocalPlatform::FinishEnding(SteadyTime now, ProcessRecord record) {
  lives_[record.name].kill_at = SteadyTime::max();
  switch (record.ending) {
    case Ending::kNone:
      return OkStatus();
    case Ending::kRestart:
      record.ending = Ending::kNone;
      return Start(now, std::move(record));
    case Ending::kDiscard:
      ETALON_RETURN_IF_ERROR(records_.PutDiskAside(record));
      break;
    case Ending::kRemove:
      break;
  }
  lives_.erase(record.name);
  return records_.RemoveProcess(record.name);
}

// ---- what is done
// ---------------------------------------------------------------------------------------------------------

Status LocalPlatform::Carry(SteadyTime now, const Action& action) {
  const auto start = [&](ProcessRecord record) -> Status {
    if (const auto it = records_.processes().find(record.name); it != records_.processes().end()) {
      if (IsAlive(it->second.process) || it->second.ending != Ending::kNone) return OkStatus();
      record = it->second;
    }
    return Start(now, std::move(record));
  };
  if (const auto* a = std::get_if<StartStorage>(&action)) {
    ProcessRecord record;
    record.name = a->name;
    record.shard = a->shard;
    record.uid = a->uid;
    return start(std::move(record));
  }
  if (const auto* a = std::get_if<StartRouter>(&action)) {
    ProcessRecord record;
    record.name = a->name;
    record.kind = ProcessKind::kRouter;
    return start(std::move(record));
  }
  if (const auto* a = std::get_if<StopStorage>(&action)) {
    return BeginEnding(now, a->name, a->discard ? Ending::kDiscard : Ending::kRemove);
  }
  if (const auto* a = std::get_if<StopRouter>(&action))
    return BeginEnding(now, a->name, Ending::kRemove);
  if (const auto* a = std::get_if<RestartRouter>(&action))
    return BeginEnding(now, a->name, Ending::kRestart);
  if (const auto* a = std::get_if<ReplaceDisk>(&action)) {
    const auto it = records_.processes().find(a->name);
    if (it == records_.processes().end()) return OkStatus();
    if (IsAlive(it->second.process))
      return FailedPrecondition(Reason::kNone, a->name + " runs: its disk is not replaced");
    ETALON_RETURN_IF_ERROR(records_.PutDiskAside(it->second));
    lives_[a->name] = {};
    return OkStatus();
  }
  if (const auto* a = std::get_if<CreateTopology>(&action))
    return records_.AddTopology(a->topology);
  if (const auto* a = std::get_if<CreateSettings>(&action))
    return records_.AddSettings(a->settings);
  if (const auto* a = std::get_if<CreateForm>(&action)) return records_.AddForm(a->form);
  if (const auto* a = std::get_if<DeleteShard>(&action)) return Delete(now, *a);
  if (const auto* a = std::get_if<controller::Adopt>(&action)) return Adopt(now, a->collection);
  return Status(Code::kUnimplemented, Reason::kNone, "the local platform does not " + Key(action));
}

Status LocalPlatform::Start(SteadyTime now, ProcessRecord record) {
  std::set<std::uint16_t> taken;
  for (const auto& [name, other] : records_.processes()) {
    if (name != record.name) taken.insert(other.port);
  }
  if (record.port == 0 || taken.contains(record.port) || !IsPortFree(record.port)) {
    ETALON_ASSIGN_OR_RETURN(record.port, ChoosePort(options_.base_port, taken));
  }
  ETALON_ASSIGN_OR_RETURN(SpawnOptions spawn, [&]() -> Result<SpawnOptions> {
    SpawnOptions out;
    ETALON_ASSIGN_OR_RETURN(out.command, Command(record));
    out.log_path = records_.LogPath(record.name);
    out.die_with_parent = options_.stop_children_on_exit;
    return out;
  }());
  // Known before it runs: a process that nobody knows of would be started a second time.
  record.process = {};
  record.ending = Ending::kNone;
  ETALON_RETURN_IF_ERROR(records_.PutProcess(record));
  Life& life = lives_[record.name];
  life.started = now;
  life.kill_at = SteadyTime::max();
  life.disk_lost = false;
  life.disk_foreign = false;
  ETALON_ASSIGN_OR_RETURN(record.process, Spawn(spawn));
  log_.Info(
      "process_started",
      {{"process", record.name}, {"pid", record.process.pid}, {"address", AddressOf(record.port)}});
  return records_.PutProcess(record);
}

Result<std::vector<std::string>> LocalPlatform::Command(const ProcessRecord& record) const {
  std::vector<std::string> out;
  const auto add = [&](const std::string& flag, const std::string& value) {
    out.push_back(flag);
    out.push_back(value);
  };
  const std::string newest = records_.topologies().empty()
                                 ? std::string()
                                 : records_.TopologyPath(records_.topologies().rbegin()->first);
  if (record.kind == ProcessKind::kRouter) {
    out.push_back(options_.bin_dir + "/etalon-router");
    if (const auto zone = zones_.find(record.name); zone != zones_.end())
      add("--zone", zone->second);
  } else {
    out.push_back(options_.bin_dir + "/etalon-storage");
    add("--shard-uid", ToHex(record.uid.value()));
    add("--data", records_.DiskPath(record.name));
    add("--store", options_.store);
  }
  add("--name", record.name);
  add("--collection", ToHex(records_.collection().value()));
  add("--listen", AddressOf(record.port));
  if (!newest.empty()) add("--topology", newest);
  return out;
}

Status LocalPlatform::BeginEnding(SteadyTime now, const std::string& name, Ending ending) {
  const auto it = records_.processes().find(name);
  if (it == records_.processes().end()) {
    return ending == Ending::kRestart ? NotFound("there is no process " + name) : OkStatus();
  }
  ProcessRecord record = it->second;
  if (record.ending == ending) return OkStatus();
  record.ending = ending;
  ETALON_RETURN_IF_ERROR(records_.PutProcess(record));
  if (!IsAlive(record.process)) return FinishEnding(now, record);
  SendSignal(record.process, SIGTERM);
  lives_[name].kill_at =
      now + (record.kind == ProcessKind::kRouter ? options_.router_grace : options_.storage_grace);
  return OkStatus();
}

Status LocalPlatform::Delete(SteadyTime now, const DeleteShard& action) {
  ETALON_RETURN_IF_ERROR(records_.AddDoomed(action.shard));
  const std::map<std::string, ProcessRecord> records = records_.processes();
  for (const auto& [name, record] : records) {
    if (record.kind == ProcessKind::kStorage && record.uid == action.shard) {
      ETALON_RETURN_IF_ERROR(BeginEnding(now, name, Ending::kDiscard));
    }
  }
  return OkStatus();
}

Status LocalPlatform::Adopt(SteadyTime now, CollectionId collection) {
  if (!records_.topologies().empty()) {
    return FailedPrecondition(Reason::kNonEmpty,
                              "there is a collection here already: nothing is adopted");
  }
  ETALON_RETURN_IF_ERROR(records_.SetCollection(collection));
  // They run for another collection; with their disks they are started again for this one.
  const std::map<std::string, ProcessRecord> records = records_.processes();
  for (const auto& [name, record] : records)
    ETALON_RETURN_IF_ERROR(BeginEnding(now, name, Ending::kRemove));
  return OkStatus();
}

std::vector<Endpoint> LocalPlatform::Endpoints() const {
  std::vector<Endpoint> out;
  for (const auto& [name, record] : records_.processes()) {
    if (record.port == 0 || record.ending == Ending::kRemove || record.ending == Ending::kDiscard)
      continue;
    const auto zone = zones_.find(name);
    out.push_back({name, record.shard, AddressOf(record.port),
                   zone == zones_.end() ? "" : zone->second, record.process.pid});
  }
  return out;
}

void LocalPlatform::StopAll() {
  const auto any = [this] {
    bool alive = false;
    for (const auto& [name, record] : records_.processes()) {
      (void)Reap(record.process);
      alive = alive || IsAlive(record.process);
    }
    return alive;
  };
  for (const auto& [name, record] : records_.processes()) SendSignal(record.process, SIGTERM);
  constexpr Duration kPoll = std::chrono::milliseconds(20);
  for (Duration waited{}; waited < options_.stop_all_grace && any(); waited += kPoll) {
    const timespec pause{0, kPoll.count()};
    ::nanosleep(&pause, nullptr);
  }
  for (const auto& [name, record] : records_.processes()) SendSignal(record.process, SIGKILL);
}

}  // namespace etalon::controller
