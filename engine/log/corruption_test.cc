// Damage is told from a torn tail, and named.
#include <gtest/gtest.h>

#include "common/bytes.h"
#include "common/crc32c.h"
#include "engine/log/testing.h"

namespace etalon::log {
namespace {

// A log of a few segments, every record durable before the next was written; the node is down.
class LogDamage : public testing::Test {
 protected:
  void SetUp() override {
    n_.MustOpen();
    for (std::uint64_t i = 1; i <= 28; ++i) {
      n_.Append(i, 1, 1 + i / 10, 300);
      ASSERT_TRUE(n_.WaitDurable());
      if (i == 12) n_.Restart();  // two lives
    }
    n_.Settle();
    state_ = n_.Describe();
    n_.Crash();
    files_ = n_.Segments();
    for (const std::string& path : files_)
      content_[path] = n_.world.disk("n").Read(path, 0, 1 << 20).value();
    ASSERT_EQ(files_.size(), 5u) << "four with records, one spare";
    last_ = files_[3];
  }
  std::string Expected(std::uint64_t last) {
    return "1.." + std::to_string(last) + state_.substr(5);
  }
  Status Open() {
    const Status status = n_.Open();
    now_ = status.ok() ? n_.Describe() : "";
    torn_ = status.ok() ? n_.log->recovered().torn_bytes : 0;
    n_.log.reset();
    return status;
  }
  // Opens with `content` in place of the file, then puts the file back.
  Status OpenWith(const std::string& path, std::string content) {
    n_.world.disk("n").Poke(path, std::move(content));
    Status status = Open();
    n_.world.disk("n").Poke(path, content_[path]);
    return status;
  }
  // Offset and size of the records of a file, without padding.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Records(const std::string& path) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    RecordReader reader(content_[path], DecodeSegmentHeader(content_[path]).value());
    while (const auto record = reader.Next()) {
      out.push_back({record->offset, kRecordHeaderBytes + record->payload.size()});
    }
    return out;
  }

  LogNode n_{1};
  std::vector<std::string> files_;
  std::map<std::string, std::string> content_;
  std::string state_;
  std::string last_;  // the newest segment with records
  std::string now_;
  std::uint64_t torn_ = 0;
};

TEST_F(LogDamage, NothingIsWrongAsLongAsNothingIs) {
  EXPECT_TRUE(Open().ok());
  EXPECT_EQ(now_, state_);
  EXPECT_EQ(torn_, 0u);
}

TEST_F(LogDamage, EveryFlippedBitIsDamageOrInTheLastGroupOrNowhere) {
  Random random(7);
  std::map<std::string, int> outcomes;
  const auto last_record = Records(last_).back();
  for (const std::string& path : files_) {
    const auto records = Records(path);
    for (std::uint64_t at = 0; at < content_[path].size(); ++at) {
      std::string bad = content_[path];
      bad[at] = static_cast<char>(bad[at] ^ (1 << random.Below(8)));
      const Status status = OpenWith(path, std::move(bad));
      bool in_record = false;
      for (const auto& [offset, size] : records) in_record |= at >= offset && at < offset + size;
      const bool in_header = at < 44;
      const bool in_last =
          path == last_ && at >= last_record.first && at < last_record.first + last_record.second;
      if (in_last) {
        ASSERT_TRUE(status.ok()) << status.ToString();
        EXPECT_EQ(now_, Expected(27));
        EXPECT_GT(torn_, 300u);
        ++outcomes["torn"];
      } else if (in_record || in_header) {
        ASSERT_EQ(status.code(), Code::kDataLoss) << path << " at " << at;
        EXPECT_NE(status.message().find(path + " at offset "), std::string::npos)
            << status.ToString();
        ++outcomes["damage"];
      } else {
        ASSERT_TRUE(status.ok()) << path << " at " << at << ": " << status.ToString();
        EXPECT_EQ(now_, state_) << path << " at " << at;
        ++outcomes["nothing"];
      }
    }
  }
  EXPECT_GT(outcomes["damage"], 8000);
  EXPECT_GT(outcomes["torn"], 300);
  EXPECT_GT(outcomes["nothing"], 4000);
}

TEST_F(LogDamage, ACutFileIsDamage) {
  for (const std::string& path : {files_[0], files_[1], files_[2], files_[3]}) {
    const auto end = Records(path).back().first + Records(path).back().second;
    for (std::uint64_t size = 0; size < end; size += 13) {
      EXPECT_EQ(OpenWith(path, content_[path].substr(0, size)).code(), Code::kDataLoss)
          << path << " cut to " << size;
    }
  }
  EXPECT_EQ(OpenWith(last_, content_[last_].substr(0, 4095)).code(), Code::kDataLoss)
      << "only zeros are missing, yet";
}

TEST_F(LogDamage, AMissingSegmentIsDamage) {
  for (const std::size_t i : {1u, 2u, 3u}) {
    n_.world.disk("n").Erase(files_[i]);
    const Status status = Open();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find(files_[i]), std::string::npos) << status.ToString();
    n_.world.disk("n").Poke(files_[i], content_[files_[i]]);
  }
  n_.world.disk("n").Erase(files_[4]);
  EXPECT_TRUE(Open().ok()) << "a spare is not missed";
  EXPECT_EQ(now_, state_);
}

