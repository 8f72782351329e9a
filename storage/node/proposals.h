// What this replica proposed and has not seen applied, by log index.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/status.h"
#include "common/time.h"
#include "common/unique_function.h"
#include "engine/bucket/state_machine.h"
#include "env/transport.h"

namespace etalon::storage {

// One admitted call on its way.
struct CallTicket {
  using Sink = UniqueFunction<void(Status, std::string result)>;

  NodeName from;
  std::uint64_t id = 0;
  std::string bytes;  // the serialized v1::Call, as it stands in the log
  std::string function;
  RoutingValue value;
  Deadline deadline;
  SteadyTime arrived;
  std::shared_ptr<Sink> sink;  // gets the answer instead of the transport
};

using ControlDone = UniqueFunction<void(Status)>;

class Proposals {
 public:
  struct Pending {
    Term term;
    std::vector<CallTicket> calls;
    ControlDone control;
  };

  void Add(LogIndex index, Pending pending) { pending_[index] = std::move(pending); }

  // What waited for this index, if anything did.
  std::optional<Pending> Take(LogIndex index) {
    auto it = pending_.find(index);
    if (it == pending_.end()) return std::nullopt;
    Pending out = std::move(it->second);
    pending_.erase(it);
    return out;
  }
  // Everything, when this replica stops leading: whether it will be applied is not known here any
  // more.
  std::map<LogIndex, Pending> TakeAll() { return std::exchange(pending_, {}); }
  std::size_t size() const { return pending_.size(); }

 private:
  std::map<LogIndex, Pending> pending_;
};

}  // namespace etalon::storage
