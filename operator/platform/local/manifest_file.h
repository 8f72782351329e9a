// The manifest on disk, followed as it is edited.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "operator/manifest/manifest.h"

namespace etalon::controller {

// The last manifest that was accepted is kept beside the data (accepted.yaml), so that after a
// restart, too, what cannot change is compared with what was.
class ManifestFile {
 public:
  ManifestFile(std::string path, std::string data_dir)
      : path_(std::move(path)), accepted_path_(data_dir + "/accepted.yaml") {}

  // Reads the file if it changed since the last call. True when spec() or errors() may be others
  // than before. A manifest with errors, or one that changes what cannot be changed, leaves the old
  // spec in force.
  bool Poll();

  const std::optional<CollectionSpec>& spec() const { return spec_; }
  const std::vector<std::string>& errors() const { return errors_; }  // of the newest manifest

 private:
  struct Stamp {
    ino_t inode = 0;
    off_t size = 0;
    timespec modified{};
    bool operator==(const Stamp& o) const {
      return inode == o.inode && size == o.size && modified.tv_sec == o.modified.tv_sec &&
             modified.tv_nsec == o.modified.tv_nsec;
    }
  };

  void Take(const std::string& text);

  const std::string path_;
  const std::string accepted_path_;
  std::optional<Stamp> stamp_;
  bool read_accepted_ = false;
  std::optional<CollectionSpec> spec_;
  std::vector<std::string> errors_;
};

}  // namespace etalon::controller
