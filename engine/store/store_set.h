// The generations of one replica's store. A snapshot from another replica is received into a fresh
// generation beside the current one and takes its place in one step; until then the current one
// serves.
//
//   <dir>/CURRENT      name and CRC of the current generation (docs/formats.md, "Generations")
//   <dir>/<name>/      one generation
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/unique_function.h"
#include "engine/store/store.h"
#include "env/disk.h"

namespace etalon::store {

// Crash safety: whatever the moment, Open finds the old or the new current generation, whole. A
// generation becomes current only with a completed checkpoint in it. Others are removed, at the
// latest by the next Open.
//
// Use on a blank disk: Open leaves Current() null; CreateFresh, write what the replica starts with,
// Activate.
//
// Names are given by the owner: 1 to 64 of [A-Za-z0-9_.-], beginning with "g-"; a name is not used
// twice.
//
// `done` is called later, on the core executor, never from within; it is dropped if the StoreSet
// ends first. Errors are those of Store, and INVALID_ARGUMENT or FAILED_PRECONDITION where said.
// Threads: core executor only.
class StoreSet {
 public:
  using Done = UniqueFunction<void(Status)>;
  using FreshDone = UniqueFunction<void(Result<Store*>)>;

  // `dir` is relative to the root of `disk`. Both must outlive the set.
  StoreSet(Disk& disk, StoreFactory& factory, std::string dir);
  StoreSet(const StoreSet&) = delete;
  StoreSet& operator=(const StoreSet&) = delete;

  // Once, before everything else. Opens the current generation, if there is one, and has all others
  // removed. Reads the disk synchronously.
  //
  // `wanted` names a generation that the owner knows to be complete and durable (its log begins at
  // it). If it is there it becomes the current one, whatever the pointer says: an Activate was cut
  // short. If it is not there the pointer holds.
  Status Open(std::string_view wanted = {});

  // Null before the first Activate on a blank disk. Changes at a successful Activate, just before
  // its `done`; pointers to the store before it are invalid from then on (its snapshots are not).
  Store* Current() const { return current_.get(); }
  // Empty when Current() is null.
  const std::string& CurrentName() const { return current_name_; }

  // Makes an empty generation. Removes first what an unfinished one left behind, also one that is
  // still open here. The store belongs to the set. FAILED_PRECONDITION for the name of the current
  // generation, and while a CreateFresh or an Activate runs.
  void CreateFresh(std::string name, FreshDone done);
  // Null when there is none.
  Store* Fresh() const { return fresh_.get(); }
  // Gives the fresh generation up and has it removed. Not while an Activate runs.
  void DropFresh();

  // Takes a checkpoint of the fresh generation, makes it the current one durably, and has the old
  // one removed. FAILED_PRECONDITION when `name` is not the fresh generation, or while an Activate
  // runs. After another failure the fresh generation is still there and Activate may be tried
  // again.
  void Activate(std::string_view name, Done done);

 private:
  std::string PathOf(std::string_view name) const;
  void Remove(std::string_view name);
  void OpenFresh(Status wiped, FreshDone done);
  void Swap(Done done);
  Result<std::string> ReadPointer(const std::vector<std::string>& entries, std::string_view wanted);

  Disk& disk_;
  StoreFactory& factory_;
  const std::string dir_;
  std::string current_name_;
  std::string fresh_name_;
  std::unique_ptr<Store> current_;
  std::unique_ptr<Store> fresh_;
  bool busy_ = false;            // a CreateFresh or Activate runs
  std::shared_ptr<void> alive_;  // completions hold it weakly
};

}  // namespace etalon::store
