// What is on its way to storages: all calls that were queued for one peer within a turn of the loop
// leave as one frame (more, when they would be too large for one), and the bytes that a peer has
// not answered yet are bounded.
//
// Usage: HasRoom before a call is accepted; Queue for each try; Release when the try has ended,
// answered or not; Flush once at the end of the turn.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "env/transport.h"

namespace etalon::router {

class Outbox {
 public:
  struct Options {
    std::uint64_t peer_bytes = 16u << 20;  // not answered yet, for one peer
    std::uint64_t frame_bytes = 1u << 20;  // of one frame; a larger call is a frame of its own
  };

  explicit Outbox(Options options) : options_(options) {}

  bool HasRoom(const NodeName& peer, std::uint64_t bytes) const;
  // `call` is a serialized v1::Call with that ID.
  void Queue(const NodeName& peer, std::uint64_t id, std::string call);
  void Release(const NodeName& peer, std::uint64_t bytes);
  bool empty() const { return queued_.empty(); }

  // Sends everything that is queued, peers in the order of their names. `send` gets a serialized
  // v1::CallFrame. Returns, with the transport's word, the IDs of calls that did not leave; their
  // bytes are still to be released.
  struct NotSent {
    NodeName peer;
    SendResult why;
    std::vector<std::uint64_t> ids;
  };
  std::vector<NotSent> Flush(
      std::uint64_t topology_version,
      const std::function<SendResult(const NodeName& peer, std::string frame)>& send);

  // Bytes of all peers that are not answered yet.
  std::uint64_t bytes() const { return total_; }

 private:
  struct Queued {
    std::uint64_t id;
    std::string call;
  };

  const Options options_;
  std::map<NodeName, std::uint64_t> unanswered_;
  std::map<NodeName, std::vector<Queued>> queued_;
  std::uint64_t total_ = 0;
};

}  // namespace etalon::router
