// A collection as the planner sees it, made by hand: at rest, or before anything was done. Tests
// change what they are about.
#pragma once

#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace etalon::controller::testing {

struct Fixture {
  CollectionSpec spec;
  Observed seen;
  SteadyTime now = SteadyTime(std::chrono::hours(1));

  // Nothing but the wish: no process, no topology.
  static Fixture Blank(std::uint32_t shards, std::uint32_t replicas = 1, std::uint32_t routers = 2);
  // All is as asked for: topology 2, settings 1, every replica up, the first of each shard leads,
  // routers ready.
  static Fixture AtRest(std::uint32_t shards, std::uint32_t replicas = 1,
                        std::uint32_t routers = 2);

  std::string Replica(std::uint32_t shard, std::uint32_t ordinal = 0) const;
  ShardUid Uid(std::uint32_t shard) const;
  StorageSeen& Storage(std::uint32_t shard, std::uint32_t ordinal = 0);
  v1::InfoResponse& Info(std::uint32_t shard, std::uint32_t ordinal = 0);
  RouterSeen& Router(std::uint32_t ordinal);
  v1::RouterInfoResponse& RouterInfo(std::uint32_t ordinal);
  v1::Topology& Topology();  // newest stored
  v1::Settings& Settings();  // newest stored

  // The process is up and says that its disk is blank.
  void AddBlank(std::uint32_t shard, std::uint32_t ordinal = 0);
  // Declares a later shard, formed and led, that owns nothing; everybody knows it. Topology and
  // settings keep their version.
  void AddCreating(std::uint32_t shard);
  // Another version of the newest, stored.
  v1::Topology& NextTopology();
  v1::Settings& NextSettings();
  void Silence(std::uint32_t shard, std::uint32_t ordinal = 0);  // up, but does not answer
  void Kill(std::uint32_t shard, std::uint32_t ordinal = 0);     // down, may be started
  // Moves all buckets of one shard to another.
  void Drain(std::uint32_t from, std::uint32_t to);

  PlanOutput Plan() const { return controller::Plan(spec, seen, now); }
  std::vector<std::string> Keys() const;  // of the planned actions, in their order
};

v1::InfoResponse InfoOf(const Fixture& fixture, std::uint32_t shard, std::uint32_t ordinal);

}  // namespace etalon::controller::testing
