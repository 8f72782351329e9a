// The checkpoint file of the memory store (docs/formats.md, "Memory store checkpoint").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/status.h"
#include "engine/store/persistent_map.h"
#include "env/disk.h"

namespace etalon::store {

// Makes the bytes of the file piece by piece.
class CheckpointEncoder {
 public:
  // Sees `map` as it is now.
  explicit CheckpointEncoder(const PersistentMap& map);

  // The bytes that follow: at least `size` of them unless the file ends, more by at most one frame.
  // Empty at the end.
  std::string Next(std::size_t size);

 private:
  void AddFrame(std::string* out);

  PersistentMap::Cursor cursor_;
  std::uint64_t records_ = 0;
  std::uint32_t crc_ = 0;
  bool begun_ = false;
  bool ended_ = false;
};

// The map that the file holds. NOT_FOUND when there is none; DATA_LOSS when it is not whole and
// right; FAILED_PRECONDITION/NEWER_FORMAT when a newer program wrote it.
Result<PersistentMap> ReadCheckpoint(Disk& disk, std::string_view path);

}  // namespace etalon::store
