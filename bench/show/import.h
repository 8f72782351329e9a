// Fills the collection: every package in space `packages`, and in the same transactions the number
// of each source's packages in space `sources`.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "bench/show/client.h"
#include "bench/show/package_index.h"

namespace etalon::show {

struct ImportResult {
  std::uint64_t packages = 0;
  std::uint64_t bytes = 0;
  std::uint64_t failed = 0;
  std::string first_failure;
  double seconds = 0;
};

// `progress` is told how many packages are in, now and then, on another thread.
ImportResult Import(Client& client, const std::map<std::string, std::vector<Package>>& index,
                    const std::function<void(std::uint64_t)>& progress);

}  // namespace etalon::show
