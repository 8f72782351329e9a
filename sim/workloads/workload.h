// Clients of a simulated collection that know what they may see.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace etalon::sim {

class Workload {
 public:
  virtual ~Workload() = default;
  virtual void Start() = 0;
  virtual void Stop() = 0;
  // Every call was answered.
  virtual bool idle() const = 0;
  // Compares everything; call when stopped, idle and the cluster is healthy.
  virtual bool Verify(Duration limit) = 0;

  // What went wrong; empty: nothing so far.
  const std::vector<std::string>& failures() const { return failures_; }
  std::uint64_t acknowledged() const { return acknowledged_; }  // writes
  std::uint64_t reads() const { return reads_; }
  std::uint64_t unknown() const { return unknown_; }  // writes whose outcome nobody told

 protected:
  void Fail(std::string what) { failures_.push_back(std::move(what)); }

  std::uint64_t acknowledged_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t unknown_ = 0;

 private:
  std::vector<std::string> failures_;
};

}  // namespace etalon::sim
