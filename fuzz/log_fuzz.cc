// Bytes of a segment file -> records (engine/log/format.h). Whatever the bytes are, nothing is read
// outside of them, and no record is given out that its own checksums do not vouch for.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/check.h"
#include "engine/log/format.h"

namespace {

using etalon::log::AppendRecord;
using etalon::log::Content;
using etalon::log::DecodeContent;
using etalon::log::DecodeRecordHeader;
using etalon::log::DecodeSegmentHeader;
using etalon::log::EncodeContent;
using etalon::log::EncodeSegmentHeader;
using etalon::log::kRecordHeaderBytes;
using etalon::log::kSegmentHeaderBytes;
using etalon::log::PayloadMatches;
using etalon::log::RecordReader;
using etalon::log::SaltCrc;
using etalon::log::SegmentHeader;

// What can be understood is encoded as it was read: there is one form of each content.
void CheckPayload(std::string_view payload) {
  const etalon::Result<Content> content = DecodeContent(payload);
  if (content.ok()) ETALON_CHECK(EncodeContent(*content) == payload, "a content has two forms");
}

void CheckSegment(std::string_view bytes, const SegmentHeader& header) {
  RecordReader reader(bytes, header);
  std::uint64_t sequence = 0;
  while (const auto record = reader.Next()) {
    ETALON_CHECK(record->offset + kRecordHeaderBytes + record->payload.size() <= bytes.size(),
                 "outside");
    const auto head = DecodeRecordHeader(bytes.substr(record->offset), SaltCrc(header));
    ETALON_CHECK(head && PayloadMatches(*head, record->payload, SaltCrc(header)), "unchecked");
    ETALON_CHECK(sequence == 0 || record->sequence == sequence + 1, "out of order");
    sequence = record->sequence;
    CheckPayload(record->payload);
  }
  ETALON_CHECK(reader.Rest() <= bytes.size(), "more rest than bytes");
  (void)reader.DurableInRest();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // As a file.
  const etalon::Result<SegmentHeader> header = DecodeSegmentHeader(input);
  if (header.ok()) CheckSegment(input, *header);
  // As a payload, and as the payload of a record with right checksums, which a mutation hardly ever
  // makes.
  CheckPayload(input);
  const SegmentHeader own{.number = 1, .salt = 5, .size = 4096};
  std::string segment = EncodeSegmentHeader(own);
  AppendRecord(&segment, SaltCrc(own), 1, 0, input);
  AppendRecord(&segment, SaltCrc(own), 2, 1, "next");
  RecordReader reader(segment, own);
  const auto first = reader.Next();
  ETALON_CHECK(first && first->payload == input, "a record is not read back");
  CheckSegment(segment, own);
  // Damaged where the input says: the damaged record is not given out, and the next one is
  // evidence.
  if (size >= 2) {
    const std::size_t at = (data[0] | data[1] << 8) % (kRecordHeaderBytes + size);
    segment[kSegmentHeaderBytes + at] = static_cast<char>(segment[kSegmentHeaderBytes + at] ^ 0x10);
    RecordReader damaged(segment, own);
    ETALON_CHECK(!damaged.Next(), "a damaged record is given out");
    ETALON_CHECK(damaged.DurableInRest() >= 1, "the evidence behind it is not found");
  }
  return 0;
}
