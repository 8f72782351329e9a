// All documents of a YAML text.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

namespace etalon::controller {

constexpr int kMaxDocuments = 1000;

// Throws YAML::Exception for what is no YAML or holds more than kMaxDocuments. Use this instead of
// YAML::LoadAll, which never ends for a text whose first token belongs to no document, as ",".
std::vector<YAML::Node> LoadDocuments(const std::string& text);

}  // namespace etalon::controller
