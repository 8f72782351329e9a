// Bounds of everything that queues in this folder, in bytes unless said otherwise, and what is
// counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace etalon::rpc {

struct Limits {
  // One message on the wire; gRPC refuses larger ones with RESOURCE_EXHAUSTED and ends the stream.
  std::size_t message = 64u << 20;
  // Messages gathered into one frame. A larger message is a frame of its own.
  std::size_t frame = 4u << 20;
  // Waiting in an outgoing stream of each lane: over it Send says kFull.
  std::size_t control_queue = 16u << 20;
  std::size_t bulk_queue = 8u << 20;
  // Waiting in a stream that somebody else opened: over it the stream is cut, since its owner does
  // not read.
  std::size_t reply_queue = 32u << 20;
  // Received on one stream and not yet handled by the node: over it the stream is not read.
  std::size_t unhandled = 8u << 20;
  // Of one client of Router.Pipe, unanswered: over either its stream is not read.
  std::size_t client_calls = 4096;  // count
  std::size_t client_bytes = 8u << 20;
  // Unary calls of all clients, unanswered: over it new ones are refused.
  std::size_t unary_calls = 4096;  // count
};

struct Counters {
  std::atomic<std::uint64_t> frames_sent = 0;
  std::atomic<std::uint64_t> messages_sent = 0;
  std::atomic<std::uint64_t> frames_received = 0;
  std::atomic<std::uint64_t> messages_received = 0;
  std::atomic<std::uint64_t> malformed = 0;     // frames and messages that could not be understood
  std::atomic<std::uint64_t> refused_full = 0;  // messages refused by a full queue
  std::atomic<std::uint64_t> streams_cut = 0;   // by this side: full reply queue or malformed frame
  std::atomic<std::uint64_t> streams_broken = 0;  // outgoing streams that ended
};

}  // namespace etalon::rpc
