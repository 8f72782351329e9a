#include "storage/node/scans.h"

#include "storage/node/testing/call_world.h"

namespace etalon::storage {
namespace {

using std::chrono::seconds;
using testing::CallWorld;
using testing::KeysOf;
using testing::ScanCall;
using testing::buckets::PutCall;
using testing::buckets::RebaseCommand;
using testing::buckets::StepCommand;
using testing::buckets::WithId;

using Keys = std::vector<std::string>;

v1::ScanArgs Orders(std::uint32_t limit = 0, std::string cursor = "") {
  v1::ScanArgs args;
  args.set_space("orders");
  args.set_limit(limit);
  args.set_cursor(std::move(cursor));
  return args;
}
v1::ScanArgs WholeBucket() {
  v1::ScanArgs args;
  args.set_whole_bucket(true);
  return args;
}

class ScansTest : public ::testing::Test {
 protected:
  void Put(std::uint64_t value, const std::string& key, const std::string& data = "v") {
    ASSERT_TRUE(w.Do(PutCall(value, key, data)).status.ok());
  }
  // A page that must come.
  v1::ScanResult Page(std::uint64_t value, const v1::ScanArgs& args) {
    const auto answer = w.Do(ScanCall(value, args));
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    v1::ScanResult page;
    EXPECT_TRUE(page.ParseFromString(answer.result));
    return page;
  }
  Status Refusal(std::uint64_t value, const v1::ScanArgs& args) {
    return w.Do(ScanCall(value, args)).status;
  }

