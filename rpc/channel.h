// How connections are set up, alike in all programs.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>

#include "rpc/limits.h"

namespace etalon::rpc {

// A connection of its own (never shared with another channel to the same address). Names are
// resolved again at most every second; a dead peer is noticed by keep-alive within about 8 s; a
// connection attempt takes at most 2 s and is repeated at least every 2 s.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const Limits& limits = {});

// The server's side of the same: message sizes, permitted keep-alive, and no sharing of the port
// with another process.
void ConfigureServer(grpc::ServerBuilder& builder, const Limits& limits = {});

}  // namespace etalon::rpc
