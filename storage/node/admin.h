// What the operator, etalonctl and the sidecar ask: observation from applied state, changes through
// the shard's log.
#pragma once

#include "common/unique_function.h"
#include "etalon/v1/admin.pb.h"
#include "storage/node/shard.h"

namespace etalon::storage {

// Requests that need a formed shard. Each is answered once; changes when they are applied, or with
// OUTCOME_UNKNOWN.
class Admin {
 public:
  using Done = UniqueFunction<void(v1::AdminResponse)>;

  Admin(Env& env, Shard& shard, const Identity& identity, Stats& stats, log::SegmentedLog& log,
        SteadyTime started)
      : env_(env),
        shard_(shard),
        identity_(identity),
        stats_(stats),
        log_(log),
        started_(started) {}

  void Handle(const v1::AdminRequest& request, Done done);
  v1::InfoResponse Info() const;

 private:
  void Change(v1::Control control, Done done);
  v1::AdminResponse BucketsInfo(const v1::BucketsInfoRequest& request) const;
  v1::AdminResponse SplitStatus(const v1::SplitStatusRequest& request) const;
  void Split(v1::Control control, const std::string& task, Done done);
  void ApplyTopology(const v1::ApplyTopologyRequest& request, Done done);
  void ApplySettings(const v1::ApplySettingsRequest& request, Done done);
  void TransferLeader(const v1::TransferLeaderRequest& request, Deadline deadline, Done done);

  Env& env_;
  Shard& shard_;
  const Identity& identity_;
  Stats& stats_;
  log::SegmentedLog& log_;
  const SteadyTime started_;
};

v1::AdminResponse AdminFailure(const Status& status);
v1::AdminResponse AdminDone();

}  // namespace etalon::storage
