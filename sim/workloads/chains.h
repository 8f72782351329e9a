// Writers of their own keys: each write says what it expects to replace (a transaction with a
// condition) and carries a request ID. So a write that is lost, or applied twice, or reverted,
// shows at once: the next one's condition fails.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"

namespace etalon::sim {

class Chains {
 public:
  struct Options {
    int keys = 24;
    Duration pause = std::chrono::milliseconds(5);  // between two calls of one key, at most
    Duration timeout = std::chrono::seconds(10);
    std::uint32_t value_bytes = 40;
  };

  Chains(Cluster& cluster, Options options);
  void Start();
  void Stop() { stopping_ = true; }
  bool idle() const { return under_way_ == 0; }

  // What went wrong; empty: nothing so far.
  const std::vector<std::string>& failures() const { return failures_; }
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t reads() const { return reads_; }
  std::uint64_t unknown() const { return unknown_; }

  // Reads every key again; call when idle and the cluster is healthy.
  bool Verify(Duration limit);

 private:
  struct Key {
    std::string name;
    std::uint64_t acked = 0;      // number of the last acknowledged write; 0: none
    std::uint64_t attempted = 0;  // of the last write sent
    bool certain = true;          // false: the outcome of the last write is unknown
  };

  void Next(std::size_t i);
  void Write(std::size_t i);
  void Read(std::size_t i);
  void Later(std::size_t i);
  void Fail(const Key& key, const std::string& what);
  v1::ClientRequest Request(const Key& key, const std::string& function,
                            const std::string& args) const;
  std::string ValueOf(std::uint64_t number) const;
  NodeName Router();

  Cluster& cluster_;
  const Options options_;
  std::vector<Key> keys_;
  std::uint64_t sequence_ = 0;
  int under_way_ = 0;
  bool stopping_ = false;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t unknown_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace etalon::sim
