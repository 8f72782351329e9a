#pragma once

#include <cstdint>
#include <set>

#include "common/status.h"

namespace etalon::controller {

// Whether a server could listen on that port of 127.0.0.1 now.
bool IsPortFree(std::uint16_t port);

// The first free port from `base` on that is not among `taken`. RESOURCE_EXHAUSTED when there is
// none.
Result<std::uint16_t> ChoosePort(std::uint16_t base, const std::set<std::uint16_t>& taken);

}  // namespace etalon::controller
