// Generations, for every kind of store. Compiled into the tests of each kind.
#include "engine/store/store_set.h"

#include <string>

#include "engine/store/testing/harness.h"
#include "engine/store/testing/model.h"
#include "gmock/gmock.h"

namespace etalon::store {
namespace {

using ::testing::ElementsAre;

constexpr char kDir[] = "replica/store";

class StoreSetTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreSet> NewSet() {
    return std::make_unique<StoreSet>(harness_->disk(), harness_->factory(), kDir);
  }
  std::unique_ptr<StoreSet> OpenSet() {
    auto set = NewSet();
    const Status status = set->Open();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return set;
  }
  Result<Store*> Create(StoreSet& set, const std::string& name) {
    std::optional<Result<Store*>> result;
    set.CreateFresh(name, [&result](Result<Store*> fresh) { result = std::move(fresh); });
    EXPECT_FALSE(result.has_value()) << "answered from within";
    harness_->RunUntil([&result] { return result.has_value(); });
    return *result;
  }
  Status Activate(StoreSet& set, const std::string& name) {
    std::optional<Status> result;
    set.Activate(name, [&result](Status status) { result = std::move(status); });
    EXPECT_FALSE(result.has_value()) << "answered from within";
    harness_->RunUntil([&result] { return result.has_value(); });
    return *result;
  }
  static void Fill(Store& store, const std::string& value) {
    Batch batch;
    batch.Put("a", value);
    batch.Put("b", value);
    ASSERT_TRUE(store.Write(std::move(batch)).ok());
  }
  void MakeCurrent(StoreSet& set, const std::string& name, const std::string& value) {
    const auto fresh = Create(set, name);
    ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
    Fill(**fresh, value);
    ASSERT_TRUE(Activate(set, name).ok());
  }
  // What is in the directory once the disk has done all it was told.
  std::vector<std::string> Entries() {
    bool idle = false;
    harness_->disk().Submit({DiskOp::MakeDir(kDir)}, [&idle](const Status&) { idle = true; });
    harness_->RunUntil([&idle] { return idle; });
    return *harness_->disk().List(kDir);
  }
  void Corrupt(const std::string& path, const std::string& content) {
    std::optional<Status> result;
    harness_->disk().Submit(ReplaceFile(path, content),
                            [&result](Status status) { result = std::move(status); });
    harness_->RunUntil([&result] { return result.has_value(); });
    ASSERT_TRUE(result->ok());
  }

  std::unique_ptr<Harness> harness_ = NewHarness(1);
};

TEST_F(StoreSetTest, ABlankDiskHasNoCurrentGeneration) {
  const auto set = OpenSet();
  EXPECT_EQ(set->Current(), nullptr);
  EXPECT_EQ(set->CurrentName(), "");
  EXPECT_EQ(set->Fresh(), nullptr);
}

TEST_F(StoreSetTest, AnActivatedGenerationIsThereAfterACrash) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-000001", "one");
  EXPECT_EQ(set->CurrentName(), "g-000001");
  EXPECT_EQ(set->Fresh(), nullptr);
  set.reset();
  harness_->Crash();
  set = OpenSet();
  ASSERT_NE(set->Current(), nullptr);
  EXPECT_EQ(set->CurrentName(), "g-000001");
  EXPECT_THAT(Dump(*set->Current()), ElementsAre(std::pair("a", "one"), std::pair("b", "one")));
}

TEST_F(StoreSetTest, ThePointerHasTheDocumentedBytes) {
  const auto set = OpenSet();
  MakeCurrent(*set, "g-000123", "one");
  EXPECT_EQ(*ReadWhole(harness_->disk(), std::string(kDir) + "/CURRENT"),
            "g-000123 0000000040c8559b\n");
}

TEST_F(StoreSetTest, TheCurrentGenerationServesUntilTheNewOneIsActivated) {
  const auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  const auto fresh = Create(*set, "g-2");
  ASSERT_TRUE(fresh.ok());
  EXPECT_EQ(set->Fresh(), *fresh);
  EXPECT_TRUE(Dump(**fresh).empty());
  Fill(**fresh, "two");
  EXPECT_EQ(*set->Current()->Get("a"), "one");
  const auto snapshot = set->Current()->NewSnapshot();
  ASSERT_TRUE(Activate(*set, "g-2").ok());
  EXPECT_EQ(set->CurrentName(), "g-2");
  EXPECT_EQ(*set->Current()->Get("a"), "two");
  EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-2/"));
  // A scan that goes on in the old one is not disturbed.
  EXPECT_EQ(Dump(*snapshot).at("a"), "one");
}

