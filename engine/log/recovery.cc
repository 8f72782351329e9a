#include "engine/log/recovery.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

namespace etalon::log {

namespace {

Status Lost(const std::string& path, std::uint64_t offset, std::string_view what) {
  return DataLoss(fmt::format("{} at offset {}: {}; this disk counts as lost", path, offset, what));
}

// One segment file in memory.
struct Loaded {
  std::uint32_t number = 0;
  std::string path;
  std::string bytes;
  SegmentHeader header;
  std::uint64_t first_sequence = 0;  // of its first record; 0 when there is none
};

Result<Loaded> Load(Disk& disk, const std::string& dir, std::uint32_t number) {
  Loaded segment;
  segment.number = number;
  segment.path = dir + "/" + SegmentName(number);
  ETALON_ASSIGN_OR_RETURN(const std::uint64_t size, disk.Size(segment.path));
  ETALON_ASSIGN_OR_RETURN(segment.bytes, disk.Read(segment.path, 0, size));
  const Result<SegmentHeader> header = DecodeSegmentHeader(segment.bytes);
  if (!header.ok()) {
    const Status status = header.status();
    if (status.reason() == Reason::kNewerFormat) return status.Annotate(segment.path);
    return Lost(segment.path, 0, status.message());
  }
  segment.header = *header;
  if (header->number != number) {
    return Lost(segment.path, 0, fmt::format("this is segment {}", header->number));
  }
  RecordReader reader(segment.bytes, segment.header);
  if (const auto first = reader.Next()) segment.first_sequence = first->sequence;
  return segment;
}

// Numbers of the segments, without a gap; paths of unfinished files.
struct Listing {
  std::vector<std::uint32_t> numbers;
  std::vector<std::string> leftovers;
};

Result<Listing> ListSegments(Disk& disk, const std::string& dir) {
  Listing out;
  const Result<std::vector<std::string>> names = disk.List(dir);
  if (!names.ok()) {
    if (names.status().code() == Code::kNotFound) return out;
    return names.status();
  }
  for (const std::string& name : *names) {
    if (name.ends_with(kUnfinished)) out.leftovers.push_back(dir + "/" + name);
    const std::uint32_t number = SegmentNumber(name);
    if (number == 0) continue;
    if (!out.numbers.empty() && number != out.numbers.back() + 1) {
      return Lost(dir + "/" + SegmentName(out.numbers.back() + 1), 0, "the segment is missing");
    }
    out.numbers.push_back(number);
  }
  return out;
}

class Recovery {
 public:
  explicit Recovery(const RecordSink& sink) : sink_(sink) {}

  // Segments in order; `next` follows, if there is one.
  Status Take(const Loaded& segment, const Loaded* next);
  Found Finish() { return std::move(found_); }

 private:
  Status TakeRecord(const Loaded& segment, const RecordReader::Record& record, bool first);

  const RecordSink& sink_;
  Found found_;
  bool ended_ = false;  // the end of the records was met: later segments must be unused
};

Status Recovery::TakeRecord(const Loaded& segment, const RecordReader::Record& record, bool first) {
  const auto lost = [&](std::string_view what) { return Lost(segment.path, record.offset, what); };
  Tail& tail = found_.tail;
  if (!tail.segments.empty() && record.sequence != tail.last_sequence + 1) {
    return lost("records are missing before this one");
  }
  const std::uint64_t end = record.offset + RecordBytes(record.payload.size());
  if (end > UINT32_MAX) return lost("the segment is too long");
  const Result<Content> content = DecodeContent(record.payload);
  if (!content.ok()) return lost(content.status().message());
  if (content->start.has_value() != first) return lost("a start in the wrong place");
  const Position position{segment.number, static_cast<std::uint32_t>(record.offset)};
  if (const Status status = sink_(position, *content, record.payload); !status.ok()) {
    return lost(status.message());
  }
  tail.segments[segment.number] = {segment.header.salt, end};
  tail.last_sequence = record.sequence;
  return OkStatus();
}

Status Recovery::Take(const Loaded& segment, const Loaded* next) {
  RecordReader reader(segment.bytes, segment.header);
  // Records from that sequence on are the next segment's: what else this one holds is a torn tail
  // that a later life left behind.
  const std::uint64_t limit = next ? next->first_sequence : 0;
  bool first = true;
  while (!ended_ && (first || limit == 0 || found_.tail.last_sequence + 1 < limit)) {
    const auto record = reader.Next();
    if (!record) break;
    ETALON_RETURN_IF_ERROR(TakeRecord(segment, *record, first));
    first = false;
  }
  const auto lost = [&](std::string_view what) {
    return Lost(segment.path, reader.offset(), what);
  };
  const std::uint64_t expected = found_.tail.last_sequence + 1;
  if (limit != 0) {
    if (first || expected != limit) return lost("a damaged record before the end of the log");
    return OkStatus();
  }
  // No later segment has records, so this one is as long as it was made, and its records may end in
  // a torn group.
  const std::uint64_t rest = reader.Rest();
  if (ended_ && rest != 0) return lost("records behind the end of the log");
  if (first && !ended_ && found_.tail.segments.empty() && segment.number != 1) {
    return lost("no readable record, and the segments before it are gone");
  }
  if (rest != 0 && reader.DurableInRest() >= expected)
    return lost("a damaged record that was durable");
  if (segment.bytes.size() < segment.header.size) {
    // A later life gives the space back, but only once a record in the next segment is durable.
    if (next) return Lost(next->path, kSegmentHeaderBytes, "its first record is damaged");
    return Lost(segment.path, segment.bytes.size(), "the file was cut short");
  }
  found_.torn_bytes += rest;
  // A segment is written to only after the one before is durable as a whole.
  if (first || rest != 0) ended_ = true;
  return OkStatus();
}

}  // namespace

Result<Found> Recover(Disk& disk, const std::string& dir, const RecordSink& sink) {
  ETALON_ASSIGN_OR_RETURN(Listing listing, ListSegments(disk, dir));
  Recovery recovery(sink);
  std::optional<Loaded> segment;
  for (const std::uint32_t number : listing.numbers) {
    ETALON_ASSIGN_OR_RETURN(Loaded next, Load(disk, dir, number));
    if (segment) ETALON_RETURN_IF_ERROR(recovery.Take(*segment, &next));
    segment = std::move(next);
  }
  if (segment) ETALON_RETURN_IF_ERROR(recovery.Take(*segment, nullptr));
  Found found = recovery.Finish();
  found.tail.leftovers = std::move(listing.leftovers);
  return found;
}

}  // namespace etalon::log
