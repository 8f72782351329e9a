#include "operator/platform/local/manifest_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "operator/platform/local/files.h"

namespace etalon::controller {

bool ManifestFile::Poll() {
  if (!std::exchange(read_accepted_, true)) {
    if (const auto text = ReadFile(accepted_path_); text.ok())
      spec_ = ParseManifest(text.value()).spec;
  }
  struct stat info {};
  std::optional<Stamp> stamp;
  if (::stat(path_.c_str(), &info) == 0) stamp = Stamp{info.st_ino, info.st_size, info.st_mtim};
  if (!stamp) {
    std::vector<std::string> missing = {
        fmt::format("the manifest {} is not there; what was accepted last stays in force", path_)};
    stamp_.reset();
    return std::exchange(errors_, missing) != missing;
  }
  if (stamp_ == stamp) return false;
  const auto text = ReadFile(path_);
  if (!text.ok()) return false;  // it was there a moment ago: the next call finds out
  stamp_ = stamp;
  Take(text.value());
  return true;
}

void ManifestFile::Take(const std::string& text) {
  Manifest parsed = ParseManifest(text);
  errors_ = std::move(parsed.errors);
  if (!parsed.spec) return;
  errors_ = spec_ ? CheckChange(*spec_, *parsed.spec) : CheckCreation(*parsed.spec);
  if (!errors_.empty()) return;
  // Before anything follows from it: what is accepted here decides what is refused later.
  if (Status status = ReplaceFile(accepted_path_, text); !status.ok()) {
    errors_.push_back("the manifest cannot be kept: " + status.message());
    return;
  }
  spec_ = std::move(parsed.spec);
}

}  // namespace etalon::controller
