#pragma once

#include <memory>
#include <string>
#include <utility>

#include "etalon/v1/services.grpc.pb.h"
#include "rpc/server_stream.h"

namespace etalon::rpc::testing {

// Storage.Pipe as it is, for tests of streams below the real services.
class PipeService final : public v1::Storage::WithRawCallbackMethod_Pipe<v1::Storage::Service> {
 public:
  explicit PipeService(std::shared_ptr<Endpoint> endpoint, Duration patience = Duration::zero())
      : endpoint_(std::move(endpoint)), patience_(patience) {}

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Pipe(
      grpc::CallbackServerContext* context) override {
    return std::make_shared<ServerStream>(endpoint_, context, NodeName(), Lane::kControl, patience_)
        ->Begin();
  }

 private:
  const std::shared_ptr<Endpoint> endpoint_;
  const Duration patience_;
};

}  // namespace etalon::rpc::testing
