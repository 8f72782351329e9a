// What the local platform keeps under the data directory:
//
//   collection.json                   the collection's ID, made once
//   topology-<n>.json settings-<n>.json form-<uid>.json    made once each, never changed
//   doomed-<uid>                      that shard was proven to be empty: its deletion has begun
//   processes/<name>.json             one for each process that should run, or is being stopped
//   storage/<name>/                   the disk of a storage
//   retired/<name>-<uid>-<k>/         disks that were put aside; nothing here is ever deleted
//   logs/<name>.log
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/ids.h"
#include "common/status.h"
#include "operator/plan/observed.h"
#include "operator/platform/local/child_process.h"

namespace etalon::controller {

enum class ProcessKind : std::uint8_t { kStorage, kRouter };

enum class Ending : std::uint8_t {
  kNone,     // it is to run
  kRestart,  // stopped, then started again
  kRemove,   // stopped, then forgotten; its disk stays where it is
  kDiscard,  // stopped, its disk put aside, then forgotten
};

struct ProcessRecord {
  std::string name;
  ProcessKind kind = ProcessKind::kStorage;
  std::string shard;  // storages
  ShardUid uid;       // storages
  std::uint16_t port = 0;
  ProcessId process;  // 0: not running
  Ending ending = Ending::kNone;

  bool operator==(const ProcessRecord&) const = default;
};

// The records, read once and kept in step with the files. Writing is durable when it returns.
class Records {
 public:
  // Makes a collection ID from `seed` when there is none yet.
  static Result<Records> Open(const std::string& dir, std::uint64_t seed);

  CollectionId collection() const { return collection_; }
  const Topologies& topologies() const { return topologies_; }
  const SettingsByVersion& settings() const { return settings_; }
  const Forms& forms() const { return forms_; }
  const std::set<ShardUid>& doomed() const { return doomed_; }
  const std::map<std::string, ProcessRecord>& processes() const { return processes_; }

  Status SetCollection(CollectionId collection);
  Status AddTopology(const v1::Topology& topology);
  Status AddSettings(const v1::Settings& settings);
  Status AddForm(const v1::FormRequest& form);
  Status AddDoomed(ShardUid shard);
  Status PutProcess(const ProcessRecord& record);
  Status RemoveProcess(const std::string& name);
  // Puts the disk of a storage aside; success when there is none.
  Status PutDiskAside(const ProcessRecord& record);

  std::string DiskPath(const std::string& process) const { return dir_ + "/storage/" + process; }
  std::string LogPath(const std::string& process) const {
    return dir_ + "/logs/" + process + ".log";
  }
  std::string TopologyPath(std::uint64_t version) const;

 private:
  explicit Records(std::string dir) : dir_(std::move(dir)) {}
  Status Load(std::uint64_t seed);

  std::string dir_;
  CollectionId collection_;
  Topologies topologies_;
  SettingsByVersion settings_;
  Forms forms_;
  std::set<ShardUid> doomed_;
  std::map<std::string, ProcessRecord> processes_;
};

}  // namespace etalon::controller
