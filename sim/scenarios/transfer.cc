// Moves in both directions under writes; the leader of the source or of the target crashes right
// before or right after each log entry of a transfer, those of one that is given up included. Every
// combination is a situation of its own, and enough seeds reach all of them.

#include <optional>
#include <sstream>

#include "proto/wire.h"
#include "sim/checkers/log_reader.h"
#include "sim/scenarios/chaos.h"
#include "sim/scenarios/moves.h"
#include "sim/scenarios/run.h"
#include "sim/scenarios/scenario.h"
#include "sim/workloads/chains.h"

namespace etalon::sim {

namespace {

using bucket::RowStatus;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class Step {
  kOpen,
  kReceiving,
  kChunk,
  kSending,
  kPrepared,
  kSent,
  kActive,
  kGarbage,
  kRemove,
  // Of one that is given up while it copies.
  kAbort,
  kTargetGarbage,
  kTargetRemove
};
constexpr int kSteps = 12;
constexpr const char* kStepNames[kSteps] = {
    "OPEN",   "RECEIVING", "chunk",  "SENDING", "PREPARED",         "SENT",
    "ACTIVE", "GARBAGE",   "REMOVE", "ABORT",   "target's GARBAGE", "target's REMOVE"};

bool IsGivenUp(Step step) { return step >= Step::kAbort; }

struct Situation {
  Step step;
  bool source_dies;
  bool after;
};

Situation At(int number) {
  return {static_cast<Step>(number / 4), (number & 2) != 0, (number & 1) != 0};
}

bool LoggedBySource(Step step) {
  switch (step) {
    case Step::kOpen:
    case Step::kSending:
    case Step::kSent:
    case Step::kGarbage:
    case Step::kRemove:
    case Step::kAbort:
      return true;
    case Step::kReceiving:
    case Step::kChunk:
    case Step::kPrepared:
    case Step::kActive:
    case Step::kTargetGarbage:
    case Step::kTargetRemove:
      return false;
  }
  return false;
}

bool NamesBucket(const google::protobuf::RepeatedPtrField<v1::BucketEpoch>& set,
                 std::uint32_t bucket) {
  for (const auto& b : set) {
    if (b.bucket() == bucket) return true;
  }
  return false;
}

v1::TransferStep::Kind KindOf(Step step) {
  switch (step) {
    case Step::kSending:
      return v1::TransferStep::SENDING;
    case Step::kSent:
      return v1::TransferStep::SENT;
    case Step::kActive:
      return v1::TransferStep::ACTIVATE;
    case Step::kGarbage:
      return v1::TransferStep::SOURCE_GARBAGE;
    case Step::kRemove:
    case Step::kTargetRemove:
      return v1::TransferStep::REMOVE;
    case Step::kAbort:
      return v1::TransferStep::ABORT;
    case Step::kTargetGarbage:
      return v1::TransferStep::TARGET_GARBAGE;
    case Step::kOpen:
    case Step::kReceiving:
    case Step::kChunk:
    case Step::kPrepared:
      break;
  }
  return v1::TransferStep::UNKNOWN;
}

bool IsStep(const bucket::StateMachine& state, const v1::Control& control, Step step,
            const Move& move) {
  const auto about_move = [&](const v1::TransferId& id) {
    const TransferId x = FromProto(id);
    if (LoggedBySource(step)) {
      const auto it = state.outgoing().find(x);
      return it != state.outgoing().end() && it->second.set[0].bucket == move.bucket;
    }
    const auto it = state.incoming().find(x);
    return it != state.incoming().end() && it->second.set[0].bucket == move.bucket;
  };
  switch (step) {
    case Step::kOpen:
      return control.has_open() && NamesBucket(control.open().set(), move.bucket);
    case Step::kReceiving:
      return control.has_receiving() && NamesBucket(control.receiving().set(), move.bucket);
    case Step::kChunk:
      return control.has_chunk() && !control.chunk().last() && about_move(control.chunk().id());
    case Step::kPrepared:
      return control.has_chunk() && control.chunk().last() && about_move(control.chunk().id());
    default:
      return control.has_step() && about_move(control.step().id()) &&
             control.step().kind() == KindOf(step);
  }
}

// The entry is in the log of the leader that proposed it, and not applied there.
bool Before(Cluster& cluster, Step step, const Move& move) {
  const int shard = LoggedBySource(step) ? move.source : move.target;
  const auto leader = cluster.LeaderOf(shard);
  if (!leader) return false;
  const storage::Shard& node = *cluster.storage(*leader)->shard();
  bool found = false;
  (void)ForEachControl(node, node.state().applied_index().Next(),
                       [&](LogIndex, const v1::Control& control) {
                         found = found || IsStep(node.state(), control, step, move);
                       });
  return found;
}

// The entry is applied on the leader, and the next step is not.
bool After(Cluster& cluster, Step step, const Move& move) {
  const auto* s = cluster.LeaderState(move.source);
  const auto* t = cluster.LeaderState(move.target);
  if (s == nullptr || t == nullptr) return false;
  const bucket::Row* row = s->FindRow(move.bucket);
  const bucket::Row* there = t->FindRow(move.bucket);
  const bucket::Incoming* incoming = nullptr;
  if (there != nullptr && there->status == RowStatus::kReceiving) {
    auto it = t->incoming().find(there->transfer);
    if (it != t->incoming().end()) incoming = &it->second;
  }
  switch (step) {
    case Step::kOpen:
      return row != nullptr && row->transfer && row->status == RowStatus::kActive &&
             there == nullptr;
    case Step::kReceiving:
      return incoming != nullptr && incoming->next_number == 1;
    case Step::kChunk:
      return incoming != nullptr && incoming->next_number > 1 && !incoming->prepared;
    case Step::kSending:
      return row != nullptr && row->status == RowStatus::kSending && incoming != nullptr &&
             !incoming->prepared;
    case Step::kPrepared:
      return incoming != nullptr && incoming->prepared && row != nullptr &&
             row->status == RowStatus::kSending;
    case Step::kSent:
      return row != nullptr && row->status == RowStatus::kSent && incoming != nullptr;
    case Step::kActive:
      return there != nullptr && there->status == RowStatus::kActive && row != nullptr &&
             row->status == RowStatus::kSent;
    case Step::kGarbage:
      return row != nullptr && row->status == RowStatus::kGarbage;
    case Step::kRemove:
      return row == nullptr && there != nullptr && there->status == RowStatus::kActive &&
             there->epoch > move.epoch;
    case Step::kAbort:
      return row != nullptr && row->status == RowStatus::kActive && !row->transfer &&
             incoming != nullptr;
    case Step::kTargetGarbage:
      return there != nullptr && there->status == RowStatus::kGarbage;
    case Step::kTargetRemove:
      return there == nullptr && row != nullptr && row->status == RowStatus::kActive;
  }
  return false;
}

// The copy stands still until the source has given it up: its leader hands over, or the shard is
// locked.
void MakeAbort(Cluster& cluster, const Move& move) {
  SimWorld& world = cluster.world();
  CutShards(cluster, move.source, move.target);
  world.After(world.random().Between(milliseconds(50), milliseconds(500)),
              [&cluster, move] { HealShards(cluster, move.source, move.target); });
  const auto leader = cluster.LeaderOf(move.source);
  if (!leader) return;
  v1::AdminRequest request;
  if (world.random().Chance(1, 2)) {
    request.mutable_transfer_leader();
  } else {
    v1::Settings& settings = cluster.settings();
    settings.set_version(settings.version() + 1);
    settings.mutable_shards(move.source)->set_locked(true);
    *request.mutable_apply_settings()->mutable_settings() = settings;
    settings.mutable_shards(move.source)->set_locked(false);
  }
  cluster.Admin(*leader, request, [](const v1::AdminResponse&) {});
}

// Brings the collection into the situation and kills the leader there. `*reached`: it was so.
bool Reach(Cluster& cluster, CheckedRun& run, Chaos& chaos, const Situation& situation,
           bool* reached) {
  *reached = false;
  const auto move = PickMove(cluster);
  if (!move) return run.For(milliseconds(200));
  Order(cluster, *move);
  // Something else moves the other way at the same time.
  if (const auto back = PickMove(cluster, move->target, move->source)) Order(cluster, *back);
  if (IsGivenUp(situation.step)) {
    bool copies = false;
    const auto begun = [&] { return After(cluster, Step::kReceiving, *move); };
    if (!run.Until(begun, seconds(3), &copies) || !copies) return run.failure().empty();
    MakeAbort(cluster, *move);
  }
  const auto there = [&] {
    return situation.after ? After(cluster, situation.step, *move)
                           : Before(cluster, situation.step, *move);
  };
  bool now = false;
  if (!run.Until(there, seconds(3), &now)) return false;
  const auto victim = cluster.LeaderOf(situation.source_dies ? move->source : move->target);
  if (!now || !victim) return true;
  chaos.Kill(*victim);
  *reached = true;
  return true;
}

// Locks that were made to have moves given up.
bool Unlock(Cluster& cluster) { return cluster.ApplySettings(seconds(60)); }

}  // namespace

const int kTransferSituations = kSteps * 4;

std::string TransferSituation(int number) {
  const Situation s = At(number);
  return std::string(s.source_dies ? "source" : "target") + "'s leader dies " +
         (s.after ? "after " : "before ") + kStepNames[static_cast<int>(s.step)];
}

Outcome RunTransfer(std::uint64_t seed, bool verbose) {
  Outcome out;
  SimWorld world(seed);
  world.SetEcho(verbose);
  ClusterOptions options;
  options.fast_checkpoints = world.random().Chance(1, 2);
  options.drift_ppm = RoughClocks(world);
  Cluster cluster(world, options);
  if (!cluster.Form(seconds(30))) return Failed("the collection does not form");
  RoughNetwork(world);
  Chains chains(cluster, {.keys = 16, .value_bytes = 60});
  Chaos chaos(cluster, seconds(3));
  CheckedRun run(cluster);
  run.Add(chains);
  chains.Start();
  if (world.random().Chance(1, 2)) chaos.Start();
  (void)run.For(milliseconds(300));

  // One situation is this seed's own; the others come by chance.
  const auto all = static_cast<std::uint64_t>(kTransferSituations);
  for (const std::uint64_t number : {seed % all, world.random().Below(all)}) {
    const Situation situation = At(static_cast<int>(number));
    bool reached = false;
    for (int attempt = 0; attempt < 6 && !reached; ++attempt) {
      if (!Reach(cluster, run, chaos, situation, &reached)) return Failed(run.failure());
    }
    if (reached) out.reached.push_back(static_cast<int>(number));
    if (IsGivenUp(situation.step) && !Unlock(cluster)) return Failed("settings cannot be applied");
    if (!run.For(milliseconds(500 + world.random().Below(2000)))) return Failed(run.failure());
  }
  chaos.Stop();
  (void)run.Conclude();
  out.failure = run.failure();
  out.trace = world.trace();
  out.acknowledged = chains.acknowledged();
  std::ostringstream summary;
  summary << chains.acknowledged() << " writes, " << chains.reads() << " reads, "
          << chains.unknown() << " unknown, " << chaos.kills() << " kills";
  out.summary = summary.str();
  return out;
}

}  // namespace etalon::sim
