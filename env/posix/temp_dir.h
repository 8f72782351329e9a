// For tests: a directory that goes when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace etalon {

class TempDir {
 public:
  TempDir() {
    std::string path = testing::TempDir() + "etalon-XXXXXX";
    path_ = ::mkdtemp(path.data()) != nullptr ? path : "";
    EXPECT_FALSE(path_.empty()) << "no directory for the test in " << testing::TempDir();
  }
  ~TempDir() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace etalon
