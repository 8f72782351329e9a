// The two ends of a snapshot's way from a leader to a replica that fell behind its log: pure
// machines, driven by Replica. Messages: proto/etalon/v1/replication.proto; the table of
// transitions: docs/protocols/replication.md.
//
// The receiver pulls: it names the next chunk it lacks and how many may be under way. What is lost,
// the receiver asks for again; what comes twice or out of order does no harm. Each end gives up by
// itself when the other is silent for too long.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "engine/consensus/types.h"
#include "etalon/v1/replication.pb.h"

namespace etalon::consensus {

// A state of the owner's state machine at one applied index, readable piece by piece while the
// owner goes on.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  // Pieces of at most max_bytes (a record that is larger is a piece of its own), in order; nullopt
  // after the last one.
  virtual Result<std::optional<std::string>> NextChunk(std::size_t max_bytes) = 0;
};

// Where such a state is put together again, beside the owner's current one. Destroying it gives up
// what was received, unless it was handed over to Owner::OnRestored.
class SnapshotSink {
 public:
  virtual ~SnapshotSink() = default;
  virtual Status Add(std::string chunk) = 0;
  // After the last chunk: done(OK) once all of it is durable. Not from within; never once the sink
  // is destroyed.
  virtual void Finish(UniqueFunction<void(Status)> done) = 0;
};

struct SnapshotStreamOptions {
  std::size_t chunk_bytes = 256 << 10;
  std::uint32_t credit = 4;  // chunks under way
  Duration pull_every =
      std::chrono::milliseconds(300);          // the receiver asks again after so much silence
  Duration give_up = std::chrono::seconds(5);  // silence of the other end
  Duration finish_within = std::chrono::seconds(120);  // from the last chunk to durable
  Duration retry_after =
      std::chrono::seconds(1);  // a stream that failed is tried again after once to twice that
};

class SnapshotSender {
 public:
  SnapshotSender(Snapshot snapshot, std::unique_ptr<SnapshotSource> source, SteadyTime now,
                 const SnapshotStreamOptions& options);

  const Snapshot& snapshot() const { return snapshot_; }
  // Chunks that may leave. A failure of the source ends the stream.
  Result<std::vector<v1::SnapshotChunk>> OnPull(const v1::SnapshotPull& pull, SteadyTime now);
  bool SilentTooLong(SteadyTime now) const { return now - heard_ >= options_.give_up; }

 private:
  const Snapshot snapshot_;
  std::unique_ptr<SnapshotSource> source_;
  const SnapshotStreamOptions options_;
  std::deque<v1::SnapshotChunk> kept_;  // sent, but not known to have arrived
  std::uint64_t next_ = 1;              // number of the next chunk made
  bool ended_ = false;                  // the last one was made
  SteadyTime heard_;
};

class SnapshotReceiver {
 public:
  SnapshotReceiver(std::unique_ptr<SnapshotSink> sink, SteadyTime now,
                   const SnapshotStreamOptions& options);

  // What to send first, and whenever something was done that the sender should know.
  v1::SnapshotPull Pull(bool again = false) const;
  // True: a pull is due. A failure (of the sink, a wrong checksum) ends the stream.
  Result<bool> OnChunk(v1::SnapshotChunk chunk, SteadyTime now);
  // True: a pull is due. A failure (silence, or the time for finishing has passed) ends the stream.
  Result<bool> OnTime(SteadyTime now);

  bool complete() const { return complete_at_.has_value(); }  // every chunk was added
  SnapshotSink& sink() { return *sink_; }
  std::unique_ptr<SnapshotSink> TakeSink() { return std::move(sink_); }

 private:
  std::unique_ptr<SnapshotSink> sink_;
  const SnapshotStreamOptions options_;
  std::uint64_t next_ = 1;
  std::map<std::uint64_t, v1::SnapshotChunk> early_;  // at most `credit`
  std::optional<SteadyTime> complete_at_;
  SteadyTime heard_;
  SteadyTime pulled_;
};

}  // namespace etalon::consensus
