// For tests: one log on a simulated node, and what the test knows to have told it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/check.h"
#include "engine/log/log.h"
#include "sim/world/world.h"

namespace etalon::log {

using consensus::Entry;
using consensus::EntryKind;
using consensus::HardState;
using consensus::Persist;
using consensus::Snapshot;
using Answer = consensus::Log::Answer;

inline constexpr Duration kSoon = std::chrono::seconds(60);

class LogNode {
 public:
  explicit LogNode(std::uint64_t seed,
                   SegmentedLog::Options log_options = {.dir = "log", .segment_bytes = 4096})
      : world(seed),
        options(std::move(log_options)),
        env(std::make_unique<Env>(world.AddNode("n"))) {}

  Status Open() {
    Result<std::unique_ptr<SegmentedLog>> opened =
        SegmentedLog::Open(env->disk, env->core, env->clock, env->random.Fork(), env->log, options);
    if (!opened.ok()) return opened.status();
    log = std::move(*opened);
    log->SetCallbacks({.ready = [this] { ready = true; },
                       .durable =
                           [this](std::uint64_t up_to) {
                             EXPECT_GT(up_to, durable);
                             durable = up_to;
                             ++durable_calls;
                           },
                       .fetched =
                           [this] {
                             ++fetched;
                             if (on_fetched) on_fetched();
                           },
                       .failed = [this](Status status) { failed.push_back(std::move(status)); },
                       .snapshot_provider = {}});
    return OkStatus();
  }
  void MustOpen() {
    const Status status = Open();
    ETALON_CHECK(status.ok(), status.ToString());
  }
  void Crash(sim::CrashKind kind = sim::CrashKind::kPower) {
    log.reset();
    world.Crash("n", kind);
    env = std::make_unique<Env>(world.Restart("n"));
    ready = false;
    durable = number = 0;
  }
  void Restart() {
    Crash();
    MustOpen();
  }

  // Appends `count` entries from `first` on; returns the number that becomes durable.
  std::uint64_t Append(std::uint64_t first, int count, std::uint64_t term, std::size_t size = 40,
                       bool sync = true) {
    std::vector<std::string> data;
    std::vector<Entry> entries;
    for (int i = 0; i < count; ++i) data.push_back(Data(first + i, term, size));
    for (int i = 0; i < count; ++i)
      entries.push_back({LogIndex(first + i), Term(term), EntryKind::kCommands, data[i]});
    Persist persist{.number = ++number, .sync = sync, .entries = entries};
    if (log->hard_state().term < Term(term))
      persist.hard_state = HardState{Term(term), MemberId(7), log->hard_state().commit};
    log->Append(persist);
    return number;
  }
  std::uint64_t Commit(std::uint64_t index) {
    log->Append(
        {.number = ++number,
         .hard_state = HardState{log->hard_state().term, log->hard_state().vote, LogIndex(index)}});
    return number;
  }
  std::uint64_t Reset(const Snapshot& snapshot) {
    const Term term = std::max(snapshot.term, log->hard_state().term);
    log->Append({.number = ++number,
                 .sync = true,
                 .hard_state = HardState{term, MemberId(3), snapshot.index},
                 .snapshot = snapshot});
    return number;
  }
  bool WaitDurable() {
    return world.RunUntil([&] { return durable == number; }, kSoon);
  }
  // Until the disk has nothing to do.
  void Settle() { world.RunFor(kSoon); }

  // What an entry of that index and term holds.
  static std::string Data(std::uint64_t index, std::uint64_t term, std::size_t size = 40) {
    std::string data = std::to_string(index) + "/" + std::to_string(term) + "/";
    data.resize(size, static_cast<char>('a' + index % 26));
    return data;
  }
  // "first..last" of terms and data as Data() makes them, or what is wrong.
  std::string Describe() {
    std::string out =
        std::to_string(log->First().value()) + ".." + std::to_string(log->Last().value()) + ":";
    std::uint64_t last_term = 0;
    for (LogIndex i = log->First(); i <= log->Last(); i = i.Next()) {
      std::vector<Entry> entries;
      if (log->Read(i, i.Next(), 1, true, false, &entries) != Answer::kOk || entries.size() != 1)
        return out + " unreadable";
      const Entry& e = entries[0];
      if (e.index != i || e.term != log->TermAt(i))
        return out + " wrong index or term at " + std::to_string(i.value());
      if (e.data != Data(i.value(), e.term.value(), e.data.size()))
        return out + " wrong data at " + std::to_string(i.value());
      if (e.term.value() != last_term)
        out += " " + std::to_string(i.value()) + "@" + std::to_string(e.term.value());
      last_term = e.term.value();
    }
    return out;
  }
  std::vector<std::string> Segments() { return world.disk("n").Files(); }

  sim::SimWorld world;
  std::unique_ptr<SegmentedLog> log;
  bool ready = false;
  std::uint64_t number = 0;
  std::uint64_t durable = 0;
  int durable_calls = 0;
  int fetched = 0;
  std::function<void()> on_fetched;
  std::vector<Status> failed;
  SegmentedLog::Options options;
  std::unique_ptr<Env> env;
};

}  // namespace etalon::log
