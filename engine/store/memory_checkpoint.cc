#include "engine/store/memory_checkpoint.h"

#include <algorithm>
#include <utility>

#include "common/bytes.h"
#include "common/crc32c.h"

namespace etalon::store {
namespace {

constexpr std::string_view kMagic = "ETALCKPT";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFileHeader = 8 + 4 + 4;
constexpr std::size_t kFrameHeader = 4 + 4;
constexpr std::size_t kFrameTarget = 256u << 10;
constexpr std::size_t kReadPiece = 1u << 20;
constexpr char kRecords = 'R';
constexpr char kEnd = 'E';

// Reads a file front to back, in large pieces.
class Reader {
 public:
  Reader(Disk& disk, std::string_view path, std::uint64_t size)
      : disk_(disk), path_(path), left_(size) {}

  // Exactly `size` bytes, good until the next call.
  Result<std::string_view> Take(std::size_t size) {
    if (size > left_) return Bad("ends too early");
    if (size > buffer_.size() - used_) {
      const std::size_t want = std::max(size, kReadPiece);
      ETALON_ASSIGN_OR_RETURN(buffer_, disk_.Read(path_, offset_, want));
      used_ = 0;
      if (buffer_.size() < size) return Bad("ends too early");
    }
    const auto out = std::string_view(buffer_).substr(used_, size);
    used_ += size;
    offset_ += size;
    left_ -= size;
    return out;
  }

  std::uint64_t left() const { return left_; }

  Status Bad(std::string_view what) const {
    return DataLoss("the checkpoint " + path_ + " " + std::string(what) + " at byte " +
                    std::to_string(offset_) +
                    ": build this replica anew from the others of its shard");
  }

 private:
  Disk& disk_;
  const std::string path_;
  std::uint64_t left_;
  std::uint64_t offset_ = 0;
  std::string buffer_;
  std::size_t used_ = 0;
};

Status ReadHeader(Reader* reader) {
  ETALON_ASSIGN_OR_RETURN(std::string_view header, reader->Take(kFileHeader));
  const std::uint32_t crc = Crc32c(header.substr(0, kFileHeader - 4));
  if (header.substr(0, kMagic.size()) != kMagic) return reader->Bad("does not begin as one");
  header.remove_prefix(kMagic.size());
  std::uint32_t version = 0;
  std::uint32_t stored_crc = 0;
  GetLe32(&header, &version);
  GetLe32(&header, &stored_crc);
  if (stored_crc != crc) return reader->Bad("has a damaged header");
  if (version != kVersion) {
    return FailedPrecondition(Reason::kNewerFormat,
                              "the checkpoint has version " + std::to_string(version) +
                                  ", this program reads " + std::to_string(kVersion) +
                                  ": start the newer program again");
  }
  return OkStatus();
}

// False when the payload is not made of whole records in ascending order.
bool AddRecords(std::string_view payload, PersistentMap* map, std::string* last,
                std::uint64_t* records) {
  while (!payload.empty()) {
    std::uint32_t key_size = 0;
    std::uint32_t value_size = 0;
    if (!GetLe32(&payload, &key_size) || !GetLe32(&payload, &value_size)) return false;
    if (payload.size() < std::uint64_t{key_size} + value_size) return false;
    std::string key(payload.substr(0, key_size));
    std::string value(payload.substr(key_size, value_size));
    payload.remove_prefix(std::size_t{key_size} + value_size);
    if (*records > 0 && key <= *last) return false;
    *last = key;
    ++*records;
    map->Put(std::move(key), std::move(value));
  }
  return true;
}

}  // namespace

CheckpointEncoder::CheckpointEncoder(const PersistentMap& map) : cursor_(map) { cursor_.Seek(""); }

std::string CheckpointEncoder::Next(std::size_t size) {
  std::string out;
  if (!begun_) {
    begun_ = true;
    out.append(kMagic);
    PutLe32(&out, kVersion);
    PutLe32(&out, Crc32c(out));
  }
  while (!ended_ && out.size() < size) AddFrame(&out);
  return out;
}

void CheckpointEncoder::AddFrame(std::string* out) {
  std::string payload;
  if (cursor_.Valid()) {
    payload.push_back(kRecords);
    for (; cursor_.Valid() && payload.size() < kFrameTarget; cursor_.Next()) {
      PutLe32(&payload, static_cast<std::uint32_t>(cursor_.key().size()));
      PutLe32(&payload, static_cast<std::uint32_t>(cursor_.value().size()));
      payload.append(cursor_.key()).append(cursor_.value());
      ++records_;
    }
  } else {
    payload.push_back(kEnd);
    PutLe64(&payload, records_);
    ended_ = true;
  }
  crc_ = Crc32cExtend(crc_, payload);
  PutLe32(out, static_cast<std::uint32_t>(payload.size()));
  PutLe32(out, crc_);
  out->append(payload);
}

Result<PersistentMap> ReadCheckpoint(Disk& disk, std::string_view path) {
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t size, disk.Size(path));
  Reader reader(disk, path, size);
  ETALON_RETURN_IF_ERROR(ReadHeader(&reader));
  PersistentMap map;
  std::string last;
  std::uint64_t records = 0;
  std::uint32_t crc = 0;
  for (;;) {
    ETALON_ASSIGN_OR_RETURN(std::string_view header, reader.Take(kFrameHeader));
    std::uint32_t length = 0;
    std::uint32_t stored_crc = 0;
    GetLe32(&header, &length);
    GetLe32(&header, &stored_crc);
    ETALON_ASSIGN_OR_RETURN(std::string_view payload, reader.Take(length));
    crc = Crc32cExtend(crc, payload);
    if (crc != stored_crc || payload.empty()) return reader.Bad("has a damaged frame that ends");
    const char kind = payload.front();
    payload.remove_prefix(1);
    if (kind == kRecords) {
      if (!AddRecords(payload, &map, &last, &records)) {
        return reader.Bad("has a malformed frame that ends");
      }
      continue;
    }
    std::uint64_t count = 0;
    if (kind != kEnd || !GetLe64(&payload, &count) || count != records || reader.left() != 0) {
      return reader.Bad("has a wrong end");
    }
    return map;
  }
}

}  // namespace etalon::store
