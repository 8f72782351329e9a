// Map calls over all buckets, one of a write and one of a read at a time, while buckets are halved
// and moved. Each write inserts one record a bucket, so a bucket that is run twice shows as a key
// that exists, and one that is left out as a record that is missing. Each read scans every bucket:
// no record may be in it twice, none of an acknowledged write may be missing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/ids.h"
#include "sim/cluster/cluster.h"
#include "sim/workloads/workload.h"

namespace etalon::sim {

class Maps final : public Workload {
 public:
  struct Options {
    Duration pause = std::chrono::milliseconds(20);  // between two calls of one kind, at most
    // Also writes without a request ID; where nothing fails, no call may.
    bool nothing_fails = false;
  };

  Maps(Cluster& cluster, Options options) : cluster_(cluster), options_(options) {}
  void Start() override;
  void Stop() override { stopping_ = true; }
  bool idle() const override { return under_way_ == 0; }
  // By a scan of every bucket: what was acknowledged, and nothing else.
  bool Verify(Duration limit) override;

  // How many calls had results of more than one level: the modulus doubled in the middle.
  std::uint64_t mixed() const { return mixed_; }

 private:
  // nullptr: the stream to the router broke, and nobody knows.
  using Done = std::function<void(const v1::MapCallResponse*)>;
  using Rounds = std::map<std::uint64_t, std::set<BucketId>>;  // the buckets that it ran on

  void Write(std::uint64_t round);
  void Written(std::uint64_t round, bool safe, const v1::MapCallResponse* response);
  void Read();
  void Call(v1::ClientRequest request, const Done& done);
  void Later(std::function<void()> next);
  // What is wrong with an OK answer; "": every key is of exactly one of its buckets.
  std::string CheckTiling(const v1::MapCallResponse& response);
  // The same for the records that scans of all buckets returned. `exactly`: nothing else ran.
  std::string CheckScan(const v1::MapCallResponse& response, const Rounds& acknowledged,
                        bool exactly);
  bool IsLaterHalf(std::uint64_t round, std::uint64_t value) const;
  v1::ClientRequest ScanRequest() const;

  Cluster& cluster_;
  const Options options_;
  bool stopping_ = false;
  int under_way_ = 0;
  std::uint64_t mixed_ = 0;
  Rounds written_;
  std::set<std::uint64_t> open_;  // rounds that were sent and never acknowledged
};

}  // namespace etalon::sim
