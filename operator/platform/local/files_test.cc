#include "operator/platform/local/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "env/posix/temp_dir.h"
#include "etalon/v1/topology.pb.h"
#include "operator/platform/local/ports.h"

namespace etalon::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Files, CreatedOnce) {
  TempDir dir;
  const std::string path = dir.path() + "/topology-1.json";
  EXPECT_TRUE(CreateFile(path, "one").ok());
  EXPECT_TRUE(CreateFile(path, "one").ok());  // the same again
  const Status other = CreateFile(path, "two");
  EXPECT_EQ(other.reason(), Reason::kTopologyConflict);
  EXPECT_EQ(ReadFile(path).value(), "one");
}

TEST(Files, Replaced) {
  TempDir dir;
  const std::string path = dir.path() + "/status.json";
  EXPECT_EQ(ReadFile(path).status().code(), Code::kNotFound);
  EXPECT_TRUE(ReplaceFile(path, "one").ok());
  EXPECT_TRUE(ReplaceFile(path, "two", Durable::kNo).ok());
  EXPECT_EQ(ReadFile(path).value(), "two");
}

TEST(Files, Listed) {
  TempDir dir;
  for (const char* name :
       {"/form-2.json", "/form-1.json", "/form-1.json.new", "/form-", "/other"}) {
    ASSERT_TRUE(ReplaceFile(dir.path() + name, "").ok());
  }
  EXPECT_THAT(ListMiddles(dir.path(), "form-", ".json").value(), ElementsAre("1", "2"));
  EXPECT_TRUE(ListMiddles(dir.path() + "/none", "", "").value().empty());
}

TEST(Files, JsonThereAndBack) {
  v1::Topology topology;
  topology.set_version(7);
  topology.set_collection(0xfedcba9876543210u);
  topology.add_shards()->set_name("shard-0");
  v1::Topology back;
  ASSERT_TRUE(FromJson("t", ToJson(topology), &back).ok());
  EXPECT_EQ(back.SerializeAsString(), topology.SerializeAsString());
  EXPECT_THAT(FromJson("t.json", "{", &back).message(), HasSubstr("t.json is damaged"));
  EXPECT_FALSE(FromJson("t.json", R"({"nobody": 1})", &back).ok());
}

TEST(Ports, OneThatIsFreeAndNotTaken) {
  const auto first = ChoosePort(20000, {});
  ASSERT_TRUE(first.ok());
  const auto second = ChoosePort(first.value(), {first.value()});
  ASSERT_TRUE(second.ok());
  EXPECT_GT(second.value(), first.value());
  EXPECT_FALSE(ChoosePort(65535, {65535}).ok());
}

}  // namespace
}  // namespace etalon::controller
