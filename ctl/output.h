// Tables for people, JSON for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/status.h"

namespace etalon::ctl {

enum class Format { kTable, kJson };

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void Row(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Columns as wide as their widest cell, two spaces between.
  std::string Text() const;
  // An array of objects, keyed by the lower-case heads; numbers stay text.
  nlohmann::json Json() const;
  void Print(Format format) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string HumanBytes(std::uint64_t bytes);
std::string HumanMillis(std::uint64_t millis);

// What a shell sees: 0 done, 1 failed, 2 wrong use, 3 not found, 4 nobody answers or leads now, 5
// refused by the state.
int ExitCode(const Status& status);

}  // namespace etalon::ctl
