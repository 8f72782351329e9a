// The Debian package index of this machine as documents: what `apt-cache dumpavail` prints, stanza
// by stanza.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

#include "common/status.h"

namespace etalon::show {

struct Package {
  std::string key;     // "name version architecture": unique in the index
  std::string source;  // name of the source package; the sharding key
  std::string json;    // all fields, as one object
};

// Packages by source, sources sorted by name. A stanza without a Package field, or a line that is
// no field, is INVALID_ARGUMENT with its line number. A stanza that repeats an earlier one's key is
// dropped.
Result<std::map<std::string, std::vector<Package>>> ParsePackages(std::istream& in);

// Runs `apt-cache dumpavail` and parses its output.
Result<std::map<std::string, std::vector<Package>>> ReadMachineIndex();

}  // namespace etalon::show
