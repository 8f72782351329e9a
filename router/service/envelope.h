// The envelope of pipelined calls, read and written without touching what is inside: a router
// handles many of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace etalon::router {

// Serialized NodeMessage{collection, client_request{call, id = number}}.
std::string WrapClientCall(CollectionId collection, std::uint64_t number, std::string_view call);

// Views into a serialized NodeMessage{client_reply{id, status, call}}; empty where absent.
struct ClientAnswer {
  std::uint64_t number = 0;
  std::string_view status;  // serialized Status
  std::string_view reply;   // serialized ClientReply
};
// False when `message` is not such a message.
bool ReadClientAnswer(std::string_view message, ClientAnswer* answer);

}  // namespace etalon::router
