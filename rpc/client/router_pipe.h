#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "etalon/v1/router.pb.h"
#include "rpc/limits.h"

namespace etalon::rpc {

// Many calls in flight to one router over one stream; calls that queue while a frame is being
// written travel together.
//
// The stream is opened by the first call and again after it ended, with jittered backoff. A router
// that stops gracefully answers all calls sent to it; the next call goes to whoever then answers at
// the address. When a stream breaks its calls fail with UNAVAILABLE: OUTCOME_UNKNOWN if it is a
// write without request ID, UNREACHABLE_REPLICASET if it may be sent again. Threads: any.
class RouterPipe {
 public:
  // Runs exactly once, on a gRPC thread, outside all locks. It must not block.
  using Done = UniqueFunction<void(const Status& status, std::string result)>;

  // `seed`: of the backoff's jitter.
  RouterPipe(std::string address, std::uint64_t seed, const Limits& limits = {});
  // As Stop, without waiting.
  ~RouterPipe();

  // The call's id and time-out are filled in here. Not OK: refused, `done` will not run:
  // RESOURCE_EXHAUSTED (queue full) or UNAVAILABLE (backoff, stopped). The time-out is enforced
  // here too, to within 50 ms.
  Status Call(v1::ClientCall call, Duration timeout, Done done);

  // Fails what is in flight and waits for the last `done`; false when `limit` passed first. Not
  // from within a `done`.
  bool Stop(Duration limit);

  const Counters& counters() const;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace etalon::rpc
