// The table of bucket states, and every ordered pair of it through apply.
#include "engine/bucket/transitions.h"

#include "engine/bucket/testing.h"

namespace etalon::bucket::testing {
namespace {

using State = std::optional<RowStatus>;

const std::vector<State> kAll = {
    std::nullopt,     RowStatus::kActive,    RowStatus::kPinned,  RowStatus::kSending,
    RowStatus::kSent, RowStatus::kReceiving, RowStatus::kGarbage, RowStatus::kQuarantined,
};

std::string Name(State state) {
  return state ? std::string(RowStatusName(*state)) : std::string("none");
}

// As docs/protocols/buckets.md lists them.
const std::set<std::pair<std::string, std::string>> kAllowed = {
    {"none", "ACTIVE"},         {"none", "RECEIVING"},      {"RECEIVING", "ACTIVE"},
    {"RECEIVING", "GARBAGE"},   {"ACTIVE", "PINNED"},       {"PINNED", "ACTIVE"},
    {"ACTIVE", "SENDING"},      {"SENDING", "ACTIVE"},      {"SENDING", "SENT"},
    {"SENT", "GARBAGE"},        {"GARBAGE", "none"},        {"ACTIVE", "QUARANTINED"},
    {"PINNED", "QUARANTINED"},  {"SENDING", "QUARANTINED"}, {"QUARANTINED", "ACTIVE"},
    {"QUARANTINED", "GARBAGE"},
};

TEST(TransitionsTest, TheTableIsTheDocumentedOne) {
  for (const State from : kAll) {
    for (const State to : kAll) {
      EXPECT_EQ(MayBecome(from, to), kAllowed.contains({Name(from), Name(to)}))
          << Name(from) << " -> " << Name(to);
    }
  }
}

// A shard whose bucket 0 is in a state, and the transfer that its row carries (or one that nobody
// has).
struct Prepared {
  std::unique_ptr<Shard> shard;
  TransferId transfer{kC, Term(9), LogIndex(9)};
};

Prepared Prepare(State state, bool with_transfer) {
  Prepared p;
  if (!state || state == RowStatus::kReceiving) {
    p.shard = std::make_unique<Shard>(kB);
    if (!state) return p;
    EXPECT_TRUE(p.shard->Do(ReceivingCommand(p.transfer, 0, {{0, 1}})).ok());
    EXPECT_TRUE(p.shard->Do(ChunkCutter(p.transfer).Cut(v1::ChunkPayload(), true)).ok());
    return p;
  }
  p.shard = std::make_unique<Shard>(kA);
  Shard& s = *p.shard;
  const auto step = [&](v1::TransferStep::Kind kind) {
    EXPECT_TRUE(s.Do(StepCommand(kind, p.transfer)).ok());
  };
  if (state == RowStatus::kPinned) {
    EXPECT_TRUE(s.Do(PinCommand({0})).ok());
  } else if (state == RowStatus::kQuarantined) {
    EXPECT_TRUE(s.Do(QuarantineCommand(0, 1, 2)).ok());
  } else if (state != RowStatus::kActive || with_transfer) {
    EXPECT_TRUE(s.Do(OpenCommand(kB, 0, {{0, 1}})).ok());
    p.transfer = s.Opened();
    if (state != RowStatus::kActive) step(v1::TransferStep::SENDING);
    if (state == RowStatus::kSent || state == RowStatus::kGarbage) step(v1::TransferStep::SENT);
    if (state == RowStatus::kGarbage) step(v1::TransferStep::SOURCE_GARBAGE);
  }
  EXPECT_EQ(s.StatusOf(0), state);
  return p;
}

// Every command that leads to a state.
std::vector<v1::Control> CommandsTo(State to, const Prepared& p) {
  const auto step = [&](v1::TransferStep::Kind kind) { return StepCommand(kind, p.transfer); };
  if (!to) return {step(v1::TransferStep::REMOVE)};
  switch (*to) {
    case RowStatus::kActive:
      return {PinCommand({0}, true), step(v1::TransferStep::ABORT),
              step(v1::TransferStep::ACTIVATE), ReleaseCommand(0, true)};
    case RowStatus::kPinned:
      return {PinCommand({0})};
    case RowStatus::kSending:
      return {step(v1::TransferStep::SENDING)};
    case RowStatus::kSent:
      return {step(v1::TransferStep::SENT)};
    case RowStatus::kReceiving:
      return {ReceivingCommand({kC, Term(3), LogIndex(7)}, 0, {{0, 5}})};
    case RowStatus::kGarbage:
      return {step(v1::TransferStep::SOURCE_GARBAGE), step(v1::TransferStep::TARGET_GARBAGE),
              ReleaseCommand(0, false)};
    case RowStatus::kQuarantined:
      return {QuarantineCommand(0, 1, 5)};
  }
  return {};
}

TEST(TransitionsTest, EveryPairThroughApply) {
  for (const State from : kAll) {
    for (const State to : kAll) {
      if (from == to) continue;
      SCOPED_TRACE(Name(from) + " -> " + Name(to));
      const bool to_sending = to == RowStatus::kSending;
      const bool by_command =
          kAllowed.contains({Name(from), Name(to)}) && !(!from && to == RowStatus::kActive);
      int done = 0;
      const std::size_t commands = CommandsTo(to, {}).size();
      for (std::size_t i = 0; i < commands; ++i) {
        Prepared p = Prepare(from, to_sending);
        const Status status = p.shard->Do(CommandsTo(to, p)[i]);
        if (status.ok()) {
          ++done;
          EXPECT_EQ(p.shard->StatusOf(0), to);
        } else {
          EXPECT_EQ(status.reason(), Reason::kBucketInvalidUpdate) << status.ToString();
          EXPECT_EQ(p.shard->StatusOf(0), from);
        }
        v1::Settings settings;
        settings.set_version(1);
        EXPECT_TRUE(p.shard->Do(SettingsCommand(settings)).ok()) << "replication must go on";
      }
      EXPECT_EQ(done, by_command ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace etalon::bucket::testing
