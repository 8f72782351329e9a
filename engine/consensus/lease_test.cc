#include "engine/consensus/lease.h"

#include <gtest/gtest.h>

namespace etalon::consensus {
namespace {

using std::chrono::milliseconds;

constexpr Lease::Options kOptions{
    .election_ticks = 10, .smallest_gap = milliseconds(50), .drift_percent = 10};
constexpr milliseconds kBound(405);  // 9 gaps of 50 ms, less a tenth

SteadyTime At(int ms) { return SteadyTime(milliseconds(ms)); }

// A leader of term 5 that has applied an entry of its own.
Lease Leading() {
  Lease lease(kOptions);
  lease.Observe(true, Term(5));
  lease.Applied(Term(5));
  return lease;
}

TEST(Lease, BoundIsBelowTheShortestSilenceOfAVoter) { EXPECT_EQ(Lease::Bound(kOptions), kBound); }

TEST(Lease, LastsForTheBoundAfterTheRoundWasSent) {
  Lease lease = Leading();
  EXPECT_FALSE(lease.Has(At(0)));
  lease.RoundSent(1, At(1000));
  EXPECT_FALSE(lease.Has(At(1000)));  // not yet answered
  lease.RoundConfirmed(1);
  EXPECT_TRUE(lease.Has(At(1000)));
  EXPECT_TRUE(lease.Has(At(1404)));
  EXPECT_FALSE(lease.Has(At(1405)));
}

TEST(Lease, IsCountedFromTheSendingHoweverLateTheAnswer) {
  Lease lease = Leading();
  lease.RoundSent(1, At(1000));
  lease.RoundConfirmed(1);  // it is 2000 by now
  EXPECT_FALSE(lease.Has(At(2000)));
}

TEST(Lease, NeedsAnAppliedEntryOfItsOwnTerm) {
  Lease lease(kOptions);
  lease.Observe(true, Term(5));
  lease.RoundSent(1, At(0));
  lease.RoundConfirmed(1);
  lease.Applied(Term(4));
  EXPECT_FALSE(lease.Has(At(1)));
  lease.Applied(Term(5));
  EXPECT_TRUE(lease.Has(At(1)));
}

TEST(Lease, ALaterRoundConfirmsTheEarlierOnesAndNeverShortens) {
  Lease lease = Leading();
  lease.RoundSent(1, At(0));
  lease.RoundSent(2, At(100));
  lease.RoundSent(3, At(200));
  lease.RoundConfirmed(2);
  EXPECT_EQ(lease.rounds_open(), 1u);
  EXPECT_TRUE(lease.Has(At(100) + kBound - milliseconds(1)));
  EXPECT_FALSE(lease.Has(At(100) + kBound));
  lease.RoundConfirmed(1);  // late, of no use
  lease.RoundConfirmed(2);
  EXPECT_TRUE(lease.Has(At(100) + kBound - milliseconds(1)));
  EXPECT_FALSE(lease.Has(At(100) + kBound));
  lease.RoundConfirmed(3);
  EXPECT_TRUE(lease.Has(At(200) + kBound - milliseconds(1)));
}

TEST(Lease, EndsWithTheRole) {
  Lease lease = Leading();
  lease.RoundSent(1, At(0));
  lease.RoundConfirmed(1);
  lease.RoundSent(2, At(0));
  lease.Observe(false, Term(5));
  EXPECT_FALSE(lease.Has(At(1)));
  lease.RoundConfirmed(2);
  lease.Applied(Term(5));
  EXPECT_FALSE(lease.Has(At(1)));
}

TEST(Lease, ANewTermStartsFromNothing) {
  Lease lease = Leading();
  lease.RoundSent(1, At(0));
  lease.RoundConfirmed(1);
  lease.RoundSent(2, At(0));
  lease.Observe(true, Term(7));  // led, lost it and won it again between two looks
  lease.RoundConfirmed(2);       // of the old term
  lease.Applied(Term(7));
  EXPECT_FALSE(lease.Has(At(1)));
}

TEST(Lease, ASecondLookAtTheSameRoleChangesNothing) {
  Lease lease = Leading();
  lease.RoundSent(1, At(0));
  lease.RoundConfirmed(1);
  lease.Observe(true, Term(5));
  EXPECT_TRUE(lease.Has(At(1)));
}

TEST(Lease, IsGivenUpForTheRestOfTheTermByAHandOver) {
  Lease lease = Leading();
  lease.RoundSent(1, At(0));
  lease.RoundConfirmed(1);
  lease.GiveUp();
  EXPECT_FALSE(lease.Has(At(1)));
  lease.RoundSent(2, At(10));  // the hand-over failed: rounds go on, for single reads
  lease.RoundConfirmed(2);
  EXPECT_FALSE(lease.Has(At(11)));
  EXPECT_TRUE(lease.given_up());
  lease.Observe(false, Term(6));
  lease.Observe(true, Term(7));
  lease.Applied(Term(7));
  lease.RoundSent(3, At(20));
  lease.RoundConfirmed(3);
  EXPECT_TRUE(lease.Has(At(21)));
}

TEST(Lease, AFollowerHasNothingToGiveUp) {
  Lease lease(kOptions);
  lease.Observe(false, Term(4));
  lease.GiveUp();
  EXPECT_FALSE(lease.given_up());
}

}  // namespace
}  // namespace etalon::consensus
