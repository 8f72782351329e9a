// Frames: what travels on every stream of this system. v1::Frame, v1::ClientFrame and
// v1::ClientReplyFrame have the same bytes (a list of messages, and "closing"), so one codec serves
// all three.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace etalon::rpc {

// More than a frame adds to the bytes of one message.
inline constexpr std::size_t kFrameOverhead = 64;

struct Frame {
  std::vector<std::string> messages;
  bool closing = false;
};

grpc::ByteBuffer EncodeFrame(Frame frame);
// False when the bytes are no frame. The buffer is used up.
bool DecodeFrame(grpc::ByteBuffer* buffer, Frame* frame);

// Messages that wait for the write in flight to end; bounded in bytes. Not thread-safe.
class Outbox {
 public:
  explicit Outbox(std::size_t bound) : bound_(bound) {}

  // False when it would go over the bound. An empty outbox takes any one message.
  bool Push(std::string message);
  // The next frame: all that waits, or as much as fits into `cap` bytes, but one message at least.
  std::vector<std::string> Take(std::size_t cap);
  void Clear();

  bool empty() const { return messages_.empty(); }
  std::size_t bytes() const { return bytes_; }
  std::size_t bound() const { return bound_; }

 private:
  std::size_t bound_;
  std::size_t bytes_ = 0;  // with the overhead of each message, so that empty ones cannot pile up
  std::deque<std::string> messages_;
};

}  // namespace etalon::rpc
