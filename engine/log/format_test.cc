#include "engine/log/format.h"

#include <gtest/gtest.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "common/random.h"

namespace etalon::log {
namespace {

using consensus::Entry;
using consensus::EntryKind;
using consensus::HardState;
using consensus::Snapshot;

constexpr SegmentHeader kHeader{.number = 3, .salt = 0x1234567890abcdef, .size = 4096};

Content Full() {
  Content content;
  content.start = Content::Start{
      .base_index = LogIndex(8),
      .base_term = Term(2),
      .hard_state = {Term(2), MemberId(5), LogIndex(7)},
      .reset = Snapshot{
          LogIndex(8), Term(2), {{MemberId(1), MemberId(5)}, {MemberId(9)}}, "generation-4"}};
  content.hard_state = HardState{Term(3), MemberId(1), LogIndex(8)};
  content.prev_term = Term(2);
  content.entries = {{LogIndex(9), Term(3), EntryKind::kCommands, ""},
                     {LogIndex(10), Term(3), EntryKind::kMembers, "members"},
                     {LogIndex(11), Term(3), EntryKind::kCommands, "data"}};
  return content;
}

void ExpectEqual(const Content& a, const Content& b) {
  ASSERT_EQ(a.start.has_value(), b.start.has_value());
  if (a.start) {
    EXPECT_EQ(a.start->base_index, b.start->base_index);
    EXPECT_EQ(a.start->base_term, b.start->base_term);
    EXPECT_EQ(a.start->hard_state, b.start->hard_state);
    ASSERT_EQ(a.start->reset.has_value(), b.start->reset.has_value());
    if (a.start->reset) {
      EXPECT_EQ(a.start->reset->index, b.start->reset->index);
      EXPECT_EQ(a.start->reset->term, b.start->reset->term);
      EXPECT_EQ(a.start->reset->members, b.start->reset->members);
      EXPECT_EQ(a.start->reset->name, b.start->reset->name);
    }
  }
  EXPECT_EQ(a.hard_state, b.hard_state);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  if (!a.entries.empty()) {
    EXPECT_EQ(a.prev_term, b.prev_term);
  }
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].index, b.entries[i].index);
    EXPECT_EQ(a.entries[i].term, b.entries[i].term);
    EXPECT_EQ(a.entries[i].kind, b.entries[i].kind);
    EXPECT_EQ(a.entries[i].data, b.entries[i].data);
  }
}

TEST(LogFormat, SegmentNames) {
  EXPECT_EQ(SegmentName(1), "0000000001.seg");
  EXPECT_EQ(SegmentName(UINT32_MAX), "4294967295.seg");
  for (const std::uint32_t n : {1u, 42u, UINT32_MAX}) EXPECT_EQ(SegmentNumber(SegmentName(n)), n);
  for (const char* name : {"", "1.seg", "0000000001.seg.new", "000000000x.seg", "9999999999.seg",
                           "0000000000.seg", "0000000001.sst"}) {
    EXPECT_EQ(SegmentNumber(name), 0u) << name;
  }
}

TEST(LogFormat, SegmentHeaderRoundTripAndEveryBit) {
  const std::string bytes = EncodeSegmentHeader(kHeader);
  ASSERT_EQ(bytes.size(), kSegmentHeaderBytes);
  const auto header = DecodeSegmentHeader(bytes);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->number, kHeader.number);
  EXPECT_EQ(header->salt, kHeader.salt);
  EXPECT_EQ(header->size, kHeader.size);
  for (std::size_t bit = 0; bit < 44 * 8; ++bit) {  // the last four bytes are padding
    std::string bad = bytes;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(DecodeSegmentHeader(bad).status().code(), Code::kDataLoss) << bit;
  }
  EXPECT_FALSE(DecodeSegmentHeader(bytes.substr(0, 47)).ok());
}

TEST(LogFormat, ANewerVersionIsToldFromDamage) {
  std::string bytes = EncodeSegmentHeader(kHeader).substr(0, 8);
  PutLe32(&bytes, kFormatVersion + 1);
  PutLe32(&bytes, Crc32c(bytes));
  bytes += std::string(100, '?');
  EXPECT_EQ(DecodeSegmentHeader(bytes).status().reason(), Reason::kNewerFormat);
  EXPECT_EQ(DecodeSegmentHeader(bytes).status().code(), Code::kFailedPrecondition);
}

