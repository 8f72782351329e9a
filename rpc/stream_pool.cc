#include "rpc/stream_pool.h"

#include <utility>

namespace etalon::rpc {
namespace {

constexpr Duration kPauseAfterClosing = std::chrono::seconds(1);

}  // namespace

std::shared_ptr<OutgoingStream> StreamPool::Open(OutgoingStream::Options options) {
  options.on_end = [pool = shared_from_this(), then = std::move(options.on_end)](
                       const std::shared_ptr<OutgoingStream>& stream, const Status& why) mutable {
    then(stream, why);
    std::lock_guard lock(pool->mutex_);
    pool->streams_.erase(stream);
    pool->changed_.notify_all();
  };
  std::lock_guard lock(mutex_);  // on_end waits for the insertion below
  if (stopped_) return nullptr;
  std::shared_ptr<OutgoingStream> stream = OutgoingStream::Open(std::move(options));
  streams_.insert(stream);
  return stream;
}

bool StreamPool::Stop(Duration limit) {
  std::set<std::shared_ptr<OutgoingStream>> streams;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    streams = streams_;
  }
  for (const auto& stream : streams) stream->Cancel();
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return streams_.empty(); });
}

std::shared_ptr<OutgoingStream> Link::Get(SteadyTime now, Random& random, const Opener& open) {
  if (stream_ && !stream_->usable()) {
    if (stream_->established()) backoff_.Reset();
    retry_at_ =
        now + (stream_->peer_closes() ? random.Between(kPauseAfterClosing / 2, kPauseAfterClosing)
                                      : backoff_.Next(random));
    stream_.reset();
  }
  if (!stream_ && now >= retry_at_) stream_ = open();
  return stream_;
}

void Link::Cancel() {
  if (stream_) stream_->Cancel();
}

}  // namespace etalon::rpc
