#include "engine/bucket/state_machine.h"

#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

TEST(StateMachineTest, OneWriteAGroupWithTheAppliedIndexInIt) {
  Shard a;
  a.Apply({a.Entry(std::vector<v1::Call>{PutCall(1, "a", "1")}), a.Entry(),
           a.Entry(std::vector<v1::Call>{PutCall(1, "b", "2"), PutCall(2, "c", "3")})});
  EXPECT_EQ(a.store.writes, 1);
  EXPECT_EQ(a.sm->applied_index(), LogIndex(4));
  a.term = Term(3);
  a.Apply({a.Entry(PinCommand({0})), a.Entry(std::vector<v1::Call>{PutCall(1, "a", "2")}),
           a.Entry(PinCommand({1}))});
  EXPECT_EQ(a.store.writes, 3) << "a control entry ends a write";
  EXPECT_EQ(a.sm->applied_term(), Term(3));
  a.Apply({});
  EXPECT_EQ(a.store.writes, 3);
  a.Restart();
  EXPECT_EQ(a.sm->applied_index(), LogIndex(7));
}

TEST(StateMachineTest, EmptyAndMemberEntries) {
  Shard a;
  const std::vector<consensus::Entry> entries = {
      {LogIndex(2), Term(2), consensus::EntryKind::kCommands, {}},
      {LogIndex(3), Term(2), consensus::EntryKind::kMembers, "\xff\xff change"},
  };
  const auto outcomes = a.sm->Apply(entries, [](const consensus::Entry& entry) {
    EXPECT_EQ(entry.data, "\xff\xff change");
    v1::MemberInfo member;
    member.set_member(5);
    member.set_name("r5");
    return std::vector<v1::MemberInfo>{member};
  });
  ASSERT_TRUE(outcomes.ok());
  ASSERT_EQ(outcomes->size(), 2u);
  for (const EntryOutcome& outcome : *outcomes) {
    EXPECT_TRUE(outcome.calls.empty());
    EXPECT_FALSE(outcome.control.has_value());
    EXPECT_EQ(outcome.term, Term(2));
  }
  a.Restart();
  ASSERT_EQ(a.sm->members().size(), 1u);
  EXPECT_EQ(a.sm->members()[0].member(), 5u);
  EXPECT_EQ(a.sm->applied_index(), LogIndex(3));
  EXPECT_EQ(a.sm->applied_term(), Term(2));
}

TEST(StateMachineTest, WhatItDoesNotKnowStopsTheReplica) {
  const auto stops = [](consensus::EntryKind kind, const v1::LogEntry& entry) {
    Shard a;
    const std::string good =
        a.Entry(std::vector<v1::Call>{PutCall(1, "k", "v")}).SerializeAsString();
    const std::string bytes = entry.SerializeAsString();
    const std::vector<consensus::Entry> entries = {
        {LogIndex(2), Term(1), consensus::EntryKind::kCommands, good},
        {LogIndex(3), Term(1), kind, bytes}};
    const auto first = a.sm->Apply(entries, NoMembers);
    if (first.ok()) return false;
    EXPECT_EQ(first.status().reason(), Reason::kNewerFormat);
    EXPECT_EQ(first.status().code(), Code::kFailedPrecondition);
    EXPECT_EQ(a.sm->applied_index(), LogIndex(2)) << "what stood before is applied";
    EXPECT_EQ(a.Get(1, "k"), "v");
    const std::vector<consensus::Entry> more = {
        {LogIndex(3), Term(1), consensus::EntryKind::kCommands, {}}};
    EXPECT_EQ(a.sm->Apply(more, NoMembers).status().reason(), Reason::kNewerFormat);
    EXPECT_EQ(a.sm->applied_index(), LogIndex(2));
    return true;
  };
  const auto commands = consensus::EntryKind::kCommands;
  v1::LogEntry entry;
  EXPECT_FALSE(stops(commands, entry));
  EXPECT_TRUE(stops(static_cast<consensus::EntryKind>(1), entry));
  EXPECT_TRUE(stops(static_cast<consensus::EntryKind>(77), entry));
  entry.set_version(kStateVersion);
  EXPECT_FALSE(stops(commands, entry));
  entry.set_version(kStateVersion + 1);
  EXPECT_TRUE(stops(commands, entry));
  entry.Clear();
  entry.mutable_control();
  EXPECT_TRUE(stops(commands, entry));
  entry.mutable_control()->mutable_bump()->set_version(kStateVersion);
  EXPECT_FALSE(stops(commands, entry));
  entry.mutable_control()->mutable_bump()->set_version(kStateVersion + 1);
  EXPECT_TRUE(stops(commands, entry));
}

