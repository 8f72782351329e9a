// The platform of one machine: storages and routers are processes on loopback.
//
// They go on when the operator ends, and the next operator finds them again. Ports stay with a name
// as long as they are free; where another process has taken one, a new one is chosen and the next
// topology says so.
#pragma once

#include <map>
#include <string>

#include "common/logger.h"
#include "common/random.h"
#include "operator/node/platform.h"
#include "operator/platform/local/records.h"

namespace etalon::controller {

struct LocalOptions {
  std::string data_dir;
  std::string bin_dir;  // of etalon-storage and etalon-router
  std::uint16_t base_port = 7100;
  std::string store = "rocksdb";       // --store of storages
  bool stop_children_on_exit = false;  // they get SIGTERM when this thread ends, whatever ends it
  Duration first_restart = std::chrono::milliseconds(200);
  Duration last_restart = std::chrono::seconds(10);
  Duration stable_after =
      std::chrono::seconds(30);  // of running: then the pause before a restart is short again
  Duration storage_grace =
      std::chrono::seconds(30);  // from SIGTERM to SIGKILL: above the programs' own
  Duration router_grace = std::chrono::seconds(30);
  Duration stop_all_grace =
      std::chrono::seconds(5);  // when all end at once there is nobody to hand over to
};

// Where a process is reached.
struct Endpoint {
  std::string name;
  std::string shard;  // empty: a router
  std::string address;
  std::string zone;
  pid_t pid = 0;

  bool operator==(const Endpoint&) const = default;
};

class LocalPlatform final : public Platform {
 public:
  LocalPlatform(LocalOptions options, Records records, Random random, Logger& log);

  Observed Observe(SteadyTime now) override;
  Status Carry(SteadyTime now, const Action& action) override;

  // Processes are started in the zones that the manifest names.
  void SetZones(std::map<std::string, std::string> zones) { zones_ = std::move(zones); }
  CollectionId collection() const { return records_.collection(); }
  std::vector<Endpoint> Endpoints() const;  // of those that are to run; by name
  // SIGTERM to all, SIGKILL to those that are left after the grace; blocks until all are gone.
  void StopAll();

 private:
  struct Life {  // what is not worth writing down
    SteadyTime started;
    SteadyTime restart_at;
    SteadyTime kill_at = SteadyTime::max();
    std::optional<Backoff> backoff;
    std::string last_words;
    bool seen_up = false;
    bool disk_lost = false;
    bool disk_foreign = false;
  };

  void Look(SteadyTime now);
  void NoteEnd(SteadyTime now, const ProcessRecord& record);
  Status FinishEnding(SteadyTime now, ProcessRecord record);
  Status Start(SteadyTime now, ProcessRecord record);
  Status BeginEnding(SteadyTime now, const std::string& name, Ending ending);
  Result<std::vector<std::string>> Command(const ProcessRecord& record) const;
  Status Delete(SteadyTime now, const DeleteShard& action);
  Status Adopt(SteadyTime now, CollectionId collection);

  const LocalOptions options_;
  Records records_;
  Random random_;
  Logger& log_;
  std::map<std::string, std::string> zones_;
  std::map<std::string, Life> lives_;
};

}  // namespace etalon::controller
