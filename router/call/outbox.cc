#include "router/call/outbox.h"

#include <utility>

#include "common/check.h"
#include "etalon/v1/call.pb.h"

namespace etalon::router {

bool Outbox::HasRoom(const NodeName& peer, std::uint64_t bytes) const {
  const auto it = unanswered_.find(peer);
  // A call larger than the bound goes when nothing else does.
  return it == unanswered_.end() || it->second + bytes <= options_.peer_bytes;
}

void Outbox::Queue(const NodeName& peer, std::uint64_t id, std::string call) {
  unanswered_[peer] += call.size();
  total_ += call.size();
  queued_[peer].push_back({id, std::move(call)});
}

void Outbox::Release(const NodeName& peer, std::uint64_t bytes) {
  const auto it = unanswered_.find(peer);
  ETALON_CHECK(it != unanswered_.end() && it->second >= bytes, "released more than was queued");
  total_ -= bytes;
  it->second -= bytes;
  if (it->second == 0) unanswered_.erase(it);
}

std::vector<Outbox::NotSent> Outbox::Flush(
    std::uint64_t topology_version,
    const std::function<SendResult(const NodeName& peer, std::string frame)>& send) {
  std::vector<NotSent> out;
  const auto queued = std::move(queued_);
  queued_.clear();
  for (const auto& [peer, calls] : queued) {
    for (std::size_t begin = 0; begin < calls.size();) {
      v1::CallFrame frame;
      frame.set_topology_version(topology_version);
      std::uint64_t size = 0;
      std::size_t end = begin;
      while (end < calls.size() &&
             (end == begin || size + calls[end].call.size() <= options_.frame_bytes)) {
        size += calls[end].call.size();
        frame.add_calls(calls[end].call);
        ++end;
      }
      const SendResult result = send(peer, frame.SerializeAsString());
      if (result != SendResult::kQueued) {
        out.push_back({peer, result, {}});
        for (; begin < end; ++begin) out.back().ids.push_back(calls[begin].id);
      }
      begin = end;
    }
  }
  return out;
}

}  // namespace etalon::router