TEST_F(StoreSetTest, AFreshGenerationBeginsEmptyAlsoInThePlaceOfAnUnfinishedOne) {
  const auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  Fill(*Create(*set, "g-2").value(), "unfinished");
  const auto again = Create(*set, "g-2");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE(Dump(**again).empty());
  // Another name takes its place as well.
  ASSERT_TRUE(Create(*set, "g-3").ok());
  EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-1/", "g-3/"));
  EXPECT_EQ(Activate(*set, "g-2").code(), Code::kFailedPrecondition);
  set->DropFresh();
  EXPECT_EQ(set->Fresh(), nullptr);
  EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-1/"));
}

TEST_F(StoreSetTest, OpenRemovesLeftovers) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  Fill(*Create(*set, "g-2").value(), "unfinished");
  set.reset();
  harness_->Crash();
  set = OpenSet();
  EXPECT_EQ(set->CurrentName(), "g-1");
  EXPECT_EQ(*set->Current()->Get("a"), "one");
  EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-1/"));
}

// The owner's log began at the generation before the pointer to it was durable.
TEST_F(StoreSetTest, AWantedGenerationTakesThePlaceOfTheOneThePointerNames) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  Store* fresh = Create(*set, "g-2").value();
  Fill(*fresh, "two");
  std::optional<Status> complete;
  fresh->Checkpoint([&complete](Status status) { complete = std::move(status); });
  harness_->RunUntil([&complete] { return complete.has_value(); });
  ASSERT_TRUE(complete->ok());
  set.reset();
  harness_->Crash();

  set = NewSet();
  ASSERT_TRUE(set->Open("g-2").ok());
  EXPECT_EQ(set->CurrentName(), "g-2");
  EXPECT_EQ(*set->Current()->Get("a"), "two");
  harness_->RunUntil([this] { return Entries() == std::vector<std::string>{"CURRENT", "g-2/"}; });
  set.reset();
  harness_->Crash();
  set = OpenSet();
  EXPECT_EQ(*set->Current()->Get("a"), "two");

  set.reset();
  set = NewSet();
  ASSERT_TRUE(set->Open("g-7").ok());  // not there: the pointer holds
  EXPECT_EQ(set->CurrentName(), "g-2");
}

TEST_F(StoreSetTest, AGenerationMadeAtOnceInThePlaceOfALeftoverStays) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  Fill(*Create(*set, "g-2").value(), "unfinished");
  for (const char* wanted : {"", "g-1"}) {
    set.reset();
    harness_->Crash();
    set = NewSet();
    ASSERT_TRUE(set->Open(wanted).ok());
    const auto fresh = Create(*set, "g-2");  // before the leftover of Open is gone
    ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
    EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-1/", "g-2/"));
  }
}

TEST_F(StoreSetTest, RefusesWhatCannotBe) {
  const auto set = OpenSet();
  EXPECT_EQ(Activate(*set, "g-1").code(), Code::kFailedPrecondition);
  for (const char* name : {"", "x-1", "g-/..", "g-a b", "CURRENT"}) {
    EXPECT_EQ(Create(*set, name).status().code(), Code::kInvalidArgument) << name;
  }
  EXPECT_EQ(Create(*set, "g-" + std::string(70, '1')).status().code(), Code::kInvalidArgument);
  MakeCurrent(*set, "g-1", "one");
  EXPECT_EQ(Create(*set, "g-1").status().code(), Code::kFailedPrecondition);
  EXPECT_EQ(*set->Current()->Get("a"), "one");

  // One change at a time.
  bool done = false;
  set->CreateFresh("g-2", [&done](const Result<Store*>& fresh) {
    EXPECT_TRUE(fresh.ok());
    done = true;
  });
  EXPECT_EQ(Create(*set, "g-3").status().code(), Code::kFailedPrecondition);
  harness_->RunUntil([&done] { return done; });
  bool active = false;
  set->Activate("g-2", [&active](const Status& status) {
    EXPECT_TRUE(status.ok());
    active = true;
  });
  EXPECT_EQ(Activate(*set, "g-2").code(), Code::kFailedPrecondition);
  harness_->RunUntil([&active] { return active; });
  EXPECT_EQ(set->CurrentName(), "g-2");
}

