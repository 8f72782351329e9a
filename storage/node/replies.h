// Answers to calls on their way out: those of one turn to one peer leave in one frame. What the
// transport has no room for waits here, and tells the node to produce no more for that peer.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "env/transport.h"

namespace etalon::storage {

class Replies {
 public:
  // Waiting for one peer. Over it reads for the peer are put off, so that a peer that asks for much
  // and takes it slowly costs this process that much memory, and the others no time.
  static constexpr std::size_t kEnough = 8u << 20;
  // Over it answers are dropped: the peer takes nothing and goes on asking. Its calls time out.
  static constexpr std::size_t kMost = 32u << 20;
  static constexpr std::size_t kFrameBytes = 4u << 20;

  // A serialized CallReply.
  void Add(const NodeName& to, std::string reply);
  bool Enough(const NodeName& to) const;
  bool empty() const { return peers_.empty(); }

  struct Flushed {
    std::vector<NodeName> ready;  // had enough, and may be given more
    std::vector<NodeName> gone;   // forgotten, with what waited for them
  };
  // `send` takes a serialized ReplyFrame. Frames that it has no room for stay.
  Flushed Flush(const std::function<SendResult(const NodeName& to, std::string frame)>& send);

 private:
  struct Peer {
    std::deque<std::string> replies;
    std::size_t bytes = 0;
    bool had_enough = false;
  };
  static SendResult SendSome(
      Peer* peer, const NodeName& to,
      const std::function<SendResult(const NodeName& to, std::string frame)>& send);

  std::map<NodeName, Peer> peers_;  // those for which something waits
};

}  // namespace etalon::storage
