#include "sim/world/disk.h"

#include <algorithm>

#include "common/check.h"
#include "common/crc32c.h"

namespace etalon::sim {

namespace {

constexpr std::uint64_t kSector = 512;

std::string Parent(const std::string& path) { return std::string(ParentOf(path)); }

bool IsBelow(const std::string& path, const std::string& dir) {
  return dir.empty() || (path.size() > dir.size() && path.compare(0, dir.size(), dir) == 0 &&
                         path[dir.size()] == '/');
}

Status Full(const std::string& path) {
  return ResourceExhausted("no space for " + path + "; free some or enlarge the disk",
                           Reason::kDiskFull);
}

Status Poisoned() { return DataLoss("a sync failed earlier: what is on the disk is unknown"); }

}  // namespace

void SimDisk::Submit(DiskJob job, Done done) {
  jobs_.push_back({std::move(job), std::move(done)});
  if (jobs_.size() == 1) ScheduleStep();
}

void SimDisk::ScheduleStep() {
  const Duration latency = random_.Between(latency_min_, latency_max_);
  events_.Schedule(events_.now() + latency, owner_, EventKind::kDisk, [this] { Step(); });
}

void SimDisk::Step() {
  Job& job = jobs_.front();
  Status status = poisoned_ ? Poisoned() : OkStatus();
  if (status.ok() && job.next < job.ops.size()) {
    status = Execute(job.ops[job.next++]);
    ++ops_;
  }
  if (status.ok() && job.next < job.ops.size()) return ScheduleStep();
  Done done = std::move(job.done);
  jobs_.pop_front();
  if (!jobs_.empty()) ScheduleStep();
  if (done) done(std::move(status));
}

Status SimDisk::Execute(const DiskOp& op) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(op.path));
  ETALON_RETURN_IF_ERROR(CheckDiskPath(op.path2));
  events_.Mix(static_cast<std::uint64_t>(op.kind) << 32 | Crc32c(op.path));
  events_.Mix(op.offset ^ op.size ^ Crc32c(op.bytes));
  switch (op.kind) {
    case DiskOp::Kind::kWrite:
      return Write(op);
    case DiskOp::Kind::kAllocate:
      return Allocate(op);
    case DiskOp::Kind::kTruncate: {
      ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(op.path, false));
      if (op.size > file->current.size() && used() + op.size - file->current.size() > capacity_)
        return Full(op.path);
      file->unsynced.push_back({.resize = true, .offset = op.size});
      Apply(file->unsynced.back(), &file->current);
      return OkStatus();
    }
    case DiskOp::Kind::kSync: {
      ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(op.path, false));
      if (fail_sync_ != 0 && --fail_sync_ == 0) {
        poisoned_ = true;
        return Poisoned();
      }
      for (const Change& change : file->unsynced) Apply(change, &file->durable);
      file->unsynced.clear();
      return OkStatus();
    }
    case DiskOp::Kind::kRename:
      return Rename(op);
    case DiskOp::Kind::kRemove: {
      const auto it = names_.find(op.path);
      if (it == names_.end()) return OkStatus();
      if (!it->second.file) return InvalidArgument(op.path + " is a directory");
      Rename({Parent(op.path), {{op.path, std::nullopt}}});
      return OkStatus();
    }
    case DiskOp::Kind::kMakeDir:
      return MakeDir(op.path);
    case DiskOp::Kind::kRemoveTree:
      if (op.path.empty()) return InvalidArgument("the root itself is not removed");
      RemoveTree(op.path);
      return OkStatus();
    case DiskOp::Kind::kSyncDir:
      return SyncDir(op.path);
  }
  return Internal("an unknown disk operation");
}

Status SimDisk::Write(const DiskOp& op) {
  ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(op.path, true));
  const std::uint64_t reach = file->current.size() + capacity_ - std::min(capacity_, used());
  std::string fits = op.bytes.substr(0, reach - std::min(reach, op.offset));
  const bool full = fits.size() < op.bytes.size();
  if (!fits.empty()) {
    file->unsynced.push_back({.offset = op.offset, .bytes = std::move(fits)});
    Apply(file->unsynced.back(), &file->current);
  }
  return full ? Full(op.path) : OkStatus();
}

Status SimDisk::Allocate(const DiskOp& op) {
  ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(op.path, true));
  const std::uint64_t size = file->current.size();
  if (op.size <= size) return OkStatus();
  if (used() + op.size - size > capacity_) return Full(op.path);
  file->unsynced.push_back({.resize = true, .offset = op.size, .shrink = false});
  Apply(file->unsynced.back(), &file->current);
  return OkStatus();
}