TEST_F(StoreSetTest, ADamagedPointerIsDataLossAndRemovesNothing) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  set.reset();
  const std::string pointer = std::string(kDir) + "/CURRENT";
  const std::string good = *ReadWhole(harness_->disk(), pointer);
  for (const std::string& bad : {std::string(), std::string("g-2") + good.substr(3),
                                 good.substr(0, good.size() - 1), good + "x", std::string("?")}) {
    Corrupt(pointer, bad);
    set = NewSet();
    const Status status = set->Open();
    EXPECT_EQ(status.code(), Code::kDataLoss) << bad;
    EXPECT_THAT(status.message(), ::testing::HasSubstr(pointer));
    EXPECT_THAT(Entries(), ElementsAre("CURRENT", "g-1/"));
    set.reset();
  }
  Corrupt(pointer, good);
  EXPECT_EQ(*OpenSet()->Current()->Get("a"), "one");
}

TEST_F(StoreSetTest, ALostGenerationIsDataLoss) {
  auto set = OpenSet();
  MakeCurrent(*set, "g-1", "one");
  set.reset();
  bool removed = false;
  harness_->disk().Submit({DiskOp::RemoveTree(std::string(kDir) + "/g-1")},
                          [&removed](const Status&) { removed = true; });
  harness_->RunUntil([&removed] { return removed; });
  EXPECT_EQ(NewSet()->Open().code(), Code::kDataLoss);
}

// The machine stops after every single step of receiving and activating a generation, first on a
// blank disk and then beside a current one. What Open finds is the old or the new one, whole; the
// new one once Activate has reported it.
TEST(StoreSetCrash, AtEveryStep) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    for (const bool blank : {true, false}) {
      int old_found = 0;
      int new_found = 0;
      bool completed = false;
      for (int steps = 0; !completed; ++steps) {
        SCOPED_TRACE("seed " + std::to_string(seed) + " steps " + std::to_string(steps));
        const auto harness = NewHarness(seed * 1000 + static_cast<std::uint64_t>(steps));
        // Runs the life of a set that makes `name` current, for a number of steps; true when it got
        // to the end.
        const auto live = [&harness](const std::string& name, int limit) {
          StoreSet set(harness->disk(), harness->factory(), kDir);
          EXPECT_TRUE(set.Open().ok());
          bool active = false;
          set.CreateFresh(name, [&](const Result<Store*>& fresh) {
            ASSERT_TRUE(fresh.ok()) << fresh.status().ToString();
            Batch batch;
            batch.Put("a", name);
            batch.Put("b", name);
            ASSERT_TRUE((*fresh)->Write(std::move(batch)).ok());
            set.Activate(name, [&active](const Status& status) {
              EXPECT_TRUE(status.ok()) << status.ToString();
              active = true;
            });
          });
          for (int i = 0; i < limit && !active; ++i) harness->Step();
          return active;
        };
        if (!blank) {
          ASSERT_TRUE(live("g-1", 1000));
          harness->Crash();
        }
        const bool reported = live("g-2", steps);
        completed = reported;
        harness->Crash();

        StoreSet set(harness->disk(), harness->factory(), kDir);
        const Status opened = set.Open();
        ASSERT_TRUE(opened.ok()) << opened.ToString();
        if (set.Current() == nullptr) {
          ASSERT_TRUE(blank);
          ASSERT_FALSE(reported);
          ++old_found;
          continue;
        }
        const std::string name = set.CurrentName();
        if (reported || blank) {
          ASSERT_EQ(name, "g-2");
        }
        ++(name == "g-2" ? new_found : old_found);
        ASSERT_EQ(Dump(*set.Current()), Model({{"a", name}, {"b", name}}));
        bool idle = false;
        harness->disk().Submit({DiskOp::MakeDir(kDir)}, [&idle](const Status&) { idle = true; });
        harness->RunUntil([&idle] { return idle; });
        const auto entries = *harness->disk().List(kDir);
        for (const std::string& entry : entries) {
          EXPECT_TRUE(entry.back() != '/' || entry == name + "/") << entry << " was left over";
        }
      }
      EXPECT_GT(old_found, 3);
      EXPECT_GT(new_found, 0);
    }
  }
}

}  // namespace
}  // namespace etalon::store
