// The streams that a storage serves: Peer.Pipe to other storages, Storage.Pipe and Storage.Call to
// routers.
#pragma once

#include <memory>

#include "common/ids.h"
#include "etalon/v1/services.grpc.pb.h"
#include "rpc/endpoint.h"

namespace etalon::storage {

// The sender names itself and the lane in the stream's metadata; the node sees that name as the
// sender.
class PeerService final : public v1::Peer::WithRawCallbackMethod_Pipe<v1::Peer::Service> {
 public:
  explicit PeerService(std::shared_ptr<rpc::Endpoint> endpoint) : endpoint_(std::move(endpoint)) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipe(
      grpc::CallbackServerContext* context) override;

 private:
  const std::shared_ptr<rpc::Endpoint> endpoint_;
};

// The node sees the stream's or the call's reply address as the sender. Call is a call_frame with
// one call and without a topology version.
class StorageService final : public v1::Storage::WithRawCallbackMethod_Pipe<
                                 v1::Storage::WithCallbackMethod_Call<v1::Storage::Service>> {
 public:
  StorageService(std::shared_ptr<rpc::Endpoint> endpoint, CollectionId collection)
      : endpoint_(std::move(endpoint)), collection_(collection) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipe(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Call(grpc::CallbackServerContext* context, const v1::Call* call,
                                 v1::CallReply* reply) override;

 private:
  const std::shared_ptr<rpc::Endpoint> endpoint_;
  const CollectionId collection_;
};

}  // namespace etalon::storage
