#include "operator/platform/local/ports.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "env/posix/fd.h"

namespace etalon::controller {

bool IsPortFree(std::uint16_t port) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  // Connections of a former server that linger do not matter; another server does.
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

Result<std::uint16_t> ChoosePort(std::uint16_t base, const std::set<std::uint16_t>& taken) {
  for (std::uint32_t port = base; port <= 65535; ++port) {
    const auto candidate = static_cast<std::uint16_t>(port);
    if (!taken.contains(candidate) && IsPortFree(candidate)) return candidate;
  }
  return ResourceExhausted(
      fmt::format("no port from {} on is free; choose another --base-port", base));
}

}  // namespace etalon::controller