  CallWorld w;
};

TEST_F(ScansTest, PagesGoOnUntilTheEnd) {
  for (const char* key : {"c", "a", "e", "b", "d"}) Put(1, key);
  Put(5, "other value");  // of the same bucket
  auto page = Page(1, Orders(2));
  EXPECT_EQ(KeysOf(page), (Keys{"a", "b"}));
  EXPECT_EQ(w.calls.scans().refs(), 1u);
  EXPECT_EQ(w.calls.scans().RefsOf(1), 1u);
  page = Page(1, Orders(2, page.cursor()));
  EXPECT_EQ(KeysOf(page), (Keys{"c", "d"}));
  page = Page(1, Orders(2, page.cursor()));
  EXPECT_EQ(KeysOf(page), (Keys{"e"}));
  EXPECT_TRUE(page.cursor().empty());
  EXPECT_EQ(w.calls.scans().refs(), 0u) << "the reference goes with the last page";
}

TEST_F(ScansTest, APageThatIsAllHoldsNoReference) {
  Put(1, "a");
  EXPECT_TRUE(Page(1, Orders(1)).cursor().empty());
  EXPECT_EQ(w.calls.scans().refs(), 0u);
}

TEST_F(ScansTest, APageIsBoundedInBytesAndALargeRecordIsAPageOfItsOwn) {
  const std::string half(Scans::kPageBytes / 2 - 100, 'x');
  for (const char* key : {"a", "b", "c"}) Put(1, key, half);
  Put(1, "d", std::string(Scans::kPageBytes, 'x'));
  std::vector<Keys> pages;
  std::string cursor;
  do {
    const auto page = Page(1, Orders(0, cursor));
    pages.push_back(KeysOf(page));
    cursor = page.cursor();
  } while (!cursor.empty());
  EXPECT_EQ(pages, (std::vector<Keys>{{"a", "b"}, {"c"}, {"d"}}));
}

TEST_F(ScansTest, AllPagesAreOfOneSnapshot) {
  for (const char* key : {"a", "b", "c"}) Put(1, key, "old");
  auto page = Page(1, Orders(1));
  Put(1, "aa", "new");
  Put(1, "b", "new");
  ASSERT_TRUE(w.Do(testing::buckets::DeleteCall(1, "c")).status.ok());
  page = Page(1, Orders(10, page.cursor()));
  ASSERT_EQ(KeysOf(page), (Keys{"b", "c"}));
  EXPECT_EQ(page.records(0).value(), "old");
  EXPECT_EQ(KeysOf(Page(1, Orders())), (Keys{"a", "aa", "b"})) << "a new scan sees what is";
}

TEST_F(ScansTest, StartsAndEndsAtKeys) {
  for (const char* key : {"a", "b", "c", "d"}) Put(1, key);
  auto args = Orders();
  args.set_start("b");
  args.set_end("d");
  EXPECT_EQ(KeysOf(Page(1, args)), (Keys{"b", "c"}));
}

TEST_F(ScansTest, AWholeBucketHasTheRecordsOfAllItsKeysAndNothingElse) {
  ASSERT_TRUE(w.Do(WithId(PutCall(1, "a", "v"), 3, 4)).status.ok());
  Put(5, "b");
  Put(2, "another bucket");
  const auto page = Page(1, WholeBucket());
  EXPECT_EQ(KeysOf(page), (Keys{"a", "b"})) << "without the results of request IDs";
  EXPECT_EQ(page.records(1).routing_value(), 5u);
  EXPECT_EQ(page.records(1).space(), "orders");
}

TEST_F(ScansTest, AWholeBucketOfAHigherLevelIsAPartOfOurs) {
  Put(1, "low");
  Put(5, "high");  // 4 buckets: 5 is bucket 1 of level 0, bucket 5 of level 1
  for (const std::uint64_t value : {1u, 5u}) {
    auto call = ScanCall(value, WholeBucket());
    call.set_level(1);
    v1::ScanResult page;
    ASSERT_TRUE(page.ParseFromString(w.Do(call).result));
    EXPECT_EQ(KeysOf(page), (Keys{value == 1 ? "low" : "high"}));
  }
}

TEST_F(ScansTest, AMovedBucketStartsItsScansAgainWithAReason) {
  for (const char* key : {"a", "b"}) Put(1, key);
  for (const char* key : {"a", "b"}) Put(2, key);
  const auto moved = Page(1, Orders(1));
  const auto stays = Page(2, Orders(1));
  EXPECT_EQ(w.calls.scans().refs(), 2u);
  w.MoveAway(1);
  EXPECT_EQ(w.calls.scans().RefsOf(1), 0u) << "nothing keeps the snapshot of what is gone";
  const Status s = Refusal(1, Orders(1, moved.cursor()));
  EXPECT_EQ(s.code(), Code::kAborted);
  EXPECT_EQ(s.reason(), Reason::kScanRestarted);
  EXPECT_EQ(s.hint().destination, testing::buckets::kB) << "where to start it again";
  EXPECT_EQ(s.hint().epoch, Epoch(2));
  EXPECT_EQ(KeysOf(Page(2, Orders(1, stays.cursor()))), (Keys{"b"}));
}

TEST_F(ScansTest, ABucketAtTheEndOfItsMoveIsStillRead) {
  for (const char* key : {"a", "b"}) Put(1, key);
  const auto page = Page(1, Orders(1));
  const TransferId id = w.Open(1);
  w.Control(StepCommand(v1::TransferStep::SENDING, id));
  EXPECT_EQ(KeysOf(Page(1, Orders(1, page.cursor()))), (Keys{"b"}));
}

TEST_F(ScansTest, ADoubledModulusStartsScansAgain) {
  for (const char* key : {"a", "b"}) Put(1, key);
  const auto page = Page(1, Orders(1));
  w.Control(RebaseCommand(1));
  EXPECT_EQ(w.calls.scans().refs(), 0u);
  EXPECT_EQ(Refusal(1, Orders(1, page.cursor())).reason(), Reason::kScanRestarted);
}

TEST_F(ScansTest, ReferencesAreLeased) {
  for (const char* key : {"a", "b", "c"}) Put(1, key);
  auto page = Page(1, Orders(1));
  w.now += Scans::kLease - seconds(1);
  w.calls.OnTick();
  page = Page(1, Orders(1, page.cursor()));
  EXPECT_EQ(KeysOf(page), (Keys{"b"})) << "every page renews the lease";
  w.now += Scans::kLease - seconds(1);
  w.calls.OnTick();
  EXPECT_EQ(w.calls.scans().refs(), 1u);
  w.now += seconds(1);
  w.calls.OnTick();
  EXPECT_EQ(w.calls.scans().refs(), 0u) << "given up by a caller who has gone";
  EXPECT_EQ(Refusal(1, Orders(1, page.cursor())).reason(), Reason::kScanRestarted);
}

TEST_F(ScansTest, OpenScansAreBounded) {
  for (const char* key : {"a", "b"}) Put(1, key);
  v1::ScanResult last;
  for (std::size_t i = 0; i < Scans::kMaxOpen; ++i) last = Page(1, Orders(1));
  EXPECT_EQ(Refusal(1, Orders(1)).code(), Code::kResourceExhausted);
  EXPECT_EQ(KeysOf(Page(1, Orders(10))), (Keys{"a", "b"})) << "one page needs no reference";
  Page(1, Orders(1, last.cursor()));
  Page(1, Orders(1));
}

// The answer was lost, or the network doubled the question: no record may be left out.
TEST_F(ScansTest, APageThatIsAskedForAgainIsTheSamePage) {
  for (const char* key : {"a", "b", "c", "d", "e"}) Put(1, key);
  const auto first = Page(1, Orders(2));
  const auto second = Page(1, Orders(2, first.cursor()));
  EXPECT_EQ(KeysOf(second), (Keys{"c", "d"}));
  EXPECT_EQ(Page(1, Orders(2, first.cursor())).SerializeAsString(), second.SerializeAsString());
  EXPECT_EQ(KeysOf(Page(1, Orders(2, second.cursor()))), (Keys{"e"}));
  EXPECT_EQ(Refusal(1, Orders(2, second.cursor())).reason(), Reason::kScanRestarted)
      << "the scan has ended";
}

TEST_F(ScansTest, OnlyCursorsOfThisScanAreTaken) {
  for (const char* key : {"a", "b"}) Put(1, key);
  const std::string cursor = Page(1, Orders(1)).cursor();
  for (const std::string& bad :
       {std::string("x"), cursor.substr(0, 8), cursor.substr(0, 8) + "beyond the end"}) {
    EXPECT_EQ(Refusal(1, Orders(1, bad)).code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(Refusal(1, Orders(1, std::string(8, 'x') + cursor.substr(8))).reason(),
            Reason::kScanRestarted);
  EXPECT_EQ(Refusal(5, Orders(1, cursor)).reason(), Reason::kScanRestarted)
      << "of another key of the same bucket";
}

TEST_F(ScansTest, RefusesWhatMakesNoSense) {
  auto args = Orders();
  args.set_space("nowhere");
  EXPECT_EQ(Refusal(1, args).reason(), Reason::kUnknownSpace);
  args = v1::ScanArgs();
  args.set_start("a");
  EXPECT_EQ(Refusal(1, args).code(), Code::kInvalidArgument) << "a key without a space";
  args = WholeBucket();
  args.set_space("orders");
  args.set_end("a");
  EXPECT_EQ(Refusal(1, args).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace etalon::storage
