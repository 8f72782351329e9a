#include "tests/collection/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "common/random.h"
#include "env/posix/os.h"

namespace etalon::e2e {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr char kSpace[] = "accounts";
constexpr char kCounter[] = "counter";
// Between the writes of one writer, so that the machine does other things besides.
constexpr std::chrono::milliseconds kPause{3};

std::optional<std::string> CounterAt(std::uint64_t number) {
  return number == 0 ? std::nullopt : std::optional<std::string>(std::to_string(number));
}

bool OutcomeIsUnknown(const Status& status) {
  return status.code() == Code::kUnavailable || status.code() == Code::kDeadlineExceeded;
}

}  // namespace

Load::Load(Collection& collection, Options options)
    : collection_(collection), options_(std::move(options)) {
  for (const Process& router : collection.routers())
    routers_.push_back(std::make_unique<rpc::RouterClient>(router.address));
  Random random(OsSeed());
  for (int i = 0; writers_.size() < options_.writers; ++i) {
    auto writer = std::make_unique<Writer>();
    writer->customer = fmt::format("customer-{}", i);
    writer->shard = collection.ShardOf(writer->customer);
    if (!options_.shard.empty() && writer->shard != options_.shard) continue;
    writer->client = random.NextId();
    writers_.push_back(std::move(writer));
  }
}

Load::~Load() { Stop(); }

void Load::Start() {
  stopping_ = false;
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    Writer* writer = writers_[i].get();
    writer->thread = std::make_unique<std::thread>([this, writer, i] { Run(writer, i); });
  }
}

void Load::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (auto& writer : writers_) {
    if (!writer->thread) continue;
    writer->thread->join();
    writer->thread.reset();
  }
}

void Load::Run(Writer* writer, std::size_t number) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::uint64_t next = writer->acknowledged + 1;
    lock.unlock();
    v1::ClientCall call = Txn()
                              .Expect(kSpace, kCounter, CounterAt(next - 1))
                              .Expect(kSpace, RecordKey(next), std::nullopt)
                              .Put(kSpace, kCounter, std::to_string(next))
                              .Put(kSpace, RecordKey(next), writer->customer)
                              .On(writer->customer);
    SetRequest(&call, writer->client, next);
    const auto begin = SteadyClock::now();
    const Status status = Send(call, number).status();
    lock.lock();
    writer->answers.push_back({next, status, SteadyClock::now() - begin});
    if (status.ok()) writer->acknowledged = next;
    writer->unknown = OutcomeIsUnknown(status);
    changed_.notify_all();
    // Refused for good: what was told before is not so.
    if (!status.ok() && !writer->unknown && status.code() != Code::kResourceExhausted) return;
    changed_.wait_for(lock, kPause, [this] { return stopping_; });
  }
}

Result<std::string> Load::Send(const v1::ClientCall& call, std::size_t router) {
  const auto end = SteadyClock::now() + kCallDeadline;
  for (;;) {
    auto answer = routers_[router % routers_.size()]->Call(call, end - SteadyClock::now());
    // The router answers at the deadline; before it, unreachable means that there is no router.
    const Reason reason = answer.status().reason();
    const bool elsewhere =
        reason == Reason::kUnreachableReplicaset || reason == Reason::kRouterIsDisabled;
    if (!elsewhere || !options_.try_other_routers || SteadyClock::now() > end) return answer;
    ++router;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 10 * kPause, [] { return false; });
  }
}

void Load::AwaitProgress(std::uint64_t more, const std::string& shard) {
  std::vector<std::uint64_t> goals;
  std::unique_lock lock(mutex_);
  for (const auto& writer : writers_) goals.push_back(writer->acknowledged + more);
  const auto met = [&] {
    for (std::size_t i = 0; i < goals.size(); ++i) {
      if (!shard.empty() && writers_[i]->shard != shard) continue;
      if (writers_[i]->acknowledged < goals[i]) return false;
    }
    return true;
  };
  if (changed_.wait_for(lock, kPatience, met)) return;
  for (std::size_t i = 0; i < goals.size(); ++i) {
    const auto& answers = writers_[i]->answers;
    if (writers_[i]->acknowledged < goals[i]) {
      ADD_FAILURE() << writers_[i]->customer << " does not get on: "
                    << (answers.empty() ? "no answer" : answers.back().status.ToString());
    }
  }
}

std::string Load::RecordKey(std::uint64_t number) { return fmt::format("record-{:08}", number); }

std::string Load::Customer(std::size_t writer) const { return writers_[writer]->customer; }

std::uint64_t Load::acknowledged() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < writers_.size(); ++i) sum += acknowledged(i);
  return sum;
}

std::uint64_t Load::acknowledged(std::size_t writer) const {
  std::lock_guard lock(mutex_);
  return writers_[writer]->acknowledged;
}

std::vector<Load::Answer> Load::answers(std::size_t writer) const {
  std::lock_guard lock(mutex_);
  return writers_[writer]->answers;
}

void Load::ExpectNoFailure() const {
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    for (const Answer& answer : answers(i)) {
      EXPECT_TRUE(answer.status.ok())
          << writers_[i]->customer << ", write " << answer.number << " after "
          << std::chrono::duration_cast<std::chrono::milliseconds>(answer.took).count()
          << " ms: " << answer.status.ToString();
    }
  }
}

std::uint64_t Load::Stored(std::size_t writer) {
  const std::string& customer = writers_[writer]->customer;
  const auto page = ReadScan(Send(ScanCall(customer, kSpace), writer));
  EXPECT_TRUE(page.ok()) << customer << ": " << page.status().ToString();
  if (!page.ok() || page->records_size() == 0) return 0;
  const auto stored = static_cast<std::uint64_t>(page->records_size()) - 1;
  EXPECT_EQ(page->records(0).key(), kCounter) << customer;
  EXPECT_EQ(page->records(0).value(), std::to_string(stored)) << customer;
  for (std::uint64_t n = 1; n <= stored; ++n) {
    const v1::Record& record = page->records(static_cast<int>(n));
    if (record.key() == RecordKey(n) && record.value() == customer) continue;
    ADD_FAILURE() << customer << ": record " << n << " is missing, " << record.key()
                  << " stands there";
    break;
  }
  return stored;
}

void Load::ExpectAllStored() {
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const std::uint64_t stored = Stored(i);
    const std::uint64_t told = acknowledged(i);
    EXPECT_TRUE(stored == told || (writers_[i]->unknown && stored == told + 1))
        << writers_[i]->customer << ": " << told << " acknowledged, " << stored << " stored";
  }
}

}  // namespace etalon::e2e
