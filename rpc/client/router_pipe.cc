#include "rpc/client/router_pipe.h"

#include <grpcpp/alarm.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proto/wire.h"
#include "rpc/channel.h"
#include "rpc/stream_pool.h"

namespace etalon::rpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSweep{50};
constexpr milliseconds kGrace{100};  // the router's own answer at the deadline says more than ours

SteadyTime Now() { return SteadyTime(std::chrono::steady_clock::now().time_since_epoch()); }

}  // namespace

class RouterPipe::State : public std::enable_shared_from_this<State> {
 public:
  State(std::string address, std::uint64_t seed, const Limits& limits)
      : channel_(MakeChannel(address, limits)), limits_(limits), random_(seed) {}

  Status Call(v1::ClientCall call, Duration timeout, Done done) {
    std::lock_guard lock(mutex_);
    const auto stream = link_.Get(Now(), random_, [this] { return Open(); });
    if (!stream)
      return Unavailable(Reason::kUnreachableReplicaset,
                         "no connection to the router: try again later");
    const std::uint64_t id = next_id_++;
    const auto millis = std::chrono::ceil<milliseconds>(timeout);
    call.set_id(id);
    call.set_timeout_millis(static_cast<std::uint32_t>(std::max<std::int64_t>(millis.count(), 1)));
    switch (stream->Push(call.SerializeAsString())) {
      case SendResult::kQueued:
        break;
      case SendResult::kFull:
        return ResourceExhausted("too many calls wait to be sent: wait for replies");
      case SendResult::kUnknown:
        return Unavailable(Reason::kUnreachableReplicaset,
                           "the connection to the router broke: try again");
    }
    const SteadyTime expires = Now() + millis + kGrace;
    const bool repeatable = call.mode() != v1::MODE_RW || call.request().client() != 0;
    pending_.emplace(id, Pending{std::move(done), generation_, expires, repeatable});
    expiries_.emplace(expires, id);
    if (!alarm_) Arm();
    return OkStatus();
  }

  bool Stop(Duration limit) { return pool_->Stop(limit); }
  void Cancel() { pool_->Stop(Duration::zero()); }
  const Counters& counters() const { return *counters_; }

 private:
  struct Pending {
    Done done;
    std::uint64_t generation = 0;  // of the stream it was sent on
    SteadyTime expires;
    bool repeatable = false;
  };

  std::shared_ptr<OutgoingStream> Open() {
    const std::uint64_t generation = ++generation_;
    return pool_->Open({
        .channel = channel_,
        .method = "/etalon.v1.Router/Pipe",
        .metadata = {},
        .queue_bound = limits_.control_queue,
        .limits = limits_,
        .counters = counters_,
        .on_messages =
            [self = shared_from_this()](std::vector<std::string> messages,
                                        UniqueFunction<void()> handled) {
              for (const std::string& bytes : messages) self->OnReply(bytes);
              handled();
            },
        .on_end = [self = shared_from_this(), generation](
                      const std::shared_ptr<OutgoingStream>&,
                      const Status& why) { self->OnEnd(generation, why); },
    });
  }

  void OnReply(const std::string& bytes) {
    v1::ClientReply reply;
    if (!reply.ParseFromString(bytes)) {
      ++counters_->malformed;  // the call it was meant for expires
      return;
    }
    Done done;
    {
      std::lock_guard lock(mutex_);
      done = Take(reply.id());
    }
    if (done) done(FromProto(reply.status()), std::move(*reply.mutable_result()));
  }

  void OnEnd(std::uint64_t generation, const Status& why) {
    std::vector<std::pair<std::uint64_t, bool>> lost;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [expires, id] : expiries_) {
        const Pending& pending = pending_.at(id);
        if (pending.generation == generation) lost.emplace_back(id, pending.repeatable);
      }
    }
    for (const auto& [id, repeatable] : lost) {
      Fail(id, Unavailable(repeatable ? Reason::kUnreachableReplicaset : Reason::kOutcomeUnknown,
                           "the connection to the router broke: " + why.ToString()));
    }
  }

  void Sweep() {
    std::vector<std::uint64_t> expired;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [expires, id] : expiries_) {
        if (expires > Now()) break;
        expired.push_back(id);
      }
    }
    for (const std::uint64_t id : expired) {
      Fail(id,
           DeadlineExceeded("the router did not answer in time: the call may still take effect"));
    }
    std::lock_guard lock(mutex_);
    alarm_.reset();
    if (!pending_.empty()) Arm();
  }

  void Arm() {
    alarm_ = std::make_unique<grpc::Alarm>();
    alarm_->Set(std::chrono::system_clock::now() + kSweep, [weak = weak_from_this()](bool expired) {
      const std::shared_ptr<State> self = weak.lock();
      if (expired && self) self->Sweep();
    });
  }

  void Fail(std::uint64_t id, const Status& why) {
    Done done;
    {
      std::lock_guard lock(mutex_);
      done = Take(id);
    }
    if (done) done(why, {});
  }

  // Empty when the call was answered before.
  Done Take(std::uint64_t id) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) return {};
    Done done = std::move(found->second.done);
    expiries_.erase({found->second.expires, id});
    pending_.erase(found);
    return done;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const Limits limits_;
  const std::shared_ptr<Counters> counters_ = std::make_shared<Counters>();
  const std::shared_ptr<StreamPool> pool_ = std::make_shared<StreamPool>();

  std::mutex mutex_;
  Random random_;
  Link link_;
  std::uint64_t generation_ = 0;
  std::uint64_t next_id_ = 1;
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::set<std::pair<SteadyTime, std::uint64_t>> expiries_;  // of all pending calls
  std::unique_ptr<grpc::Alarm> alarm_;                       // while calls are pending
};

RouterPipe::RouterPipe(std::string address, std::uint64_t seed, const Limits& limits)
    : state_(std::make_shared<State>(std::move(address), seed, limits)) {}

RouterPipe::~RouterPipe() { state_->Cancel(); }

Status RouterPipe::Call(v1::ClientCall call, Duration timeout, Done done) {
  return state_->Call(std::move(call), timeout, std::move(done));
}

bool RouterPipe::Stop(Duration limit) { return state_->Stop(limit); }

const Counters& RouterPipe::counters() const { return state_->counters(); }

}  // namespace etalon::rpc
