// The text form of "sharded by the hash of this field", as DescribeCollection carries it.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"

namespace etalon::placement {

// "hash(FIELD)" -> FIELD. Exact: lower case, no blanks anywhere, FIELD not empty and without
// parentheses, quotes are part of it. INVALID_ARGUMENT otherwise, and for "": that means "never
// declared" and must be tested before parsing.
Result<std::string> ParseShardBy(std::string_view text);
std::string FormatShardBy(std::string_view field);

}  // namespace etalon::placement
