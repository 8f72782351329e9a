#include "operator/manifest/quantity.h"

#include <cmath>
#include <string>

namespace etalon::controller {
namespace {

// nullopt: no such suffix.
std::optional<double> Factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  constexpr std::string_view kLetters = "KMGTPE";
  if (suffix == "k") return 1e3;
  const std::size_t power = kLetters.find(suffix[0]);
  if (power == std::string_view::npos) return std::nullopt;
  if (suffix.size() == 2 && suffix[1] == 'i')
    return std::pow(1024.0, static_cast<double>(power + 1));
  if (suffix.size() == 1 && power > 0) return std::pow(1000.0, static_cast<double>(power + 1));
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> ParseQuantity(std::string_view text) {
  constexpr std::size_t kLongest = 32;
  std::size_t end = 0;
  bool digit = false;
  bool point = false;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) || (text[end] == '.' && !point))) {
    if (text[end] == '.') {
      point = true;
    } else {
      digit = true;
    }
    ++end;
  }
  if (!digit || text.size() > kLongest) return std::nullopt;
  std::size_t number_end = end;
  if (end + 1 < text.size() && (text[end] == 'e' || text[end] == 'E') &&
      std::isdigit(static_cast<unsigned char>(text[end + 1]))) {
    number_end = end + 1;
    while (number_end < text.size() && std::isdigit(static_cast<unsigned char>(text[number_end])))
      ++number_end;
    if (number_end - end > 3) return std::nullopt;
  }
  const std::optional<double> factor = Factor(text.substr(number_end));
  if (!factor) return std::nullopt;
  const double value =
      std::strtod(std::string(text.substr(0, number_end)).c_str(), nullptr) * *factor;
  if (!(value <= 9.2e18) || std::floor(value) != value) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

}  // namespace etalon::controller
