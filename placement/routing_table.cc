#include "placement/routing_table.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace etalon::placement {

namespace {

constexpr std::uint32_t kNoOwner = std::numeric_limits<std::uint32_t>::max();

std::string Quoted(const std::string& name) { return "'" + name + "'"; }

bool Routable(ShardState state) {
  return state == ShardState::kNormal || state == ShardState::kCreating;
}
bool Known(ShardState state) {
  return Routable(state) || state == ShardState::kSplitting || state == ShardState::kDropped;
}

// Position of each listed name.
Result<std::map<std::string, std::size_t>> IndexNames(const std::vector<std::string>& names) {
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      return InvalidArgument("the shard at position " + std::to_string(i) + " has no name");
    if (!index.emplace(names[i], i).second) {
      return InvalidArgument("the shard " + Quoted(names[i]) + " is listed twice");
    }
  }
  return index;
}

// The owner, as an index into `shards`, of every residue. The checks of one table, in an order that
// names the real fault: a residue that a shard lists twice is not an overlap of two shards.
Result<std::vector<std::uint32_t>> Tile(const std::vector<Claim>& shards, std::uint64_t modulus) {
  std::vector<std::uint32_t> slots(modulus, kNoOwner);
  for (std::uint32_t i = 0; i < shards.size(); ++i) {
    const Claim& claim = shards[i];
    if (claim.residues.empty())
      return InvalidArgument("the shard " + Quoted(claim.shard) + " owns nothing");
    for (const std::uint64_t r : claim.residues) {
      if (r >= modulus) {
        return InvalidArgument("the shard " + Quoted(claim.shard) + " lists the residue " +
                               std::to_string(r) + ", which is not below the modulus " +
                               std::to_string(modulus));
      }
      if (slots[r] == i) {
        return InvalidArgument("the shard " + Quoted(claim.shard) + " lists the residue " +
                               std::to_string(r) + " twice");
      }
      if (slots[r] != kNoOwner) {
        return InvalidArgument("the shards " + Quoted(shards[slots[r]].shard) + " and " +
                               Quoted(claim.shard) + " both own the residue " + std::to_string(r));
      }
      slots[r] = i;
    }
  }
  const auto gap = std::find(slots.begin(), slots.end(), kNoOwner);
  if (gap != slots.end()) {
    return InvalidArgument("no shard owns the residue " + std::to_string(gap - slots.begin()) +
                           " of " + std::to_string(modulus));
  }
  return slots;
}

}  // namespace

std::string_view ShardStateName(ShardState state) {
  switch (state) {
    case ShardState::kNormal:
      return "Normal";
    case ShardState::kCreating:
      return "Creating";
    case ShardState::kSplitting:
      return "Splitting";
    case ShardState::kDropped:
      return "Dropped";
  }
  return "unknown";
}

std::uint32_t CountShards(const DescribeAnswer& answer) {
  if (answer.infos.empty()) return static_cast<std::uint32_t>(answer.shard_names.size());
  return static_cast<std::uint32_t>(
      std::count_if(answer.infos.begin(), answer.infos.end(),
                    [](const ShardInfo& info) { return Routable(info.state); }));
}

Result<RoutingTable> RoutingTable::Derive(const DescribeAnswer& answer, std::uint64_t max_modulus) {
  const auto& names = answer.shard_names;
  std::vector<Claim> routable;
  if (answer.infos.empty()) {
    for (const std::string& name : names) routable.push_back({name, {}});
    return Build(names, answer.modulus, std::move(routable), max_modulus);
  }
  if (answer.infos.size() != names.size()) {
    return InvalidArgument("the answer lists " + std::to_string(names.size()) +
                           " shards but describes " + std::to_string(answer.infos.size()));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ShardInfo& info = answer.infos[i];
    if (!info.name.empty() && info.name != names[i]) {
      return InvalidArgument("position " + std::to_string(i) + " lists the shard " +
                             Quoted(names[i]) + " but describes " + Quoted(info.name));
    }
    if (!Known(info.state)) {
      return InvalidArgument("the shard " + Quoted(names[i]) + " is in the unknown state " +
                             std::to_string(static_cast<std::int32_t>(info.state)) +
                             ": this program is older than the collection's, upgrade it");
    }
    if (Routable(info.state)) routable.push_back({names[i], info.residues});
  }
  return Build(names, answer.modulus, std::move(routable), max_modulus);
}

Result<RoutingTable> RoutingTable::Build(const std::vector<std::string>& names,
                                         std::uint64_t modulus, std::vector<Claim> routable,
                                         std::uint64_t max_modulus) {
  ETALON_ASSIGN_OR_RETURN(const auto listed, IndexNames(names));
  if (routable.empty()) return InvalidArgument("no shard of the table owns keys");
  std::vector<std::optional<Claim>> by_position(names.size());
  bool any_residue = false;
  for (Claim& claim : routable) {
    const auto it = listed.find(claim.shard);
    if (it == listed.end()) {
      return InvalidArgument("the shard " + Quoted(claim.shard) +
                             " owns keys but is not in the list of shards");
    }
    auto& place = by_position[it->second];
    if (place) return InvalidArgument("the shard " + Quoted(claim.shard) + " is described twice");
    any_residue = any_residue || !claim.residues.empty();
    place = std::move(claim);
  }

  RoutingTable table;
  for (auto& claim : by_position) {
    if (claim) table.shards_.push_back(std::move(*claim));
  }
  if (modulus == 0) {
    if (any_residue)
      return InvalidArgument("residues are listed without the modulus that they belong to");
    if (table.shards_.size() != names.size()) {
      return InvalidArgument(
          "a collection that was never split routes to every listed shard, but only " +
          std::to_string(table.shards_.size()) + " of " + std::to_string(names.size()) +
          " own keys");
    }
    // From here on the classic rule `value mod n` is a table like any other.
    modulus = names.size();
    table.never_split_ = true;
    for (std::size_t i = 0; i < table.shards_.size(); ++i) table.shards_[i].residues = {i};
  } else if (!any_residue) {
    return InvalidArgument("the modulus is " + std::to_string(modulus) +
                           " but no shard lists a residue: keys cannot be placed");
  }
  if (modulus > max_modulus) {
    return InvalidArgument("the modulus " + std::to_string(modulus) + " is over the limit of " +
                               std::to_string(max_modulus),
                           Reason::kModulusCap);
  }
  ETALON_ASSIGN_OR_RETURN(table.slots_, Tile(table.shards_, modulus));
  for (Claim& claim : table.shards_) std::sort(claim.residues.begin(), claim.residues.end());
  return table;
}

}  // namespace etalon::placement
