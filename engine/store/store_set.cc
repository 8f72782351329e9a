#include "engine/store/store_set.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/crc32c.h"
#include "common/ids.h"

namespace etalon::store {
namespace {

constexpr std::string_view kPointer = "CURRENT";
constexpr std::uint64_t kPointerLimit = 1024;
constexpr std::size_t kNameLimit = 64;

bool IsName(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return name.size() <= kNameLimit && name.substr(0, 2) == "g-" &&
         std::all_of(name.begin(), name.end(), good);
}

std::string EncodePointer(std::string_view name) {
  return std::string(name) + ' ' + ToHex(Crc32c(name)) + '\n';
}

Result<std::string> DecodePointer(std::string_view path, const std::string& text) {
  const std::string name = text.substr(0, text.find(' '));
  if (!IsName(name) || text != EncodePointer(name)) {
    return DataLoss(std::string(path) +
                    " is damaged: build this replica anew from the others of its shard");
  }
  return name;
}

// Makes the names of `path` and of all directories above it durable.
void SyncParents(std::string_view path, DiskJob* job) {
  for (auto slash = path.rfind('/'); slash != path.npos; slash = path.rfind('/')) {
    path = path.substr(0, slash);
    job->push_back(DiskOp::SyncDir(std::string(path)));
  }
  job->push_back(DiskOp::SyncDir(""));
}

}  // namespace

StoreSet::StoreSet(Disk& disk, StoreFactory& factory, std::string dir)
    : disk_(disk), factory_(factory), dir_(std::move(dir)), alive_(std::make_shared<char>()) {}

std::string StoreSet::PathOf(std::string_view name) const { return dir_ + '/' + std::string(name); }

// Failure is harmless: the next Open tries again.
void StoreSet::Remove(std::string_view name) {
  disk_.Submit({DiskOp::RemoveTree(PathOf(name))}, [](const Status&) {});
}

// Empty: no generation is current.
Result<std::string> StoreSet::ReadPointer(const std::vector<std::string>& entries,
                                          std::string_view wanted) {
  const std::string pointer = PathOf(kPointer);
  std::string name;
  auto text = ReadWhole(disk_, pointer, kPointerLimit);
  if (text.ok()) {
    ETALON_ASSIGN_OR_RETURN(name, DecodePointer(pointer, *text));
  } else if (text.status().code() != Code::kNotFound) {
    return text.status();
  }
  const std::string dir = std::string(wanted) + '/';
  if (std::find(entries.begin(), entries.end(), dir) == entries.end()) return name;
  return std::string(wanted);
}

Status StoreSet::Open(std::string_view wanted) {
  auto entries = disk_.List(dir_);
  if (!entries.ok()) {
    return entries.status().code() == Code::kNotFound ? OkStatus() : entries.status();
  }
  ETALON_ASSIGN_OR_RETURN(const std::string name, ReadPointer(*entries, wanted));
  if (name.empty()) return OkStatus();
  ETALON_ASSIGN_OR_RETURN(current_, factory_.Open(PathOf(name), OpenMode::kExisting));
  current_name_ = name;
  DiskJob job;
  // The pointer may still name an older one, which stays until the pointer is durable.
  if (name == wanted) job = ReplaceFile(PathOf(kPointer), EncodePointer(name));
  // In the same job, so that a generation made later under one of these names is not removed.
  for (std::string entry : *entries) {
    if (entry.back() != '/') continue;
    entry.pop_back();
    if (IsName(entry) && entry != name) job.push_back(DiskOp::RemoveTree(PathOf(entry)));
  }
  // Failure is harmless: the next Open tries again.
  disk_.Submit(std::move(job), [](const Status&) {});
  return OkStatus();
}

void StoreSet::CreateFresh(std::string name, FreshDone done) {
  Status refusal;
  if (!IsName(name)) {
    refusal = InvalidArgument("'" + name + "' is no name of a generation: use g- and a number");
  } else if (busy_ || name == current_name_) {
    refusal = FailedPrecondition(Reason::kNone, busy_ ? "another change of generation runs"
                                                      : name + " is the current generation");
  }
  DiskJob job;
  if (refusal.ok()) {
    busy_ = true;
    fresh_.reset();
    if (!fresh_name_.empty() && fresh_name_ != name) Remove(fresh_name_);
    fresh_name_ = name;
    job.push_back(DiskOp::RemoveTree(PathOf(name)));
    job.push_back(DiskOp::MakeDir(PathOf(name)));
    SyncParents(PathOf(name), &job);
  }
  disk_.Submit(std::move(job), [this, alive = std::weak_ptr<void>(alive_), refusal,
                                done = std::move(done)](Status status) mutable {
    if (alive.expired()) return;
    if (!refusal.ok()) return done(refusal);
    OpenFresh(std::move(status), std::move(done));
  });
}

void StoreSet::OpenFresh(Status wiped, FreshDone done) {
  busy_ = false;
  if (!wiped.ok()) return done(wiped.Annotate("making the generation " + fresh_name_));
  auto opened = factory_.Open(PathOf(fresh_name_), OpenMode::kFresh);
  if (!opened.ok()) return done(opened.status());
  fresh_ = std::move(opened).value();
  done(fresh_.get());
}

void StoreSet::DropFresh() {
  ETALON_CHECK(!busy_, "a generation is not dropped while it is made or activated");
  fresh_.reset();
  if (!fresh_name_.empty()) Remove(fresh_name_);
  fresh_name_.clear();
}

void StoreSet::Activate(std::string_view name, Done done) {
  const std::weak_ptr<void> alive = alive_;
  if (busy_ || fresh_ == nullptr || name != fresh_name_) {
    Status refusal = FailedPrecondition(Reason::kNone,
                                        busy_ ? "another change of generation runs"
                                              : std::string(name) + " is not the fresh generation");
    disk_.Submit({}, [alive, refusal, done = std::move(done)](const Status&) mutable {
      if (!alive.expired()) done(refusal);
    });
    return;
  }
  busy_ = true;
  fresh_->Checkpoint([this, alive, done = std::move(done)](Status status) mutable {
    if (alive.expired()) return;
    if (!status.ok()) {
      busy_ = false;
      return done(std::move(status));
    }
    disk_.Submit(ReplaceFile(PathOf(kPointer), EncodePointer(fresh_name_)),
                 [this, alive, done = std::move(done)](Status replaced) mutable {
                   if (alive.expired()) return;
                   busy_ = false;
                   if (!replaced.ok()) return done(std::move(replaced));
                   Swap(std::move(done));
                 });
  });
}

void StoreSet::Swap(Done done) {
  if (current_ != nullptr) {
    current_.reset();
    Remove(current_name_);
  }
  current_ = std::move(fresh_);
  current_name_ = std::exchange(fresh_name_, {});
  done(OkStatus());
}

}  // namespace etalon::store
