#pragma once

#include <memory>
#include <string>

#include "common/status.h"
#include "common/time.h"
#include "etalon/v1/admin.pb.h"
#include "etalon/v1/log.pb.h"

namespace etalon::rpc {

// One storage, as programs ask it: blocking, each call with a time-out after which it fails with
// DEADLINE_EXCEEDED (a change may still happen then: all are idempotent). Nothing is retried.
// UNAVAILABLE/UNREACHABLE_REPLICASET when nobody answers at the address. Threads: any.
class StorageClient {
 public:
  explicit StorageClient(const std::string& address);
  ~StorageClient();

  Result<v1::InfoResponse> Info(Duration timeout);
  Result<v1::BucketsInfoResponse> BucketsInfo(const v1::BucketsInfoRequest& request,
                                              Duration timeout);
  Status Form(const v1::FormRequest& request, Duration timeout);
  Status ChangeMembers(const v1::ChangeMembersRequest& request, Duration timeout);
  Status TransferLeader(const v1::TransferLeaderRequest& request, Duration timeout);
  Status ApplyTopology(const v1::ApplyTopologyRequest& request, Duration timeout);
  Status ApplySettings(const v1::ApplySettingsRequest& request, Duration timeout);
  Status Recover(const v1::RecoverRequest& request, Duration timeout);
  Status ReleaseQuarantine(const v1::ReleaseQuarantineRequest& request, Duration timeout);
  Result<v1::SplitTask> Split(const v1::SplitRequest& request, Duration timeout);
  Result<v1::SplitStatusResponse> SplitStatus(const v1::SplitStatusRequest& request,
                                              Duration timeout);
  Result<v1::SplitTask> AbortSplit(const v1::AbortSplitRequest& request, Duration timeout);
  Status Retire(Duration timeout);
  Status Pin(const v1::PinRequest& request, Duration timeout);
  Status Unpin(const v1::PinRequest& request, Duration timeout);
  Result<v1::SendResponse> Send(const v1::SendRequest& request, Duration timeout);
  Result<v1::RebalancerStateResponse> RebalancerState(Duration timeout);
  Status Checkpoint(Duration timeout);
  Result<v1::ChecksumResponse> Checksum(const v1::ChecksumRequest& request, Duration timeout);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace etalon::rpc
