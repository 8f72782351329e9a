// The meeting point of one node and its gRPC streams: where received messages go, and where reply
// addresses lead.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/logger.h"
#include "common/status.h"
#include "common/unique_function.h"
#include "env/executor.h"
#include "env/transport.h"
#include "rpc/limits.h"

namespace etalon::rpc {

// Where messages to one reply address go: an incoming stream or an incoming unary call. Any thread.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual SendResult Push(std::string bytes) = 0;
  // The server stops: end as soon as nothing that was received waits for an answer.
  virtual void BeginClose() = 0;
};

// Threads: any. Held by shared_ptr by everything that gRPC's threads may touch, so it outlives the
// node; after Close it reaches neither the node nor its executor.
class Endpoint {
 public:
  // The node's entry point; runs on the core executor.
  using Receiver = std::function<void(const NodeName& from, Lane lane, std::string bytes)>;
  // A stream to a named node has ended, and everything that came over it was handed on: what was
  // sent on it and is not answered will not be. Runs on the core executor.
  using EndWatcher = std::function<void(const NodeName& peer, Lane lane)>;

  // `stopping`: why calls are refused while the process stops, as a reason of its kind.
  Endpoint(Executor& core, Logger& log, const Limits& limits = {},
           Reason stopping = Reason::kStorageIsDisabled);

  // Before the first message can arrive.
  void SetReceiver(Receiver receiver);
  void SetEndWatcher(EndWatcher watcher);  // optional; before the first stream is opened

  // Posts one task that hands `messages` to the receiver, in order, and then runs `handled`.
  void Deliver(NodeName from, Lane lane, std::vector<std::string> messages,
               UniqueFunction<void()> handled);

  // Posts one task that runs `first` and then tells the watcher.
  void DeliverEnd(NodeName peer, Lane lane, UniqueFunction<void()> first);

  // Gives `sink` a reply address of its own: "<prefix>-<number>". Empty once BeginClose was called.
  NodeName Register(std::string_view prefix, std::shared_ptr<Sink> sink);
  void Unregister(const NodeName& name);
  std::shared_ptr<Sink> Find(const NodeName& name) const;

  // One more unary call in progress; false when there are too many.
  bool AdmitUnary();
  void ReleaseUnary();

  // Asks every sink to end, and lets no new one in.
  void BeginClose();
  // Nothing is posted after this returns, and tasks posted before do nothing. To be called before
  // the node or its executor go away, on the core executor or when it does not run.
  void Close();

  const Limits& limits() const { return limits_; }
  Status Stopping() const {
    return Unavailable(stopping_, "this process is stopping: use another one");
  }
  Counters& counters() { return counters_; }
  void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

 private:
  struct Inbox {  // shared with posted tasks
    std::mutex mutex;
    bool open = true;  // written under the mutex
    Receiver receiver;
    EndWatcher end_watcher;
  };

  Executor& core_;
  Logger& log_;
  const Limits limits_;
  const Reason stopping_;
  Counters counters_;
  const std::shared_ptr<Inbox> inbox_;

  mutable std::mutex mutex_;
  std::map<NodeName, std::shared_ptr<Sink>> sinks_;
  std::uint64_t next_number_ = 1;
  std::size_t unary_calls_ = 0;
  bool closing_ = false;
};

}  // namespace etalon::rpc
