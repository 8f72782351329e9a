#include "rpc/transport.h"

#include <utility>

#include "common/check.h"
#include "rpc/channel.h"

namespace etalon::rpc {
namespace {

std::string_view LaneName(Lane lane) {
  switch (lane) {
    case Lane::kControl:
      return "control";
    case Lane::kBulk:
      return "bulk";
  }
  ETALON_CHECK(false, "no such lane");
}

}  // namespace

GrpcTransport::GrpcTransport(std::shared_ptr<Endpoint> endpoint, const Clock& clock, Random random,
                             Options options)
    : endpoint_(std::move(endpoint)),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      to_self_(std::make_shared<std::size_t>(0)),
      pool_(std::make_shared<StreamPool>()) {}

SendResult GrpcTransport::Send(const NodeName& to, Lane lane, std::string bytes) {
  if (to == options_.self) return SendToSelf(lane, std::move(bytes));
  const auto found = peers_.find(to);
  if (found == peers_.end()) {
    const std::shared_ptr<Sink> sink = endpoint_->Find(to);
    return sink ? sink->Push(std::move(bytes)) : SendResult::kUnknown;
  }
  if (bytes.size() + kFrameOverhead > endpoint_->limits().message) {
    endpoint_->Log(LogLevel::kError, "message_too_large", {{"to", to}, {"bytes", bytes.size()}});
    ++endpoint_->counters().refused_full;
    return SendResult::kFull;
  }
  LanePath& path = found->second.paths[lane];
  if (!path.channel) path.channel = MakeChannel(found->second.address, endpoint_->limits());
  const auto stream = path.link.Get(clock_.Now(), random_, [&] { return Open(to, lane, path); });
  return stream ? stream->Push(std::move(bytes)) : SendResult::kUnknown;
}

void GrpcTransport::SetAddress(const NodeName& node, std::string_view address) {
  const auto found = peers_.find(node);
  if (found != peers_.end()) {
    if (found->second.address == address) return;
    for (auto& [lane, path] : found->second.paths) path.link.Cancel();
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
  endpoint_->Deliver(options_.self, lane, std::move(messages),
                     [queued = to_self_, size] { *queued -= size; });
  return SendResult::kQueued;
}

std::shared_ptr<OutgoingStream> GrpcTransport::Open(const NodeName& to, Lane lane, LanePath& path) {
  // Else what is sent on the next stream would be taken for lost with the one before.
  if (path.end_told && !*path.end_told) return nullptr;
  path.end_told = std::make_shared<bool>(false);
  const Limits& limits = endpoint_->limits();
  return pool_->Open({
      .channel = path.channel,
      .method = options_.method,
      .metadata = {{"etalon-node", options_.self}, {"etalon-lane", std::string(LaneName(lane))}},
      .queue_bound = lane == Lane::kBulk ? limits.bulk_queue : limits.control_queue,
      .limits = limits,
      .counters = std::shared_ptr<Counters>(endpoint_, &endpoint_->counters()),
      .on_messages =
          [endpoint = endpoint_, to, lane](std::vector<std::string> messages,
                                           UniqueFunction<void()> handled) {
            endpoint->Deliver(to, lane, std::move(messages), std::move(handled));
          },
      .on_end =
          [endpoint = endpoint_, to, lane, told = path.end_told](
              const std::shared_ptr<OutgoingStream>&, const Status& why) {
            endpoint->Log(LogLevel::kInfo, "stream_ended",
                          {{"to", to}, {"lane", LaneName(lane)}, {"why", why.ToString()}});
            endpoint->DeliverEnd(to, lane, [told] { *told = true; });
          },
  });
}

}  // namespace etalon::rpc
