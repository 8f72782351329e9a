// Very many keys, each with a value of its own; some are written anew all the while. At any time
// the whole collection can be read and compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/ids.h"
#include "sim/cluster/cluster.h"
#include "sim/workloads/workload.h"

namespace etalon::sim {

class Table final : public Workload {
 public:
  struct Options {
    std::uint32_t keys = 4096;
    int writers = 4;
    Duration pause = std::chrono::milliseconds(20);
    Duration timeout = std::chrono::seconds(4);
  };

  Table(Cluster& cluster, Options options);
  // Writes every key once.
  bool Load(Duration limit);
  void Start() override;
  void Stop() override { stopping_ = true; }
  bool idle() const override { return under_way_ == 0; }
  // By a scan of every bucket, and then key by key.
  bool Verify(Duration limit) override;
  // By a scan of every bucket: all keys, no other key, each once, with its value. Call when idle.
  bool CompareByScan(Duration limit);

  std::uint32_t keys() const { return static_cast<std::uint32_t>(keys_.size()); }
  RoutingValue ValueOf(std::uint32_t key) const { return keys_[key].routing; }

 private:
  struct Key {
    std::string name;
    RoutingValue routing;
    std::uint64_t written = 0;                // number in its value; 0: never
    std::uint64_t tried = 0;                  // the last number that was tried
    std::vector<std::uint64_t> unknown = {};  // numbers of writes with unknown outcomes
  };

  void Write(std::uint32_t key, bool until_done);
  void NextWriter();
  void Read(std::uint32_t key);
  bool Matches(const Key& key, const std::string& value) const;
  v1::ClientRequest Request(const Key& key, const std::string& function,
                            const std::string& args) const;

  Cluster& cluster_;
  const Options options_;
  std::vector<Key> keys_;
  std::map<std::string, std::uint32_t> by_name_;
  std::vector<bool> busy_;
  std::uint64_t sequence_ = 0;
  int under_way_ = 0;
  int writers_ = 0;  // that have not seen that they shall stop
  bool stopping_ = false;
};

}  // namespace etalon::sim