TEST_F(LogDamage, SegmentsInEachOthersPlaceAreDamage) {
  EXPECT_EQ(OpenWith(files_[1], content_[files_[2]]).code(), Code::kDataLoss);
  EXPECT_EQ(OpenWith(files_[4], content_[files_[3]]).code(), Code::kDataLoss);
}

TEST_F(LogDamage, ASegmentOfAnotherLogIsDamage) {
  LogNode other(99);
  other.MustOpen();
  for (std::uint64_t i = 1; i <= 40; ++i) {
    other.Append(i, 1, 1, 300);
    ASSERT_TRUE(other.WaitDurable());
  }
  EXPECT_EQ(OpenWith(files_[1], other.world.disk("n").Read(files_[1], 0, 1 << 20).value()).code(),
            Code::kDataLoss);
}

TEST_F(LogDamage, ARestOfTheLastRecordIsCutAndOverwritten) {
  const auto [offset, size] = Records(last_).back();
  std::string torn = content_[last_];
  for (std::uint64_t at = offset + size / 2; at < torn.size(); ++at) torn[at] = '\0';
  n_.world.disk("n").Poke(last_, torn);
  n_.MustOpen();
  EXPECT_EQ(n_.Describe(), Expected(27));
  EXPECT_GT(n_.log->recovered().torn_bytes, 0u);
  n_.Append(28, 2, 4, 300);
  ASSERT_TRUE(n_.WaitDurable());
  n_.Settle();
  EXPECT_EQ(n_.world.disk("n").Size(last_).value(), offset)
      << "cut once the next segment is durable";
  n_.Restart();
  EXPECT_EQ(n_.Describe(), "1..29: 1@1 10@2 20@3 28@4");
  EXPECT_EQ(n_.log->recovered().torn_bytes, 0u);
}

TEST_F(LogDamage, DataBehindATornSegmentIsDamage) {
  std::string torn = content_[last_];
  torn[Records(last_).back().first + 100] = '?';
  n_.world.disk("n").Poke(last_, torn);
  std::string spare = content_[files_[4]];
  spare[1000] = 'x';
  const Status status = OpenWith(files_[4], spare);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_NE(status.message().find(files_[4]), std::string::npos) << status.ToString();
  EXPECT_TRUE(Open().ok()) << "without it the end is only torn";
  EXPECT_EQ(now_, Expected(27));
}

