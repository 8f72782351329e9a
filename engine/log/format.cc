#include "engine/log/format.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/bytes.h"
#include "common/crc32c.h"

namespace etalon::log {

using consensus::Entry;
using consensus::EntryKind;
using consensus::HardState;
using consensus::Snapshot;

namespace {

constexpr std::string_view kSegmentMagic = "ETALONLG";
constexpr std::string_view kSuffix = ".seg";
constexpr std::size_t kDigits = 10;
constexpr std::uint32_t kRecordMagic = 0x474F4C45;  // "ELOG"
constexpr std::uint64_t kAlign = 8;

// What a payload holds, in this order.
constexpr std::uint32_t kHasStart = 1;
constexpr std::uint32_t kHasReset = 2;
constexpr std::uint32_t kHasHardState = 4;
constexpr std::uint32_t kHasEntries = 8;
constexpr std::uint32_t kKnownFlags = kHasStart | kHasReset | kHasHardState | kHasEntries;

void Put(std::string* out, const HardState& state) {
  PutLe64(out, state.term.value());
  PutLe64(out, state.vote.value());
  PutLe64(out, state.commit.value());
}

template <typename Id>
bool Get(std::string_view* in, Id* id) {
  std::uint64_t value = 0;
  if (!GetLe64(in, &value)) return false;
  *id = Id(value);
  return true;
}

bool Get(std::string_view* in, HardState* state) {
  return Get(in, &state->term) && Get(in, &state->vote) && Get(in, &state->commit);
}

void Put(std::string* out, const std::vector<MemberId>& members) {
  PutLe32(out, static_cast<std::uint32_t>(members.size()));
  for (const MemberId id : members) PutLe64(out, id.value());
}

bool Get(std::string_view* in, std::vector<MemberId>* members) {
  std::uint32_t count = 0;
  if (!GetLe32(in, &count) || count > in->size() / 8) return false;
  members->resize(count);
  for (MemberId& id : *members) {
    if (!Get(in, &id)) return false;
  }
  return true;
}

bool Get(std::string_view* in, std::size_t size, std::string_view* out) {
  if (in->size() < size) return false;
  *out = in->substr(0, size);
  in->remove_prefix(size);
  return true;
}

Status Malformed(std::string_view what) {
  return DataLoss(fmt::format("{} of a log record cannot be understood", what));
}

}  // namespace

std::string SegmentName(std::uint32_t number) {
  return fmt::format("{:0{}}{}", number, kDigits, kSuffix);
}

std::uint32_t SegmentNumber(std::string_view name) {
  if (name.size() != kDigits + kSuffix.size() || name.substr(kDigits) != kSuffix) return 0;
  std::uint64_t number = 0;
  for (const char c : name.substr(0, kDigits)) {
    if (c < '0' || c > '9') return 0;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number > UINT32_MAX ? 0 : static_cast<std::uint32_t>(number);
}

std::string EncodeSegmentHeader(const SegmentHeader& header) {
  std::string out(kSegmentMagic);
  PutLe32(&out, kFormatVersion);
  PutLe32(&out, Crc32c(out));
  const std::size_t fixed = out.size();
  PutLe64(&out, header.number);
  PutLe64(&out, header.salt);
  PutLe64(&out, header.size);
  PutLe32(&out, Crc32c(std::string_view(out).substr(fixed)));
  out.resize(kSegmentHeaderBytes);
  return out;
}

Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes)
    return DataLoss("the file is shorter than a segment header");
  std::string_view in = bytes.substr(kSegmentMagic.size());
  std::uint32_t version = 0;
  std::uint32_t crc = 0;
  GetLe32(&in, &version);
  GetLe32(&in, &crc);
  if (bytes.substr(0, kSegmentMagic.size()) != kSegmentMagic ||
      Crc32c(bytes.substr(0, 12)) != crc) {
    return DataLoss("bad segment header");
  }
  if (version > kFormatVersion) {
    return FailedPrecondition(
        Reason::kNewerFormat,
        fmt::format("the log has format {}, this program knows {}: run the newer version", version,
                    kFormatVersion));
  }
  SegmentHeader header;
  std::uint64_t number = 0;
  GetLe64(&in, &number);
  GetLe64(&in, &header.salt);
  GetLe64(&in, &header.size);
  GetLe32(&in, &crc);
  if (Crc32c(bytes.substr(16, 24)) != crc || number == 0 || number > UINT32_MAX) {
    return DataLoss("bad segment header");
  }
  header.number = static_cast<std::uint32_t>(number);
  return header;
}

