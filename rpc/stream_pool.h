#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include "common/random.h"
#include "common/time.h"
#include "rpc/outgoing_stream.h"

namespace etalon::rpc {

// Opens streams, and knows those that gRPC is not done with, so that their end can be awaited.
// Threads: any.
class StreamPool : public std::enable_shared_from_this<StreamPool> {
 public:
  // Null once stopped.
  std::shared_ptr<OutgoingStream> Open(OutgoingStream::Options options);
  // Cancels all streams and waits until the last on_end has run; false when `limit` passed first.
  bool Stop(Duration limit);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::shared_ptr<OutgoingStream>> streams_;
  bool stopped_ = false;
};

// The stream to one address: opened when first needed, and again after it ended, with jittered
// backoff between. Not thread-safe.
class Link {
 public:
  using Opener = std::function<std::shared_ptr<OutgoingStream>()>;

  // Null while the backoff lasts, or when `open` gives none.
  std::shared_ptr<OutgoingStream> Get(SteadyTime now, Random& random, const Opener& open);
  void Cancel();

 private:
  std::shared_ptr<OutgoingStream> stream_;
  SteadyTime retry_at_ = SteadyTime::min();
  Backoff backoff_{std::chrono::milliseconds(50), std::chrono::seconds(2)};
};

}  // namespace etalon::rpc
