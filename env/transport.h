#pragma once

#include <string>
#include <string_view>

namespace etalon {

// Name of a node: "shard-0-1" (a replica), "router-0", or the reply address of one client stream or
// unary call.
using NodeName = std::string;

enum class Lane : unsigned char {
  kControl,  // small and urgent: Raft, transitions, questions, calls
  kBulk,     // snapshots and transfer chunks; flow-controlled by credits of the protocols above
};

enum class SendResult : unsigned char {
  kQueued,   // may still be lost
  kFull,     // over the byte bound of that peer and lane: dropped, try again later
  kUnknown,  // no such node, or its stream is gone: dropped
};

// Messages between nodes, as bytes. May drop, duplicate and reorder; never blocks; never calls back
// from Send. Received messages are handed to the node's own entry point, on its core executor, by
// whoever owns the node.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual SendResult Send(const NodeName& to, Lane lane, std::string bytes) = 0;
  // Where `node` is reached ("host:port"), as the topology says. Reply addresses need none.
  virtual void SetAddress(const NodeName& node, std::string_view address) = 0;
};

}  // namespace etalon
