// Alerts and status of one storage, from facts. docs/alerts.md has the table; there is one test a
// row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace etalon::storage {

// VShard's scale.
enum class Severity : std::uint8_t { kGreen = 0, kYellow = 1, kOrange = 2, kRed = 3 };

struct StorageAlert {
  std::string code;
  std::string text;
  Severity severity;
  bool operator==(const StorageAlert&) const = default;
};

struct MemberFacts {
  std::string name;
  bool learner = false;
  bool alive = false;  // answered lately
};

// What is observed; a distinct value for everything that could not be.
struct AlertFacts {
  bool formed = false;
  bool leader = false;
  bool leader_known = false;
  Duration since_leader{};          // followers: since they last heard from their leader
  Duration lag{};                   // followers: since they were last level with it
  std::vector<MemberFacts> others;  // leader only: the other members
  bool sending = false;             // rows in SENDING or open outgoing transfers
  bool receiving = false;
  std::uint64_t quarantined = 0;
  std::vector<std::string> lost;   // held SENT transfers whose target has no copy
  std::vector<std::string> held;   // held RECEIVING transfers whose source contradicts
  std::vector<std::string> stuck;  // transfers that wait longer than the bound, with what for
  bool disk_full = false;
  std::string store_failure;  // not empty: the store or the log refuses work
  bool all_weights_zero = false;
  bool all_locked = false;
  bool topology_conflict = false;
  bool collection_incomplete = false;
};

// Sorted by code.
std::vector<StorageAlert> StorageAlerts(const AlertFacts& facts);
Severity StatusOf(const std::vector<StorageAlert>& alerts);

// Every code that StorageAlerts can return, sorted: exporters show one series for each.
const std::vector<std::string>& StorageAlertCodes();

}  // namespace etalon::storage
