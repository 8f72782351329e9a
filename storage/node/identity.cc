#include "storage/node/identity.h"

#include "common/bytes.h"
#include "common/crc32c.h"

namespace etalon::storage {

namespace {

// "ETID" · le32 format · le64 collection · le64 shard · le64 member · replica name · le32 CRC-32C
// of all before it.
constexpr std::string_view kMagic = "ETID";
constexpr std::uint32_t kFormat = 1;

}  // namespace

Result<Identity> ReadIdentity(Disk& disk) {
  ETALON_ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(disk, kIdentityFile, 4096));
  const auto damaged = [&](std::string_view what) {
    return DataLoss(std::string(kIdentityFile) + " is damaged (" + std::string(what) +
                    "): this disk counts as lost; replace it by a blank one and let the shard "
                    "rebuild the replica");
  };
  if (bytes.size() < kMagic.size() + 4 + 24 + 4 || bytes.substr(0, 4) != kMagic)
    return damaged("no identity");
  std::string_view in(bytes);
  std::string_view tail = in.substr(in.size() - 4);
  std::uint32_t crc = 0;
  (void)GetLe32(&tail, &crc);
  in.remove_prefix(kMagic.size());
  std::uint32_t format = 0;
  (void)GetLe32(&in, &format);
  if (format > kFormat) {
    return FailedPrecondition(Reason::kNewerFormat,
                              "the data directory has format " + std::to_string(format) +
                                  ", this program knows up to " + std::to_string(kFormat) +
                                  ": run a newer version");
  }
  if (Crc32c(std::string_view(bytes).substr(0, bytes.size() - 4)) != crc)
    return damaged("bad checksum");
  std::uint64_t collection = 0, shard = 0, member = 0;
  (void)GetLe64(&in, &collection);
  (void)GetLe64(&in, &shard);
  (void)GetLe64(&in, &member);
  in.remove_suffix(4);
  return Identity{CollectionId(collection), ShardUid(shard), std::string(in), MemberId(member)};
}

DiskJob WriteIdentity(const Identity& identity) {
  std::string bytes(kMagic);
  PutLe32(&bytes, kFormat);
  PutLe64(&bytes, identity.collection.value());
  PutLe64(&bytes, identity.shard.value());
  PutLe64(&bytes, identity.member.value());
  bytes += identity.replica;
  PutLe32(&bytes, Crc32c(bytes));
  return ReplaceFile(kIdentityFile, std::move(bytes));
}

Status CheckIdentity(const Identity& found, const Identity& wanted) {
  if (found.collection == wanted.collection && found.shard == wanted.shard &&
      found.replica == wanted.replica) {
    return OkStatus();
  }
  const auto describe = [](const Identity& i) {
    return "replica " + i.replica + " of shard " + ToHex(i.shard.value()) + " of collection " +
           ToHex(i.collection.value());
  };
  return FailedPrecondition(Reason::kForeignDisk,
                            "this data directory belongs to " + describe(found) +
                                ", but the process was started as " + describe(wanted) +
                                ": nothing was touched; give it the right directory");
}

}  // namespace etalon::storage
