// What the contract tests need of one kind of store: a disk, a way to let time pass, a way to
// crash.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/random.h"
#include "engine/store/store.h"
#include "env/disk.h"

namespace etalon::store {

class Harness {
 public:
  virtual ~Harness() = default;

  // Both are new after a crash.
  virtual Disk& disk() = 0;
  virtual StoreFactory& factory() = 0;

  // Runs the next completion; waits for it.
  virtual void Step() = 0;
  // Lets some of what is under way end, by chance.
  virtual void Idle(Random& random) = 0;
  // The machine stops: nothing that is under way ends, and what was not synced is lost, kept or
  // torn. All stores, snapshots and sets were destroyed before.
  virtual void Crash() = 0;

  void RunUntil(const std::function<bool()>& done) {
    while (!done()) Step();
  }
};

// Defined by each test program for its kind of store.
std::unique_ptr<Harness> NewHarness(std::uint64_t seed);

}  // namespace etalon::store
