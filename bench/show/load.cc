#include "bench/show/load.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace etalon::show {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::uint64_t kAccountStart = 1000;

void Put(v1::TxnArgs* txn, const std::string& key, const std::string& value) {
  v1::Mutation& m = *txn->add_mutations();
  m.set_space("load");
  m.set_key(key);
  m.set_put(value);
}

void Expect(v1::TxnArgs* txn, const std::string& key, const std::optional<std::string>& value) {
  v1::Condition& c = *txn->add_conditions();
  c.set_space("load");
  c.set_key(key);
  c.set_kind(value ? v1::Condition::EQUALS : v1::Condition::ABSENT);
  if (value) c.set_value(*value);
}

}  // namespace

// Owns, beside each of a few sources, one counter and two accounts.
struct Load::Writer {
  struct Place {
    std::string source;
    std::optional<std::string> counter;
    std::optional<std::uint64_t> left, right;
  };
  std::string name;
  std::vector<Place> places;
  Random random;
  std::uint64_t number = 0;

  std::string Key(const char* what) const { return name + "/" + what; }
};

Load::Load(Client& client, const std::map<std::string, std::vector<Package>>& index,
           Options options, std::uint64_t seed)
    : client_(client), options_(options) {
  Random random(seed);
  std::vector<const std::string*> sources;
  for (const auto& [source, packages] : index) {
    sources.push_back(&source);
    for (const auto& package : packages) packages_.push_back(&package);
  }
  for (std::size_t i = 0; i < options_.writers; ++i) {
    auto writer =
        std::make_unique<Writer>(Writer{"writer-" + std::to_string(i), {}, random.Fork(), 0});
    for (int p = 0; p < 64; ++p) {
      const std::string& source = *sources[random.Below(sources.size())];
      const bool twice = std::any_of(writer->places.begin(), writer->places.end(),
                                     [&](const auto& x) { return x.source == source; });
      if (!twice) writer->places.push_back({source, {}, {}, {}});
    }
    writers_.push_back(std::move(writer));
  }
  for (std::size_t i = 0; i < options_.readers; ++i) readers_.push_back(random.Fork());
}

Load::~Load() { Stop(); }

void Load::Start() {
  taken_ = SteadyClock::now();
  stopping_ = false;
  pace_ended_ = false;
  pacer_ = std::make_unique<std::thread>([this] {
    std::unique_lock lock(pace_mutex_);
    while (!pace_ended_) {
      if (due_.empty()) {
        pace_changed_.wait(lock);
        continue;
      }
      auto next = std::min_element(due_.begin(), due_.end(),
                                   [](const Due& a, const Due& b) { return a.at < b.at; });
      if (next->at > SteadyClock::now()) {
        pace_changed_.wait_until(lock, next->at);
        continue;
      }
      auto run = std::move(next->next);
      due_.erase(next);
      lock.unlock();
      run();
      lock.lock();
    }
  });
  for (auto& writer : writers_) {
    ++running_;
    Pace([this, w = writer.get()] { Write(*w); });
  }
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    ++running_;
    Pace([this, i] { ReadOne(i); });
  }
}

void Load::Stop() {
  if (!pacer_) return;
  stopping_ = true;
  std::unique_lock lock(pace_mutex_);
  pace_changed_.wait(lock, [&] { return running_ == 0; });
  pace_ended_ = true;
  pace_changed_.notify_all();
  lock.unlock();
  pacer_->join();
  pacer_.reset();
}

void Load::Pace(std::function<void()> next) {
  const auto members = static_cast<double>(writers_.size() + readers_.size());
  const auto gap =
      std::chrono::duration<double>(members / static_cast<double>(options_.calls_per_second));
  std::lock_guard lock(pace_mutex_);
  if (stopping_) {
    --running_;
  } else {
    due_.push_back({SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(gap),
                    std::move(next)});
  }
  pace_changed_.notify_all();
}

void Load::Error(const std::string& what) {
  ++errors_;
  std::lock_guard lock(mutex_);
  if (first_error_.empty()) first_error_ = what;
}

std::string Load::first_error() const {
  std::lock_guard lock(mutex_);
  return first_error_;
}

void Load::Account(SteadyClock::time_point begin, const Status& status, bool write,
                   const std::string& what) {
  const auto took = SteadyClock::now() - begin;
  window_.Add(took);
  if (write) writes_.Add(took);
  ++calls_;
  if (!status.ok()) {
    Error(what + ": " + status.ToString());
  } else if (write) {
    ++acknowledged_;
  }
}

