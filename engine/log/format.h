// Bytes of a log segment, without any file: encoding, and a reader that takes whatever a disk may
// return. Described in docs/formats.md, "Log segments"; keep both in step.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "engine/consensus/types.h"

namespace etalon::log {

inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint64_t kSegmentHeaderBytes = 48;
inline constexpr std::uint64_t kRecordHeaderBytes = 32;
inline constexpr std::uint64_t kMaxPayloadBytes = 1u << 30;

// A record's place: segment number (from 1) and offset of its header in the file. Orders records as
// they were written.
struct Position {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  auto operator<=>(const Position&) const = default;
};

struct SegmentHeader {
  std::uint32_t number = 0;
  std::uint64_t salt = 0;  // random; goes into every checksum of the segment
  std::uint64_t size = 0;  // bytes reserved for the file
};

std::string SegmentName(std::uint32_t number);  // "0000000001.seg"
// A segment bears this after its name until it is ready to be written to.
inline constexpr std::string_view kUnfinished = ".new";
// 0 when `name` is not the name of a segment.
std::uint32_t SegmentNumber(std::string_view name);

std::string EncodeSegmentHeader(const SegmentHeader& header);
// DATA_LOSS/CORRUPT, or FAILED_PRECONDITION/NEWER_FORMAT.
Result<SegmentHeader> DecodeSegmentHeader(std::string_view bytes);

// What one record says: one Persist, preceded in the first record of a segment by the state that it
// builds on.
struct Content {
  struct Start {
    LogIndex base_index;  // last entry before this record
    Term base_term;
    consensus::HardState hard_state;
    // The log was emptied here: it starts at base_index, which is this snapshot's.
    std::optional<consensus::Snapshot> reset;
  };
  std::optional<Start> start;
  std::optional<consensus::HardState> hard_state;
  Term prev_term;  // of the entry before the first of `entries`
  std::vector<consensus::Entry>
      entries;  // consecutive; they replace whatever was there from the first on
};

std::string EncodeContent(const Content& content);
// Offset of the first entry in the encoded content. Each entry is kEntryHeaderBytes, then its data.
inline constexpr std::uint32_t kEntryHeaderBytes = 16;
std::uint32_t EntriesOffset(const Content& content);
// The entries are views into `payload`.
Result<Content> DecodeContent(std::string_view payload);

// Checksum state that all checksums of a segment start from.
std::uint32_t SaltCrc(const SegmentHeader& header);

struct RecordHeader {
  std::uint32_t payload_size = 0;
  std::uint64_t sequence = 0;  // +1 from record to record, through all segments; from 1
  std::uint64_t durable = 0;   // highest sequence that was durable when this record was written
  std::uint32_t payload_crc = 0;
};

// Bytes that a record takes: header, payload, zeros up to a multiple of 8.
std::uint64_t RecordBytes(std::uint64_t payload_size);
void AppendRecord(std::string* out, std::uint32_t salt_crc, std::uint64_t sequence,
                  std::uint64_t durable, std::string_view payload);
// nullopt when these are not the bytes of a record header of that segment.
std::optional<RecordHeader> DecodeRecordHeader(std::string_view bytes, std::uint32_t salt_crc);
bool PayloadMatches(const RecordHeader& header, std::string_view payload, std::uint32_t salt_crc);

// Reads the records of a segment in order, as far as they are whole.
class RecordReader {
 public:
  struct Record {
    std::uint64_t offset = 0;
    std::uint64_t sequence = 0;
    std::string_view payload;
  };

  // `segment` is the file from its beginning; it outlives the reader.
  RecordReader(std::string_view segment, const SegmentHeader& header);

  // nullopt where the records end: at zeros, at damage, or at a record that does not follow the one
  // before.
  std::optional<Record> Next();
  // Where the next record would start.
  std::uint64_t offset() const { return offset_; }
  // Bytes from offset() to the last that is not zero; 0 after an intact end.
  std::uint64_t Rest() const;
  // The highest `durable` of any record header of this segment at or after offset(); 0 when there
  // is none. At least the sequence of a damaged record proves that this record had been durable.
  std::uint64_t DurableInRest() const;

 private:
  std::string_view segment_;
  std::uint32_t salt_crc_;
  std::uint64_t offset_ = kSegmentHeaderBytes;
  std::uint64_t last_sequence_ = 0;
};

}  // namespace etalon::log
