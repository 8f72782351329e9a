#include "engine/transfer/target.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/transfer/testing/cluster.h"
#include "proto/wire.h"

namespace etalon::transfer::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

ClusterOptions Options(int shards = 2) {
  ClusterOptions options;
  options.seed = 4;
  options.shards = shards;
  options.bucket_count = 4;
  return options;
}

// Talks to shard 1 as the leader of shard 0 would, and keeps what it says.
struct Peer {
  explicit Peer(Cluster& c) : cluster(c) {
    cluster.check_owners = false;  // shard 1 is made to own what shard 0 does
    cluster.tap = [this](Shard& from, transfer::Send& send) {
      if (from.uid() == Cluster::Uid(1)) said.push_back(send.message);
      return false;
    };
  }
  v1::TransferMessage Message() const {
    v1::TransferMessage message;
    message.set_from_shard(Cluster::Uid(0).value());
    message.set_from_term(cluster.shard(0).term().value());
    return message;
  }
  Status Reserve(std::uint64_t number, std::uint32_t bucket, std::uint64_t limit = 0,
                 std::uint32_t level = 0) {
    v1::TransferMessage message = Message();
    message.mutable_reserve()->set_number(number);
    message.mutable_reserve()->set_level(level);
    message.mutable_reserve()->set_limit(limit);
    message.mutable_reserve()->set_bytes(100);
    v1::BucketEpoch& b = *message.mutable_reserve()->add_set();
    b.set_bucket(bucket);
    b.set_epoch(1);
    said.clear();
    cluster.shard(1).Deliver(message);
    if (said.empty()) return Internal("no answer");
    EXPECT_EQ(said.back().reserve_reply().number(), number);
    return FromProto(said.back().reserve_reply().status());
  }
  void Start(const TransferId& id, std::uint32_t bucket, std::uint64_t reservation = 0) {
    v1::TransferMessage message = Message();
    *message.mutable_start()->mutable_id() = ToProto(id);
    message.mutable_start()->set_reservation(reservation);
    v1::BucketEpoch& b = *message.mutable_start()->add_set();
    b.set_bucket(bucket);
    b.set_epoch(1);
    cluster.shard(1).Deliver(message);
  }
  void Chunk(const TransferId& id, std::uint64_t number, bool last, std::uint64_t hash = 0,
             std::uint32_t crc = 0) {
    v1::TransferMessage message = Message();
    v1::Chunk& chunk = *message.mutable_chunk()->mutable_chunk();
    *chunk.mutable_id() = ToProto(id);
    chunk.set_number(number);
    chunk.set_crc(crc);
    chunk.set_last(last);
    chunk.set_hash(hash);
    cluster.shard(1).Deliver(message);
  }
  // RECEIVING and, if asked for, PREPARED, of a transfer without data.
  TransferId Bring(std::uint32_t bucket, bool prepared, std::uint64_t reservation = 0) {
    const TransferId id{Cluster::Uid(0), cluster.shard(0).term(), LogIndex(1000 + bucket)};
    Start(id, bucket, reservation);
    cluster.RunFor(milliseconds(20));
    if (prepared) Chunk(id, 1, true, bucket::ChainChunk(0, 1, 0));
    cluster.RunFor(milliseconds(20));
    return id;
  }
  const v1::Progress* LastProgress() const {
    for (auto it = said.rbegin(); it != said.rend(); ++it) {
      if (it->has_progress()) return &it->progress();
    }
    return nullptr;
  }
  // The question that the target asks next, answered by `fill`.
  template <class Fill>
  void AnswerNextQuestion(Fill fill) {
    const auto asked = [this]() -> const v1::Question* {
      for (const auto& m : said) {
        if (m.has_question()) return &m.question();
      }
      return nullptr;
    };
    said.clear();
    ASSERT_TRUE(cluster.RunUntil([&] { return asked() != nullptr; }, seconds(30)));
    v1::TransferMessage message = Message();
    v1::Answer& answer = *message.mutable_answer();
    *answer.mutable_id() = asked()->id();
    answer.set_asker_term(asked()->asker_term());
    answer.set_number(asked()->number());
    answer.set_shard(Cluster::Uid(0).value());
    answer.set_applied_index(5000);
    for (const std::uint32_t bucket : asked()->buckets()) answer.add_buckets()->set_bucket(bucket);
    fill(answer);
    cluster.shard(1).Deliver(message);
  }

  Cluster& cluster;
  std::vector<v1::TransferMessage> said;
};

const bucket::Row* RowOf(Cluster& cluster, std::uint32_t bucket) {
  return cluster.shard(1).state().FindRow(bucket);
}

