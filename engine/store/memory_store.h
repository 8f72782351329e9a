// A store that lives in memory; a checkpoint writes all of it into one file (docs/formats.md).
#pragma once

#include <string>
#include <string_view>

#include "engine/store/store.h"
#include "env/disk.h"

namespace etalon::store {

// For small collections, tests and simulation. Write, Get and a snapshot cost the logarithm of the
// number of keys; a checkpoint costs as much as the store is large, in slices of 1 MiB between
// which other work goes on.
class MemoryStoreFactory final : public StoreFactory {
 public:
  // `disk` must outlive the factory and its stores.
  explicit MemoryStoreFactory(Disk& disk) : disk_(disk) {}
  Result<std::unique_ptr<Store>> Open(std::string_view dir, OpenMode mode) override;

 private:
  Disk& disk_;
};

}  // namespace etalon::store
