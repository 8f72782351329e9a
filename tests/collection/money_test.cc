// Customers and their accounts, in two spaces: money goes from one to the other in transactions
// while their buckets move between shards all the time. Nobody ever sees a sum that is not right.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "common/random.h"
#include "env/posix/os.h"
#include "tests/collection/calls.h"
#include "tests/collection/collection.h"

namespace etalon::e2e {
namespace {

constexpr std::uint64_t kMoney = 1000;  // of each customer
constexpr std::size_t kCustomers = 6;
constexpr int kMoves = 24;

struct Place {
  const char* space;
  const char* key;
};
constexpr std::array<Place, 3> kPlaces{
    {{"customers", "purse"}, {"accounts", "savings"}, {"accounts", "current"}}};
using Money = std::array<std::uint64_t, kPlaces.size()>;

std::string Customer(std::size_t number) { return "customer-" + std::to_string(number); }

// Where a customer's money is, by one scan of both spaces; the test fails if it is not all there.
std::optional<Money> Look(rpc::RouterClient& router, const std::string& customer) {
  const auto page = ReadScan(router.Call(ScanCall(customer, ""), kCallDeadline));
  EXPECT_TRUE(page.ok()) << customer << ": " << page.status().ToString();
  if (!page.ok()) return std::nullopt;
  Money money{};
  std::uint64_t sum = 0;
  for (const v1::Record& record : page->records()) {
    for (std::size_t i = 0; i < kPlaces.size(); ++i) {
      if (record.space() == kPlaces[i].space && record.key() == kPlaces[i].key)
        sum += money[i] = std::stoull(record.value());
    }
  }
  EXPECT_EQ(page->records_size(), static_cast<int>(kPlaces.size())) << customer;
  EXPECT_EQ(sum, kMoney) << customer << ": " << page->ShortDebugString();
  return sum == kMoney ? std::optional(money) : std::nullopt;
}

// Takes turns at all customers, from the first look to the last transaction.
class Clerk {
 public:
  Clerk(const Process& router, std::uint64_t seed)
      : router_(router.address), random_(seed), client_(random_.NextId()) {}
  ~Clerk() { Stop(); }

  void Start() {
    thread_ = std::thread([this] {
      while (!stop_ && Work()) {
      }
    });
  }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int done() const { return done_; }
  int refused() const { return refused_; }  // somebody else was faster

 private:
  // False: something is wrong.
  bool Work() {
    const std::string customer = Customer(random_.Below(kCustomers));
    const std::optional<Money> before = Look(router_, customer);
    if (!before) return false;
    const std::size_t from = random_.Below(kPlaces.size());
    const std::size_t to = (from + 1 + random_.Below(kPlaces.size() - 1)) % kPlaces.size();
    if ((*before)[from] == 0) return true;
    const std::uint64_t amount = 1 + random_.Below((*before)[from]);
    Txn txn;
    for (const std::size_t i : {from, to})
      txn.Expect(kPlaces[i].space, kPlaces[i].key, std::to_string((*before)[i]));
    txn.Put(kPlaces[from].space, kPlaces[from].key, std::to_string((*before)[from] - amount));
    txn.Put(kPlaces[to].space, kPlaces[to].key, std::to_string((*before)[to] + amount));
    v1::ClientCall call = txn.On(customer);
    SetRequest(&call, client_, ++sequence_);
    const Status status = router_.Call(call, kCallDeadline).status();
    if (status.ok()) {
      ++done_;
      return true;
    }
    ++refused_;
    EXPECT_EQ(status.reason(), Reason::kConditionFailed) << customer << ": " << status.ToString();
    return status.reason() == Reason::kConditionFailed;
  }

  rpc::RouterClient router_;
  Random random_;
  const std::uint64_t client_;
  std::uint64_t sequence_ = 0;
  std::atomic<int> done_{0};
  std::atomic<int> refused_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(Money, IsConservedWhileBucketsMove) {
  Collection collection({.shards = 2, .buckets = 4});
  ASSERT_NO_FATAL_FAILURE(collection.Start());
  for (std::size_t i = 0; i < kCustomers; ++i) {
    Txn opening;
    for (std::size_t p = 0; p < kPlaces.size(); ++p)
      opening.Put(kPlaces[p].space, kPlaces[p].key, std::to_string(p == 0 ? kMoney : 0));
    ASSERT_TRUE(collection.router().Call(opening.On(Customer(i)), kCallDeadline).ok());
  }
  std::vector<std::unique_ptr<Clerk>> clerks;
  for (int i = 0; i < 4; ++i) {
    clerks.push_back(std::make_unique<Clerk>(collection.routers()[i % 2], OsSeed()));
    clerks.back()->Start();
  }
  const auto done = [&] {
    int sum = 0;
    for (const auto& clerk : clerks) sum += clerk->done();
    return sum;
  };

  // Every bucket goes to the other shard, again and again, half of them by the tool of people.
  for (int move = 0; move < kMoves && !testing::Test::HasFailure(); ++move) {
    v1::Target target;
    target.set_bucket(static_cast<std::uint64_t>(move % 4));
    const auto route = collection.router().Route(target, kCallDeadline);
    ASSERT_TRUE(route.ok()) << route.status().ToString();
    const std::string from = route->shard_name();
    const std::string to = from == collection.Shard(0) ? collection.Shard(1) : collection.Shard(0);
    const int before = done();
    if (move % 2 == 0) {
      const auto output = collection.Ctl({"move", std::to_string(move % 4), to});
      EXPECT_EQ(output.code, 0) << output.text;
    } else {
      v1::SendRequest request;
      request.set_bucket(static_cast<std::uint32_t>(move % 4));
      request.set_target(collection.Info(collection.Leader(to).name)->shard());
      const auto sent =
          collection.storage(collection.Leader(from).name).Send(request, kCallDeadline);
      EXPECT_TRUE(sent.ok()) << sent.status().ToString();
    }
    collection.Await("bucket " + std::to_string(move % 4) + " is at " + to, [&] {
      const auto now = collection.router().Route(target, kCallDeadline);
      return now.ok() && now->shard_name() == to;
    });
    collection.Await("the clerks get on", [&] { return done() >= before + 4; });
  }
  for (auto& clerk : clerks) clerk->Stop();
  EXPECT_GE(done(), kMoves * 4);
  for (std::size_t i = 0; i < kCustomers; ++i) Look(collection.router(), Customer(i));
  collection.ExpectReplicasEqual();
}

}  // namespace
}  // namespace etalon::e2e
