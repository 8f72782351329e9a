// What the planner sees. Unknown is not empty: what could not be observed is a value of its own
// everywhere, and no action that takes something away rests on an unknown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/router.pb.h"
#include "etalon/v1/topology.pb.h"
#include "operator/plan/conditions.h"

namespace etalon::controller {

// A value that was observed in this round, or "unknown" and why.
template <class T>
class Seen {
 public:
  Seen() = default;                            // unknown
  Seen(T value) : value_(std::move(value)) {}  // NOLINT: implicit
  static Seen Unknown(std::string why) {
    Seen out;
    out.why_ = std::move(why);
    return out;
  }

  bool known() const { return value_.has_value(); }
  const T& value() const { return *value_; }
  const T* get() const { return value_ ? &*value_ : nullptr; }
  T* get() { return value_ ? &*value_ : nullptr; }
  const std::string& why() const { return why_; }

 private:
  std::optional<T> value_;
  std::string why_ = "not asked yet";
};

enum class ProcessState : std::uint8_t {
  kUnknown,
  kAbsent,  // nothing was started, or it was stopped on purpose
  kUp,
  kDown,  // it ended by itself and may be started again at restart_at
};

struct Process {
  ProcessState state = ProcessState::kUnknown;
  std::string address;  // host:port; empty: none is assigned yet
  std::string node;     // machine
  std::string zone;
  SteadyTime restart_at;      // kDown
  std::string last_words;     // kDown: why it ended
  bool disk_lost = false;     // kDown: it said that its disk counts as lost
  bool disk_foreign = false;  // kDown: it said that its disk belongs to somebody else
};

struct StorageSeen {
  ShardUid uid;       // that it was started for
  std::string shard;  // name
  Process process;
  Seen<v1::InfoResponse> info;
};

struct RouterSeen {
  Process process;
  Seen<v1::RouterInfoResponse> info;
  SteadyTime silent_since = SteadyTime::max();  // up, and has not answered since; max: it answers
};

// Of an action that was tried and did not succeed, until it does or is no longer planned.
struct Failure {
  std::string sentence;
  SteadyTime since;
  std::uint32_t times = 0;
};

using Topologies = std::map<std::uint64_t, v1::Topology>;  // by version, as stored: immutable
using SettingsByVersion = std::map<std::uint64_t, v1::Settings>;
using Forms =
    std::map<ShardUid, v1::FormRequest>;  // what each shard is, or was, formed with: immutable

struct Observed {
  CollectionId collection;
  Seen<Topologies> topologies;
  Seen<SettingsByVersion> settings;
  Seen<Forms> forms;
  Seen<std::set<ShardUid>>
      doomed;  // shards whose deletion has begun: the proof that they retired is on record
  // Every process and every data directory that the platform knows, by process name. Unknown: it
  // could not list them.
  Seen<std::map<std::string, StorageSeen>> storages;
  Seen<std::map<std::string, RouterSeen>> routers;
  Seen<v1::RebalancerStateResponse> rebalancer;  // from the leader of the shard that runs it

  // What earlier rounds saw, kept by whoever calls the planner. All may be empty after a restart.
  std::map<ShardUid, SteadyTime> led;       // when a leader with a lease last answered
  std::map<std::string, Failure> failures;  // by Key(action)
  Report last;                              // of the last round
};

}  // namespace etalon::controller
