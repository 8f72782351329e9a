// The last word: everything read back and compared with the index.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/show/client.h"
#include "bench/show/package_index.h"

namespace etalon::show {

// What is not as it should be, at most a few; empty: every document is equal to the index's, and
// every source's counter equals the number of its packages.
std::vector<std::string> VerifyDocuments(Client& client,
                                         const std::map<std::string, std::vector<Package>>& index);

}  // namespace etalon::show
