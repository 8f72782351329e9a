// Who a disk belongs to. Written once, before anything else, and never changed; nothing is wiped
// because it differs.
#pragma once

#include <string>

#include "common/ids.h"
#include "common/status.h"
#include "env/disk.h"

namespace etalon::storage {

struct Identity {
  CollectionId collection;
  ShardUid shard;
  std::string replica;  // "orders-shard-0-1"
  MemberId member;      // the disk incarnation, made with the disk

  bool operator==(const Identity&) const = default;
};

inline constexpr char kIdentityFile[] = "IDENTITY";

// NOT_FOUND on a blank disk. DATA_LOSS when the file is damaged; FAILED_PRECONDITION/NEWER_FORMAT
// when a newer version of the program wrote it. Reads synchronously.
Result<Identity> ReadIdentity(Disk& disk);

// Ops that write it durably.
DiskJob WriteIdentity(const Identity& identity);

// Whether this disk may serve what the process was told to serve: FAILED_PRECONDITION/FOREIGN_DISK
// with a sentence that names both sides. The member of `wanted` is not looked at.
Status CheckIdentity(const Identity& found, const Identity& wanted);

}  // namespace etalon::storage
