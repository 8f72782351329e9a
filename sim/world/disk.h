// The disk of a simulated node. It outlives crashes of the node; what was not synced does not
// always.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/random.h"
#include "env/disk.h"
#include "sim/world/events.h"

namespace etalon::sim {

// What a loss of power does (each choice is drawn anew, per file and per directory):
// * file data since the last kSync of the file: all lost; all kept; a prefix of the writes, the
// last of them cut at a
//   random byte; or each write by itself lost, kept, cut, or kept in some 512-byte sectors only.
//   Sizes likewise.
// * names (makes, renames, removals) since the last kSyncDir of their directory: a prefix of them
// happened. A rename
//   from one directory to another counts to the one it goes to; a removed tree to the directory
//   that it stood in.
// * nothing of the job in flight beyond the ops already done.
class SimDisk final : public Disk {
 public:
  SimDisk(Events& events, Events::Owner owner, Random random)
      : events_(events), owner_(owner), random_(random) {}

  void Submit(DiskJob job, Done done) override;
  Result<std::vector<std::string>> List(std::string_view dir) override;
  Result<std::string> Read(std::string_view path, std::uint64_t offset,
                           std::uint64_t size) override;
  Result<std::uint64_t> Size(std::string_view path) override;
  Result<std::uint64_t> FreeBytes() override;

  // Faults and conditions; they hold until changed, over crashes too.
  void SetLatency(Duration min, Duration max) {
    latency_min_ = min, latency_max_ = max;
  }                                                             // of one op
  void SetCapacity(std::uint64_t bytes) { capacity_ = bytes; }  // sum of the sizes of all files
  // The n-th kSync from now fails (1 = the next): the disk is poisoned until the next crash.
  void FailSync(std::uint64_t nth = 1) { fail_sync_ = nth; }

  // Work on the files as they are, behind the node's back. The file must exist (Poke makes it).
  void FlipBit(const std::string& path, std::uint64_t offset, unsigned bit);
  void Poke(const std::string& path, std::string content);
  void Erase(const std::string& path);
  // An empty disk in place of this one. The node must be down.
  void Wipe();
  std::vector<std::string> Files() const;  // paths, sorted

  std::uint64_t ops() const { return ops_; }        // done so far
  std::uint64_t torn() const { return torn_; }      // writes that crashes kept in part
  std::uint64_t undone() const { return undone_; }  // changes of names that crashes took back
  std::uint64_t used() const;

  // Used by SimWorld. Power goes after the jobs.
  void DropJobs();
  void LosePower();

 private:
  // A write (offset, bytes), or a change of size when `resize`.
  struct Change {
    bool resize = false;
    std::uint64_t offset = 0;  // or the size
    std::string bytes = {};
    bool shrink = true;  // of a resize: false = only ever larger (kAllocate)
  };
  struct File {
    std::string current;
    std::string durable;
    std::vector<Change> unsynced;
  };
  struct Entry {
    std::shared_ptr<File> file;  // null: a directory
  };
  using Names = std::map<std::string, Entry>;  // by path
  // One atomic change of names: what each path is afterwards; nullopt = nothing.
  struct NameChange {
    std::string dir;  // a sync of it makes the change durable
    std::vector<std::pair<std::string, std::optional<Entry>>> becomes;
  };
  struct Job {
    DiskJob ops;
    Done done;
    std::size_t next = 0;
  };

  void ScheduleStep();
  void Step();
  Status Execute(const DiskOp& op);
  Status Write(const DiskOp& op);
  Status Allocate(const DiskOp& op);
  Status MakeDir(const std::string& path);
  Status Rename(const DiskOp& op);
  void RemoveTree(const std::string& path);
  Status SyncDir(const std::string& path);
  Result<std::shared_ptr<File>> OpenFile(const std::string& path, bool make);
  bool IsDir(std::string_view path) const;
  void Rename(NameChange change);  // applies it to names_ and remembers it
  void Settle(File& file);
  std::string Tear(std::string before, const Change& change);

  static void Apply(const Change& change, std::string* content);
  static void Apply(const NameChange& change, Names* names);

  Events& events_;
  const Events::Owner owner_;
  Random random_;
  Duration latency_min_ = std::chrono::microseconds(20);
  Duration latency_max_ = std::chrono::microseconds(200);
  std::uint64_t capacity_ = std::uint64_t{1} << 40;
  std::uint64_t fail_sync_ = 0;
  bool poisoned_ = false;
  Names names_;
  Names durable_names_;
  std::vector<NameChange> unsynced_names_;
  std::deque<Job> jobs_;
  std::uint64_t ops_ = 0;
  std::uint64_t torn_ = 0;
  std::uint64_t undone_ = 0;
};

}  // namespace etalon::sim
