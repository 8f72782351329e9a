// A mixed load: reads of documents, writes, and transactions of two records whose sum must not
// change. Each writer owns its records, knows what it was told is in, and says in each write what
// it expects to replace.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/show/client.h"
#include "bench/show/latency.h"
#include "bench/show/package_index.h"
#include "common/random.h"

namespace etalon::show {

class Load {
 public:
  struct Options {
    std::size_t writers = 16;  // each with one call in flight
    std::size_t readers = 16;
    std::uint64_t calls_per_second =
        3000;  // of all together, so that the machine is not only busy with the load
  };

  Load(Client& client, const std::map<std::string, std::vector<Package>>& index, Options options,
       std::uint64_t seed);
  ~Load();

  void Start();
  // Waits for what is in flight.
  void Stop();

  struct Sample {
    double per_second = 0;
    double p50_ms = 0;
    double p99_ms = 0;
    double longest_ms = 0;
    std::uint64_t errors = 0;  // since the start
  };
  // Since the last call of it.
  Sample Take();
  // The longest write since ResetLongest.
  double longest_write_ms() const { return writes_.longest_ms(); }
  void ResetLongest() { writes_.Reset(); }

  std::uint64_t calls() const { return calls_; }
  std::uint64_t acknowledged() const { return acknowledged_; }
  std::uint64_t errors() const { return errors_; }
  std::string first_error() const;

  // Reads all that the writers own; what is not as acknowledged. Call after Stop.
  std::vector<std::string> Verify();

 private:
  struct Writer;
  void Write(Writer& writer);
  void ReadOne(std::size_t reader);
  void Pace(std::function<void()> next);
  void Error(const std::string& what);
  void Account(std::chrono::steady_clock::time_point begin, const Status& status, bool write,
               const std::string& what);

  Client& client_;
  const Options options_;
  std::vector<const Package*> packages_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<Random> readers_;
  Latency window_;
  Latency writes_;
  std::chrono::steady_clock::time_point taken_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> running_{0};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<std::uint64_t> errors_{0};
  mutable std::mutex mutex_;
  std::string first_error_;

  // Paces: calls are started by one thread at the rate that was asked for.
  struct Due {
    std::chrono::steady_clock::time_point at;
    std::function<void()> next;
  };
  std::mutex pace_mutex_;
  std::condition_variable pace_changed_;
  std::vector<Due> due_;
  bool pace_ended_ = false;
  std::unique_ptr<std::thread> pacer_;
};

}  // namespace etalon::show