TEST(TargetReserve, SlotsCountTransfersAndReservationsWhichExpire) {
  ClusterOptions options = Options();
  options.settings.set_max_receiving(2);
  Cluster cluster(options);
  Peer peer(cluster);
  EXPECT_TRUE(peer.Reserve(1, 0).ok());
  EXPECT_TRUE(peer.Reserve(1, 0).ok()) << "the same one again takes no second slot";
  peer.Bring(1, false);
  EXPECT_EQ(peer.Reserve(2, 2).reason(), Reason::kTooManyReceiving);
  cluster.RunFor(seconds(6));
  EXPECT_TRUE(peer.Reserve(2, 2).ok());
  EXPECT_EQ(peer.Reserve(3, 3).reason(), Reason::kTooManyReceiving);
}

TEST(TargetReserve, AReserveThatComesAfterItsStartTakesNoSlot) {
  ClusterOptions options = Options();
  options.settings.set_max_receiving(2);
  Cluster cluster(options);
  Peer peer(cluster);
  ASSERT_TRUE(peer.Reserve(7, 1).ok());
  peer.Bring(1, false, 7);
  v1::TransferMessage late = peer.Message();
  late.mutable_reserve()->set_number(7);
  late.mutable_reserve()->add_set()->set_bucket(2);
  cluster.shard(1).Deliver(late);
  EXPECT_TRUE(peer.Reserve(8, 3).ok());
}

TEST(TargetReserve, TheLimitCountsWhatIsHereArrivingAndPromised) {
  ClusterOptions options = Options();
  options.ranges = {{0, 2}, {3, 3}};
  Cluster cluster(options);
  Peer peer(cluster);
  EXPECT_EQ(peer.Reserve(1, 0, 1).reason(), Reason::kTooManyReceiving);
  EXPECT_TRUE(peer.Reserve(1, 0, 2).ok());
  EXPECT_EQ(peer.Reserve(2, 1, 2).reason(), Reason::kTooManyReceiving);
  EXPECT_TRUE(peer.Reserve(2, 1, 3).ok());
  peer.Bring(2, false);
  EXPECT_EQ(peer.Reserve(2, 1, 3).reason(), Reason::kTooManyReceiving);
}

TEST(TargetReserve, DiskHeadRoomCountsWhatIsPromised) {
  Cluster cluster(Options());
  Peer peer(cluster);
  cluster.shard(1).headroom = 150;
  EXPECT_TRUE(peer.Reserve(1, 0).ok());
  EXPECT_EQ(peer.Reserve(2, 1).reason(), Reason::kNoSpaceForTransfer);
  cluster.shard(1).headroom = 200;
  EXPECT_TRUE(peer.Reserve(2, 1).ok());
}

TEST(TargetReserve, ABucketThatIsHereOrWasHereLaterIsRefused) {
  ClusterOptions options = Options();
  options.ranges = {{0, 2}, {3, 3}};
  Cluster cluster(options);
  ASSERT_TRUE(cluster.MoveAndWait(0, 1, {1}).ok());
  ASSERT_TRUE(cluster.RunUntilIdle());
  ASSERT_TRUE(cluster.MoveAndWait(1, 0, {1}).ok());
  ASSERT_TRUE(cluster.RunUntilIdle());
  Peer peer(cluster);
  EXPECT_EQ(peer.Reserve(101, 3).reason(), Reason::kTransferIsInProgress);
  EXPECT_EQ(peer.Reserve(102, 1).reason(), Reason::kStaleEpoch);
}

TEST(TargetReserve, AHigherLevelMakesItDoubleItsModulusFirst) {
  Cluster cluster(Options());
  Peer peer(cluster);
  EXPECT_EQ(peer.Reserve(1, 5, 0, 1).reason(), Reason::kTransferPending);
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.shard(1).state().level(), 1);
  EXPECT_TRUE(peer.Reserve(1, 5, 0, 1).ok());
  EXPECT_EQ(peer.Reserve(2, 0, 0, 32).code(), Code::kInvalidArgument);
}

TEST(TargetReserve, TheDoublingWaitsForTransfersAndLetsNoNewOneIn) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, false);
  EXPECT_EQ(peer.Reserve(1, 5, 0, 1).reason(), Reason::kTransferPending);
  EXPECT_EQ(peer.Reserve(2, 0).reason(), Reason::kTransferPending);
  cluster.RunFor(milliseconds(50));
  EXPECT_EQ(cluster.shard(1).state().level(), 0);
  peer.AnswerNextQuestion([](v1::Answer&) {});  // gone
  cluster.RunFor(milliseconds(50));
  EXPECT_TRUE(cluster.shard(1).state().incoming().count(x) == 0);
  EXPECT_EQ(cluster.shard(1).state().level(), 1);
}

