#include "engine/consensus/snapshot_stream.h"

#include <gtest/gtest.h>

#include "common/random.h"

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;

const SnapshotStreamOptions kOptions{.chunk_bytes = 10,
                                     .credit = 3,
                                     .pull_every = milliseconds(100),
                                     .give_up = milliseconds(1000),
                                     .finish_within = milliseconds(5000)};

SteadyTime At(int ms) { return SteadyTime(milliseconds(ms)); }

class TextSource final : public SnapshotSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  Result<std::optional<std::string>> NextChunk(std::size_t max_bytes) override {
    if (fail_after_ >= 0 && fail_after_-- == 0) return Internal("broken");
    if (text_.empty()) return std::optional<std::string>();
    std::string chunk = text_.substr(0, max_bytes);
    text_.erase(0, chunk.size());
    return std::optional(std::move(chunk));
  }
  int fail_after_ = -1;

 private:
  std::string text_;
};

class TextSink final : public SnapshotSink {
 public:
  explicit TextSink(std::string* text) : text_(text) {}
  Status Add(std::string chunk) override {
    if (full_) return ResourceExhausted("full", Reason::kDiskFull);
    *text_ += chunk;
    return OkStatus();
  }
  void Finish(UniqueFunction<void(Status)> done) override { done(OkStatus()); }
  bool full_ = false;

 private:
  std::string* text_;
};

std::string Text(std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

class SnapshotStreamTest : public ::testing::Test {
 protected:
  void Make(std::string text) {
    auto source = std::make_unique<TextSource>(text);
    auto sink = std::make_unique<TextSink>(&received_);
    source_ = source.get();
    sink_ = sink.get();
    sender_.emplace(Snapshot{}, std::move(source), At(0), kOptions);
    receiver_.emplace(std::move(sink), At(0), kOptions);
  }
  std::vector<v1::SnapshotChunk> Pull(bool again = false) {
    auto chunks = sender_->OnPull(receiver_->Pull(again), At(now_));
    EXPECT_TRUE(chunks.ok());
    return chunks.ok() ? *chunks : std::vector<v1::SnapshotChunk>();
  }
  bool Give(v1::SnapshotChunk chunk) {
    auto moved = receiver_->OnChunk(std::move(chunk), At(now_));
    EXPECT_TRUE(moved.ok());
    return moved.ok() && *moved;
  }

  int now_ = 0;
  std::string received_;
  TextSource* source_ = nullptr;
  TextSink* sink_ = nullptr;
  std::optional<SnapshotSender> sender_;
  std::optional<SnapshotReceiver> receiver_;
};

TEST_F(SnapshotStreamTest, ArrivesWholeWithAtMostItsCreditUnderWay) {
  Make(Text(95));
  for (int rounds = 0; !receiver_->complete(); ++rounds) {
    ASSERT_LT(rounds, 20);
    const auto chunks = Pull();
    EXPECT_LE(chunks.size(), 3u);
    for (const auto& chunk : chunks) {
      EXPECT_LE(chunk.data().size(), 10u);
      EXPECT_TRUE(Give(chunk));
    }
  }
  EXPECT_EQ(received_, Text(95));
  EXPECT_EQ(receiver_->Pull().credit(), 0u);
}

TEST_F(SnapshotStreamTest, AnEmptyStateIsOneLastChunk) {
  Make("");
  const auto chunks = Pull();
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_TRUE(chunks[0].last());
  EXPECT_TRUE(Give(chunks[0]));
  EXPECT_TRUE(receiver_->complete());
}

TEST_F(SnapshotStreamTest, SurvivesLossDuplicationAndReordering) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    received_.clear();
    now_ = 0;
    const std::string text = Text(random.Below(300));
    Make(text);
    std::vector<v1::SnapshotChunk> network = Pull();
    while (!receiver_->complete()) {
      now_ += 10;
      ASSERT_LT(now_, 900'000) << seed;
      if (!network.empty()) {
        const auto at = network.begin() + static_cast<std::ptrdiff_t>(random.Below(network.size()));
        const v1::SnapshotChunk chunk = *at;
        if (!random.Chance(1, 5)) network.erase(at);
        if (!random.Chance(1, 5) && Give(chunk) && !random.Chance(1, 5)) {
          for (auto& c : Pull()) network.push_back(std::move(c));
        }
      }
      const auto due = receiver_->OnTime(At(now_));
      ASSERT_TRUE(due.ok()) << seed;
      if (*due) {
        for (auto& c : Pull(true)) network.push_back(std::move(c));
      }
    }
    EXPECT_EQ(received_, text) << seed;
  }
}

TEST_F(SnapshotStreamTest, AsksAgainForWhatWasLost) {
  Make(Text(25));
  EXPECT_EQ(Pull().size(), 3u);  // all lost
  EXPECT_TRUE(Pull().empty());
  EXPECT_FALSE(*receiver_->OnTime(At(99)));
  EXPECT_TRUE(*receiver_->OnTime(At(100)));
  const auto again = Pull(true);
  ASSERT_EQ(again.size(), 3u);
  for (const auto& chunk : again) Give(chunk);
  EXPECT_EQ(received_, Text(25));
}

TEST_F(SnapshotStreamTest, RefusesADamagedChunk) {
  Make(Text(25));
  auto chunks = Pull();
  (*chunks[0].mutable_data())[3] ^= 1;
  EXPECT_EQ(receiver_->OnChunk(chunks[0], At(1)).status().code(), Code::kDataLoss);
}

TEST_F(SnapshotStreamTest, FailuresOfBothEndsAreTold) {
  Make(Text(100));
  source_->fail_after_ = 1;
  EXPECT_FALSE(sender_->OnPull(receiver_->Pull(), At(0)).ok());
  Make(Text(100));
  sink_->full_ = true;
  EXPECT_EQ(receiver_->OnChunk(Pull()[0], At(1)).status().reason(), Reason::kDiskFull);
}

TEST_F(SnapshotStreamTest, BothEndsGiveUpOnSilence) {
  Make(Text(100));
  now_ = 500;
  const auto chunks = Pull();
  EXPECT_FALSE(sender_->SilentTooLong(At(1499)));
  EXPECT_TRUE(sender_->SilentTooLong(At(1500)));
  Give(chunks[0]);
  EXPECT_TRUE(receiver_->OnTime(At(1499)).ok());
  EXPECT_EQ(receiver_->OnTime(At(1500)).status().code(), Code::kDeadlineExceeded);
}

TEST_F(SnapshotStreamTest, ACompleteReceiverKeepsTheSenderAwakeForABoundedTime) {
  Make(Text(5));
  for (const auto& chunk : Pull()) Give(chunk);
  ASSERT_TRUE(receiver_->complete());
  EXPECT_TRUE(*receiver_->OnTime(At(2000)));
  now_ = 2000;
  EXPECT_TRUE(Pull().empty());
  EXPECT_FALSE(sender_->SilentTooLong(At(2999)));
  EXPECT_EQ(receiver_->OnTime(At(5000)).status().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace etalon::consensus