void Load::ReadOne(std::size_t reader) {
  Random& random = readers_[reader];
  const Package& package = *packages_[random.Below(packages_.size())];
  const v1::Mode mode = random.Chance(1, 2) ? v1::MODE_RW : v1::MODE_RO;
  const auto begin = SteadyClock::now();
  client_.Get(package.source, "packages", package.key, mode,
              [this, reader, begin, &package](const Status& status, const std::string& bytes) {
                Account(begin, status, false, "get " + package.key);
                v1::GetResult result;
                if (status.ok() && (!result.ParseFromString(bytes) || !result.found() ||
                                    result.value() != package.json)) {
                  Error("get " + package.key + ": another document than the one that was put");
                }
                Pace([this, reader] { ReadOne(reader); });
              });
}

void Load::Write(Writer& writer) {
  Writer::Place& place = writer.places[writer.random.Below(writer.places.size())];
  const auto begin = SteadyClock::now();
  v1::TxnArgs txn;
  if (writer.random.Chance(1, 2)) {
    const std::string value = std::to_string(++writer.number);
    Expect(&txn, writer.Key("counter"), place.counter);
    Put(&txn, writer.Key("counter"), value);
    client_.Txn(place.source, txn,
                [this, &writer, &place, value, begin](const Status& status, const std::string&) {
                  Account(begin, status, true, "put");
                  if (status.ok()) place.counter = value;
                  Pace([this, &writer] { Write(writer); });
                });
    return;
  }
  // Money from one account to the other.
  const std::uint64_t left = place.left.value_or(kAccountStart);
  const std::uint64_t right = place.right.value_or(kAccountStart);
  const std::uint64_t amount = left == 0 ? 0 : 1 + writer.random.Below(left);
  const std::uint64_t new_left = left == 0 ? right : left - amount;
  const std::uint64_t new_right = left == 0 ? 0 : right + amount;
  const auto text = [](const std::optional<std::uint64_t>& n) {
    return n ? std::optional<std::string>(std::to_string(*n)) : std::nullopt;
  };
  Expect(&txn, writer.Key("left"), text(place.left));
  Expect(&txn, writer.Key("right"), text(place.right));
  Put(&txn, writer.Key("left"), std::to_string(new_left));
  Put(&txn, writer.Key("right"), std::to_string(new_right));
  client_.Txn(place.source, txn,
              [this, &writer, &place, new_left, new_right, begin](const Status& status,
                                                                  const std::string&) {
                Account(begin, status, true, "transaction");
                if (status.ok()) {
                  place.left = new_left;
                  place.right = new_right;
                }
                Pace([this, &writer] { Write(writer); });
              });
}

Load::Sample Load::Take() {
  const auto now = SteadyClock::now();
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - taken_).count());
  Sample out;
  out.per_second = static_cast<double>(window_.count()) / seconds;
  out.p50_ms = window_.PercentileMs(0.50);
  out.p99_ms = window_.PercentileMs(0.99);
  out.longest_ms = window_.longest_ms();
  out.errors = errors_;
  window_.Reset();
  taken_ = now;
  return out;
}

std::vector<std::string> Load::Verify() {
  std::vector<std::string> wrong;
  std::mutex mutex;
  Window window(256);
  const auto check = [&](const std::string& source, const std::string& key,
                         const std::optional<std::string>& expected) {
    window.Enter();
    client_.Get(
        source, "load", key, v1::MODE_RW,
        [&, source, key, expected](const Status& status, const std::string& bytes) {
          v1::GetResult result;
          const bool parsed = status.ok() && result.ParseFromString(bytes);
          const bool good = parsed && result.found() == expected.has_value() &&
                            (!expected || result.value() == *expected);
          if (!good) {
            std::lock_guard lock(mutex);
            wrong.push_back(source + " " + key + ": " +
                            (status.ok() ? "holds '" + result.value() + "', acknowledged is '" +
                                               expected.value_or("nothing") + "'"
                                         : status.ToString()));
          }
          window.Leave();
        });
  };
  const auto text = [](const std::optional<std::uint64_t>& n) {
    return n ? std::optional<std::string>(std::to_string(*n)) : std::nullopt;
  };
  for (const auto& writer : writers_) {
    for (const auto& place : writer->places) {
      check(place.source, writer->Key("counter"), place.counter);
      check(place.source, writer->Key("left"), text(place.left));
      check(place.source, writer->Key("right"), text(place.right));
      if (place.left && *place.left + *place.right != 2 * kAccountStart)
        wrong.push_back(place.source + ": the sum of two accounts changed");
    }
  }
  window.Drain();
  return wrong;
}

}  // namespace etalon::show
