#include "engine/consensus/read_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace etalon::consensus {
namespace {

SteadyTime At(int ms) { return SteadyTime(std::chrono::milliseconds(ms)); }

class ReadQueueTest : public ::testing::Test {
 protected:
  void Add(char name, Deadline deadline = Deadline::Never()) {
    queue_.Add(deadline, [this, name](Status status) {
      log_ += name;
      log_ += status.ok() ? '+' : status.code() == Code::kDeadlineExceeded ? 'd' : '-';
    });
  }
  ReadQueue queue_;
  std::string log_;  // in the order of the answers
};

TEST_F(ReadQueueTest, WaitsForItsRoundAndThenForTheApply) {
  Add('a');
  EXPECT_TRUE(queue_.WantsRound());
  queue_.RoundSent(1);
  EXPECT_FALSE(queue_.WantsRound());
  queue_.Applied(LogIndex(100));
  EXPECT_EQ(log_, "");
  queue_.RoundConfirmed(1, LogIndex(7));
  queue_.Applied(LogIndex(6));
  EXPECT_EQ(log_, "");
  queue_.Applied(LogIndex(7));
  EXPECT_EQ(log_, "a+");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(ReadQueueTest, ARoundDoesNotServeReadsThatCameAfterIt) {
  Add('a');
  queue_.RoundSent(1);
  Add('b');
  queue_.RoundConfirmed(1, LogIndex(1));
  queue_.Applied(LogIndex(1));
  EXPECT_EQ(log_, "a+");
  EXPECT_TRUE(queue_.WantsRound());
}

TEST_F(ReadQueueTest, ALaterRoundServesTheEarlierOnes) {
  Add('a');
  queue_.RoundSent(1);
  Add('b');
  queue_.RoundSent(2);
  Add('c');
  queue_.RoundSent(3);
  queue_.RoundConfirmed(2, LogIndex(1));
  queue_.Applied(LogIndex(1));
  EXPECT_EQ(log_, "a+b+");
  queue_.RoundConfirmed(1, LogIndex(1));  // late
  queue_.Applied(LogIndex(1));
  EXPECT_EQ(log_, "a+b+");
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(ReadQueueTest, ExpiresWhereverTheReadStands) {
  Add('a', Deadline(At(10)));
  queue_.RoundSent(1);
  queue_.RoundConfirmed(1, LogIndex(5));
  Add('b', Deadline(At(10)));
  queue_.RoundSent(2);
  Add('c', Deadline(At(10)));
  Add('d', Deadline(At(11)));
  queue_.Expire(At(9));
  EXPECT_EQ(log_, "");
  queue_.Expire(At(10));
  EXPECT_EQ(log_, "adbdcd");
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(ReadQueueTest, AllFailWithTheRole) {
  Add('a');
  queue_.RoundSent(1);
  queue_.RoundConfirmed(1, LogIndex(5));
  Add('b');
  queue_.RoundSent(2);
  Add('c');
  queue_.FailAll(Unavailable(Reason::kNonMaster, ""));
  EXPECT_EQ(log_, "a-b-c-");
  queue_.RoundConfirmed(2, LogIndex(1));
  queue_.Applied(LogIndex(9));
  EXPECT_EQ(log_, "a-b-c-");
  EXPECT_EQ(queue_.size(), 0u);
}

TEST_F(ReadQueueTest, AnAnswerMayAskAgain) {
  queue_.Add(Deadline::Never(), [this](Status) { Add('x'); });
  queue_.FailAll(Unavailable(Reason::kNonMaster, ""));
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_TRUE(queue_.WantsRound());
}

}  // namespace
}  // namespace etalon::consensus
