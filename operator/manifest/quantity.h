#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace etalon::controller {

// A Kubernetes quantity that is a whole, not negative number: "1500", "200Mi", "1.5Gi", "10G",
// "2e3". nullopt: not one, or over 2^63.
std::optional<std::uint64_t> ParseQuantity(std::string_view text);

}  // namespace etalon::controller
