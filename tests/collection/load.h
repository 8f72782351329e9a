// A load of writes in the background, each with a request ID and a deadline of 10 s, every answer
// of which is kept.
//
// Each writer has a customer of its own. Its n-th write is a transaction: the counter must be n - 1
// and record n absent; then the counter is n and record n is there. So a write that was lost or
// applied twice makes a later one fail, and what is stored can be compared with what was told.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/collection/calls.h"
#include "tests/collection/collection.h"

namespace etalon::e2e {

class Load {
 public:
  struct Options {
    std::size_t writers = 8;
    // As clients do that know several routers: one that cannot be reached is left for the next one,
    // with the same request ID. Else one call is one try.
    bool try_other_routers = false;
    std::string shard = "";  // only customers of this one; empty: of any
  };
  struct Answer {
    std::uint64_t number = 0;
    Status status;
    Duration took{};
  };

  explicit Load(Collection& collection) : Load(collection, Options()) {}
  Load(Collection& collection, Options options);
  ~Load();

  void Start();  // also again after Stop
  // Waits for the calls that are out. A write whose outcome is unknown is asked for again (with its
  // request ID) until then.
  void Stop();

  // Waits until every writer, or every one whose customer is of `shard`, had `more` writes
  // acknowledged from now on.
  void AwaitProgress(std::uint64_t more, const std::string& shard = "");

  std::string Customer(std::size_t writer) const;
  static std::string RecordKey(std::uint64_t number);  // in space accounts
  std::size_t writers() const { return writers_.size(); }
  std::uint64_t acknowledged() const;
  std::uint64_t acknowledged(std::size_t writer) const;
  std::vector<Answer> answers(std::size_t writer) const;

  // No write failed.
  void ExpectNoFailure() const;
  // What is stored of a writer: the number of its last write. The test fails if it is not exactly
  // what the first n writes leave behind.
  std::uint64_t Stored(std::size_t writer);
  // After Stop: stored is what was acknowledged, no more and no less.
  void ExpectAllStored();

 private:
  struct Writer {
    std::string customer;
    std::uint64_t client = 0;
    std::vector<Answer> answers;
    std::uint64_t acknowledged = 0;
    bool unknown = false;  // whether the write after it was applied
    std::string shard;
    std::unique_ptr<std::thread> thread;
  };

  void Run(Writer* writer, std::size_t number);
  Result<std::string> Send(const v1::ClientCall& call, std::size_t router);

  Collection& collection_;
  const Options options_;
  std::vector<std::unique_ptr<rpc::RouterClient>> routers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::vector<std::unique_ptr<Writer>> writers_;
};

}  // namespace etalon::e2e