TEST(StateMachineTest, AMalformedEntryIsAnOutcome) {
  Shard a;
  const std::vector<consensus::Entry> entries = {
      {LogIndex(2), Term(1), consensus::EntryKind::kCommands, "\xff\xff\xff"}};
  const auto outcomes = a.sm->Apply(entries, NoMembers);
  ASSERT_TRUE(outcomes.ok());
  EXPECT_EQ(outcomes->at(0).control->reason(), Reason::kMalformed);
  EXPECT_EQ(a.sm->applied_index(), LogIndex(2));
  EXPECT_TRUE(a.Do(PutCall(1, "k", "v")).status.ok());
}

TEST(StateMachineTest, ARefusedWriteIsKeptAndTriedAgain) {
  Shard a;
  std::vector<std::string> bytes;
  for (const v1::LogEntry& entry :
       {a.Entry(std::vector<v1::Call>{PutCall(1, "a", "1")}), a.Entry(PinCommand({0})),
        a.Entry(std::vector<v1::Call>{PutCall(1, "b", "1", "insert")}),
        a.Entry(OpenCommand(kB, 0, {{1, 1}})),
        a.Entry(std::vector<v1::Call>{PutCall(1, "b", "2", "update")})}) {
    bytes.push_back(entry.SerializeAsString());
  }
  const auto entries = a.Entries(bytes);
  Shard good;
  good.store.map = a.store.map;
  good.Restart();
  Map at_open;
  good.observer.on_opened = [&](const Outgoing&) { at_open = good.store.map; };
  const auto expected = good.sm->Apply(entries, NoMembers);
  ASSERT_TRUE(expected.ok());
  for (int refused = 1; refused <= 3; ++refused) {
    Shard b;
    b.store.map = a.store.map;
    b.Restart();
    Map seen;
    b.observer.on_opened = [&](const Outgoing&) { seen = b.store.map; };
    b.store.attempts = 0;
    b.store.failing = {refused, refused + 1};
    Result<std::vector<EntryOutcome>> outcomes = b.sm->Apply(entries, NoMembers);
    for (int attempt = 0; attempt < 2; ++attempt) {
      ASSERT_FALSE(outcomes.ok());
      EXPECT_EQ(outcomes.status().reason(), Reason::kDiskFull);
      // What the store holds, and what was told, is what was written before.
      EXPECT_EQ(b.sm->applied_index(), LogIndex(refused == 1 ? 1 : refused == 2 ? 3 : 5));
      ASSERT_LT(b.observer.told.size(), good.observer.told.size());
      EXPECT_TRUE(
          std::equal(b.observer.told.begin(), b.observer.told.end(), good.observer.told.begin()));
      EXPECT_EQ(b.observer.told.empty(), refused == 1);
      outcomes = b.sm->Apply(entries, NoMembers);
    }
    ASSERT_TRUE(outcomes.ok()) << outcomes.status().ToString();
    ASSERT_EQ(outcomes->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      EXPECT_EQ((*outcomes)[i].index, (*expected)[i].index);
      ASSERT_EQ((*outcomes)[i].calls.size(), (*expected)[i].calls.size());
      for (std::size_t c = 0; c < (*expected)[i].calls.size(); ++c) {
        EXPECT_EQ((*outcomes)[i].calls[c].status.ToString(),
                  (*expected)[i].calls[c].status.ToString());
      }
    }
    EXPECT_EQ(b.store.map, good.store.map);
    EXPECT_EQ(b.observer.told, good.observer.told);
    EXPECT_EQ(seen, at_open) << "exactly the state of OPEN, after a retry too";
  }
}

