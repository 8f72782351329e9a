#include "operator/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "operator/plan/planner.h"

namespace etalon::controller {

PlanOutput Plan(const CollectionSpec& spec, const Observed& observed, SteadyTime now) {
  return Planner(spec, observed, now).Run();
}

Planner::Planner(const CollectionSpec& spec, const Observed& observed, SteadyTime now)
    : spec_(spec), seen_(observed), now_(now), view_(spec, observed) {}

PlanOutput Planner::Run() {
  const auto need = [this](bool known, const std::string& why, std::string_view what) {
    if (!known)
      refused_.push_back(
          fmt::format("{} cannot be read ({}): nothing is changed until it can", what, why));
  };
  need(seen_.topologies.known(), seen_.topologies.why(), "the list of topologies");
  need(seen_.settings.known(), seen_.settings.why(), "the list of settings");
  need(seen_.forms.known(), seen_.forms.why(), "the record of forms");
  need(seen_.doomed.known(), seen_.doomed.why(), "the record of deletions");
  need(seen_.storages.known(), seen_.storages.why(), "the list of storages");
  need(seen_.routers.known(), seen_.routers.why(), "the list of routers");
  if (!seen_.collection) refused_.push_back("the collection's ID is not known yet");
  if (const v1::Topology* topology = view_.topology(); topology != nullptr && refused_.empty()) {
    if (topology->bucket_count() != spec_.bucket_count ||
        topology->shard_by().field() != spec_.shard_by_field ||
        topology->shard_by().type() != spec_.key_type ||
        topology->shard_by().hash() != spec_.hash || topology->collection_name() != spec_.name) {
      refused_.push_back(
          "name, bucketCount and shardBy are fixed at creation, and the manifest differs from the "
          "collection that is here: "
          "set them back");
    }
  }
  if (view_.topology() == nullptr && refused_.empty()) {
    if (spec_.adopt && spec_.adopt != seen_.collection) {
      if (!spec_.paused) Do(Adopt{spec_.adopt});
      refused_.push_back(fmt::format("collection {} is being adopted", ToHex(spec_.adopt.value())));
    } else if (!view_.foreign().empty()) {
      for (const std::string& sentence : view_.foreign()) refused_.push_back(sentence);
      refused_.push_back(
          "foreign volumes are never touched: if they are what this collection should go on with, "
          "name their collection in "
          "the annotation etalon.dev/adopt: <collection ID>");
    }
  }
  for (const std::string& sentence : view_.foreign()) {
    WaitFor("foreign " + sentence, sentence, "",
            "put the right volume back; this one is left alone");
  }
  if (refused_.empty()) {
    ChooseVictims();
    SurveySplits();
    if (!spec_.paused) {
      StartStorages();
      StopStrays();
      PlanTopology();
      PlanSettings();
      PlanRouters();
      PlanForms();
      SpreadTopology();
      SpreadSettings();
      PlanMembers();
      PlanSplits();
      RetireVictims();
      DeleteRemoved();
      PlanLeaderZones();
    }
  }
  PlanOutput out;
  MakeReport();
  out.actions = std::move(actions_);
  out.wake_at = wake_at_;
  out.report = std::move(report_);
  return out;
}

void Planner::WaitFor(std::string key, std::string what, std::string left, std::string next) {
  if (std::any_of(waits_.begin(), waits_.end(), [&](const Wait& w) { return w.key == key; }))
    return;
  waits_.push_back({std::move(key), std::move(what), std::move(left), std::move(next), now_});
}

bool Planner::Rebalances() const {
  return spec_.rebalancing.mode != RebalancingMode::kDisabled && view_.settings() != nullptr &&
         view_.settings()->rebalancer() != 0;
}

}  // namespace etalon::controller
