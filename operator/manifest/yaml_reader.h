// A walk over one YAML map that notes every error and every field that nobody asked for.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace etalon::controller {

// Each getter marks its field as known. A field that is absent, or null, gives the default; a wrong
// one gives the default and an error.
class YamlReader {
 public:
  // `path` is what errors begin with; `errors` outlives the reader.
  YamlReader(YAML::Node node, std::string path, std::vector<std::string>* errors);

  bool Has(const std::string& key) const;
  std::string String(const std::string& key, std::string otherwise = {});
  std::uint64_t Number(const std::string& key, std::uint64_t otherwise, std::uint64_t min,
                       std::uint64_t max);
  double Real(const std::string& key, double otherwise, double min, double max);
  bool Bool(const std::string& key, bool otherwise);
  std::uint64_t Quantity(const std::string& key, std::uint64_t otherwise);
  template <class E>
  E Enum(const std::string& key, E otherwise, const std::vector<std::pair<std::string, E>>& values);
  std::vector<std::string> Strings(const std::string& key);
  YamlReader Map(const std::string& key);                // empty when absent
  std::vector<YamlReader> Maps(const std::string& key);  // a list of maps
  void Ignore(const std::string& key);                   // known, and of no meaning here
  void Require(const std::string& key, std::string_view why);
  void Error(const std::string& key, const std::string& sentence);
  // Errors for the fields that nobody asked for.
  void Finish();

  std::string PathOf(const std::string& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }

 private:
  // The text of a scalar; nullopt when absent or (with an error) no scalar.
  std::optional<std::string> Scalar(const std::string& key, bool* quoted);
  std::optional<YAML::Node> Find(const std::string& key) const;
  std::optional<std::string> OneOf(const std::string& key, const std::vector<std::string>& values);

  std::vector<std::pair<std::string, YAML::Node>> fields_;
  std::string path_;
  std::vector<std::string>* errors_;
  std::set<std::string> known_;
};

template <class E>
E YamlReader::Enum(const std::string& key, E otherwise,
                   const std::vector<std::pair<std::string, E>>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto found = OneOf(key, names);
  for (const auto& [name, value] : values) {
    if (found == name) return value;
  }
  return otherwise;
}

}  // namespace etalon::controller
