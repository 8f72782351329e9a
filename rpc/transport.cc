#include "rpc/transport.h"

#include <utility>

#include "common/check.h"
#include "rpc/channel.h"

namespace etalon::rpc {
namespace {

constexpr std::size_t kFrameOverhead = 64;

std::string_view LaneName(Lane lane) {
  switch (lane) {
    case Lane::kControl: return "control";
    case Lane::kBulk: return "bulk";
  }
  ETALON_CHECK(false, "no such lane");
}

}  // namespace

GrpcTransport::GrpcTransport(std::shared_ptr<Endpoint> endpoint, const Clock& clock, Random random, Options options)
    : endpoint_(std::move(endpoint)),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      to_self_(std::make_shared<std::size_t>(0)),
      live_(std::make_shared<Live>()) {}

SendResult GrpcTransport::Send(const NodeName& to, Lane lane, std::string bytes) {
  if (bytes.size() + kFrameOverhead > endpoint_->limits().message) {
    endpoint_->Log(LogLevel::kError, "message_too_large", {{"to", to}, {"bytes", bytes.size()}});
    ++endpoint_->counters().refused_full;
    return SendResult::kFull;
  }
  if (to == options_.self) return SendToSelf(lane, std::move(bytes));
  const auto found = peers_.find(to);
  if (found == peers_.end()) {
    const std::shared_ptr<Sink> sink = endpoint_->Find(to);
    return sink ? sink->Push(std::move(bytes)) : SendResult::kUnknown;
  }
  Link& link = found->second.links[lane];
  if (link.stream && !link.stream->usable()) {
    if (link.stream->established()) link.backoff.Reset();
    link.retry_at = clock_.Now() + link.backoff.Next(random_);
    link.stream.reset();
  }
  if (!link.stream) {
    if (clock_.Now() < link.retry_at) return SendResult::kUnknown;
    link.stream = Open(to, found->second, lane, link);
    if (!link.stream) return SendResult::kUnknown;
  }
  return link.stream->Push(std::move(bytes));
}

void GrpcTransport::SetAddress(const NodeName& node, std::string_view address) {
  const auto found = peers_.find(node);
  if (found != peers_.end()) {
    if (found->second.address == address) return;
    for (auto& [lane, link] : found->second.links) {
      if (link.stream) link.stream->Cancel();
    }
    peers_.erase(found);
  }
  if (!address.empty()) peers_[node].address = address;
}

SendResult GrpcTransport::SendToSelf(Lane lane, std::string bytes) {
  const std::size_t size = bytes.size();
  if (*to_self_ + size > endpoint_->limits().control_queue) {
    ++endpoint_->counters().refused_full;
    return SendResult::kFull;
  }
  *to_self_ += size;
  std::vector<std::string> messages;
  messages.push_back(std::move(bytes));
  endpoint_->Deliver(options_.self, lane, std::move(messages), [queued = to_self_, size] { *queued -= size; });
  return SendResult::kQueued;
}

std::shared_ptr<OutgoingStream> GrpcTransport::Open(const NodeName& to, const Peer& peer, Lane lane, Link& link) {
  const Limits& limits = endpoint_->limits();
  if (!link.channel) link.channel = MakeChannel(peer.address, limits);
  std::lock_guard lock(live_->mutex);  // on_end waits for the insertion below
  if (live_->stopped) return nullptr;
  auto stream = OutgoingStream::Open({
      .channel = link.channel,
      .method = options_.method,
      .metadata = {{"etalon-node", options_.self}, {"etalon-lane", std::string(LaneName(lane))}},
      .queue_bound = lane == Lane::kBulk ? limits.bulk_queue : limits.control_queue,
      .limits = limits,
      .counters = std::shared_ptr<Counters>(endpoint_, &endpoint_->counters()),
      .on_messages =
          [endpoint = endpoint_, to, lane](std::vector<std::string> messages, UniqueFunction<void()> handled) {
            endpoint->Deliver(to, lane, std::move(messages), std::move(handled));
          },
      .on_end =
          [endpoint = endpoint_, live = live_, to, lane](const std::shared_ptr<OutgoingStream>& ended,
                                                         const Status& why) {
            endpoint->Log(LogLevel::kInfo, "stream_ended",
                          {{"to", to}, {"lane", LaneName(lane)}, {"why", why.ToString()}});
            std::lock_guard inner(live->mutex);
            live->streams.erase(ended);
            live->changed.notify_all();
          },
  });
  live_->streams.insert(stream);
  return stream;
}

bool GrpcTransport::Stop(Duration limit) {
  std::set<std::shared_ptr<OutgoingStream>> streams;
  {
    std::lock_guard lock(live_->mutex);
    live_->stopped = true;
    streams = live_->streams;
  }
  for (const auto& stream : streams) stream->Cancel();
  std::unique_lock lock(live_->mutex);
  return live_->changed.wait_for(lock, limit, [&] { return live_->streams.empty(); });
}

}  // namespace etalon::rpc
