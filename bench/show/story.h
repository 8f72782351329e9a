// The show: a collection with real data in it grows and shrinks under load, loses a process, and
// loses nothing.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/show/client.h"
#include "bench/show/load.h"
#include "bench/show/package_index.h"
#include "bench/show/screen.h"
#include "bench/show/view.h"

namespace etalon::show {

struct StoryOptions {
  std::string data_dir;
  std::uint64_t bucket_count = 3000;
  std::uint64_t calls_per_second = 3000;
};

class Story {
 public:
  Story(StoryOptions options, const std::map<std::string, std::vector<Package>>& index);

  // Everything up to the verdict; false: something was lost, doubled, refused or never finished.
  // Says what, all the way.
  bool Run();

 private:
  bool WaitSettled(std::size_t shards, Duration limit, const char* doing);
  bool Scale(int shards, Duration limit, bool kill_a_leader);
  void KillLeader();
  void Draw(const std::string& doing, double progress = -1);
  bool Verify();
  void Wrong(const std::string& what);

  const StoryOptions options_;
  const std::map<std::string, std::vector<Package>>& index_;
  std::uint64_t packages_ = 0;
  Screen screen_;
  View view_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Load> load_;
  std::vector<std::string> wrong_;
  std::vector<std::string> figures_;
};

// The manifest of the show's collection, as a person would write it.
void WriteManifest(const std::string& path, int shards, std::uint64_t bucket_count);

}  // namespace etalon::show
