// What both ends of a stream of frames do alike: one write in flight, all that queued meanwhile is
// the next frame; reading stops while too much of what was read is not handled yet.
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "env/transport.h"
#include "rpc/frames.h"
#include "rpc/limits.h"

namespace etalon::rpc {

// Base: grpc::ClientBidiReactor or grpc::ServerBidiReactor of ByteBuffer (raw bytes, so that a
// malformed frame can be told from the end of the stream).
//
// Threads: gRPC calls the reactions one at a time for reads and one at a time for writes, both at
// once; everybody else calls Enqueue and Handled. gRPC never runs a reaction inside Start*, so
// these are called with the mutex held.
template <class Base>
class FrameStream : public Base {
 protected:
  FrameStream(const Limits& limits, std::size_t queue_bound, Counters& counters)
      : limits_(limits), counters_(counters), outbox_(queue_bound) {}

  SendResult Enqueue(std::string bytes) {
    std::lock_guard lock(mutex_);
    return EnqueueLocked(std::move(bytes));
  }

  SendResult EnqueueLocked(std::string bytes) {
    if (closed_) return SendResult::kUnknown;
    if (!outbox_.Push(std::move(bytes))) {
      ++counters_.refused_full;
      FullLocked();
      return SendResult::kFull;
    }
    WriteLocked();
    return SendResult::kQueued;
  }

  // The node is done with `bytes` of what was received.
  void Handled(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    unhandled_ -= bytes;
    ReadLocked();
    IdleLocked();
  }

  // Starts the next write if there is something to write and none is in flight.
  void WriteLocked() {
    if (writing_ || closed_ || (outbox_.empty() && !closing_due_)) return;
    Frame frame{.messages = outbox_.Take(limits_.frame),
                .closing = std::exchange(closing_due_, false)};
    ++counters_.frames_sent;
    counters_.messages_sent += frame.messages.size();
    outgoing_ = EncodeFrame(std::move(frame));
    writing_ = true;
    write_began_ = std::chrono::steady_clock::now();
    this->StartWrite(&outgoing_);
  }

  // Starts the next read if none is in flight and there is room for what it brings.
  void ReadLocked() {
    if (reading_ || reads_ended_) return;
    if (!abandoned_ && (unhandled_ > limits_.unhandled || BusyLocked())) return;
    reading_ = true;
    this->StartRead(&incoming_);
  }

  // No message goes out any more; what waits is dropped.
  void StopWritingLocked() {
    closed_ = true;
    closing_due_ = false;
    outbox_.Clear();
  }

  // What still comes in is read and dropped, so that the end of the stream is seen.
  void AbandonLocked() {
    StopWritingLocked();
    abandoned_ = true;
    ReadLocked();
  }

  // ---- what the two ends do differently ----

  // A frame came. Without the mutex. Handled(bytes) must follow, from anywhere.
  virtual void Received(Frame frame, std::size_t bytes) = 0;
  virtual void MalformedLocked() = 0;
  virtual void ReadsEndedLocked() = 0;  // the peer half-closed, or the stream broke
  virtual void FullLocked() {}
  virtual bool BusyLocked() const { return false; }
  virtual void IdleLocked() = 0;  // something ended: perhaps all did

  void OnReadDone(bool ok) final {
    Frame frame;
    const std::size_t bytes = ok ? incoming_.Length() : 0;
    const bool good = ok && DecodeFrame(&incoming_, &frame);
    bool wanted = true;
    {
      std::lock_guard lock(mutex_);
      reading_ = false;
      if (!good) {
        reads_ended_ = true;
        if (ok) {
          ++counters_.malformed;
          MalformedLocked();
        }
        ReadsEndedLocked();
        return;
      }
      wanted = !abandoned_;
      if (wanted) unhandled_ += bytes;
    }
    if (wanted) {
      ++counters_.frames_received;
      Received(std::move(frame), bytes);  // before the next read starts: frames stay in order
    }
    std::lock_guard lock(mutex_);
    ReadLocked();
  }

  void OnWriteDone(bool ok) final {
    std::lock_guard lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    if (!ok) StopWritingLocked();
    WriteLocked();
    IdleLocked();
  }

  const Limits limits_;
  Counters& counters_;

  std::mutex mutex_;
  Outbox outbox_;
  grpc::ByteBuffer outgoing_;
  grpc::ByteBuffer incoming_;
  std::size_t unhandled_ = 0;
  bool writing_ = false;
  std::chrono::steady_clock::time_point write_began_;  // the one in flight
  bool reading_ = false;
  bool reads_ended_ = false;
  bool abandoned_ = false;
  bool closed_ = false;       // for writing
  bool closing_due_ = false;  // the next frame says `closing`
};

}  // namespace etalon::rpc