TEST(TargetStart, IsJudgedAgainWithoutItsReservation) {
  ClusterOptions options = Options();
  options.settings.set_max_receiving(1);
  Cluster cluster(options);
  Peer peer(cluster);
  peer.Bring(1, false);
  peer.said.clear();
  peer.Start({Cluster::Uid(0), cluster.shard(0).term(), LogIndex(2000)}, 2);
  ASSERT_NE(peer.LastProgress(), nullptr);
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::REFUSED);
  EXPECT_EQ(FromProto(peer.LastProgress()->status()).reason(), Reason::kTooManyReceiving);
}

TEST(TargetChunks, ComeInAnyOrderAndAreAppliedInTheirs) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, false);
  std::uint64_t hash = 0;
  for (std::uint64_t n = 1; n <= 4; ++n) hash = bucket::ChainChunk(hash, n, 0);
  peer.Chunk(x, 4, true, hash);
  peer.Chunk(x, 3, false);
  peer.Chunk(x, 1, false);
  peer.Chunk(x, 1, false);
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(peer.LastProgress()->next_number(), 2u);
  peer.Chunk(x, 2, false);
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::PREPARED);
  EXPECT_EQ(cluster.shard(1).refused_controls.count("CHUNK"), 0u);
  peer.said.clear();
  peer.Chunk(x, 2, false);  // a duplicate is success
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::PREPARED);
}

TEST(TargetChunks, DamagedOnesAreDroppedAndMismatchesRefused) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, false);
  peer.said.clear();
  peer.Chunk(x, 1, false, 0, 12345);  // its CRC is wrong
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(cluster.shard(1).state().incoming().at(x).next_number, 1u);
  EXPECT_EQ(peer.LastProgress(), nullptr);
  peer.Chunk(x, 1, true, 999);  // the hash of the whole is wrong
  cluster.RunFor(milliseconds(20));
  ASSERT_NE(peer.LastProgress(), nullptr);
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::REFUSED);
  EXPECT_FALSE(cluster.shard(1).state().incoming().at(x).prepared);
}

TEST(TargetChunks, OfAnUnknownTransferAreAnsweredGone) {
  Cluster cluster(Options());
  Peer peer(cluster);
  peer.Chunk({Cluster::Uid(0), Term(2), LogIndex(77)}, 1, false);
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::GONE);
}

TEST(TargetResolves, OnlyActivateOfThisTransferActivates) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, true);
  v1::TransferMessage message = peer.Message();
  message.mutable_activate()->mutable_id()->set_source(Cluster::Uid(0).value());
  message.mutable_activate()->mutable_id()->set_index(x.index.value() + 1);
  cluster.shard(1).Deliver(message);
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kReceiving);
  *message.mutable_activate()->mutable_id() = ToProto(x);
  cluster.shard(1).Deliver(message);
  cluster.RunFor(milliseconds(20));
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kActive);
  EXPECT_EQ(RowOf(cluster, 1)->epoch, Epoch(2));
  EXPECT_EQ(peer.LastProgress()->state(), v1::Progress::ACTIVE);
}

TEST(TargetResolves, ByAskingWhenNothingComes) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, true);
  // Answers of another term, or to an older question, do not count.
  peer.AnswerNextQuestion([&](v1::Answer& a) { a.set_asker_term(a.asker_term() - 1); });
  peer.AnswerNextQuestion([&](v1::Answer& a) { a.set_number(0); });
  cluster.RunFor(milliseconds(50));
  ASSERT_NE(RowOf(cluster, 1), nullptr);
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kReceiving);
  peer.AnswerNextQuestion([&](v1::Answer& a) {
    a.mutable_buckets(0)->mutable_row()->set_status(v1::BUCKET_SENT);
    *a.mutable_buckets(0)->mutable_row()->mutable_transfer() = ToProto(x);
    a.mutable_buckets(0)->set_destination(Cluster::Uid(1).value());
  });
  cluster.RunFor(milliseconds(50));
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kActive);
}

TEST(TargetResolves, ToGarbageWhenTheSourceKnowsNothing) {
  Cluster cluster(Options());
  Peer peer(cluster);
  peer.Bring(1, true);
  peer.AnswerNextQuestion([&](v1::Answer&) {});
  cluster.RunFor(milliseconds(50));
  EXPECT_EQ(RowOf(cluster, 1), nullptr);
}

