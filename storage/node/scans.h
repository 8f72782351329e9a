// Scans of one bucket: pages over one store snapshot, held under a leased read reference. If the
// bucket moves or the lease runs out, the scan of it starts again with a reason. Local to the
// replica that serves the scan.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/random.h"
#include "common/status.h"
#include "common/time.h"
#include "engine/bucket/state_machine.h"
#include "engine/store/store.h"
#include "etalon/v1/call.pb.h"

namespace etalon::storage {

class Scans {
 public:
  static constexpr Duration kLease = std::chrono::seconds(30);  // renewed by every page
  static constexpr std::size_t kMaxOpen = 1024;
  static constexpr std::uint32_t kDefaultLimit = 1000;
  static constexpr std::uint64_t kPageBytes = 1u << 20;  // a larger record is a page of its own

  explicit Scans(Random random) : random_(random) {}

  // One page; the same cursor returns the same page again, except that of the last one, which ends
  // the scan. The caller has checked that the bucket may be read here and now. `level` is that of
  // the bucket that a scan of a whole bucket means: the shard's, or a higher one for a part of its
  // bucket.
  // ABORTED/SCAN_RESTARTED: the cursor is of a scan that ended here (lease, restart, another
  // replica): start again. INVALID_ARGUMENT: malformed cursor. NOT_FOUND/UNKNOWN_SPACE.
  // RESOURCE_EXHAUSTED: too many open scans.
  Result<v1::ScanResult> Page(RoutingValue v, std::uint8_t level, const v1::ScanArgs& args,
                              const bucket::StateMachine& state, const store::Store& store,
                              SteadyTime now);

  // The row of `bucket` is not readable here any more: its scans go on on their snapshots for the
  // page under way only.
  void OnBucketGone(std::uint32_t bucket);
  // Rows stand at another level now: references are counted per bucket, so running scans end.
  void OnRebase() { open_.clear(); }
  void Expire(SteadyTime now);

  std::uint64_t refs() const { return open_.size(); }
  std::uint32_t RefsOf(std::uint32_t bucket) const;

 private:
  struct Scan {
    std::shared_ptr<store::Snapshot> snapshot;
    std::uint32_t bucket = 0;
    RoutingValue value;
    bool whole_bucket = false;
    std::string begin;  // store keys
    std::string end;
    SpaceId space;  // 0: all
    SteadyTime expires;
  };

  Result<v1::ScanResult> Read(const Scan& scan, std::string_view from, std::uint32_t limit,
                              const bucket::StateMachine& state, std::string* next) const;

  Random random_;
  std::map<std::uint64_t, Scan> open_;
};

}  // namespace etalon::storage
