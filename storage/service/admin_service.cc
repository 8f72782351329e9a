#include "storage/service/admin_service.h"

#include <utility>

#include "proto/wire.h"
#include "rpc/unary.h"

namespace etalon::storage {
namespace {

// The part of `message` that has the type of `part`; null when another part, or none, is set.
template <class Part>
const Part* PartOf(const google::protobuf::Message& message) {
  const google::protobuf::OneofDescriptor* oneof =
      message.GetDescriptor()->FindOneofByName("response");
  const google::protobuf::FieldDescriptor* field =
      message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
  if (field == nullptr) return nullptr;
  return dynamic_cast<const Part*>(&message.GetReflection()->GetMessage(message, field));
}

}  // namespace

template <class Response>
grpc::ServerUnaryReactor* AdminService::Serve(grpc::CallbackServerContext* context,
                                              v1::AdminRequest request, Response* response) {
  const std::chrono::milliseconds timeout = rpc::TimeLeft(*context);
  request.set_timeout_millis(timeout.count() > 0 ? static_cast<std::uint32_t>(timeout.count()) : 0);
  v1::NodeMessage message;
  message.set_collection(collection_.value());
  message.mutable_admin_call()->set_id(1);
  *message.mutable_admin_call()->mutable_request() = std::move(request);
  return rpc::UnaryCall::Start(
      endpoint_, context, message, timeout, [response](Result<v1::NodeMessage> reply) {
        ETALON_RETURN_IF_ERROR(reply.status());
        const v1::AdminResponse& answer = reply->admin_reply().response();
        ETALON_RETURN_IF_ERROR(FromProto(answer.status()));
        const auto* part = PartOf<Response>(answer);
        if (part == nullptr) return Internal("the node answered another question than was asked");
        *response = *part;
        return OkStatus();
      });
}

#define ETALON_ADMIN_METHOD(Method, Request, Response, field)                                     \
  grpc::ServerUnaryReactor* AdminService::Method(                                                 \
      grpc::CallbackServerContext* context, const v1::Request* request, v1::Response* response) { \
    v1::AdminRequest call;                                                                        \
    *call.mutable_##field() = *request;                                                           \
    return Serve(context, std::move(call), response);                                             \
  }
ETALON_ADMIN_METHOD(Info, InfoRequest, InfoResponse, info)
ETALON_ADMIN_METHOD(BucketsInfo, BucketsInfoRequest, BucketsInfoResponse, buckets_info)
ETALON_ADMIN_METHOD(Form, FormRequest, Empty, form)
ETALON_ADMIN_METHOD(ChangeMembers, ChangeMembersRequest, Empty, change_members)
ETALON_ADMIN_METHOD(TransferLeader, TransferLeaderRequest, Empty, transfer_leader)
ETALON_ADMIN_METHOD(ApplyTopology, ApplyTopologyRequest, Empty, apply_topology)
ETALON_ADMIN_METHOD(ApplySettings, ApplySettingsRequest, Empty, apply_settings)
ETALON_ADMIN_METHOD(Recover, RecoverRequest, Empty, recover)
ETALON_ADMIN_METHOD(ReleaseQuarantine, ReleaseQuarantineRequest, Empty, release_quarantine)
ETALON_ADMIN_METHOD(Split, SplitRequest, SplitTask, split)
ETALON_ADMIN_METHOD(SplitStatus, SplitStatusRequest, SplitStatusResponse, split_status)
ETALON_ADMIN_METHOD(AbortSplit, AbortSplitRequest, SplitTask, abort_split)
ETALON_ADMIN_METHOD(Retire, RetireRequest, Empty, retire)
ETALON_ADMIN_METHOD(Send, SendRequest, SendResponse, send)
ETALON_ADMIN_METHOD(RebalancerState, RebalancerStateRequest, RebalancerStateResponse,
                    rebalancer_state)
ETALON_ADMIN_METHOD(Checkpoint, CheckpointRequest, Empty, checkpoint)
ETALON_ADMIN_METHOD(Checksum, ChecksumRequest, ChecksumResponse, checksum)
#undef ETALON_ADMIN_METHOD

// One request in the node's eyes; the method decides, whatever the field says.
grpc::ServerUnaryReactor* AdminService::Pin(grpc::CallbackServerContext* context,
                                            const v1::PinRequest* request, v1::Empty* response) {
  v1::AdminRequest call;
  *call.mutable_pin() = *request;
  call.mutable_pin()->set_unpin(false);
  return Serve(context, std::move(call), response);
}

grpc::ServerUnaryReactor* AdminService::Unpin(grpc::CallbackServerContext* context,
                                              const v1::PinRequest* request, v1::Empty* response) {
  v1::AdminRequest call;
  *call.mutable_pin() = *request;
  call.mutable_pin()->set_unpin(true);
  return Serve(context, std::move(call), response);
}

}  // namespace etalon::storage