Status SimDisk::MakeDir(const std::string& path) {
  if (IsDir(path)) return OkStatus();
  if (names_.count(path)) return InvalidArgument(path + " is a file");
  ETALON_RETURN_IF_ERROR(MakeDir(Parent(path)));
  Rename({Parent(path), {{path, Entry{}}}});
  return OkStatus();
}

Status SimDisk::Rename(const DiskOp& op) {
  const auto from = names_.find(op.path);
  if (from == names_.end()) return NotFound("no " + op.path + " to rename");
  if (!IsDir(Parent(op.path2))) return NotFound("no directory for " + op.path2);
  NameChange change{Parent(op.path2), {{op.path, std::nullopt}, {op.path2, from->second}}};
  for (const auto& [path, entry] : names_) {
    if (IsBelow(path, op.path2)) return InvalidArgument(op.path2 + " is a directory with files");
    if (!IsBelow(path, op.path)) continue;
    change.becomes.push_back({path, std::nullopt});
    change.becomes.push_back({op.path2 + path.substr(op.path.size()), entry});
  }
  Rename(std::move(change));
  return OkStatus();
}

void SimDisk::RemoveTree(const std::string& path) {
  std::vector<std::string> gone;
  for (const auto& [name, entry] : names_) {
    if (name == path || IsBelow(name, path)) gone.push_back(name);
  }
  for (auto it = gone.rbegin(); it != gone.rend(); ++it)
    Rename({Parent(path), {{*it, std::nullopt}}});
}

Status SimDisk::SyncDir(const std::string& path) {
  if (!IsDir(path)) return NotFound("no directory " + path);
  std::vector<NameChange> rest;
  for (NameChange& change : unsynced_names_) {
    if (change.dir == path) {
      Apply(change, &durable_names_);
    } else {
      rest.push_back(std::move(change));
    }
  }
  unsynced_names_ = std::move(rest);
  return OkStatus();
}

Result<std::shared_ptr<SimDisk::File>> SimDisk::OpenFile(const std::string& path, bool make) {
  const auto it = names_.find(path);
  if (it != names_.end()) {
    if (!it->second.file) return InvalidArgument(path + " is a directory");
    return it->second.file;
  }
  if (!make) return NotFound("no file " + path);
  if (path.empty() || !IsDir(Parent(path))) return NotFound("no directory for " + path);
  Entry entry{std::make_shared<File>()};
  Rename({Parent(path), {{path, entry}}});
  return entry.file;
}

bool SimDisk::IsDir(std::string_view path) const {
  if (path.empty()) return true;
  const auto it = names_.find(std::string(path));
  return it != names_.end() && !it->second.file;
}

void SimDisk::Rename(NameChange change) {
  Apply(change, &names_);
  unsynced_names_.push_back(std::move(change));
}

void SimDisk::Apply(const Change& change, std::string* content) {
  if (change.resize) {
    if (change.shrink || change.offset > content->size()) content->resize(change.offset);
    return;
  }
  if (content->size() < change.offset + change.bytes.size())
    content->resize(change.offset + change.bytes.size());
  content->replace(change.offset, change.bytes.size(), change.bytes);
}

void SimDisk::Apply(const NameChange& change, Names* names) {
  for (const auto& [path, entry] : change.becomes) {
    if (entry) {
      (*names)[path] = *entry;
    } else {
      names->erase(path);
    }
  }
}

Result<std::vector<std::string>> SimDisk::List(std::string_view dir) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(dir));
  if (!IsDir(dir)) return NotFound("no directory " + std::string(dir));
  std::vector<std::string> out;
  for (const auto& [path, entry] : names_) {
    if (ParentOf(path) != dir) continue;
    out.push_back(path.substr(dir.empty() ? 0 : dir.size() + 1) + (entry.file ? "" : "/"));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::string> SimDisk::Read(std::string_view path, std::uint64_t offset, std::uint64_t size) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(path));
  ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(std::string(path), false));
  if (offset >= file->current.size()) return std::string();
  return file->current.substr(offset, size);
}

Result<std::uint64_t> SimDisk::Size(std::string_view path) {
  ETALON_RETURN_IF_ERROR(CheckDiskPath(path));
  ETALON_ASSIGN_OR_RETURN(const auto file, OpenFile(std::string(path), false));
  return file->current.size();
}

