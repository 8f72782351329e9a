#include "storage/node/replies.h"

#include <utility>

#include "etalon/v1/call.pb.h"

namespace etalon::storage {

void Replies::Add(const NodeName& to, std::string reply) {
  Peer& peer = peers_[to];
  if (peer.bytes > kMost) return;
  peer.bytes += reply.size();
  peer.replies.push_back(std::move(reply));
  peer.had_enough = peer.had_enough || peer.bytes > kEnough;
}

bool Replies::Enough(const NodeName& to) const {
  const auto it = peers_.find(to);
  return it != peers_.end() && it->second.bytes > kEnough;
}

Replies::Flushed Replies::Flush(
    const std::function<SendResult(const NodeName& to, std::string frame)>& send) {
  Flushed flushed;
  for (auto it = peers_.begin(); it != peers_.end();) {
    Peer& peer = it->second;
    SendResult result = SendResult::kQueued;
    while (!peer.replies.empty() && result == SendResult::kQueued)
      result = SendSome(&peer, it->first, send);
    const bool gone = result == SendResult::kUnknown;
    if (gone) {
      flushed.gone.push_back(it->first);
    } else if (peer.had_enough && peer.bytes <= kEnough) {
      peer.had_enough = false;
      flushed.ready.push_back(it->first);
    }
    it = gone || peer.replies.empty() ? peers_.erase(it) : std::next(it);
  }
  return flushed;
}

SendResult Replies::SendSome(
    Peer* peer, const NodeName& to,
    const std::function<SendResult(const NodeName& to, std::string frame)>& send) {
  v1::ReplyFrame frame;
  std::size_t bytes = 0;
  int count = 0;
  for (const std::string& reply : peer->replies) {
    if (count > 0 && bytes + reply.size() > kFrameBytes) break;
    bytes += reply.size();
    ++count;
    frame.add_replies(reply);
  }
  const SendResult result = send(to, frame.SerializeAsString());
  if (result != SendResult::kQueued) return result;
  peer->replies.erase(peer->replies.begin(), peer->replies.begin() + count);
  peer->bytes -= bytes;
  return result;
}

}  // namespace etalon::storage