TEST_F(LogDamage, ANewerFormatIsLeftAlone) {
  std::string newer = content_[files_[2]].substr(0, 8);
  PutLe32(&newer, kFormatVersion + 1);
  PutLe32(&newer, Crc32c(newer));
  newer += content_[files_[2]].substr(16);
  n_.world.disk("n").Poke(files_[2], newer);
  const Status status = Open();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_EQ(status.reason(), Reason::kNewerFormat);
  n_.Settle();
  EXPECT_EQ(n_.world.disk("n").Read(files_[2], 0, 1 << 20).value(), newer);
}

// A segment made by hand: the checksums are right, what it says is not.
class LogLies : public testing::Test {
 protected:
  Status OpenWith(std::vector<Content> records, std::uint32_t number = 1) {
    const SegmentHeader header{.number = number, .salt = 5, .size = 4096};
    std::string bytes = EncodeSegmentHeader(header);
    std::uint64_t sequence = 0;
    for (const Content& content : records) {
      ++sequence;
      AppendRecord(&bytes, SaltCrc(header), sequence, sequence - 1, EncodeContent(content));
    }
    bytes.resize(4096);
    LogNode n(1);
    std::optional<Status> made;
    n.env->disk.Submit({DiskOp::MakeDir("log"), DiskOp::SyncDir("")},
                       [&](Status s) { made = std::move(s); });
    n.Settle();
    n.world.disk("n").Poke("log/" + SegmentName(number), bytes);
    return n.Open();
  }
  static Content Started(std::uint64_t base, std::uint64_t base_term, HardState hard) {
    Content content;
    content.start = Content::Start{LogIndex(base), Term(base_term), hard, std::nullopt};
    return content;
  }
  static Content With(Content content, std::uint64_t index, std::uint64_t prev_term,
                      std::uint64_t term) {
    content.prev_term = Term(prev_term);
    content.entries = {{LogIndex(index), Term(term), EntryKind::kCommands, "x"}};
    return content;
  }
  const HardState hard_{Term(4), MemberId(1), LogIndex(0)};
};

TEST_F(LogLies, TheTruthPasses) {
  EXPECT_TRUE(OpenWith({With(Started(0, 0, hard_), 1, 0, 4), With({}, 2, 4, 4)}).ok());
}

TEST_F(LogLies, ALostVoteIsDamage) {
  EXPECT_EQ(OpenWith({With(Started(0, 0, {}), 1, 0, 4)}).code(), Code::kDataLoss);
  EXPECT_EQ(OpenWith({With(Started(0, 0, hard_), 1, 0, 5)}).code(), Code::kDataLoss);
  EXPECT_EQ(OpenWith({With(Started(0, 0, {Term(4), MemberId(1), LogIndex(2)}), 1, 0, 4)}).code(),
            Code::kDataLoss)
      << "a commit index beyond the end";
}

TEST_F(LogLies, HolesAndBrokenChainsAreDamage) {
  EXPECT_EQ(OpenWith({With(Started(0, 0, hard_), 1, 0, 4), With({}, 3, 4, 4)}).code(),
            Code::kDataLoss);
  EXPECT_EQ(OpenWith({With(Started(0, 0, hard_), 1, 0, 4), With({}, 2, 3, 4)}).code(),
            Code::kDataLoss);
  EXPECT_EQ(
      OpenWith({With(Started(0, 0, hard_), 1, 0, 4), With(Started(1, 4, hard_), 2, 4, 4)}).code(),
      Code::kDataLoss)
      << "a start in the middle";
  EXPECT_EQ(OpenWith({With({}, 1, 0, 4)}).code(), Code::kDataLoss) << "no start";
}

TEST_F(LogLies, AnEmptySegmentIsNotAStartOfALaterOne) {
  EXPECT_TRUE(OpenWith({}, 1).ok());
  EXPECT_EQ(OpenWith({}, 2).code(), Code::kDataLoss);
}

}  // namespace
}  // namespace etalon::log