Result<std::uint64_t> SimDisk::FreeBytes() { return capacity_ - std::min(capacity_, used()); }

std::uint64_t SimDisk::used() const {
  std::uint64_t sum = 0;
  for (const auto& [path, entry] : names_) sum += entry.file ? entry.file->current.size() : 0;
  return sum;
}

void SimDisk::FlipBit(const std::string& path, std::uint64_t offset, unsigned bit) {
  File& file = *OpenFile(path, false).value();
  ETALON_CHECK(offset < file.current.size() && offset < file.durable.size(),
               "a bit outside of the file");
  const char mask = static_cast<char>(1u << (bit % 8));
  file.current[offset] = static_cast<char>(file.current[offset] ^ mask);
  file.durable[offset] = static_cast<char>(file.durable[offset] ^ mask);
}

void SimDisk::Poke(const std::string& path, std::string content) {
  ETALON_CHECK(IsDir(Parent(path)), "no directory for the file");
  Entry entry{std::make_shared<File>()};
  entry.file->current = content;
  entry.file->durable = std::move(content);
  names_[path] = entry;
  durable_names_[path] = entry;
}

void SimDisk::Erase(const std::string& path) {
  names_.erase(path);
  durable_names_.erase(path);
}

void SimDisk::Wipe() {
  names_.clear();
  durable_names_.clear();
  unsynced_names_.clear();
  jobs_.clear();
}

std::vector<std::string> SimDisk::Files() const {
  std::vector<std::string> out;
  for (const auto& [path, entry] : names_) {
    if (entry.file) out.push_back(path);
  }
  return out;
}

void SimDisk::DropJobs() {
  jobs_.clear();
  poisoned_ = false;
}

void SimDisk::LosePower() {
  std::map<std::string, std::size_t> happened;  // how many of a directory's changes did
  for (const NameChange& change : unsynced_names_) ++happened[change.dir];
  for (auto& [dir, count] : happened) {
    const std::size_t all = count;
    count = random_.Chance(1, 3) ? all : random_.Below(all + 1);
    undone_ += all - count;
  }
  for (const NameChange& change : unsynced_names_) {
    std::size_t& left = happened[change.dir];
    if (left == 0) continue;
    --left;
    Apply(change, &durable_names_);
  }
  unsynced_names_.clear();
  names_.clear();
  for (const auto& [path, entry] : durable_names_) {
    if (IsDir(ParentOf(path))) names_.emplace(path, entry);  // parents come first in this order
  }
  durable_names_ = names_;
  for (const auto& [path, entry] : names_) {
    if (entry.file) Settle(*entry.file);
  }
}

void SimDisk::Settle(File& file) {
  const std::vector<Change> changes = std::move(file.unsynced);
  file.unsynced.clear();
  enum class Fate : unsigned char { kLost, kKept, kPrefix, kEach };
  const auto fate = static_cast<Fate>(random_.Below(4));
  const std::size_t whole = random_.Below(changes.size() + 1);
  std::size_t i = 0;
  for (const Change& change : changes) {
    const std::size_t nth = i++;
    switch (fate) {
      case Fate::kLost:
        break;
      case Fate::kKept:
        Apply(change, &file.durable);
        break;
      case Fate::kPrefix:
        if (nth < whole) Apply(change, &file.durable);
        if (nth == whole) file.durable = Tear(std::move(file.durable), change);
        break;
      case Fate::kEach:
        switch (random_.Below(3)) {
          case 0:
            break;
          case 1:
            Apply(change, &file.durable);
            break;
          default:
            file.durable = Tear(std::move(file.durable), change);
        }
        break;
    }
  }
  file.current = file.durable;
}

std::string SimDisk::Tear(std::string before, const Change& change) {
  if (change.resize || change.bytes.size() < 2) return before;
  ++torn_;
  if (random_.Chance(1, 2)) {
    const std::size_t cut = random_.Between(1, change.bytes.size() - 1);
    Apply({.offset = change.offset, .bytes = change.bytes.substr(0, cut)}, &before);
    return before;
  }
  const std::uint64_t end = change.offset + change.bytes.size();
  for (std::uint64_t from = change.offset; from < end;) {
    const std::uint64_t to = std::min(end, (from / kSector + 1) * kSector);
    if (random_.Chance(1, 2)) {
      Apply({.offset = from, .bytes = change.bytes.substr(from - change.offset, to - from)},
            &before);
    }
    from = to;
  }
  return before;
}

}  // namespace etalon::sim
