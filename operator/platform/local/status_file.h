// What etalonctl and people read: DATA/status.json and DATA/endpoints.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "operator/plan/conditions.h"
#include "operator/platform/local/local_platform.h"

namespace etalon::controller {

struct StatusContext {
  std::string manifest;  // path
  std::string collection_name;
  CollectionId collection;
  std::vector<std::string> manifest_errors;  // of the newest manifest, if it was refused
  std::int64_t unix_millis_of_zero = 0;      // wall-clock time of the steady clock's zero
};

// Times are Unix milliseconds.
std::string StatusJson(const Report& report, const StatusContext& context);

std::string EndpointsJson(const std::string& collection_name, CollectionId collection,
                          const std::vector<Endpoint>& endpoints);

}  // namespace etalon::controller
