// The disk of a node that has no state to keep: nothing is there, and whoever writes gets an error.
#pragma once

#include "env/disk.h"

namespace etalon {

class NoDisk final : public Disk {
 public:
  void Submit(DiskJob, Done done) override { done(None()); }
  Result<std::vector<std::string>> List(std::string_view) override { return None(); }
  Result<std::string> Read(std::string_view, std::uint64_t, std::uint64_t) override {
    return None();
  }
  Result<std::uint64_t> Size(std::string_view) override { return None(); }
  Result<std::uint64_t> FreeBytes() override { return None(); }

 private:
  static Status None() { return NotFound("this node has no disk"); }
};

}  // namespace etalon
