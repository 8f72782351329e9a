#include "operator/manifest/yaml_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "operator/manifest/quantity.h"

namespace etalon::controller {
namespace {

// Errors quote what the user wrote, in one line and not endlessly.
std::string Quote(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 60)) out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return "\"" + out + (text.size() > 60 ? "...\"" : "\"");
}

}  // namespace

YamlReader::YamlReader(YAML::Node node, std::string path, std::vector<std::string>* errors)
    : path_(std::move(path)), errors_(errors) {
  if (!node.IsDefined() || node.IsNull()) return;
  if (!node.IsMap()) {
    errors_->push_back((path_.empty() ? "the document" : path_) + ": must be a map of fields");
    return;
  }
  for (const auto& field : node) {
    if (!field.first.IsScalar()) {
      errors_->push_back((path_.empty() ? "the document" : path_) +
                         ": names of fields must be texts");
      continue;
    }
    const std::string& key = field.first.Scalar();
    if (Has(key)) {
      Error(key, "is given twice");
      continue;
    }
    fields_.emplace_back(key, field.second);
  }
}

std::optional<YAML::Node> YamlReader::Find(const std::string& key) const {
  for (const auto& [name, node] : fields_) {
    if (name == key && !node.IsNull()) return node;
  }
  return std::nullopt;
}

bool YamlReader::Has(const std::string& key) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return field.first == key; });
}

std::optional<std::string> YamlReader::Scalar(const std::string& key, bool* quoted) {
  known_.insert(key);
  const auto node = Find(key);
  if (!node) return std::nullopt;
  if (!node->IsScalar()) {
    Error(key, "must be a single value");
    return std::nullopt;
  }
  *quoted = node->Tag() == "!";
  return node->Scalar();
}

std::string YamlReader::String(const std::string& key, std::string otherwise) {
  bool quoted = false;
  return Scalar(key, &quoted).value_or(std::move(otherwise));
}

std::uint64_t YamlReader::Number(const std::string& key, std::uint64_t otherwise, std::uint64_t min,
                                 std::uint64_t max) {
  bool quoted = false;
  const auto text = Scalar(key, &quoted);
  if (!text) return otherwise;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (quoted || error == std::errc::invalid_argument || end != text->data() + text->size()) {
    Error(key, fmt::format("must be a whole number, it is {}", Quote(*text)));
    return otherwise;
  }
  if (error != std::errc() || value < 0 || static_cast<std::uint64_t>(value) < min ||
      static_cast<std::uint64_t>(value) > max) {
    Error(key, fmt::format("must be {} to {}, it is {}", min, max, Quote(*text)));
    return otherwise;
  }
  return static_cast<std::uint64_t>(value);
}

double YamlReader::Real(const std::string& key, double otherwise, double min, double max) {
  bool quoted = false;
  const auto text = Scalar(key, &quoted);
  if (!text) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (quoted || error != std::errc() || end != text->data() + text->size()) {
    Error(key, fmt::format("must be a number, it is {}", Quote(*text)));
    return otherwise;
  }
  if (!(value >= min && value <= max)) {
    Error(key, fmt::format("must be {} to {}, it is {}", min, max, Quote(*text)));
    return otherwise;
  }
  return value;
}

bool YamlReader::Bool(const std::string& key, bool otherwise) {
  bool quoted = false;
  const auto text = Scalar(key, &quoted);
  if (!text) return otherwise;
  if (!quoted && (*text == "true" || *text == "false")) return *text == "true";
  Error(key, fmt::format("must be true or false, it is {}", Quote(*text)));
  return otherwise;
}

std::uint64_t YamlReader::Quantity(const std::string& key, std::uint64_t otherwise) {
  bool quoted = false;
  const auto text = Scalar(key, &quoted);
  if (!text) return otherwise;
  if (const auto value = ParseQuantity(*text)) return *value;
  Error(key, fmt::format("must be a quantity of bytes such as 200Mi, it is {}", Quote(*text)));
  return otherwise;
}

std::optional<std::string> YamlReader::OneOf(const std::string& key,
                                             const std::vector<std::string>& values) {
  bool quoted = false;
  const auto text = Scalar(key, &quoted);
  if (!text) return std::nullopt;
  if (std::find(values.begin(), values.end(), *text) != values.end()) return text;
  Error(key, fmt::format("must be one of {}, it is {}", fmt::join(values, ", "), Quote(*text)));
  return std::nullopt;
}

std::vector<std::string> YamlReader::Strings(const std::string& key) {
  known_.insert(key);
  const auto node = Find(key);
  std::vector<std::string> out;
  if (!node) return out;
  if (!node->IsSequence()) {
    Error(key, "must be a list");
    return out;
  }
  for (std::size_t i = 0; i < node->size(); ++i) {
    const YAML::Node item = (*node)[i];
    if (item.IsScalar()) {
      out.push_back(item.Scalar());
    } else {
      Error(fmt::format("{}[{}]", key, i), "must be a text");
    }
  }
  return out;
}

YamlReader YamlReader::Map(const std::string& key) {
  known_.insert(key);
  return YamlReader(Find(key).value_or(YAML::Node()), PathOf(key), errors_);
}

std::vector<YamlReader> YamlReader::Maps(const std::string& key) {
  known_.insert(key);
  const auto node = Find(key);
  std::vector<YamlReader> out;
  if (!node) return out;
  if (!node->IsSequence()) {
    Error(key, "must be a list");
    return out;
  }
  for (std::size_t i = 0; i < node->size(); ++i) {
    out.emplace_back((*node)[i], fmt::format("{}[{}]", PathOf(key), i), errors_);
  }
  return out;
}

void YamlReader::Ignore(const std::string& key) { known_.insert(key); }

void YamlReader::Require(const std::string& key, std::string_view why) {
  if (!Find(key)) Error(key, fmt::format("is required: {}", why));
}

void YamlReader::Error(const std::string& key, const std::string& sentence) {
  errors_->push_back(PathOf(key) + ": " + sentence);
}

void YamlReader::Finish() {
  for (const auto& [name, node] : fields_) {
    if (known_.contains(name)) continue;
    errors_->push_back(fmt::format("{}: there is no such field; known here: {}",
                                   PathOf(Quote(name)), fmt::join(known_, ", ")));
  }
}

}  // namespace etalon::controller
