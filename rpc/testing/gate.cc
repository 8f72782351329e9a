#include "rpc/testing/gate.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/check.h"

namespace etalon::rpc::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

}  // namespace

Gate::Gate(int target_port) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  const bool listens = bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                       listen(listener_, 8) == 0 &&
                       getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ETALON_CHECK(listens, "a socket on the loopback can listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this, target_port] { Relay(target_port); });
}

Gate::~Gate() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

std::string Gate::address() const { return "127.0.0.1:" + std::to_string(port_); }

void Gate::Relay(int target_port) {
  while (!open_ && !stop_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pollfd waiting{.fd = listener_, .events = POLLIN, .revents = 0};
  while (!stop_ && poll(&waiting, 1, 5) == 0) {
  }
  if (stop_) return;
  const int client = accept(listener_, nullptr, nullptr);
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in target = Loopback(target_port);
  ETALON_CHECK(connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0,
               "the gate's target listens");
  pollfd both[2] = {{.fd = client, .events = POLLIN, .revents = 0},
                    {.fd = server, .events = POLLIN, .revents = 0}};
  bool alive = true;
  while (alive && !stop_) {
    if (poll(both, 2, 5) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (both[i].revents != 0) alive = alive && Move(both[i].fd, both[1 - i].fd);
    }
  }
  close(client);
  close(server);
}

bool Gate::Move(int from, int to) {
  char buffer[1 << 16];
  const ssize_t got = recv(from, buffer, sizeof(buffer), 0);
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t more =
        send(to, buffer + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
    if (more <= 0) return false;
    sent += more;
  }
  return got > 0;
}

}  // namespace etalon::rpc::testing
