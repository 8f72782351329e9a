#include "rpc/client/storage_client.h"

#include "etalon/v1/services.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/client/unary_client.h"

namespace etalon::rpc {

using Stub = v1::Admin::Stub;

struct StorageClient::Impl {
  Stub stub;
};

StorageClient::StorageClient(const std::string& address)
    : impl_(new Impl{.stub = Stub(MakeChannel(address))}) {}
StorageClient::~StorageClient() = default;

Result<v1::InfoResponse> StorageClient::Info(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Info, v1::InfoRequest(), timeout);
}
Result<v1::BucketsInfoResponse> StorageClient::BucketsInfo(const v1::BucketsInfoRequest& request,
                                                           Duration timeout) {
  return CallUnary(impl_->stub, &Stub::BucketsInfo, request, timeout);
}
Status StorageClient::Form(const v1::FormRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Form, request, timeout).status();
}
Status StorageClient::ChangeMembers(const v1::ChangeMembersRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::ChangeMembers, request, timeout).status();
}
Status StorageClient::TransferLeader(const v1::TransferLeaderRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::TransferLeader, request, timeout).status();
}
Status StorageClient::ApplyTopology(const v1::ApplyTopologyRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::ApplyTopology, request, timeout).status();
}
Status StorageClient::ApplySettings(const v1::ApplySettingsRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::ApplySettings, request, timeout).status();
}
Status StorageClient::Recover(const v1::RecoverRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Recover, request, timeout).status();
}
Status StorageClient::ReleaseQuarantine(const v1::ReleaseQuarantineRequest& request,
                                        Duration timeout) {
  return CallUnary(impl_->stub, &Stub::ReleaseQuarantine, request, timeout).status();
}
Result<v1::SplitTask> StorageClient::Split(const v1::SplitRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Split, request, timeout);
}
Result<v1::SplitStatusResponse> StorageClient::SplitStatus(const v1::SplitStatusRequest& request,
                                                           Duration timeout) {
  return CallUnary(impl_->stub, &Stub::SplitStatus, request, timeout);
}
Result<v1::SplitTask> StorageClient::AbortSplit(const v1::AbortSplitRequest& request,
                                                Duration timeout) {
  return CallUnary(impl_->stub, &Stub::AbortSplit, request, timeout);
}
Status StorageClient::Retire(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Retire, v1::RetireRequest(), timeout).status();
}
Status StorageClient::Pin(const v1::PinRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Pin, request, timeout).status();
}
Status StorageClient::Unpin(const v1::PinRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Unpin, request, timeout).status();
}
Result<v1::SendResponse> StorageClient::Send(const v1::SendRequest& request, Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Send, request, timeout);
}
Result<v1::RebalancerStateResponse> StorageClient::RebalancerState(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::RebalancerState, v1::RebalancerStateRequest(), timeout);
}
Status StorageClient::Checkpoint(Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Checkpoint, v1::CheckpointRequest(), timeout).status();
}
Result<v1::ChecksumResponse> StorageClient::Checksum(const v1::ChecksumRequest& request,
                                                     Duration timeout) {
  return CallUnary(impl_->stub, &Stub::Checksum, request, timeout);
}

}  // namespace etalon::rpc
