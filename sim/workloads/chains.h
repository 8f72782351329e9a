// Writers of their own keys: each write says what it expects to replace (a transaction with a
// condition) and carries a request ID. So a write that is lost, or applied twice, or reverted,
// shows at once: the next one's condition fails.
//
// Beside each writer readers look at its key through any router, so that old leaders and old tables
// are asked too: what they see never goes back in real time, and the records of a key are always of
// one transaction: two hold its number, and a third one is there after every second transaction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/cluster.h"
#include "sim/workloads/workload.h"

namespace etalon::sim {

class Chains final : public Workload {
 public:
  struct Options {
    int keys = 24;
    int readers = 1;                                // of each key, beside its writer
    Duration pause = std::chrono::milliseconds(8);  // between two calls of one client, at most
    Duration timeout = std::chrono::seconds(4);
    std::uint32_t value_bytes = 40;
  };

  Chains(Cluster& cluster, Options options);
  void Start() override;
  void Stop() override { stopping_ = true; }
  bool idle() const override { return under_way_ == 0; }
  bool Verify(Duration limit) override;

 private:
  struct Key {
    std::string name;
    std::uint64_t acked = 0;      // number of the last acknowledged write; 0: none
    std::uint64_t attempted = 0;  // of the last write sent
    bool certain = true;          // false: a read has to tell where the chain stands
    // A write whose outcome is unknown may come late: until another one replaces what it expects.
    bool open = false;
    std::uint64_t seen = 0;  // the highest number that anybody was told
  };

  void Next(std::size_t i);
  void Write(std::size_t i);
  void Look(std::size_t i);
  void Read(std::size_t i);
  void NextReader(std::size_t i);
  void Scan(std::size_t i);
  void Compare(std::size_t i, const char* space);
  // Now and then `work` for key i, until clients are told to stop.
  void Later(std::size_t i, void (Chains::*work)(std::size_t));
  // The number, if the records that a scan found are of one transaction.
  static std::optional<std::uint64_t> NumberOf(const Key& key, const v1::ScanResult& found);
  // What the writer found itself.
  void Found(Key& key, std::uint64_t number);
  // What a reader that began with `floor` found.
  void Saw(Key& key, std::uint64_t floor, std::uint64_t number);
  void FailKey(const Key& key, const std::string& what);
  v1::ClientRequest Request(const Key& key, const std::string& function,
                            const std::string& args) const;
  v1::ClientRequest GetRequest(const Key& key, const char* space) const;
  const char* AnySpace();
  std::string ValueOf(std::uint64_t number) const;

  Cluster& cluster_;
  const Options options_;
  std::vector<Key> keys_;
  std::uint64_t sequence_ = 0;
  int under_way_ = 0;
  bool stopping_ = false;
};

}  // namespace etalon::sim
