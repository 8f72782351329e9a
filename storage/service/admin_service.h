#pragma once

#include <memory>

#include "common/ids.h"
#include "etalon/v1/services.grpc.pb.h"
#include "rpc/endpoint.h"

namespace etalon::storage {

// Every method of Admin is an admin_call to the node and its admin_reply back. The caller's
// deadline (10 s without one) goes along as timeout_millis; at the deadline the caller is answered
// whatever the node does.
class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(std::shared_ptr<rpc::Endpoint> endpoint, CollectionId collection)
      : endpoint_(std::move(endpoint)), collection_(collection) {}

#define ETALON_ADMIN_METHOD(Method, Request, Response)                   \
  grpc::ServerUnaryReactor* Method(grpc::CallbackServerContext* context, \
                                   const v1::Request* request, v1::Response* response) override;
  ETALON_ADMIN_METHOD(Info, InfoRequest, InfoResponse)
  ETALON_ADMIN_METHOD(BucketsInfo, BucketsInfoRequest, BucketsInfoResponse)
  ETALON_ADMIN_METHOD(Form, FormRequest, Empty)
  ETALON_ADMIN_METHOD(ChangeMembers, ChangeMembersRequest, Empty)
  ETALON_ADMIN_METHOD(TransferLeader, TransferLeaderRequest, Empty)
  ETALON_ADMIN_METHOD(ApplyTopology, ApplyTopologyRequest, Empty)
  ETALON_ADMIN_METHOD(ApplySettings, ApplySettingsRequest, Empty)
  ETALON_ADMIN_METHOD(Recover, RecoverRequest, Empty)
  ETALON_ADMIN_METHOD(ReleaseQuarantine, ReleaseQuarantineRequest, Empty)
  ETALON_ADMIN_METHOD(Split, SplitRequest, SplitTask)
  ETALON_ADMIN_METHOD(SplitStatus, SplitStatusRequest, SplitStatusResponse)
  ETALON_ADMIN_METHOD(AbortSplit, AbortSplitRequest, SplitTask)
  ETALON_ADMIN_METHOD(Retire, RetireRequest, Empty)
  ETALON_ADMIN_METHOD(Pin, PinRequest, Empty)
  ETALON_ADMIN_METHOD(Unpin, PinRequest, Empty)
  ETALON_ADMIN_METHOD(Send, SendRequest, SendResponse)
  ETALON_ADMIN_METHOD(RebalancerState, RebalancerStateRequest, RebalancerStateResponse)
  ETALON_ADMIN_METHOD(Checkpoint, CheckpointRequest, Empty)
  ETALON_ADMIN_METHOD(Checksum, ChecksumRequest, ChecksumResponse)
#undef ETALON_ADMIN_METHOD

 private:
  // Answers with the part of the node's AdminResponse that has the type of `response`.
  template <class Response>
  grpc::ServerUnaryReactor* Serve(grpc::CallbackServerContext* context, v1::AdminRequest request,
                                  Response* response);

  const std::shared_ptr<rpc::Endpoint> endpoint_;
  const CollectionId collection_;
};

}  // namespace etalon::storage
