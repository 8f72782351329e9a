#include "placement/transition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace etalon::placement {
namespace {

using ::testing::HasSubstr;

constexpr ShardState kNormal = ShardState::kNormal;
constexpr ShardState kCreating = ShardState::kCreating;
constexpr ShardState kSplitting = ShardState::kSplitting;
constexpr ShardState kDropped = ShardState::kDropped;

DescribeAnswer Table(std::uint64_t modulus, const std::vector<ShardInfo>& infos,
                     std::string shard_by = "hash(pk)") {
  DescribeAnswer answer;
  answer.modulus = modulus;
  answer.infos = infos;
  for (const ShardInfo& info : infos) answer.shard_names.push_back(info.name);
  answer.shard_by = std::move(shard_by);
  return answer;
}

Judgement Judge(const DescribeAnswer& current, const DescribeAnswer& proposed,
                const TableTask& task) {
  const Judgement judgement = JudgeTransition(current, proposed, task, kMilvusMaxModulus);
  EXPECT_EQ(judgement.why.empty(), judgement.verdict == Verdict::kApply);
  return judgement;
}

void ExpectRefused(const Judgement& judgement, const std::string& sentence) {
  EXPECT_EQ(judgement.verdict, Verdict::kRefuse) << judgement.why;
  EXPECT_THAT(judgement.why, HasSubstr(sentence));
}

TableTask Rebase(std::uint64_t modulus) { return {TaskKind::kRebase, modulus, "", {}, {}}; }

// Two shards of modulus 2; s0 is replaced by t0 and t1, as Milvus splits.
const DescribeAnswer kBefore = Table(2, {{"s0", kNormal, {0}}, {"s1", kNormal, {1}}});
const DescribeAnswer kSplit = Table(4, {{"s0", kSplitting, {}},
                                        {"s1", kNormal, {1, 3}},
                                        {"t0", kCreating, {0}},
                                        {"t1", kCreating, {2}}});
const DescribeAnswer kAdopted =
    Table(4, {{"s1", kNormal, {1, 3}}, {"t0", kNormal, {0}}, {"t1", kNormal, {2}}});
const TableTask kSplitTask = {TaskKind::kSplit, 4, "s0", {}, {{"t0", {0}}, {"t1", {2}}}};
const TableTask kAdoptTask = {TaskKind::kAdopt, 4, "s0", {}, {{"t0", {}}, {"t1", {}}}};

// The same as we split: s0 keeps one half.
const DescribeAnswer kKeptHalf =
    Table(4, {{"s0", kNormal, {0}}, {"s1", kNormal, {1, 3}}, {"t0", kCreating, {2}}});
const DescribeAnswer kKeptHalfAdopted =
    Table(4, {{"s0", kNormal, {0}}, {"s1", kNormal, {1, 3}}, {"t0", kNormal, {2}}});
const TableTask kKeepHalfTask = {TaskKind::kSplit, 4, "s0", {0}, {{"t0", {2}}}};
const TableTask kKeepHalfAdoptTask = {TaskKind::kAdopt, 4, "s0", {}, {{"t0", {}}}};

TEST(Transition, ASplitAppliesOnceAndIsThenDone) {
  EXPECT_EQ(Judge(kBefore, kSplit, kSplitTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(kSplit, kSplit, kSplitTask).verdict, Verdict::kAlreadyApplied);
  EXPECT_EQ(Judge(kSplit, kAdopted, kAdoptTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(kAdopted, kAdopted, kAdoptTask).verdict, Verdict::kAlreadyApplied);
}

TEST(Transition, ASourceMayKeepHalf) {
  EXPECT_EQ(Judge(kBefore, kKeptHalf, kKeepHalfTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(kKeptHalf, kKeptHalf, kKeepHalfTask).verdict, Verdict::kAlreadyApplied);
  EXPECT_EQ(Judge(kKeptHalf, kKeptHalfAdopted, kKeepHalfAdoptTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(kKeptHalfAdopted, kKeptHalfAdopted, kKeepHalfAdoptTask).verdict,
            Verdict::kAlreadyApplied);
  // Replayed later, the split does not take the adoption back.
  ExpectRefused(Judge(kKeptHalfAdopted, kKeptHalf, kKeepHalfTask), "from Normal to Creating");
}

TEST(Transition, WhatDoesNotMatterIsNotCompared) {
  DescribeAnswer reordered =
      Table(4, {{"t1", kCreating, {2}},
                {"s1", kNormal, {3, 1}},
                {"t0", kCreating, {0}},
                {"s0", kSplitting, {0, 2}}});  // stale residues of a fenced shard
  reordered.shard_by = "";                     // leaves the declared one as it is
  EXPECT_EQ(Judge(kSplit, reordered, kSplitTask).verdict, Verdict::kAlreadyApplied);
  EXPECT_EQ(Judge(kBefore, reordered, kSplitTask).verdict, Verdict::kApply);
}

TEST(Transition, TheFirstSplitOfAClassicTable) {
  DescribeAnswer classic;
  classic.shard_names = {"s0", "s1"};
  EXPECT_EQ(Judge(classic, kSplit, kSplitTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(classic, classic, kSplitTask).verdict, Verdict::kAlreadyApplied);
  DescribeAnswer permuted = classic;
  permuted.shard_names = {"s1", "s0"};
  ExpectRefused(Judge(classic, permuted, kSplitTask), "never split");
  DescribeAnswer grown = classic;
  grown.shard_names = {"s0", "s1", "s2", "s3"};
  ExpectRefused(Judge(classic, grown, kSplitTask), "never split");
}

TEST(Transition, TheClassicRuleWrittenOutIsARebase) {
  DescribeAnswer classic;
  classic.shard_names = {"s0", "s1"};
  classic.shard_by = "hash(pk)";
  EXPECT_EQ(Judge(classic, kBefore, Rebase(2)).verdict, Verdict::kApply);
  const TableTask of_a_stranger = {TaskKind::kSplit, 4, "s9", {}, {{"t0", {0}}, {"t1", {2}}}};
  ExpectRefused(Judge(classic, kBefore, of_a_stranger), "'s9' is not listed");
}

TEST(Transition, AHalfDoneAdoptionIsCompleted) {
  DescribeAnswer half = kSplit;
  half.infos[2].state = kNormal;
  EXPECT_EQ(Judge(half, kAdopted, kAdoptTask).verdict, Verdict::kApply);
}

TEST(MilvusContract, T15a_ModulusWithoutItsResidues) {
  ExpectRefused(Judge(kBefore, Table(4, {{"s0", kNormal, {0}}, {"s1", kNormal, {1}}}), Rebase(4)),
                "no shard owns the residue 2");
}

TEST(MilvusContract, T15b_PureRebaseIsNotAlreadyDone) {
  const DescribeAnswer rebased = Table(4, {{"s0", kNormal, {0, 2}}, {"s1", kNormal, {1, 3}}});
  EXPECT_EQ(Judge(kBefore, rebased, Rebase(4)).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(rebased, rebased, Rebase(4)).verdict, Verdict::kAlreadyApplied);
  // As part of a task that does something else it is not what the task says.
  ExpectRefused(Judge(kBefore, rebased, kSplitTask), "'s0' would go back from Splitting to Normal");
  ExpectRefused(Judge(kBefore, rebased, kKeepHalfTask), "'s0' would gain residues");
}

TEST(MilvusContract, T15c_SplitReplayedAfterAdoption) {
  ExpectRefused(Judge(kAdopted, kSplit, kSplitTask), "'t0' would go back from Normal to Creating");
}

TEST(MilvusContract, T15d_ModulusBackToZero) {
  DescribeAnswer zero;
  zero.shard_names = {"s0", "s1"};
  ExpectRefused(Judge(kBefore, zero, kSplitTask), "cannot go back to modulus 0");
  ExpectRefused(Judge(kAdopted, zero, kAdoptTask), "cannot go back to modulus 0");
}

TEST(Transition, TheModulusGrowsToAMultipleOnly) {
  ExpectRefused(
      Judge(kAdopted, Table(3, {{"s1", kNormal, {1}}, {"t0", kNormal, {0}}, {"t1", kNormal, {2}}}),
            Rebase(3)),
      "must be a multiple");
  ExpectRefused(
      Judge(kBefore, Table(3, {{"s0", kNormal, {0, 2}}, {"s1", kNormal, {1}}}), Rebase(3)),
      "must be a multiple");
  // Grown by more than the task says: somebody's later step.
  const DescribeAnswer eight =
      Table(8, {{"s0", kNormal, {0, 2, 4, 6}}, {"s1", kNormal, {1, 3, 5, 7}}});
  EXPECT_EQ(Judge(kBefore, eight, Rebase(4)).verdict, Verdict::kAhead);
}

TEST(Transition, AnAdoptionKeepsTheModulusAndTheResidues) {
  ExpectRefused(Judge(kSplit,
                      Table(8, {{"s1", kNormal, {1, 3, 5, 7}},
                                {"t0", kNormal, {0, 4}},
                                {"t1", kNormal, {2, 6}}}),
                      kAdoptTask),
                "may not change the modulus");
  ExpectRefused(
      Judge(kSplit, Table(4, {{"s1", kNormal, {1}}, {"t0", kNormal, {0, 3}}, {"t1", kNormal, {2}}}),
            kAdoptTask),
      "'t0' would gain residues");
}

TEST(Transition, APartialDeltaIsRefused) {
  // Only one target adopted; all adopted but the source still listed; a residue given to the wrong
  // target.
  ExpectRefused(
      Judge(kSplit,
            Table(4, {{"s1", kNormal, {1, 3}}, {"t0", kNormal, {0}}, {"t1", kCreating, {2}}}),
            kAdoptTask),
      "'t1' would go back");
  ExpectRefused(Judge(kSplit,
                      Table(4, {{"s0", kSplitting, {}},
                                {"s1", kNormal, {1, 3}},
                                {"t0", kNormal, {0}},
                                {"t1", kNormal, {2}}}),
                      kAdoptTask),
                "'s0' should have left the list");
  ExpectRefused(Judge(kBefore,
                      Table(4, {{"s0", kSplitting, {}},
                                {"s1", kNormal, {1, 3}},
                                {"t0", kCreating, {2}},
                                {"t1", kCreating, {0}}}),
                      kSplitTask),
                "'t0' would gain residues");
}

TEST(Transition, ADroppedShardIsNotListed) {
  DescribeAnswer listed = kAdopted;
  listed.shard_names.push_back("s0");
  listed.infos.push_back({"s0", kDropped, {}});
  ExpectRefused(Judge(kSplit, listed, kAdoptTask), "Dropped");
  // An old table may still list one.
  EXPECT_EQ(Judge(listed, kAdopted, kAdoptTask).verdict, Verdict::kAlreadyApplied);
}

TEST(Transition, LaterStepsOfOthersAreAhead) {
  // s1 was split too.
  const DescribeAnswer both = Table(4, {{"s0", kSplitting, {}},
                                        {"s1", kSplitting, {}},
                                        {"t0", kCreating, {0}},
                                        {"t1", kCreating, {2}},
                                        {"u0", kCreating, {1}},
                                        {"u1", kCreating, {3}}});
  const Judgement judgement = Judge(kBefore, both, kSplitTask);
  EXPECT_EQ(judgement.verdict, Verdict::kAhead);
  EXPECT_THAT(judgement.why, HasSubstr("'s1' is ahead"));
  // The adoption arrives at a copy that has not seen the split.
  EXPECT_EQ(Judge(kBefore, kAdopted, kAdoptTask).verdict, Verdict::kAhead);
  EXPECT_EQ(Judge(kBefore, kKeptHalfAdopted, kKeepHalfAdoptTask).verdict, Verdict::kAhead);
  // The split's own table, already with its adoption.
  EXPECT_EQ(Judge(kBefore, kAdopted, kSplitTask).verdict, Verdict::kAhead);
}

TEST(Transition, MovesBetweenListedShardsAreNoTask) {
  ExpectRefused(
      Judge(kSplit, Table(4, {{"s1", kNormal, {1}}, {"t0", kNormal, {0}}, {"t1", kNormal, {2, 3}}}),
            kAdoptTask),
      "'t1' would gain residues");
  ExpectRefused(Judge(kBefore, Table(2, {{"s0", kNormal, {1}}, {"s1", kNormal, {0}}}), Rebase(2)),
                "would gain residues");
}

TEST(Transition, ACreatingShardKeepsItsResidues) {
  const DescribeAnswer creating = Table(4, {{"s0", kNormal, {0}}, {"t0", kCreating, {1, 2, 3}}});
  const DescribeAnswer lost =
      Table(4, {{"s0", kNormal, {0}}, {"t0", kCreating, {1, 2}}, {"u0", kCreating, {3}}});
  ExpectRefused(Judge(creating, lost, Rebase(4)), "while it is Creating");
  const TableTask split_it = {TaskKind::kSplit, 4, "t0", {1, 2}, {{"u0", {3}}}};
  ExpectRefused(Judge(creating, lost, split_it), "while it is Creating");
}

TEST(Transition, ShardByIsSetOnce) {
  DescribeAnswer undeclared = kBefore;
  undeclared.shard_by = "";
  EXPECT_EQ(Judge(undeclared, kSplit, kSplitTask).verdict, Verdict::kApply);
  EXPECT_EQ(Judge(undeclared, kBefore, Rebase(2)).verdict, Verdict::kApply);  // only fills it
  DescribeAnswer other = kSplit;
  other.shard_by = "hash(other)";
  ExpectRefused(Judge(kBefore, other, kSplitTask), "sharded by hash(pk)");
  other.shard_by = "hash(";
  ExpectRefused(Judge(kBefore, other, kSplitTask), "hash(FIELD)");
}

TEST(Transition, BrokenTablesAreRefusedWithTheirFault) {
  DescribeAnswer not_parallel = kSplit;
  not_parallel.infos.pop_back();
  ExpectRefused(Judge(kBefore, not_parallel, kSplitTask),
                "the proposed table is broken: the answer lists 4 shards");
  ExpectRefused(Judge(not_parallel, kSplit, kSplitTask), "the current table is broken");
  DescribeAnswer twice = kAdopted;
  twice.shard_names.push_back("t0");
  twice.infos.push_back({"t0", kSplitting, {}});
  ExpectRefused(Judge(kSplit, twice, kAdoptTask), "listed twice");
  const Judgement capped = JudgeTransition(kBefore, kSplit, kSplitTask, 3);
  ExpectRefused(capped, "over the limit of 3");
}

}  // namespace
}  // namespace etalon::placement