TEST(StateMachineTest, AFailedReadStopsTheReplicaWithoutHalfAnEntry) {
  Shard a;
  const std::vector<std::string> bytes = {
      a.Entry(PinCommand({0})).SerializeAsString(),
      a.Entry(std::vector<v1::Call>{PutCall(1, "a", "1"), PutCall(1, "b", "1", "insert")})
          .SerializeAsString()};
  const auto entries = a.Entries(bytes);
  a.store.fail_reads = true;
  EXPECT_EQ(a.sm->Apply(entries, NoMembers).status().code(), Code::kDataLoss);
  a.store.fail_reads = false;
  EXPECT_EQ(a.sm->Apply(entries, NoMembers).status().code(), Code::kDataLoss) << "for good";
  EXPECT_EQ(a.Get(1, "a"), std::nullopt);
  a.Restart();
  EXPECT_EQ(a.sm->applied_index(), LogIndex(2));
}

TEST(StateMachineTest, Load) {
  MapStore empty;
  Recorder nobody;
  EXPECT_EQ(StateMachine::Load(empty, nobody).status().reason(), Reason::kUnformed);

  const auto load = [&](const std::function<void(Map*)>& change) {
    Shard a;
    EXPECT_TRUE(a.Do(OpenCommand(kB, 0, {{1, 1}})).ok());
    EXPECT_TRUE(a.Do(SplitCommand("t", kB)).ok());
    EXPECT_TRUE(a.Do(WithId(PutCall(0, "k", "v"), 1, 1)).status.ok());
    change(&a.store.map);
    return StateMachine::Load(a.store, nobody).status();
  };
  EXPECT_TRUE(load([](Map*) {}).ok());
  const auto spoil = [](std::string name) {
    return [name](Map* map) {
      const auto it = map->lower_bound(store::MetaKey(name));
      ASSERT_NE(it, map->end());
      it->second = "\xff\xff";
    };
  };
  for (const char* name : {"state/header", "state/topology", "state/settings", "state/row/",
                           "state/marks/", "state/outgoing/", "state/split/"}) {
    EXPECT_EQ(load(spoil(name)).code(), Code::kDataLoss) << name;
  }
  EXPECT_EQ(load([](Map* map) { map->erase(store::MetaKey("state/topology")); }).code(),
            Code::kDataLoss);
  EXPECT_EQ(load([](Map* map) {
              map->erase(map->lower_bound(store::MetaKey("state/outgoing/")));
            }).code(),
            Code::kDataLoss)
      << "a row of a transfer that has no record";
  EXPECT_EQ(load([](Map* map) { (*map)[store::MetaKey("state/request/x")] = ""; }).code(),
            Code::kDataLoss);
  EXPECT_EQ(load([](Map* map) {
              v1::StateHeader header;
              const std::string key = store::MetaKey("state/header");
              ASSERT_TRUE(header.ParseFromString((*map)[key]));
              header.set_version(kStateVersion + 1);
              (*map)[key] = header.SerializeAsString();
            }).reason(),
            Reason::kNewerFormat);
}

TEST(StateMachineTest, ChecksumSeesRecordsAndState) {
  const auto sum = [](const Shard& s) { return s.sm->Checksum()->checksum(); };
  Shard a;
  Shard b;
  EXPECT_EQ(sum(a), sum(b));
  a.DoAll({PutCall(1, "a", "1"), PutCall(2, "b", "2")});
  EXPECT_NE(sum(a), sum(b));
  b.DoAll({PutCall(2, "b", "2"), PutCall(1, "a", "1")});
  EXPECT_EQ(sum(a), sum(b));
  EXPECT_EQ(a.sm->Checksum()->records(), 2u);
  EXPECT_EQ(a.sm->Checksum()->applied_index(), 2u);
  EXPECT_TRUE(a.Do(PinCommand({1})).ok());
  EXPECT_TRUE(b.Do(PinCommand({2})).ok());
  EXPECT_NE(sum(a), sum(b));
}

}  // namespace
}  // namespace etalon::bucket::testing