std::uint32_t EntriesOffset(const Content& content) {
  std::size_t size = 4;
  if (content.start) {
    size += 16 + 24;
    if (const auto& reset = content.start->reset) {
      size += 4 + 8 * reset->members.voters.size() + 4 + 8 * reset->members.learners.size();
      size += 4 + reset->name.size();
    }
  }
  if (content.hard_state) size += 24;
  return static_cast<std::uint32_t>(size + 8 + 8 + 4);
}

std::string EncodeContent(const Content& content) {
  std::uint32_t flags = 0;
  if (content.start) flags |= kHasStart | (content.start->reset ? kHasReset : 0);
  if (content.hard_state) flags |= kHasHardState;
  if (!content.entries.empty()) flags |= kHasEntries;
  std::size_t size = EntriesOffset(content);
  for (const Entry& entry : content.entries) size += kEntryHeaderBytes + entry.data.size();

  std::string out;
  out.reserve(size);
  PutLe32(&out, flags);
  if (const auto& start = content.start) {
    PutLe64(&out, start->base_index.value());
    PutLe64(&out, start->base_term.value());
    Put(&out, start->hard_state);
    if (const auto& reset = start->reset) {
      Put(&out, reset->members.voters);
      Put(&out, reset->members.learners);
      PutLe32(&out, static_cast<std::uint32_t>(reset->name.size()));
      out += reset->name;
    }
  }
  if (content.hard_state) Put(&out, *content.hard_state);
  if (content.entries.empty()) return out;
  PutLe64(&out, content.entries.front().index.value());
  PutLe64(&out, content.prev_term.value());
  PutLe32(&out, static_cast<std::uint32_t>(content.entries.size()));
  for (const Entry& entry : content.entries) {
    PutLe64(&out, entry.term.value());
    PutLe32(&out, static_cast<std::uint32_t>(entry.kind));
    PutLe32(&out, static_cast<std::uint32_t>(entry.data.size()));
    out += entry.data;
  }
  return out;
}

Result<Content> DecodeContent(std::string_view payload) {
  std::string_view in = payload;
  Content content;
  std::uint32_t flags = 0;
  if (!GetLe32(&in, &flags) || (flags & ~kKnownFlags) != 0 ||
      ((flags & kHasReset) && !(flags & kHasStart))) {
    return Malformed("the kind");
  }
  if (flags & kHasStart) {
    Content::Start& start = content.start.emplace();
    if (!Get(&in, &start.base_index) || !Get(&in, &start.base_term) ||
        !Get(&in, &start.hard_state)) {
      return Malformed("the start");
    }
    if (flags & kHasReset) {
      Snapshot& reset = start.reset.emplace();
      reset.index = start.base_index;
      reset.term = start.base_term;
      std::uint32_t size = 0;
      std::string_view name;
      if (!Get(&in, &reset.members.voters) || !Get(&in, &reset.members.learners) ||
          !GetLe32(&in, &size) || !Get(&in, size, &name)) {
        return Malformed("the snapshot");
      }
      reset.name = name;
    }
  }
  if ((flags & kHasHardState) && !Get(&in, &content.hard_state.emplace())) {
    return Malformed("the vote");
  }
  if (flags & kHasEntries) {
    LogIndex index;
    std::uint32_t count = 0;
    if (!Get(&in, &index) || !Get(&in, &content.prev_term) || !GetLe32(&in, &count) || count == 0 ||
        count > in.size() / kEntryHeaderBytes || !index || index.value() > UINT64_MAX - count) {
      return Malformed("the list of entries");
    }
    content.entries.reserve(count);
    for (; count > 0; --count, index = index.Next()) {
      Entry entry;
      entry.index = index;
      std::uint32_t kind = 0;
      std::uint32_t size = 0;
      if (!Get(&in, &entry.term) || !GetLe32(&in, &kind) || !GetLe32(&in, &size) ||
          !Get(&in, size, &entry.data)) {
        return Malformed("an entry");
      }
      entry.kind = static_cast<EntryKind>(kind);
      if (entry.kind != EntryKind::kCommands && entry.kind != EntryKind::kMembers) {
        return Malformed("the kind of an entry");
      }
      content.entries.push_back(entry);
    }
  }
  if (!in.empty()) return Malformed("the end");
  return content;
}

