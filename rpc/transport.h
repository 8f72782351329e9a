#pragma once

#include <map>
#include <memory>
#include <string>

#include "common/random.h"
#include "env/clock.h"
#include "env/transport.h"
#include "rpc/endpoint.h"
#include "rpc/stream_pool.h"

namespace etalon::rpc {

// Transport of one process. A message to a named node goes over a stream of its own for that node
// and lane, opened by the first Send; a message to a reply address goes back over the stream or
// call it belongs to.
//
// A stream that ends drops what is queued on it; the next Send opens another one, after the end was
// told to Endpoint's watcher and after a jittered backoff. Until then Send says kUnknown. Each lane
// has its own connection, so that bulk data never stands before a heartbeat. A message to this node
// itself comes back through the executor.
//
// Threads: Send and SetAddress on the core executor; Stop on any other thread.
class GrpcTransport final : public Transport {
 public:
  struct Options {
    NodeName self;
    // What named nodes are asked: "/etalon.v1.Peer/Pipe" by storages, "/etalon.v1.Storage/Pipe" by
    // routers.
    std::string method;
  };
  static constexpr char kPeerPipe[] = "/etalon.v1.Peer/Pipe";
  static constexpr char kStoragePipe[] = "/etalon.v1.Storage/Pipe";

  GrpcTransport(std::shared_ptr<Endpoint> endpoint, const Clock& clock, Random random,
                Options options);

  SendResult Send(const NodeName& to, Lane lane, std::string bytes) override;
  // Another address ends the streams to the old one; an empty one forgets the node.
  void SetAddress(const NodeName& node, std::string_view address) override;

  // Cancels all outgoing streams and waits for their end; false when `limit` passed first. Later
  // Sends say kUnknown.
  bool Stop(Duration limit) { return pool_->Stop(limit); }

 private:
  struct LanePath {
    std::shared_ptr<grpc::Channel> channel;
    Link link;
    std::shared_ptr<bool> end_told;  // of the last stream; null: there was none
  };
  struct Peer {
    std::string address;
    std::map<Lane, LanePath> paths;
  };

  SendResult SendToSelf(Lane lane, std::string bytes);
  // Null while the end of the stream before has not been told.
  std::shared_ptr<OutgoingStream> Open(const NodeName& to, Lane lane, LanePath& path);

  const std::shared_ptr<Endpoint> endpoint_;
  const Clock& clock_;
  Random random_;
  const Options options_;
  std::map<NodeName, Peer> peers_;
  const std::shared_ptr<std::size_t> to_self_;  // bytes on their way through the executor
  const std::shared_ptr<StreamPool> pool_;
};

}  // namespace etalon::rpc
