// Alerts and status of a router, from facts. docs/alerts.md, "Routers", has the table; there is one
// test a row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "router/call/choose.h"

namespace etalon::router {

// VShard's scale.
enum class Severity : std::uint8_t { kGreen = 0, kYellow = 1, kOrange = 2, kRed = 3 };

struct RouterAlert {
  std::string code;
  std::string text;
  Severity severity;
  bool operator==(const RouterAlert&) const = default;
};

struct ShardFacts {
  std::string name;
  std::vector<Candidate> replicas;
  // Since the shard's feed was last complete; nullopt: it is.
  std::optional<Duration> feed_down;
};

// What is observed; a distinct value for everything that could not be.
struct RouterFacts {
  bool loaded = false;  // a topology
  std::vector<ShardFacts> shards;
  std::uint64_t unknown_buckets = 0;
  // Since buckets are unknown although every shard's feed is complete; nullopt: not so.
  std::optional<Duration> lost;
  std::vector<std::string> doubled;      // "bucket: shard and shard"
  std::vector<std::string> quarantined;  // buckets
  std::vector<std::string> stuck;        // buckets that have been moving for too long
  std::string invalid_config;        // not empty: a shard or the operator contradicts the topology
  std::uint64_t newer_topology = 0;  // version that a storage has and this router could not get
  std::uint64_t topology_version = 0;
};

struct AlertBounds {
  Duration feed = std::chrono::seconds(5);
  Duration lost = std::chrono::seconds(10);
};

// Sorted by code, then text.
std::vector<RouterAlert> RouterAlerts(const RouterFacts& facts, const AlertBounds& bounds);
Severity StatusOf(const std::vector<RouterAlert>& alerts);
// Every code that RouterAlerts can return, sorted: exporters show one series for each.
const std::vector<std::string>& RouterAlertCodes();

}  // namespace etalon::router