TEST(LogFormat, ContentRoundTrip) {
  Content votes;
  votes.hard_state = HardState{Term(3), MemberId(1), LogIndex(8)};
  Content started = Full();
  started.start->reset.reset();
  started.hard_state.reset();
  for (const Content& content : {Full(), votes, started, Content{}}) {
    const std::string payload = EncodeContent(content);
    const auto decoded = DecodeContent(payload);
    ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
    ExpectEqual(content, *decoded);
    if (!content.entries.empty()) {
      EXPECT_EQ(decoded->entries[0].data.data(),
                payload.data() + EntriesOffset(content) + kEntryHeaderBytes);
    }
  }
}

TEST(LogFormat, EveryCutAndEveryExtensionOfAContentIsRefused) {
  const std::string payload = EncodeContent(Full());
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_FALSE(DecodeContent(payload.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeContent(payload + '\0').ok());
}

TEST(LogFormat, UnknownFlagsAndKindsAreRefused) {
  std::string payload = EncodeContent(Content{});
  payload[0] = 16;
  EXPECT_FALSE(DecodeContent(payload).ok());
  payload[0] = 2;  // a reset without a start
  EXPECT_FALSE(DecodeContent(payload).ok());
  Content content;
  content.entries = {{LogIndex(1), Term(1), static_cast<EntryKind>(1), ""}};
  EXPECT_FALSE(DecodeContent(EncodeContent(content)).ok());
}

std::string Segment(const std::vector<std::pair<std::uint64_t, std::string>>& records) {
  std::string out = EncodeSegmentHeader(kHeader);
  for (const auto& [sequence, payload] : records)
    AppendRecord(&out, SaltCrc(kHeader), sequence, sequence - 1, payload);
  out.resize(4096);
  return out;
}

std::vector<std::string> ReadAll(const std::string& segment, RecordReader* reader) {
  *reader = RecordReader(segment, kHeader);
  std::vector<std::string> out;
  while (const auto record = reader->Next()) out.emplace_back(record->payload);
  return out;
}

TEST(RecordReader, ReadsToTheZeros) {
  RecordReader reader("", kHeader);
  const std::string segment = Segment({{5, "one"}, {6, ""}, {7, std::string(100, 'x')}});
  EXPECT_EQ(ReadAll(segment, &reader),
            (std::vector<std::string>{"one", "", std::string(100, 'x')}));
  EXPECT_EQ(reader.offset(), kSegmentHeaderBytes + 40 + 32 + 136);
  EXPECT_EQ(reader.Rest(), 0u);
  EXPECT_EQ(reader.DurableInRest(), 0u);
}

TEST(RecordReader, EveryDamagedBitStopsItAndWhatFollowsIsEvidence) {
  RecordReader reader("", kHeader);
  const std::string good = Segment({{5, "one"}, {6, "two"}, {7, "three"}});
  const std::size_t second = kSegmentHeaderBytes + 40;
  for (std::size_t bit = 0; bit < (32 + 3) * 8; ++bit) {
    std::string bad = good;
    bad[second + bit / 8] = static_cast<char>(bad[second + bit / 8] ^ (1 << (bit % 8)));
    EXPECT_EQ(ReadAll(bad, &reader), std::vector<std::string>{"one"}) << bit;
    EXPECT_EQ(reader.offset(), second);
    EXPECT_EQ(reader.Rest(), 40u + 32 + 5);
    EXPECT_EQ(reader.DurableInRest(), 6u) << "the third record says that 6 was durable";
  }
}

TEST(RecordReader, RecordsOfAnotherSegmentOrOutOfOrderAreNotTaken) {
  RecordReader reader("", kHeader);
  std::string segment = EncodeSegmentHeader(kHeader);
  AppendRecord(&segment, SaltCrc(kHeader), 5, 4, "mine");
  AppendRecord(&segment, SaltCrc({.number = 3, .salt = 77}), 6, 5, "of an older file");
  EXPECT_EQ(ReadAll(segment, &reader), std::vector<std::string>{"mine"});
  EXPECT_EQ(reader.DurableInRest(), 0u);
  segment = Segment({{5, "one"}, {7, "three"}});
  EXPECT_EQ(ReadAll(segment, &reader), std::vector<std::string>{"one"});
}

TEST(RecordReader, EveryCutIsAPrefix) {
  RecordReader reader("", kHeader);
  const std::string whole = Segment({{5, "one"}, {6, "two"}, {7, "three"}});
  const std::vector<std::size_t> ends = {48 + 35, 48 + 40 + 35,
                                         48 + 80 + 37};  // last payload byte of each
  for (std::size_t size = 0; size < 300; ++size) {
    std::size_t expected = 0;
    for (const std::size_t end : ends) expected += size >= end;
    EXPECT_EQ(ReadAll(whole.substr(0, size), &reader).size(), expected) << size;
  }
}

}  // namespace
}  // namespace etalon::log
