#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.h"
#include "rpc/server_stream.h"

namespace etalon::router {

// Router.Pipe: each ClientCall of a frame is a client_request to the node, each client_reply a
// ClientReply. While too many calls or bytes of this client are unanswered, or its replies are not
// read, its stream is not read either.
class ClientStream final : public rpc::ServerStream {
 public:
  ClientStream(std::shared_ptr<rpc::Endpoint> endpoint, grpc::CallbackServerContext* context,
               CollectionId collection);

 private:
  struct Pending {
    std::uint64_t id = 0;  // the client's
    std::size_t bytes = 0;
  };

  Status Accept(std::vector<std::string>* messages) override;
  std::optional<std::string> TranslateLocked(std::string bytes) override;
  bool BusyLocked() const override;
  bool QuietLocked() const override { return pending_.empty() && ServerStream::QuietLocked(); }

  const CollectionId collection_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;  // by our number; never walked
  std::size_t pending_bytes_ = 0;
};

}  // namespace etalon::router
