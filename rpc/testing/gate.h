#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace etalon::rpc::testing {

// An address whose connections say nothing until Open; from then on the first one is relayed to a
// port of this machine. So a test decides when a connection comes to life, and what queues before.
class Gate {
 public:
  explicit Gate(int target_port);
  ~Gate();
  std::string address() const;
  void Open() { open_ = true; }

 private:
  void Relay(int target_port);
  // Moves what there is; false at the end of the connection.
  static bool Move(int from, int to);

  int listener_;
  int port_ = 0;
  std::atomic<bool> open_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace etalon::rpc::testing