std::uint32_t SaltCrc(const SegmentHeader& header) {
  std::string bytes;
  PutLe64(&bytes, header.salt);
  PutLe64(&bytes, header.number);
  return Crc32c(bytes);
}

std::uint64_t RecordBytes(std::uint64_t payload_size) {
  return (kRecordHeaderBytes + payload_size + kAlign - 1) / kAlign * kAlign;
}

void AppendRecord(std::string* out, std::uint32_t salt_crc, std::uint64_t sequence,
                  std::uint64_t durable, std::string_view payload) {
  const std::size_t begin = out->size();
  PutLe32(out, kRecordMagic);
  PutLe32(out, static_cast<std::uint32_t>(payload.size()));
  PutLe64(out, sequence);
  PutLe64(out, durable);
  PutLe32(out, Crc32cExtend(salt_crc, payload));
  PutLe32(out, Crc32cExtend(salt_crc, std::string_view(*out).substr(begin)));
  *out += payload;
  out->resize(begin + RecordBytes(payload.size()));
}

std::optional<RecordHeader> DecodeRecordHeader(std::string_view bytes, std::uint32_t salt_crc) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  std::string_view in = bytes;
  std::uint32_t magic = 0;
  std::uint32_t crc = 0;
  RecordHeader header;
  GetLe32(&in, &magic);
  if (magic != kRecordMagic) return std::nullopt;
  GetLe32(&in, &header.payload_size);
  GetLe64(&in, &header.sequence);
  GetLe64(&in, &header.durable);
  GetLe32(&in, &header.payload_crc);
  GetLe32(&in, &crc);
  if (Crc32cExtend(salt_crc, bytes.substr(0, kRecordHeaderBytes - 4)) != crc) return std::nullopt;
  if (header.payload_size > kMaxPayloadBytes || header.sequence == 0 ||
      header.durable >= header.sequence) {
    return std::nullopt;
  }
  return header;
}

bool PayloadMatches(const RecordHeader& header, std::string_view payload, std::uint32_t salt_crc) {
  return payload.size() == header.payload_size &&
         Crc32cExtend(salt_crc, payload) == header.payload_crc;
}

RecordReader::RecordReader(std::string_view segment, const SegmentHeader& header)
    : segment_(segment), salt_crc_(SaltCrc(header)) {}

std::optional<RecordReader::Record> RecordReader::Next() {
  if (offset_ >= segment_.size()) return std::nullopt;
  const std::string_view rest = segment_.substr(offset_);
  const std::optional<RecordHeader> header = DecodeRecordHeader(rest, salt_crc_);
  if (!header || (last_sequence_ != 0 && header->sequence != last_sequence_ + 1)) {
    return std::nullopt;
  }
  const std::string_view payload = rest.substr(kRecordHeaderBytes, header->payload_size);
  if (!PayloadMatches(*header, payload, salt_crc_)) return std::nullopt;
  const Record record{offset_, header->sequence, payload};
  last_sequence_ = header->sequence;
  offset_ += RecordBytes(payload.size());
  return record;
}

std::uint64_t RecordReader::Rest() const {
  if (offset_ >= segment_.size()) return 0;
  const std::size_t last = segment_.find_last_not_of('\0');
  return last == std::string_view::npos || last < offset_ ? 0 : last + 1 - offset_;
}

std::uint64_t RecordReader::DurableInRest() const {
  std::uint64_t durable = 0;
  for (std::uint64_t at = offset_; at < segment_.size(); at += kAlign) {
    if (const auto header = DecodeRecordHeader(segment_.substr(at), salt_crc_)) {
      durable = std::max(durable, header->durable);
    }
  }
  return durable;
}

}  // namespace etalon::log