TEST(TargetResolves, HoldsWithAnAlertWhatNobodyMayUseOrDelete) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, true);
  const auto standing = [&] {
    return cluster.shard(1).alerts.count({std::string(kAlertHold), ToString(x)}) != 0;
  };
  peer.AnswerNextQuestion([&](v1::Answer& a) { a.set_applied_index(x.index.value() - 1); });
  EXPECT_TRUE(standing());
  peer.AnswerNextQuestion([&](v1::Answer& a) {
    a.mutable_buckets(0)->mutable_row()->set_status(v1::BUCKET_SENDING);
    *a.mutable_buckets(0)->mutable_row()->mutable_transfer() = ToProto(x);
  });
  EXPECT_FALSE(standing());
  peer.AnswerNextQuestion(
      [&](v1::Answer& a) { *a.mutable_buckets(0)->mutable_marks()->mutable_left() = ToProto(x); });
  EXPECT_TRUE(standing());
  cluster.RunFor(seconds(10));
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kReceiving);
}

TEST(TargetResolves, ARemovedSourceOnlyWithConfirmedLeadership) {
  Cluster cluster(Options(3));
  Peer peer(cluster);
  peer.Bring(1, false);
  cluster.confirmed_always = false;
  cluster.ChangeTopology([](v1::Topology& t) {
    t.mutable_shards()->DeleteSubrange(0, 1);
    t.add_removed_shards(Cluster::Uid(0).value());
  });
  ASSERT_TRUE(cluster.RunUntil([&] { return RowOf(cluster, 1) == nullptr; }, seconds(2)));
}

TEST(TargetResolves, WaitsForASilentSourceAndSaysSo) {
  Cluster cluster(Options());
  Peer peer(cluster);
  const TransferId x = peer.Bring(1, true);
  cluster.RunFor(seconds(31));
  EXPECT_EQ(cluster.shard(1).alerts.count({std::string(kAlertStuck), ToString(x)}), 1u);
  EXPECT_EQ(RowOf(cluster, 1)->status, bucket::RowStatus::kReceiving);
  std::size_t questions = 0;
  for (const auto& m : peer.said) questions += m.has_question();
  EXPECT_GE(questions, 3u);
  EXPECT_LE(questions, 40u) << "asked with a backoff";
  peer.AnswerNextQuestion([&](v1::Answer&) {});
  cluster.RunFor(milliseconds(50));
  EXPECT_TRUE(cluster.shard(1).alerts.empty());
}

TEST(TargetQuestions, AreAnsweredOnlyWithConfirmedLeadershipAndAnEntryOfItsTerm) {
  Cluster cluster(Options());
  Peer peer(cluster);
  v1::TransferMessage message = peer.Message();
  message.mutable_question()->set_asker_term(1);
  message.mutable_question()->set_number(9);
  message.mutable_question()->add_buckets(1);
  Shard& shard = cluster.shard(1);
  Output unconfirmed = shard.target().Step(cluster.now(), Input{false, Message{message}});
  EXPECT_TRUE(unconfirmed.actions.empty());
  shard.ChangeLeader(0);
  EXPECT_TRUE(shard.target().Step(cluster.now(), Input{true, Message{message}}).actions.empty());
  cluster.RunFor(milliseconds(20));
  peer.said.clear();
  shard.Deliver(message);
  ASSERT_EQ(peer.said.size(), 1u);
  const v1::Answer& answer = peer.said[0].answer();
  EXPECT_EQ(answer.number(), 9u);
  EXPECT_EQ(answer.asker_term(), 1u);
  EXPECT_EQ(answer.term(), shard.term().value());
  EXPECT_EQ(answer.applied_index(), shard.state().applied_index().value());
}

TEST(AnswerQuestion, NamesBothHalvesAndNeverMergesThem) {
  Cluster cluster(Options());
  v1::Control rebase;
  rebase.mutable_rebase()->set_level(1);
  cluster.shard(0).Propose(rebase);
  cluster.RunFor(milliseconds(20));
  v1::Question question;
  question.add_buckets(1);
  auto fine = AnswerQuestion(cluster.shard(0).state(), Term(1), question);
  ASSERT_TRUE(fine.ok());
  EXPECT_EQ(fine->level(), 1u);
  ASSERT_EQ(fine->buckets_size(), 2);
  EXPECT_EQ(fine->buckets(0).bucket(), 1u);
  EXPECT_EQ(fine->buckets(1).bucket(), 5u);
  // Asked at a level above ours: our row is the row of each half.
  question.set_level(1);
  question.add_buckets(5);
  auto coarse = AnswerQuestion(cluster.shard(1).state(), Term(1), question);
  ASSERT_TRUE(coarse.ok());
  EXPECT_EQ(coarse->level(), 1u);
  EXPECT_EQ(coarse->buckets_size(), 2);
  question.add_buckets(8);
  EXPECT_FALSE(AnswerQuestion(cluster.shard(0).state(), Term(1), question).ok());
}

}  // namespace
}  // namespace etalon::transfer::testing
