#include "bench/show/package_index.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace etalon::show {

namespace {

using Index = std::map<std::string, std::vector<Package>>;

struct Stanza {
  std::vector<std::pair<std::string, std::string>> fields;

  const std::string* Find(const std::string& name) const {
    for (const auto& [n, value] : fields) {
      if (n == name) return &value;
    }
    return nullptr;
  }
};

// "Source: gcc-12 (12.2.0-14)" names a source with another version than the package's.
std::string SourceOf(const Stanza& stanza) {
  const std::string* source = stanza.Find("Source");
  if (source == nullptr) return *stanza.Find("Package");
  return source->substr(0, source->find(' '));
}

Status Add(const Stanza& stanza, std::uint64_t line, std::set<std::string>* seen, Index* out) {
  const std::string* name = stanza.Find("Package");
  if (name == nullptr)
    return InvalidArgument("the stanza that ends at line " + std::to_string(line) +
                           " has no Package field");
  const auto part = [&](const char* field) {
    const std::string* value = stanza.Find(field);
    return value == nullptr ? std::string("-") : *value;
  };
  Package package;
  package.key = *name + " " + part("Version") + " " + part("Architecture");
  if (!seen->insert(package.key).second) return OkStatus();
  package.source = SourceOf(stanza);
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [field, value] : stanza.fields) json[field] = value;
  package.json = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  (*out)[package.source].push_back(std::move(package));
  return OkStatus();
}

}  // namespace

Result<Index> ParsePackages(std::istream& in) {
  Index out;
  std::set<std::string> seen;
  Stanza stanza;
  std::string line;
  std::uint64_t number = 0;
  while (std::getline(in, line)) {
    ++number;
    if (line.empty()) {
      if (!stanza.fields.empty()) ETALON_RETURN_IF_ERROR(Add(stanza, number, &seen, &out));
      stanza.fields.clear();
      continue;
    }
    if (line[0] == ' ' || line[0] == '\t') {
      if (stanza.fields.empty())
        return InvalidArgument("line " + std::to_string(number) + " continues nothing");
      stanza.fields.back().second += "\n" + line.substr(1);
      continue;
    }
    const auto colon = line.find(':');
    if (colon == std::string::npos || colon == 0) {
      return InvalidArgument("line " + std::to_string(number) +
                             " is no field: expected 'Name: value'");
    }
    const auto value = line.find_first_not_of(' ', colon + 1);
    stanza.fields.emplace_back(line.substr(0, colon),
                               value == std::string::npos ? "" : line.substr(value));
  }
  if (!stanza.fields.empty()) ETALON_RETURN_IF_ERROR(Add(stanza, number, &seen, &out));
  return out;
}

Result<Index> ReadMachineIndex() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen("apt-cache dumpavail", "r"),
                                                             pclose);
  if (!pipe) return Internal("apt-cache cannot be started: is this Debian?");
  std::string text;
  char buffer[1 << 16];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe.get())) > 0;)
    text.append(buffer, n);
  std::istringstream in(std::move(text));
  return ParsePackages(in);
}

}  // namespace etalon::show
